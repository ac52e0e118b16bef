//! Opens one HTTP connection to the daemon's socket and turns error answers into failures.

use std::io;
use std::path::Path;

use bytes::Bytes;
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::{Frame, Incoming};
use hyper::client::conn::http1::{self, SendRequest};
use hyper::{Method, Request, Response, header};
use hyper_util::rt::TokioIo;
use tokio::net::UnixStream;
use tokio::task::JoinHandle;
use wharf_model::{Code, Failure};

use crate::{Problem, linux};

/// The most that an answer may have, so that a fault at the other end is not one at ours.
pub(crate) const MAX_ANSWER_LEN: usize = 512 << 20;

/// One HTTP connection to the daemon, for requests with bodies of one kind. It closes when it is dropped.
pub(crate) struct Connection<B = Full<Bytes>> {
    sender: SendRequest<B>,
    pub(crate) peer: linux::Peer,
    driver: Driver,
}

/// The task that moves a connection's bytes. Dropped, it ends, and the connection with it.
#[derive(Debug)]
struct Driver(JoinHandle<()>);

impl Drop for Driver {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// The body of an answer that comes piece by piece, and the connection that it comes over.
#[derive(Debug)]
pub(crate) struct Body {
    incoming: Incoming,
    _driver: Driver,
}

impl Body {
    /// The next piece or the trailers; `None` at the end.
    pub(crate) async fn frame(&mut self) -> Option<hyper::Result<Frame<Bytes>>> {
        self.incoming.frame().await
    }
}

/// Why no connection came about, and whether that means that no daemon runs.
pub(crate) struct Refusal {
    pub(crate) failure: Failure,
    pub(crate) absent: bool,
}

/// A request in plain parts, so that it can be made again for another connection.
#[derive(Clone)]
pub(crate) struct Ask {
    pub(crate) method: Method,
    pub(crate) target: String,
    pub(crate) media_type: Option<&'static str>,
    pub(crate) body: Bytes,
}

/// Why a request brought no answer.
pub(crate) enum Broken {
    /// It was not sent.
    Unsent,
    /// It may have been carried out.
    Unknown(String),
}

impl<B> Connection<B>
where
    B: hyper::body::Body + Send + 'static,
    B::Data: Send,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    pub(crate) async fn open(path: &Path) -> Result<Self, Refusal> {
        let (stream, peer) = reach(path).map_err(|error| refusal(path, &error))?;
        if !peer.is_us() {
            return Err(Refusal { failure: forbidden(path, peer), absent: false });
        }
        let (sender, connection) = http1::handshake(TokioIo::new(stream)).await.map_err(|error| Refusal {
            failure: Failure::new(Code::Unreachable, format!("cannot speak to the daemon: {error}")),
            absent: false,
        })?;
        let driver = Driver(tokio::spawn(async move {
            // Whoever asks hears of what breaks it.
            let _ = connection.await;
        }));
        Ok(Self { sender, peer, driver })
    }

    /// Sends a request, once.
    pub(crate) async fn send(&mut self, request: Request<B>) -> hyper::Result<Response<Incoming>> {
        self.sender.send_request(request).await
    }

    /// The body of the answer that this connection is for, until its end.
    pub(crate) fn into_body(self, response: Response<Incoming>) -> Body {
        Body { incoming: response.into_body(), _driver: self.driver }
    }
}

impl Connection {
    pub(crate) async fn ask(&mut self, ask: Ask) -> Result<Response<Incoming>, Broken> {
        let mut request = Request::builder()
            .method(ask.method)
            .uri(ask.target)
            .header(header::HOST, "wharf")
            // Gaps and late failures of a stream come as trailers.
            .header(header::TE, "trailers");
        if let Some(media_type) = ask.media_type {
            request = request.header(header::CONTENT_TYPE, media_type);
        }
        let request = request
            .body(Full::new(ask.body))
            .map_err(|error| Broken::Unknown(format!("bad request: {error}")))?;
        if self.sender.ready().await.is_err() {
            return Err(Broken::Unsent);
        }
        self.sender.try_send_request(request).await.map_err(|mut error| match error.take_message() {
            Some(_) => Broken::Unsent,
            None => Broken::Unknown(error.into_error().to_string()),
        })
    }
}

/// The body of an answer, or the failure that it tells of.
pub(crate) async fn body(response: Response<Incoming>) -> Result<Bytes, Failure> {
    if response.status().is_success() { read(response).await } else { Err(refused(response).await) }
}

/// The failure that an answer tells of.
pub(crate) async fn refused(response: Response<Incoming>) -> Failure {
    let status = response.status();
    match read(response).await {
        Ok(bytes) => failure(status.as_u16(), &bytes),
        Err(failure) => failure,
    }
}

async fn read(response: Response<Incoming>) -> Result<Bytes, Failure> {
    match Limited::new(response.into_body(), MAX_ANSWER_LEN).collect().await {
        Ok(whole) => Ok(whole.to_bytes()),
        Err(error) => Err(Failure::new(Code::Unreachable, format!("the daemon's answer broke off: {error}"))
            .hint("`wharf ls` shows what is there now")),
    }
}

/// Why a daemon of somebody else is not asked.
pub(crate) fn forbidden(path: &Path, peer: linux::Peer) -> Failure {
    let message = format!("the daemon at {} belongs to user {}", path.display(), peer.uid);
    Failure::new(Code::Forbidden, message)
        .hint("HOME and XDG_STATE_HOME decide which daemon is asked: set them to your own")
}

/// The failure that the body of an answer with this status tells of.
pub(crate) fn failure(status: u16, body: &[u8]) -> Failure {
    if let Ok(problem) = serde_json::from_slice::<Problem>(body) {
        return problem.into();
    }
    // Not one of ours: HTTP itself refused, for instance a header that is too large.
    let code = if (400..500).contains(&status) { Code::Invalid } else { Code::Internal };
    Failure::new(code, format!("the daemon answered {status}"))
}

fn reach(path: &Path) -> io::Result<(UnixStream, linux::Peer)> {
    let stream = linux::connect(path)?;
    let peer = linux::peer(&stream)?;
    Ok((UnixStream::from_std(stream)?, peer))
}

pub(crate) fn refusal(path: &Path, error: &io::Error) -> Refusal {
    let path = path.display();
    match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused | io::ErrorKind::NotADirectory => {
            Refusal {
                failure: Failure::new(Code::Unavailable, format!("no daemon answers at {path}"))
                    .hint("a command that needs the daemon, like `wharf ls`, starts it"),
                absent: true,
            }
        }
        io::ErrorKind::WouldBlock => Refusal {
            failure: Failure::new(Code::Unreachable, format!("the daemon at {path} takes no connections"))
                .hint("it is stopped or overloaded: `wharf daemon status` and its log say more"),
            absent: false,
        },
        io::ErrorKind::PermissionDenied => Refusal {
            failure: Failure::new(Code::Forbidden, format!("cannot reach the daemon at {path}: {error}"))
                .hint("the socket must belong to you and have mode 0600, its directory 0700"),
            absent: false,
        },
        _ => Refusal {
            failure: Failure::system(format_args!("cannot reach the daemon at {path}"), error),
            absent: false,
        },
    }
}

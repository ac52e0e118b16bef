//! What leads to an engine, on this host or another: connections, and requests over them.

use std::io;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use bollard::errors::Error;
use bollard::{API_DEFAULT_VERSION, BollardRequest, ClientVersion, Docker, body_full};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::client::conn::http1::{self, SendRequest};
use hyper::header::{HOST, HeaderValue};
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use serde::de::DeserializeOwned;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::sync::Semaphore;
use wharf_backend::BackendTasks;
use wharf_model::{Code, Failure};

use super::allowance::{Allowance, Limited, MAX_ANSWER_LEN};
use super::recalls::Recalls;
use super::route::Route;
#[cfg(feature = "remote-engines")]
use super::tls;
use crate::engine::endpoint::{Endpoint, Flavour};
use crate::engine::why;

/// How long it may take to be connected.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(15);
/// After how long a silence a connection is tried.
const KEEPALIVE_IDLE_SECONDS: u32 = 15;
/// How often it is tried then.
const KEEPALIVE_INTERVAL_SECONDS: u32 = 5;
/// How many tries without an answer end it.
const MAX_KEEPALIVE_TRIES: u32 = 3;
/// From how many bytes on an answer is a large one.
const LARGE_ANSWER_LEN: usize = 64 << 10;
/// How many large answers are read at once, of all engines together. Each may have 16 MiB.
const MAX_LARGE_ANSWERS: usize = 4;
/// How long the rest of a large answer may take: others wait for their turn.
const LARGE_ANSWER_TIMEOUT: Duration = Duration::from_secs(10);
/// So much is read of why an engine refuses something, in bytes.
const MAX_REFUSAL_LEN: usize = 64 << 10;
/// So much of it is shown.
const MAX_SHOWN_LEN: usize = 4 << 10;
/// What is read ahead of an answer at most, in bytes.
const MAX_READ_AHEAD_LEN: usize = 64 << 10;
/// What is kept of the complaints of `ssh`.
const MAX_STDERR_LEN: usize = 2 << 10;

/// The client wants an address to put before each path. Who is at the other end is decided by the way there.
const ADDRESS: &str = "http://engine";

/// The turns of large answers.
static LARGE_ANSWERS: Semaphore = Semaphore::const_new(MAX_LARGE_ANSWERS);

/// A connection, of whatever it is made.
pub(crate) type Stream = Box<dyn Both>;

/// Both directions of a connection.
pub(crate) trait Both: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Both for T {}

/// What a request of the engine's client is made of; the client has no name for it.
trait BodyOf {
    type Body;
}

impl<B> BodyOf for Request<B> {
    type Body = B;
}

type Body = <BollardRequest as BodyOf>::Body;

/// The way to one engine.
pub(crate) struct Transport {
    route: Route,
    flavour: Flavour,
    ssh: PathBuf,
    /// A connection that may be used again: one by `ssh` takes its time to be made.
    idle: Mutex<Option<Sender>>,
    /// What `ssh` complained of last.
    complaint: Arc<Mutex<String>>,
    recalls: Recalls,
    /// The turn of this engine's large answers: one engine takes not all that there are.
    large: Semaphore,
    /// Owns the connections, and what runs over them.
    tasks: BackendTasks,
}

/// What an engine says where it does not do what it was asked.
#[derive(Debug)]
pub(crate) struct Refusal {
    pub(crate) status: u16,
    pub(crate) body: Vec<u8>,
}

impl From<Refusal> for io::Error {
    fn from(Refusal { status, body }: Refusal) -> Self {
        let text = String::from_utf8_lossy(&body[..body.len().min(MAX_SHOWN_LEN)]);
        Self::other(format!("status {status}: {}", text.trim()))
    }
}

/// A connection that takes a request, and what may still be answered over it.
struct Sender {
    requests: SendRequest<Body>,
    allowance: Allowance,
}

impl std::fmt::Debug for Transport {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Transport").field("route", &self.route).finish_non_exhaustive()
    }
}

impl Transport {
    /// The way to an endpoint.
    pub(crate) fn to(
        endpoint: &Endpoint,
        flavour: Flavour,
        ssh: &Path,
        tasks: &BackendTasks,
    ) -> Result<Arc<Self>, Failure> {
        let route = Route::parse(&endpoint.address)?;
        if cfg!(not(feature = "remote-engines")) && !matches!(route, Route::Socket(_)) {
            return Err(Failure::new(Code::Unsupported, "this build has no engines of other hosts")
                .hint("take a build of Wharf with the feature `remote-engines`: the usual one has it"));
        }
        let (ssh, idle, complaint) = (ssh.to_owned(), Mutex::default(), Arc::default());
        let (recalls, large, tasks) = (Recalls::new(), Semaphore::new(1), tasks.clone());
        Ok(Arc::new(Self { route, flavour, ssh, idle, complaint, recalls, large, tasks }))
    }

    /// The commands that are to be ended because their callers are gone.
    pub(crate) fn recalls(&self) -> &Recalls {
        &self.recalls
    }

    /// Owns what runs over the connections.
    pub(crate) fn tasks(&self) -> &BackendTasks {
        &self.tasks
    }

    /// Lets go of the connection that is kept for the next question.
    pub(crate) fn hang_up(&self) {
        *self.idle.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// A new connection.
    pub(crate) async fn dial(&self) -> io::Result<Stream> {
        let silent = || io::Error::new(io::ErrorKind::TimedOut, "it does not answer");
        match &self.route {
            Route::Socket(path) => Ok(Box::new(tokio::net::UnixStream::connect(path).await?)),
            Route::Tcp { host, port } => {
                let connect = TcpStream::connect((host.as_str(), port.unwrap_or(2375)));
                let stream = tokio::time::timeout(CONNECT_TIMEOUT, connect).await.map_err(|_| silent())??;
                keep_alive(&stream)?;
                Ok(Box::new(stream))
            }
            #[cfg(not(feature = "remote-engines"))]
            Route::Tls { .. } => Err(io::ErrorKind::Unsupported.into()),
            #[cfg(feature = "remote-engines")]
            Route::Tls { host, port, certificates } => {
                let dial = tls::dial(host, port.unwrap_or(2376), certificates);
                tokio::time::timeout(CONNECT_TIMEOUT, dial).await.map_err(|_| silent())?
            }
            Route::Ssh { .. } => Ok(Box::new(self.call()?)),
        }
    }

    fn call(&self) -> io::Result<Call> {
        let mut command = Command::new(&self.ssh);
        command.args(arguments(&self.route, self.flavour));
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
        let mut child = command.spawn().map_err(|error| {
            io::Error::new(error.kind(), format!("cannot run {}: {error}", self.ssh.display()))
        })?;
        if let Some(errors) = child.stderr.take() {
            self.tasks.spawn(listen(errors, Arc::clone(&self.complaint)));
        }
        let (input, output) = (child.stdin.take(), child.stdout.take());
        let output = output.ok_or(io::ErrorKind::BrokenPipe)?;
        Ok(Call { input, output, _child: child })
    }

    /// What `ssh` complained of last, if it did.
    pub(crate) fn complaint(&self) -> Option<String> {
        let text = self.complaint.lock().unwrap_or_else(PoisonError::into_inner);
        text.lines().map(str::trim).rfind(|line| !line.is_empty()).map(str::to_owned)
    }

    /// A client of the engine's API over this way. Each answer has its own limit.
    pub(crate) fn client(self: &Arc<Self>, timeout: Duration) -> Result<Docker, Error> {
        let transport = Arc::clone(self);
        let ask = move |request| {
            let transport = Arc::clone(&transport);
            async move { transport.request(request, MAX_ANSWER_LEN).await }
        };
        Docker::connect_with_custom_transport(ask, Some(ADDRESS), timeout.as_secs(), API_DEFAULT_VERSION)
    }

    /// A client for one question whose answer is a stream. Whoever takes an item of it renews the allowance.
    pub(crate) fn stream_client(
        self: &Arc<Self>,
        timeout: Duration,
        version: &ClientVersion,
        allowance: Allowance,
    ) -> Result<Docker, Error> {
        let transport = Arc::clone(self);
        let ask = move |request| {
            let (transport, allowance) = (Arc::clone(&transport), allowance.clone());
            async move { transport.sender(allowance).await?.send(request).await }
        };
        Docker::connect_with_custom_transport(ask, Some(ADDRESS), timeout.as_secs(), version)
    }

    async fn request(&self, request: BollardRequest, most: usize) -> Result<Response<Incoming>, Error> {
        let mut sender = match self.reusable(most) {
            Some(sender) => sender,
            None => self.sender(Allowance::of(most)).await?,
        };
        let answer = sender.send(request).await?;
        if matches!(self.route, Route::Ssh { .. }) {
            *self.idle.lock().unwrap_or_else(PoisonError::into_inner) = Some(sender);
        }
        Ok(answer)
    }

    fn reusable(&self, most: usize) -> Option<Sender> {
        let sender = self.idle.lock().unwrap_or_else(PoisonError::into_inner).take()?;
        // Not while the last answer is being read, nor after the other side has hung up.
        let ready = sender.requests.is_ready();
        ready.then(|| {
            sender.allowance.renew_to(most);
            sender
        })
    }

    async fn sender(&self, allowance: Allowance) -> Result<Sender, Error> {
        let stream = TokioIo::new(Limited::new(self.dial().await?, allowance.clone()));
        let (requests, connection) =
            http1::Builder::new().max_buf_size(MAX_READ_AHEAD_LEN).handshake(stream).await?;
        // It ends with the connection, which ends when nobody asks anything any more.
        self.tasks.spawn_work(async move {
            // Whoever asked learns of its errors.
            let _ = connection.await;
        });
        Ok(Sender { requests, allowance })
    }

    /// Asks for something by its path, which may have so many bytes. A large answer waits for its turn, and is parsed beside
    /// the daemon's thread.
    pub(crate) async fn get<T: DeserializeOwned + Send + 'static>(
        &self,
        path: &str,
        most: usize,
    ) -> io::Result<Result<T, Refusal>> {
        let request = Request::builder().uri(path).body(body_full(bytes::Bytes::new()));
        let lost = |error: Error| io::Error::other(why(&error));
        let answer = self.request(request.map_err(io::Error::other)?, most).await.map_err(lost)?;
        let (status, mut body, mut read) = (answer.status().as_u16(), answer.into_body(), Vec::new());
        if status != 200 {
            while read.len() < MAX_REFUSAL_LEN && next_piece(&mut body, &mut read).await? {}
            read.truncate(MAX_REFUSAL_LEN);
            return Ok(Err(Refusal { status, body: read }));
        }
        while next_piece(&mut body, &mut read).await? {
            if read.len() > LARGE_ANSWER_LEN {
                return self.read_large(body, read).await.map(Ok);
            }
        }
        Ok(Ok(serde_json::from_slice(&read)?))
    }

    /// Reads the rest of a large answer. Only a few are held at once.
    async fn read_large<T: DeserializeOwned + Send + 'static>(
        &self,
        mut body: Incoming,
        mut read: Vec<u8>,
    ) -> io::Result<T> {
        let _own = self.large.acquire().await.map_err(io::Error::other)?;
        let turn = LARGE_ANSWERS.acquire().await.map_err(io::Error::other)?;
        let rest = async {
            while next_piece(&mut body, &mut read).await? {}
            io::Result::Ok(())
        };
        let late = |_| io::Error::new(io::ErrorKind::TimedOut, "a long answer of it takes too long");
        tokio::time::timeout(LARGE_ANSWER_TIMEOUT, rest).await.map_err(late)??;
        let parsed = tokio::task::spawn_blocking(move || {
            let parsed = serde_json::from_slice(&read);
            drop((read, turn));
            parsed
        });
        Ok(parsed.await.map_err(io::Error::other)??)
    }
}

/// Reads one more piece of an answer; false at its end.
async fn next_piece(body: &mut Incoming, read: &mut Vec<u8>) -> io::Result<bool> {
    let Some(frame) = body.frame().await else { return Ok(false) };
    let frame = frame.map_err(|error| io::Error::other(why(&error.into())))?;
    if let Ok(piece) = frame.into_data() {
        read.extend_from_slice(&piece);
    }
    Ok(true)
}

impl Sender {
    async fn send(&mut self, request: BollardRequest) -> Result<Response<Incoming>, Error> {
        let (mut parts, body) = request.into_parts();
        parts.uri = parts.uri.path_and_query().map_or("/", |path| path.as_str()).parse().unwrap_or_default();
        parts.headers.insert(HOST, HeaderValue::from_static("engine"));
        Ok(self.requests.send_request(Request::from_parts(parts, body)).await?)
    }
}

/// The arguments of `ssh`. It must never wait for somebody to type: nobody sits there.
fn arguments(route: &Route, flavour: Flavour) -> Vec<String> {
    let Route::Ssh { user, host, port, socket } = route else { return Vec::new() };
    let alive = format!("ServerAliveInterval={KEEPALIVE_IDLE_SECONDS}");
    let words = ["-T", "-o", "BatchMode=yes", "-o", "ConnectTimeout=10", "-o", &alive];
    let mut all: Vec<String> = words.into_iter().map(str::to_owned).collect();
    if let Some(user) = user {
        all.extend(["-l".to_owned(), user.clone()]);
    }
    if let Some(port) = port {
        all.extend(["-p".to_owned(), port.to_string()]);
    }
    all.extend(["--".to_owned(), host.clone(), flavour.name().to_owned()]);
    if let Some(socket) = socket {
        let option = if flavour == Flavour::Docker { "--host" } else { "--url" };
        all.extend([option.to_owned(), format!("unix://{socket}")]);
    }
    all.extend(["system".to_owned(), "dial-stdio".to_owned()]);
    all
}

/// A peer that is gone without a word is found out; and what is said goes at once.
pub(super) fn keep_alive(stream: &TcpStream) -> io::Result<()> {
    use rustix::net::sockopt;
    stream.set_nodelay(true)?;
    let seconds = |seconds: u32| Duration::from_secs(u64::from(seconds));
    sockopt::set_socket_keepalive(stream, true)?;
    sockopt::set_tcp_keepidle(stream, seconds(KEEPALIVE_IDLE_SECONDS))?;
    sockopt::set_tcp_keepintvl(stream, seconds(KEEPALIVE_INTERVAL_SECONDS))?;
    Ok(sockopt::set_tcp_keepcnt(stream, MAX_KEEPALIVE_TRIES)?)
}

async fn listen(mut errors: ChildStderr, complaint: Arc<Mutex<String>>) {
    let (mut all, mut buffer) = (Vec::new(), [0; 512]);
    while let Ok(n @ 1..) = errors.read(&mut buffer).await {
        all.extend_from_slice(&buffer[..n]);
        let surplus = all.len().saturating_sub(MAX_STDERR_LEN);
        all.drain(..surplus);
        *complaint.lock().unwrap_or_else(PoisonError::into_inner) =
            String::from_utf8_lossy(&all).into_owned();
    }
}

/// A connection by way of a program: it ends with it.
struct Call {
    /// None once nothing more is said from this side.
    input: Option<ChildStdin>,
    output: ChildStdout,
    _child: Child,
}

impl AsyncRead for Call {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.output).poll_read(cx, buf)
    }
}

impl AsyncWrite for Call {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match &mut self.input {
            Some(input) => Pin::new(input).poll_write(cx, bytes),
            None => Poll::Ready(Err(io::ErrorKind::BrokenPipe.into())),
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.input {
            Some(input) => Pin::new(input).poll_flush(cx),
            None => Poll::Ready(Ok(())),
        }
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        // Closing it is the only way to tell a program that there is no more.
        self.input = None;
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use serde::de::IgnoredAny;

    use super::*;
    use crate::engine::allowance::MAX_LIST_LEN;
    use crate::engine::fake::{Answer, FakeEngine};

    #[tokio::test]
    async fn a_large_answer_waits_for_its_turn_and_a_small_one_does_not() {
        let dir = tempfile::tempdir().unwrap();
        let served = FakeEngine::serve(dir.path(), |path| match path {
            "/large" => Answer::Whole(200, format!("[{}]", " ".repeat(4 * LARGE_ANSWER_LEN))),
            _ => Answer::Usual,
        });
        let engine = served.reach().await.unwrap();
        let get = async |path: &str| engine.transport().get::<IgnoredAny>(path, MAX_LIST_LEN).await;
        let turns = LARGE_ANSWERS.acquire_many(MAX_LARGE_ANSWERS as u32).await.unwrap();
        let mut large = Box::pin(get("/large"));
        let soon = Duration::from_millis(200);
        tokio::time::timeout(soon, &mut large).await.expect_err("all turns are taken");
        get("/small").await.unwrap().unwrap();
        drop(turns);
        large.await.unwrap().unwrap();
        assert_eq!(LARGE_ANSWERS.available_permits(), MAX_LARGE_ANSWERS);
    }

    #[tokio::test]
    async fn an_answer_longer_than_its_limit_is_not_kept() {
        let dir = tempfile::tempdir().unwrap();
        let served = FakeEngine::serve(dir.path(), |path| match path {
            "/large" => Answer::Whole(200, format!("[{}]", " ".repeat(4 * LARGE_ANSWER_LEN))),
            _ => Answer::Usual,
        });
        let engine = served.reach().await.unwrap();
        let error = engine.transport().get::<IgnoredAny>("/large", 2 * LARGE_ANSWER_LEN).await.unwrap_err();
        assert!(error.to_string().contains("says more than 128 KiB at once"), "{error}");
    }

    #[test]
    fn ssh_is_told_where_and_what_and_never_asks() {
        let route = Route::parse("ssh://me@there:2222").unwrap();
        let all = arguments(&route, Flavour::Docker).join(" ");
        assert!(all.contains("BatchMode=yes"), "{all}");
        assert!(all.ends_with("-l me -p 2222 -- there docker system dial-stdio"), "{all}");
        let route = Route::parse("ssh://there/run/p.sock").unwrap();
        let all = arguments(&route, Flavour::Podman).join(" ");
        assert!(all.ends_with("-- there podman --url unix:///run/p.sock system dial-stdio"), "{all}");
    }

    #[cfg(not(feature = "remote-engines"))]
    #[test]
    fn a_build_without_them_says_so() {
        for address in ["ssh://there", "tcp://there", "tls://there/certs"] {
            let endpoint = Endpoint::named(address.to_owned(), "a test");
            let failure =
                Transport::to(&endpoint, Flavour::Docker, Path::new("ssh"), &BackendTasks::default())
                    .unwrap_err();
            assert_eq!(failure.code, Code::Unsupported, "{address}");
        }
    }

    #[cfg(feature = "remote-engines")]
    #[tokio::test]
    async fn what_a_program_complains_of_is_kept() {
        let endpoint = Endpoint::named("ssh://there".to_owned(), "a test");
        let (ssh, tasks) = (Path::new("/no/such/ssh"), BackendTasks::default());
        let transport = Transport::to(&endpoint, Flavour::Docker, ssh, &tasks).unwrap();
        let error = transport.get::<IgnoredAny>("/_ping", MAX_ANSWER_LEN).await.unwrap_err();
        assert!(error.to_string().contains("/no/such/ssh"), "{error}");
        assert_eq!(transport.complaint(), None);
    }
}

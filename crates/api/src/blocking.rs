//! Asks a daemon that runs for one thing without a runtime: for commands that ask once and leave.
//!
//! It is the same HTTP client as [`Client`](crate::Client)'s, over a socket that this thread waits for by itself. Most of what such
//! a command costs is its own start, and a runtime would be a good part of that.

use std::future::poll_fn;
use std::io::{self, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::time::{Duration, Instant};

use bytes::Bytes;
use hyper::Method;
use hyper::client::conn::http1;
use hyper::rt::ReadBufCursor;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use wharf_model::{Code, Failure};

use crate::connection::{Ask, body, forbidden, refusal};
use crate::query::Query;
use crate::{Selector, linux};

/// What a failure after the request was sent leaves open.
const UNSURE_HINT: &str = "it may have done what was asked: `wharf ls` shows what is there now";
/// How much is read at once.
const READ_LEN: usize = 16 << 10;

/// Asks the daemon at this socket for `target`: with a JSON text `json` by POST, without one by GET.
///
/// None where no daemon listens, and so nothing was asked. A failure after that may be one of a request that was
/// carried out all the same, as with [`Client`](crate::Client).
pub fn ask(
    socket: &Path,
    target: &str,
    json: Option<Vec<u8>>,
    within: Duration,
) -> Result<Option<Bytes>, Failure> {
    let (stream, peer) = match linux::connect(socket).and_then(|s| linux::peer(&s).map(|peer| (s, peer))) {
        Ok(reached) => reached,
        Err(error) => {
            let refusal = refusal(socket, &error);
            return if refusal.absent { Ok(None) } else { Err(refusal.failure) };
        }
    };
    if !peer.is_us() {
        return Err(forbidden(socket, peer));
    }
    let (method, media_type) = match json {
        Some(_) => (Method::POST, Some("application/json")),
        None => (Method::GET, None),
    };
    let ask = Ask { method, target: target.to_owned(), media_type, body: json.unwrap_or_default().into() };
    let until = Instant::now().checked_add(within);
    let executor = Arc::new(Executor::default());
    let stream = Stream { stream: Arc::new(stream), executor: Arc::clone(&executor) };
    let answer = executor.run(&Arc::clone(&stream.stream), until, exchange(stream, ask));
    answer
        .unwrap_or_else(|error| {
            Err(match error.kind() {
                io::ErrorKind::TimedOut => Failure::new(
                    Code::Timeout,
                    format!("the daemon did not answer within {} s", within.as_secs()),
                )
                .hint(UNSURE_HINT),
                _ => gone(error),
            })
        })
        .map(Some)
}

/// The target that asks for the sessions of a selector in a form: `brief` for JSON, `rows` for [`rows`](crate::rows).
pub fn sessions(selector: &Selector, form: &str) -> String {
    Query::from(selector).push(form, "true").after("/v1/sessions")
}

fn gone(error: impl std::fmt::Display) -> Failure {
    Failure::new(Code::Unreachable, format!("the daemon went away before it answered: {error}"))
        .hint(UNSURE_HINT)
}

/// One request and its answer over a connection of their own.
async fn exchange(stream: Stream, ask: Ask) -> Result<Bytes, Failure> {
    let request = ask.request().map_err(gone)?;
    let (mut sender, connection) = http1::handshake(stream).await.map_err(gone)?;
    let mut connection = pin!(connection);
    let mut answer = pin!(async {
        let response = sender.send_request(request).await.map_err(gone)?;
        body(response).await
    });
    let mut over = false;
    poll_fn(|cx| {
        // The connection moves the bytes. What breaks it is heard by whoever waits for the answer.
        over = over || connection.as_mut().poll(cx).is_ready();
        answer.as_mut().poll(cx)
    })
    .await
}

/// Runs one future on this thread, and waits for one socket.
#[derive(Default)]
struct Executor {
    /// Something is to be done before anybody waits for the socket.
    woken: AtomicBool,
    /// A write found no room.
    writes: AtomicBool,
}

impl Wake for Executor {
    fn wake(self: Arc<Self>) {
        self.woken.store(true, Ordering::Relaxed);
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.woken.store(true, Ordering::Relaxed);
    }
}

impl Executor {
    fn run<T>(
        self: &Arc<Self>,
        socket: &UnixStream,
        until: Option<Instant>,
        work: impl Future<Output = T>,
    ) -> io::Result<T> {
        let waker = Waker::from(Arc::clone(self));
        let mut cx = Context::from_waker(&waker);
        let mut work = pin!(work);
        loop {
            self.writes.store(false, Ordering::Relaxed);
            loop {
                self.woken.store(false, Ordering::Relaxed);
                if let Poll::Ready(done) = work.as_mut().poll(&mut cx) {
                    return Ok(done);
                }
                if !self.woken.load(Ordering::Relaxed) {
                    break;
                }
            }
            let out = if self.writes.load(Ordering::Relaxed) { PollFlags::OUT } else { PollFlags::empty() };
            let left = until.map(|until| until.saturating_duration_since(Instant::now()));
            let timeout = left.and_then(|left| Timespec::try_from(left).ok());
            match poll(&mut [PollFd::new(socket, PollFlags::IN | out)], timeout.as_ref()) {
                Ok(0) => return Err(io::ErrorKind::TimedOut.into()),
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
}

/// A socket that does not block, as hyper reads and writes it. The executor waits for it when nothing else is to be done.
struct Stream {
    stream: Arc<UnixStream>,
    executor: Arc<Executor>,
}

fn ready<T>(done: io::Result<T>) -> Poll<io::Result<T>> {
    match done {
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Poll::Pending,
        done => Poll::Ready(done),
    }
}

impl hyper::rt::Read for Stream {
    fn poll_read(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        mut into: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        let mut bytes = [0; READ_LEN];
        let len = into.remaining().min(READ_LEN);
        let read = (&*self.stream).read(&mut bytes[..len]);
        ready(read.map(|n| into.put_slice(&bytes[..n])))
    }
}

impl hyper::rt::Write for Stream {
    fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = ready((&*self.stream).write(bytes));
        if written.is_pending() {
            self.executor.writes.store(true, Ordering::Relaxed);
        }
        written
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(self.stream.shutdown(std::net::Shutdown::Write))
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;

    use super::*;

    const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);

    /// Answers one request with these pieces; what was asked.
    fn answered(
        pieces: &[&str],
        json: Option<&[u8]>,
        within: Duration,
    ) -> (Result<Option<Bytes>, Failure>, String) {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("sock");
        let listener = UnixListener::bind(&path).unwrap();
        std::thread::scope(|scope| {
            let daemon = scope.spawn(|| {
                let (mut stream, _) = listener.accept().unwrap();
                let mut asked = Vec::new();
                let end: &[u8] = if json.is_some() { b"}" } else { b"\r\n\r\n" };
                while !asked.ends_with(end) {
                    let mut byte = [0];
                    stream.read_exact(&mut byte).unwrap();
                    asked.extend(byte);
                }
                for piece in pieces {
                    // An asker that has given up hears no more.
                    let _ = stream.write_all(piece.as_bytes());
                }
                if pieces.is_empty() {
                    let _ = stream.read(&mut [0]);
                }
                String::from_utf8(asked).unwrap()
            });
            let answer = ask(&path, "/v1/x", json.map(<[u8]>::to_vec), within);
            (answer, daemon.join().unwrap())
        })
    }

    #[test]
    fn an_answer_comes_in_any_pieces() {
        let (answer, asked) = answered(
            &["HTTP/1.0 200 OK\r\nContent-Le", "ngth: 5\r\n\r", "\n[1", ",2]"],
            None,
            ANSWER_TIMEOUT,
        );
        assert_eq!(answer.unwrap().unwrap(), "[1,2]");
        assert_eq!(asked, "GET /v1/x HTTP/1.1\r\nhost: wharf\r\nte: trailers\r\n\r\n");
        let (answer, asked) =
            answered(&["HTTP/1.1 201 Made\r\n\r\n", "to the end"], Some(b"{}"), ANSWER_TIMEOUT);
        assert_eq!(answer.unwrap().unwrap(), "to the end");
        assert!(asked.contains("content-length: 2\r\n") && asked.ends_with("\r\n\r\n{}"), "{asked}");
    }

    #[test]
    fn a_refusal_is_the_failure_that_it_tells_of() {
        let body = r#"{"code":"name_taken","detail":"taken","hint":"another"}"#;
        let text = format!("HTTP/1.0 409 Conflict\r\ncontent-length: {}\r\n\r\n{body}", body.len());
        let (answer, _) = answered(&[&text], None, ANSWER_TIMEOUT);
        assert_eq!(answer.unwrap_err(), Failure::new(Code::NameTaken, "taken").hint("another"));
    }

    #[test]
    fn what_breaks_off_or_is_no_answer_is_told() {
        for pieces in [
            &["HTTP/1.0 200 OK\r\ncontent-length: 9\r\n\r\nshort"][..],
            &["SSH-2.0\r\n\r\n"],
            &["HTTP/1.0 2"],
        ] {
            assert_eq!(
                answered(pieces, None, ANSWER_TIMEOUT).0.unwrap_err().code,
                Code::Unreachable,
                "{pieces:?}"
            );
        }
    }

    #[test]
    fn no_daemon_is_no_answer_and_a_silent_one_is_waited_for_only_so_long() {
        let root = tempfile::tempdir().unwrap();
        assert_eq!(ask(&root.path().join("none"), "/", None, ANSWER_TIMEOUT).unwrap(), None);
        drop(UnixListener::bind(root.path().join("stale")).unwrap());
        assert_eq!(ask(&root.path().join("stale"), "/", None, ANSWER_TIMEOUT).unwrap(), None);
        let (answer, _) = answered(&[], None, Duration::from_millis(30));
        assert_eq!(answer.unwrap_err().code, Code::Timeout);
    }
}

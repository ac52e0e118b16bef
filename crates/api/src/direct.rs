//! One request to a daemon that runs, without a runtime: for commands that ask once and leave.
//!
//! Most of what such a command costs is its own start, and a runtime would be a good part of that.

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use wharf_model::{Code, Failure};

use crate::connection::{MAX_ANSWER_LEN, failure, forbidden, refusal};
use crate::query::Query;
use crate::{Selector, linux};

/// How large the head of an answer may be.
const MAX_HEADER_LEN: usize = 64 << 10;

/// Asks the daemon at this socket for `target`: with a JSON text `body` by POST, without one by GET.
///
/// None where no daemon listens, and so nothing was asked. A failure after that may be one of a request that was
/// carried out all the same, as with [`Client`](crate::Client).
pub fn ask(
    socket: &Path,
    target: &str,
    body: Option<&[u8]>,
    within: Duration,
) -> Result<Option<Vec<u8>>, Failure> {
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
    let mut line = Line { stream, until: Instant::now().checked_add(within) };
    let answer = line.send(&request(target, body)).and_then(|()| line.receive());
    let (status, body) = answer.map_err(|error| match error.kind() {
        io::ErrorKind::TimedOut => {
            Failure::new(Code::Timeout, format!("the daemon did not answer within {} s", within.as_secs()))
                .hint("it may have done what was asked: `wharf ls` shows what is there now")
        }
        _ => Failure::new(Code::Unreachable, format!("the daemon went away before it answered: {error}"))
            .hint("it may have done what was asked: `wharf ls` shows what is there now"),
    })?;
    if (200..300).contains(&status) { Ok(Some(body)) } else { Err(failure(status, &body)) }
}

/// The target that asks for the sessions of a selector in a form: `brief` for JSON, `table` for [`rows`](crate::rows). A
/// daemon that does not know the form answers with the whole of every session, as JSON.
pub fn sessions(selector: &Selector, form: &str) -> String {
    Query::from(selector).push(form, "true").after("/v1/sessions")
}

/// Of HTTP 1.0: then the answer comes in one piece, and the daemon closes after it.
fn request(target: &str, body: Option<&[u8]>) -> Vec<u8> {
    let Some(body) = body else {
        return format!("GET {target} HTTP/1.0\r\nhost: wharf\r\n\r\n").into_bytes();
    };
    let mut request = Vec::with_capacity(body.len() + target.len() + 128);
    request.extend_from_slice(b"POST ");
    request.extend_from_slice(target.as_bytes());
    request
        .extend_from_slice(b" HTTP/1.0\r\nhost: wharf\r\ncontent-type: application/json\r\ncontent-length: ");
    request.extend_from_slice(body.len().to_string().as_bytes());
    request.extend_from_slice(b"\r\n\r\n");
    request.extend_from_slice(body);
    request
}

struct Line {
    stream: UnixStream,
    until: Option<Instant>,
}

impl Line {
    fn send(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            match self.stream.write(bytes) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(n) => bytes = &bytes[n..],
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.wait(PollFlags::OUT)?,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// The status and the body of the answer.
    fn receive(&mut self) -> io::Result<(u16, Vec<u8>)> {
        let odd = |what: &str| io::Error::new(io::ErrorKind::InvalidData, format!("its answer {what}"));
        let mut bytes = vec![0; 4 << 10];
        let mut have = 0;
        let head = loop {
            let n = self.read(&mut bytes[have..])?;
            let searched = have.saturating_sub(3);
            have += n;
            if let Some(at) = bytes[searched..have].windows(4).position(|four| four == b"\r\n\r\n") {
                break searched + at + 4;
            }
            if n == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            if have > MAX_HEADER_LEN {
                return Err(odd("has no end of a head"));
            }
            bytes.resize(have + (4 << 10), 0);
        };
        let (status, length) = parse(&bytes[..head]).ok_or_else(|| odd("is none of HTTP"))?;
        bytes.truncate(have);
        bytes.drain(..head);
        let mut have = bytes.len();
        let end = length.unwrap_or(MAX_ANSWER_LEN);
        if end > MAX_ANSWER_LEN {
            return Err(odd("is too long"));
        }
        while have < end {
            // All that is known to come at once; else in pieces until the other side closes.
            bytes.resize(length.unwrap_or(have + (64 << 10)), 0);
            match self.read(&mut bytes[have..])? {
                0 if length.is_some() => return Err(io::ErrorKind::UnexpectedEof.into()),
                0 => break,
                n => have += n,
            }
        }
        bytes.truncate(have.min(end));
        Ok((status, bytes))
    }

    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        loop {
            self.wait(PollFlags::IN)?;
            match self.stream.read(into) {
                Err(error)
                    if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {}
                got => return got,
            }
        }
    }

    fn wait(&self, what: PollFlags) -> io::Result<()> {
        let left = self.until.map(|until| until.saturating_duration_since(Instant::now()));
        let timeout = left.and_then(|left| Timespec::try_from(left).ok());
        match poll(&mut [PollFd::new(&self.stream, what)], timeout.as_ref()) {
            Ok(0) => Err(io::ErrorKind::TimedOut.into()),
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

/// The status in a head, and the length that it tells.
fn parse(head: &[u8]) -> Option<(u16, Option<usize>)> {
    let mut lines = head.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii_end);
    let first = lines.next()?.strip_prefix(b"HTTP/1.")?;
    let status = std::str::from_utf8(first.get(2..5)?).ok()?.parse().ok()?;
    let mut length = None;
    for line in lines {
        let Some(colon) = line.iter().position(|byte| *byte == b':') else { continue };
        if line[..colon].eq_ignore_ascii_case(b"content-length") {
            length = Some(std::str::from_utf8(line[colon + 1..].trim_ascii()).ok()?.parse().ok()?);
        }
    }
    Some((status, length))
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;

    use super::*;

    const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);

    /// Answers one request with these pieces; what was asked.
    fn answered(
        pieces: &[&str],
        body: Option<&[u8]>,
        within: Duration,
    ) -> (Result<Option<Vec<u8>>, Failure>, String) {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("sock");
        let listener = UnixListener::bind(&path).unwrap();
        std::thread::scope(|scope| {
            let daemon = scope.spawn(|| {
                let (mut stream, _) = listener.accept().unwrap();
                let mut asked = Vec::new();
                let end: &[u8] = if body.is_some() { b"}" } else { b"\r\n\r\n" };
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
            let answer = ask(&path, "/v1/x", body, within);
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
        assert_eq!(answer.unwrap().unwrap(), b"[1,2]");
        assert_eq!(asked, "GET /v1/x HTTP/1.0\r\nhost: wharf\r\n\r\n");
        let (answer, asked) =
            answered(&["HTTP/1.1 201 Made\r\n\r\n", "to the end"], Some(b"{}"), ANSWER_TIMEOUT);
        assert_eq!(answer.unwrap().unwrap(), b"to the end");
        assert!(asked.ends_with("content-length: 2\r\n\r\n{}"), "{asked}");
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

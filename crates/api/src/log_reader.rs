//! Reads a session's output from the daemon, reports gaps, and asks again behind them.

use bytes::Bytes;
use hyper::HeaderMap;
use wharf_model::{Code, Failure, Offset};

use crate::connection::Body;
use crate::{Client, Problem};

/// The trailer that says which bytes are gone: `FROM-TO`, without `TO` itself.
pub const GAP_TRAILER: &str = "wharf-gap";
/// The trailer that carries a failure in the middle of a stream, as problem JSON.
pub const PROBLEM_TRAILER: &str = "wharf-problem";

/// A piece of a session's output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LogChunk {
    /// Bytes as the command wrote them.
    Data {
        /// Where in the log they stand.
        offset: Offset,
        /// The bytes.
        bytes: Bytes,
    },
    /// Bytes that are not there any more: `from` up to and without `to`.
    Gap {
        /// The first missing byte.
        from: Offset,
        /// The first byte that is there again.
        to: Offset,
    },
}

/// A session's output as it arrives.
///
/// One answer of the daemon holds bytes without a gap. Where some are gone, before the first or because the
/// reader fell behind what the log keeps, the answer ends with the trailer [`GAP_TRAILER`]; this reader
/// reports the gap and asks again behind it.
#[derive(Debug)]
pub struct LogReader {
    client: Client,
    key: String,
    follow: bool,
    position: Offset,
    body: Option<Body>,
}

impl LogReader {
    pub(crate) fn new(client: Client, key: &str, from: Offset, follow: bool, body: Body) -> Self {
        Self { client, key: key.to_owned(), follow, position: from, body: Some(body) }
    }

    /// Where the next byte will stand.
    pub fn position(&self) -> Offset {
        self.position
    }

    /// The next piece; `None` at the end.
    pub async fn next(&mut self) -> Result<Option<LogChunk>, Failure> {
        loop {
            let body = match &mut self.body {
                Some(body) => body,
                None => self.body.insert(self.client.log_body(&self.key, self.position, self.follow).await?),
            };
            let frame = match body.frame().await {
                None => return Ok(None),
                Some(Ok(frame)) => frame,
                Some(Err(error)) => {
                    let message = format!("the daemon's stream broke off: {error}");
                    return Err(Failure::new(Code::Unreachable, message)
                        .hint("ask again: the log is on disk, and its offsets stay"));
                }
            };
            match frame.into_data() {
                Ok(bytes) if bytes.is_empty() => {}
                Ok(bytes) => {
                    let offset = self.position;
                    self.position = offset + bytes.len() as u64;
                    return Ok(Some(LogChunk::Data { offset, bytes }));
                }
                Err(frame) => {
                    let Ok(trailers) = frame.into_trailers() else { continue };
                    return self.end(&trailers);
                }
            }
        }
    }

    fn end(&mut self, trailers: &HeaderMap) -> Result<Option<LogChunk>, Failure> {
        if let Some(value) = trailers.get(PROBLEM_TRAILER) {
            return Err(serde_json::from_slice::<Problem>(value.as_bytes()).map_or_else(
                |error| {
                    Failure::new(
                        Code::Internal,
                        format!("the daemon reports a failure that is none: {error}"),
                    )
                },
                Failure::from,
            ));
        }
        let Some((from, to)) = gap_of(trailers) else { return Ok(None) };
        self.position = to;
        self.body = None;
        Ok(Some(LogChunk::Gap { from, to }))
    }
}

/// Reads `FROM-TO`.
fn parse_gap(text: &str) -> Option<(Offset, Offset)> {
    let (from, to) = text.split_once('-')?;
    Some((Offset(from.parse().ok()?), Offset(to.parse().ok()?)))
}

fn gap_of(headers: &HeaderMap) -> Option<(Offset, Offset)> {
    parse_gap(headers.get(GAP_TRAILER)?.to_str().ok()?)
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    /// Answers each connection with the next of these, and gives back the first lines that were asked.
    async fn answers(listener: tokio::net::UnixListener, texts: Vec<&'static str>) -> Vec<String> {
        let mut asked = Vec::new();
        for text in texts {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                head.push(stream.read_u8().await.unwrap());
            }
            asked.push(String::from_utf8(head).unwrap().lines().next().unwrap().to_owned());
            stream.write_all(text.as_bytes()).await.unwrap();
        }
        asked
    }

    #[tokio::test]
    async fn a_gap_is_reported_and_reading_goes_on_behind_it() {
        let root = tempfile::tempdir().unwrap();
        let socket = root.path().join("sock");
        let listener = tokio::net::UnixListener::bind(&socket).unwrap();
        let server = tokio::spawn(answers(
            listener,
            vec![
                "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\nwharf-gap: 8-20\r\n\r\n",
                "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\nd\r\n0\r\nwharf-problem: {\"code\":\"busy\",\"detail\":\"x\"}\r\n\r\n",
            ],
        ));
        let mut reader = Client::new(&socket).log("a", Offset(5), true).await.unwrap();
        let data = |offset, bytes: &'static str| {
            Some(LogChunk::Data { offset: Offset(offset), bytes: bytes.into() })
        };
        assert_eq!(reader.next().await.unwrap(), data(5, "abc"));
        assert_eq!(reader.next().await.unwrap(), Some(LogChunk::Gap { from: Offset(8), to: Offset(20) }));
        assert_eq!(reader.next().await.unwrap(), data(20, "d"));
        assert_eq!(reader.next().await.unwrap_err(), Failure::new(Code::Busy, "x"));
        assert_eq!(
            server.await.unwrap(),
            [
                "GET /v1/sessions/a/log?from=5&follow=true HTTP/1.1",
                "GET /v1/sessions/a/log?from=20&follow=true HTTP/1.1"
            ]
        );
    }

    #[test]
    fn a_gap_is_two_offsets() {
        assert_eq!(parse_gap("3-17"), Some((Offset(3), Offset(17))));
        for bad in ["", "3", "-", "a-b", "3-", "-3"] {
            assert_eq!(parse_gap(bad), None);
        }
    }
}

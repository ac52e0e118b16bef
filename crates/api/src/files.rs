//! Copies files to and from a session as tar archives, over the daemon's HTTP routes.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use hyper::body::Frame;
use hyper::{Request, header};
use serde::{Deserialize, Serialize};
use tokio::sync::mpsc;
use wharf_model::{Code, Failure, FileStat, Text};

use crate::client::{Answer, decode};
use crate::connection::{Body, Connection, body};
use crate::query::Query;
use crate::target::of;
use crate::{Client, PROBLEM_TRAILER, Problem};

/// `POST /v1/sessions/{name}/files/look` and `/take`. A relative path begins at the session's directory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileRequest {
    /// The path.
    pub path: Text,
    /// Follow a link at its end.
    #[serde(default)]
    pub follow: bool,
}

/// The media type of an archive.
pub const TAR: &str = "application/x-tar";

/// How long nothing of a copy may come.
const SILENCE_TIMEOUT: Duration = Duration::from_secs(120);
/// How long the place of a session may take with what it was given.
const UNPACK_TIMEOUT: Duration = Duration::from_secs(24 * 3600);

/// A tar archive as it comes. Dropped before its end, the daemon stops.
#[derive(Debug)]
pub struct ArchiveReader(Body);

impl ArchiveReader {
    /// The next bytes; `None` at the end.
    pub async fn next(&mut self) -> Answer<Option<Bytes>> {
        loop {
            let frame = tokio::time::timeout(SILENCE_TIMEOUT, self.0.frame()).await;
            let frame = frame.map_err(|_| {
                Failure::new(Code::Timeout, format!("nothing came for {} s", SILENCE_TIMEOUT.as_secs()))
            })?;
            let Some(frame) = frame else { return Ok(None) };
            let frame = frame.map_err(|error| {
                Failure::new(Code::Unreachable, format!("the daemon's stream broke off: {error}"))
                    .hint("what came before is there; copy again")
            })?;
            match frame.into_data() {
                Ok(bytes) if bytes.is_empty() => {}
                Ok(bytes) => return Ok(Some(bytes)),
                Err(frame) => {
                    let trailers = frame.into_trailers().unwrap_or_default();
                    if let Some(problem) = trailers.get(PROBLEM_TRAILER) {
                        return Err(decode::<Problem>(problem.as_bytes())?.into());
                    }
                }
            }
        }
    }
}

impl Client {
    /// What stands at a path of a session's place; none where there is nothing.
    pub async fn file(&self, key: &str, request: &FileRequest) -> Answer<Option<FileStat>> {
        self.post(of(key, "/files/look")?, request).await
    }

    /// A file or a directory of a session's place, as a tar archive whose names all begin with one and the same.
    pub async fn take(&self, key: &str, request: &FileRequest) -> Answer<ArchiveReader> {
        Ok(ArchiveReader(self.stream_of(of(key, "/files/take")?, request).await?))
    }

    /// Unpacks a tar archive into a directory of a session's place. An error in the place of a piece breaks it off.
    pub async fn put(&self, key: &str, dir: &Text, pieces: mpsc::Receiver<Answer<Bytes>>) -> Answer<()> {
        let text = serde_json::to_string(dir)
            .map_err(|error| Failure::new(Code::Invalid, format!("cannot write the request: {error}")))?;
        let target = Query::default().push("dir", text).after(&of(key, "/files")?);
        // A connection of its own: a copy takes as long as it takes.
        let opened = Connection::<Upload>::open(self.socket()).await;
        let mut connection = opened.map_err(|refusal| refusal.failure)?;
        let broken = |error: hyper::Error| {
            Failure::new(Code::Unreachable, format!("the daemon went away while files were copied: {error}"))
                .hint("what came before is there; copy again")
        };
        let request = Request::put(target)
            .header(header::HOST, "wharf")
            .header(header::CONTENT_TYPE, TAR)
            .body(Upload(pieces))
            .map_err(|error| Failure::new(Code::Invalid, format!("bad request: {error}")))?;
        let answer = tokio::time::timeout(UNPACK_TIMEOUT, connection.send(request)).await;
        let answer = answer.map_err(|_| Failure::new(Code::Timeout, "the copy took longer than a day"))?;
        body(answer.map_err(broken)?).await.map(drop)
    }
}

/// A request's body, piece by piece.
struct Upload(mpsc::Receiver<Answer<Bytes>>);

impl hyper::body::Body for Upload {
    type Data = Bytes;
    type Error = std::io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, std::io::Error>>> {
        self.0.poll_recv(cx).map(|piece| {
            piece
                .map(|piece| piece.map(Frame::data).map_err(|failure| std::io::Error::other(failure.message)))
        })
    }
}

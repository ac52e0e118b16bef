use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::body::Body;
use axum::extract::{Path, Query, State};
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::IntoResponse;
use bytes::Bytes;
use hyper::body::Frame;
use serde::Deserialize;
use tokio::sync::mpsc;
use wharf_api::{GAP_TRAILER, PROBLEM_TRAILER, Problem};
use wharf_engine::{Output, OutputChunk};
use wharf_model::{Failure, Offset};

use crate::app::App;
use crate::refusal::Answer;
use crate::work::Work;

/// How many pieces wait for a slow reader. What it has not taken stays in the log, and costs nothing.
const AHEAD: usize = 2;

#[derive(Deserialize)]
pub(super) struct Reading {
    #[serde(default)]
    from: u64,
    #[serde(default)]
    follow: bool,
}

pub(super) async fn read(
    State(app): State<Arc<App>>,
    Path(key): Path<String>,
    Query(query): Query<Reading>,
    headers: HeaderMap,
) -> Answer<impl IntoResponse> {
    let output = app.engine.output(&key, Offset(query.from), query.follow).await?;
    let trailers = headers.get_all(header::TE).iter().any(|te| te.to_str().is_ok_and(|te| te.contains("trailers")));
    let (sender, pieces) = mpsc::channel(AHEAD);
    tokio::spawn(pump(output, Sink { pieces: sender, trailers }, app.work.clone()));
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static("application/octet-stream")),
        (header::TRAILER, HeaderValue::from_static("wharf-gap, wharf-problem")),
    ];
    Ok((headers, Body::new(Pieces(pieces))))
}

/// Moves output to the reader until it ends, a gap comes, the reader leaves or the daemon ends.
async fn pump(mut output: Box<dyn Output>, sink: Sink, work: Work) {
    loop {
        let next = tokio::select! {
            next = work.meanwhile(output.next()) => next,
            () = sink.pieces.closed() => return,
        };
        match next {
            Ok(Ok(Some(OutputChunk::Data { bytes, .. }))) => {
                if sink.pieces.send(Ok(Frame::data(bytes.into()))).await.is_err() {
                    return;
                }
            }
            Ok(Ok(Some(OutputChunk::Gap { from, to }))) => {
                return sink.end(GAP_TRAILER, format!("{from}-{to}").into_bytes()).await;
            }
            Ok(Ok(None)) => return,
            Ok(Err(failure)) | Err(failure) => return sink.fail(failure).await,
        }
    }
}

type Piece = Result<Frame<Bytes>, std::io::Error>;

struct Sink {
    pieces: mpsc::Sender<Piece>,
    trailers: bool,
}

impl Sink {
    async fn fail(self, failure: Failure) {
        let problem = serde_json::to_vec(&Problem::from(failure)).unwrap_or_default();
        self.end(PROBLEM_TRAILER, problem).await;
    }

    /// Ends the answer with a trailer, or where the reader takes none, by breaking it off.
    async fn end(self, name: &'static str, value: Vec<u8>) {
        let value = HeaderValue::from_maybe_shared(Bytes::from(value)).ok().filter(|_| self.trailers);
        let last = match value {
            Some(value) => {
                let mut trailers = HeaderMap::new();
                trailers.insert(name, value);
                Ok(Frame::trailers(trailers))
            }
            None => Err(std::io::Error::other(name)),
        };
        // The reader may have left.
        let _ = self.pieces.send(last).await;
    }
}

/// The answer's body.
struct Pieces(mpsc::Receiver<Piece>);

impl hyper::body::Body for Pieces {
    type Data = Bytes;
    type Error = std::io::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Piece>> {
        self.0.poll_recv(cx)
    }
}

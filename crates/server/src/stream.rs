//! Answers that come piece by piece.

use std::pin::Pin;
use std::task::{Context, Poll};

use axum::http::{HeaderMap, HeaderValue, header};
use bytes::Bytes;
use hyper::body::Frame;
use tokio::sync::mpsc;
use wharf_api::{PROBLEM_TRAILER, Problem};
use wharf_model::Failure;

/// A piece of an answer.
pub(crate) type Piece = Result<Frame<Bytes>, std::io::Error>;

/// Where an answer's pieces go.
pub(crate) struct Sink {
    pub(crate) pieces: mpsc::Sender<Piece>,
    pub(crate) trailers: bool,
}

impl Sink {
    /// For a reader that says by its headers whether it takes trailers.
    pub(crate) fn new(pieces: mpsc::Sender<Piece>, headers: &HeaderMap) -> Self {
        let trailers =
            headers.get_all(header::TE).iter().any(|te| te.to_str().is_ok_and(|te| te.contains("trailers")));
        Self { pieces, trailers }
    }

    /// Ends the answer with a failure.
    pub(crate) async fn fail(self, failure: Failure) {
        let problem = serde_json::to_vec(&Problem::from(failure)).unwrap_or_default();
        self.end(PROBLEM_TRAILER, problem).await;
    }

    /// Ends the answer with a trailer, or where the reader takes none, by breaking it off.
    pub(crate) async fn end(self, name: &'static str, value: Vec<u8>) {
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
pub(crate) struct Pieces(pub(crate) mpsc::Receiver<Piece>);

impl hyper::body::Body for Pieces {
    type Data = Bytes;
    type Error = std::io::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Piece>> {
        self.0.poll_recv(cx)
    }
}

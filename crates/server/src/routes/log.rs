//! Route: streams a session's output, with gaps and failures as trailers.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::IntoResponse;
use hyper::body::Frame;
use serde::Deserialize;
use tokio::sync::mpsc;
use wharf_api::GAP_TRAILER;
use wharf_engine::{Output, OutputChunk};
use wharf_model::Offset;

use crate::app::App;
use crate::input::{Key, Query};
use crate::refusal::Answer;
use crate::stream::{Pieces, Sink};
use crate::work::Work;

/// How many pieces wait for a slow reader. What it has not taken stays in the log, and costs nothing.
const MAX_QUEUED_CHUNKS: usize = 2;

#[derive(Deserialize)]
pub(super) struct Reading {
    #[serde(default)]
    from: u64,
    #[serde(default)]
    follow: bool,
}

pub(super) async fn read(
    State(app): State<Arc<App>>,
    Key(key): Key,
    Query(query): Query<Reading>,
    headers: HeaderMap,
) -> Answer<impl IntoResponse> {
    let output = app.engine.session(&key).await?.output(Offset(query.from), query.follow).await?;
    let (sender, pieces) = mpsc::channel(MAX_QUEUED_CHUNKS);
    app.work.spawn(pump(output, Sink::new(sender, &headers), app.work.clone()));
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

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use http_body_util::BodyExt;
    use wharf_api::{PROBLEM_TRAILER, Problem};
    use wharf_engine::Stream;
    use wharf_model::{Code, Failure};

    use super::*;

    struct Scripted(VecDeque<wharf_engine::Result<Option<OutputChunk>>>);

    #[async_trait::async_trait]
    impl Output for Scripted {
        async fn next(&mut self) -> wharf_engine::Result<Option<OutputChunk>> {
            self.0.pop_front().unwrap_or(Ok(None))
        }
    }

    #[expect(clippy::unnecessary_wraps, reason = "it stands in a script beside failures")]
    fn data(text: &str) -> wharf_engine::Result<Option<OutputChunk>> {
        Ok(Some(OutputChunk::Data { offset: Offset(0), stream: Stream::Out, bytes: text.into() }))
    }

    async fn answer(
        script: Vec<wharf_engine::Result<Option<OutputChunk>>>,
        trailers: bool,
    ) -> Result<(String, Option<HeaderMap>), std::io::Error> {
        let (sender, pieces) = mpsc::channel(MAX_QUEUED_CHUNKS);
        let output = Box::new(Scripted(script.into()));
        tokio::spawn(pump(output, Sink { pieces: sender, trailers }, Work::new()));
        let whole = Pieces(pieces).collect().await?;
        let trailers = whole.trailers().cloned();
        Ok((String::from_utf8_lossy(&whole.to_bytes()).into_owned(), trailers))
    }

    #[tokio::test]
    async fn an_answer_without_a_gap_has_no_trailer() {
        let (text, trailers) = answer(vec![data("a"), data("b"), data("c"), data("d")], true).await.unwrap();
        assert_eq!((text.as_str(), trailers), ("abcd", None));
    }

    #[tokio::test]
    async fn a_gap_ends_the_answer_with_a_trailer() {
        let gap = || Ok(Some(OutputChunk::Gap { from: Offset(1), to: Offset(9) }));
        let (text, trailers) = answer(vec![data("a"), gap(), data("never")], true).await.unwrap();
        assert_eq!((text.as_str(), &trailers.unwrap()[GAP_TRAILER]), ("a", &HeaderValue::from_static("1-9")));
        answer(vec![data("a"), gap()], false).await.expect_err("it breaks off for who takes no trailers");
    }

    #[tokio::test]
    async fn a_failure_ends_the_answer_with_a_trailer() {
        let failure = || Failure::new(Code::Unreachable, "h\u{f6}lder \"gone\"\n").hint("wait");
        let (text, trailers) = answer(vec![data("a"), Err(failure())], true).await.unwrap();
        let problem: Problem = serde_json::from_slice(trailers.unwrap()[PROBLEM_TRAILER].as_bytes()).unwrap();
        assert_eq!((text.as_str(), Failure::from(problem)), ("a", failure()));
        answer(vec![Err(failure())], false).await.expect_err("it breaks off for who takes no trailers");
    }
}

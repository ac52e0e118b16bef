//! Route: streams a session's events as JSON lines or server-sent events.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::IntoResponse;
use hyper::body::Frame;
use serde::Deserialize;
use tokio::sync::mpsc;
use wharf_api::Problem;
use wharf_engine::EventStream;
use wharf_model::{Event, Failure};

use crate::app::App;
use crate::input::{Key, Query};
use crate::refusal::Answer;
use crate::stream::{Pieces, Sink};
use crate::work::Work;

/// How many events wait for a slow reader. What it has not taken is stored.
const MAX_QUEUED_EVENTS: usize = 16;
/// How often a reader hears that the daemon is there, where nothing happens.
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(15);

#[derive(Deserialize)]
pub(super) struct Reading {
    #[serde(default)]
    after: u64,
    follow: Option<bool>,
}

/// How events are written.
#[derive(Clone, Copy)]
enum Form {
    /// One JSON object a line.
    Lines,
    /// Server-sent events, for browsers and their like.
    Sent,
}

pub(super) async fn read(
    State(app): State<Arc<App>>,
    Key(key): Key,
    Query(query): Query<Reading>,
    headers: HeaderMap,
) -> Answer<impl IntoResponse> {
    let text = |name| headers.get(name).and_then(|value: &HeaderValue| value.to_str().ok());
    let form = match text(header::ACCEPT) {
        Some(accept) if accept.contains("text/event-stream") => Form::Sent,
        _ => Form::Lines,
    };
    // Whoever comes back says what he had last.
    let last = headers.get("last-event-id").and_then(|value| value.to_str().ok()?.parse().ok());
    let follow = query.follow.unwrap_or(matches!(form, Form::Sent));
    let events = app.engine.session(&key).await?.events(last.unwrap_or(query.after)).await?;
    let (sender, pieces) = mpsc::channel(MAX_QUEUED_EVENTS);
    app.work.spawn(pump(events, follow, form, Sink::new(sender, &headers), app.work.clone()));
    let media_type = match form {
        Form::Lines => "application/x-ndjson",
        Form::Sent => "text/event-stream",
    };
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static(media_type)),
        (header::CACHE_CONTROL, HeaderValue::from_static("no-store")),
        (header::TRAILER, HeaderValue::from_static("wharf-problem")),
    ];
    Ok((headers, Body::new(Pieces(pieces))))
}

/// Moves events to the reader until they end, the reader leaves or the daemon ends.
async fn pump(mut events: EventStream, follow: bool, form: Form, sink: Sink, work: Work) {
    loop {
        let next = tokio::select! {
            next = work.meanwhile(events.next(follow)) => next,
            () = sink.pieces.closed() => return,
            () = tokio::time::sleep(KEEPALIVE_INTERVAL) => {
                let alive = match form {
                    Form::Lines => "\n",
                    Form::Sent => ":\n\n",
                };
                if sink.pieces.send(Ok(Frame::data(alive.into()))).await.is_err() {
                    return;
                }
                continue;
            }
        };
        match next {
            Ok(Ok(Some(event))) => {
                if sink.pieces.send(Ok(Frame::data(form.event(&event).into()))).await.is_err() {
                    return;
                }
            }
            Ok(Ok(None)) => return,
            Ok(Err(failure)) | Err(failure) => return form.fail(sink, failure).await,
        }
    }
}

impl Form {
    fn event(self, event: &Event) -> Vec<u8> {
        let json = serde_json::to_string(event).unwrap_or_default();
        match self {
            Self::Lines => format!("{json}\n"),
            Self::Sent => format!("id: {}\ndata: {json}\n\n", event.seq),
        }
        .into_bytes()
    }

    async fn fail(self, sink: Sink, failure: Failure) {
        match self {
            Self::Lines => sink.fail(failure).await,
            Self::Sent => {
                let problem = serde_json::to_string(&Problem::from(failure)).unwrap_or_default();
                let last = format!("event: problem\ndata: {problem}\n\n");
                // The reader may have left.
                let _ = sink.pieces.send(Ok(Frame::data(last.into()))).await;
            }
        }
    }
}

//! Route: prepares a spec's environments and streams the steps.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::IntoResponse;
use hyper::body::Frame;
use tokio::sync::mpsc;
use wharf_api::{PrepareRequest, PrepareStep};
use wharf_engine::{Engine, Progress};
use wharf_model::Spec;

use crate::app::App;
use crate::input;
use crate::refusal::Answer;
use crate::stream::{Pieces, Sink};
use crate::work::Work;

/// How many steps wait for a slow reader; more are dropped.
const MAX_QUEUED_STEPS: usize = 64;
/// How often a reader hears that the daemon is there, where nothing happens.
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(15);

/// Makes a spec's environments ready. A reader that leaves ends what was begun.
pub(super) async fn prepare(
    State(app): State<Arc<App>>,
    headers: HeaderMap,
    input::Json(request, ..): input::Json<PrepareRequest>,
) -> Answer<impl IntoResponse> {
    let (sender, pieces) = mpsc::channel(MAX_QUEUED_STEPS);
    app.work.spawn(pump(app.engine.clone(), request.spec, Sink::new(sender, &headers), app.work.clone()));
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static("application/x-ndjson")),
        (header::CACHE_CONTROL, HeaderValue::from_static("no-store")),
        (header::TRAILER, HeaderValue::from_static("wharf-problem")),
    ];
    Ok((headers, Body::new(Pieces(pieces))))
}

async fn pump(engine: Engine, spec: Spec, sink: Sink, work: Work) {
    let (listener, mut steps) = mpsc::channel(MAX_QUEUED_STEPS);
    let progress = Progress::to(listener);
    let prepare = engine.prepare(spec, &progress);
    tokio::pin!(prepare);
    let ready = loop {
        let piece = tokio::select! {
            biased;
            () = sink.pieces.closed() => return,
            Some(step) = steps.recv() => line(&PrepareStep { step: Some(step), ready: None }),
            ready = work.meanwhile(&mut prepare) => match ready {
                Ok(Ok(ready)) => break ready,
                Ok(Err(failure)) | Err(failure) => return sink.fail(failure).await,
            },
            () = tokio::time::sleep(KEEPALIVE_INTERVAL) => "\n".into(),
        };
        if sink.pieces.send(Ok(Frame::data(piece.into()))).await.is_err() {
            return;
        }
    };
    while let Ok(step) = steps.try_recv() {
        // The reader may have left.
        let _ = sink
            .pieces
            .send(Ok(Frame::data(line(&PrepareStep { step: Some(step), ready: None }).into())))
            .await;
    }
    let last = line(&PrepareStep { step: None, ready: Some(ready) });
    let _ = sink.pieces.send(Ok(Frame::data(last.into()))).await;
}

fn line(step: &PrepareStep) -> String {
    serde_json::to_string(step).unwrap_or_default() + "\n"
}

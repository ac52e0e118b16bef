//! Files that go in and out of a session's place.

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::IntoResponse;
use http_body_util::BodyExt;
use hyper::body::Frame;
use serde::Deserialize;
use tokio::sync::{Mutex, mpsc};
use wharf_api::{FileRequest, TAR};
use wharf_engine::Archive;
use wharf_model::{Code, Failure, FileStat, Text};

use crate::app::App;
use crate::input::{self, Key, Query};
use crate::refusal::{Answer, Refusal};
use crate::stream::{Pieces, Sink};
use crate::work::Work;

/// How many pieces wait for a slow reader.
const MAX_QUEUED_CHUNKS: usize = 4;
/// How long a sender may take with its next piece: it may itself wait for something.
const SILENCE_TIMEOUT: Duration = Duration::from_secs(600);
/// How long a sender is heard out after it was answered.
const LINGER_TIMEOUT: Duration = Duration::from_secs(5);

pub(super) async fn look(
    State(app): State<Arc<App>>,
    Key(key): Key,
    input::Json(request, ..): input::Json<FileRequest>,
) -> Answer<Json<Option<FileStat>>> {
    Ok(Json(app.engine.session(&key).await?.file(&request.path, request.follow).await?))
}

pub(super) async fn take(
    State(app): State<Arc<App>>,
    Key(key): Key,
    headers: HeaderMap,
    input::Json(request, ..): input::Json<FileRequest>,
) -> Answer<impl IntoResponse> {
    let archive = app.engine.session(&key).await?.copy_out(&request.path, request.follow).await?;
    let (sender, pieces) = mpsc::channel(MAX_QUEUED_CHUNKS);
    app.work.spawn(pump(archive, Sink::new(sender, &headers), app.work.clone()));
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static(TAR)),
        (header::TRAILER, HeaderValue::from_static("wharf-problem")),
    ];
    Ok((headers, Body::new(Pieces(pieces))))
}

/// Moves an archive to its reader until it ends, the reader leaves or the daemon ends.
async fn pump(mut archive: Box<dyn Archive>, sink: Sink, work: Work) {
    loop {
        let next = tokio::select! {
            next = work.meanwhile(archive.next()) => next,
            () = sink.pieces.closed() => return,
        };
        match next {
            Ok(Ok(Some(bytes))) => {
                if sink.pieces.send(Ok(Frame::data(bytes.into()))).await.is_err() {
                    return;
                }
            }
            Ok(Ok(None)) => return,
            Ok(Err(failure)) | Err(failure) => return sink.fail(failure).await,
        }
    }
}

#[derive(Deserialize)]
pub(super) struct Put {
    /// The directory, as JSON: a path need not be UTF-8.
    dir: String,
}

pub(super) async fn put(
    State(app): State<Arc<App>>,
    Key(key): Key,
    Query(query): Query<Put>,
    body: Body,
) -> Answer<Json<()>> {
    let dir: Text = serde_json::from_str(&query.dir)
        .map_err(|error| Refusal::invalid(format!("cannot read the directory: {error}")))?;
    let body = Arc::new(Mutex::new(body));
    let given = Box::new(Given(Arc::clone(&body)));
    let given = async { app.engine.session(&key).await?.copy_in(&dir, given).await };
    let copied = app.work.meanwhile(given).await;
    if !matches!(copied, Ok(Ok(()))) {
        // Whoever is in the middle of sending would hear of a broken connection, and not of what went wrong.
        let work = app.work.clone();
        app.work.spawn(async move {
            let heard = tokio::time::timeout(LINGER_TIMEOUT, heard_out(body));
            // The daemon's end, or somebody who sends for ever: both break it off.
            let _ = work.meanwhile(heard).await;
        });
    }
    Ok(Json(copied??))
}

/// Reads what nobody wants any more.
async fn heard_out(body: Arc<Mutex<Body>>) {
    while matches!(body.lock().await.frame().await, Some(Ok(_))) {}
}

/// A request's body as an archive.
struct Given(Arc<Mutex<Body>>);

#[async_trait::async_trait]
impl Archive for Given {
    async fn next(&mut self) -> Result<Option<Vec<u8>>, Failure> {
        loop {
            let frame =
                tokio::time::timeout(SILENCE_TIMEOUT, async { self.0.lock().await.frame().await }).await;
            let frame = frame.map_err(|_| {
                Failure::new(Code::Timeout, format!("nothing came for {} s", SILENCE_TIMEOUT.as_secs()))
            })?;
            let Some(frame) = frame else { return Ok(None) };
            let frame = frame
                .map_err(|error| Failure::new(Code::Unreachable, format!("the copy broke off: {error}")))?;
            if let Ok(bytes) = frame.into_data() {
                return Ok(Some(bytes.into()));
            }
        }
    }
}

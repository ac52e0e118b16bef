//! Files that go in and out of a session's place.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::IntoResponse;
use axum::{Extension, Json};
use http_body_util::BodyExt;
use hyper::body::Frame;
use serde::Deserialize;
use tokio::sync::mpsc;
use wharf_api::linux::Peer;
use wharf_api::{FileRequest, TAR};
use wharf_engine::Archive;
use wharf_model::{Code, Failure, FileStat, Text};

use crate::app::App;
use crate::input::{self, Key, Query};
use crate::refusal::{Answer, Refusal};
use crate::rights::Rights;
use crate::stream::{Pieces, Sink};
use crate::work::Work;

/// How many pieces wait for a slow reader.
const AHEAD: usize = 4;
/// How long a sender may take with its next piece: it may itself wait for something.
const SILENCE: Duration = Duration::from_secs(600);

pub(super) async fn look(
    State(app): State<Arc<App>>,
    Extension(peer): Extension<Peer>,
    Key(key): Key,
    input::Json(request): input::Json<FileRequest>,
) -> Answer<Json<Option<FileStat>>> {
    allowed(&app, peer, &key).await?;
    Ok(Json(app.engine.file(&key, &request.path, request.follow).await?))
}

pub(super) async fn take(
    State(app): State<Arc<App>>,
    Extension(peer): Extension<Peer>,
    Key(key): Key,
    headers: HeaderMap,
    input::Json(request): input::Json<FileRequest>,
) -> Answer<impl IntoResponse> {
    allowed(&app, peer, &key).await?;
    let archive = app.engine.copy_out(&key, &request.path, request.follow).await?;
    let (sender, pieces) = mpsc::channel(AHEAD);
    tokio::spawn(pump(archive, Sink::new(sender, &headers), app.work.clone()));
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
    Extension(peer): Extension<Peer>,
    Key(key): Key,
    Query(query): Query<Put>,
    body: Body,
) -> Answer<Json<()>> {
    allowed(&app, peer, &key).await?;
    let dir: Text = serde_json::from_str(&query.dir)
        .map_err(|error| Refusal::invalid(format!("cannot read the directory: {error}")))?;
    let given = app.engine.copy_in(&key, &dir, Box::new(Given(body)));
    Ok(Json(app.work.meanwhile(given).await??))
}

async fn allowed(app: &App, peer: Peer, key: &str) -> Answer<()> {
    let session = app.engine.find(key).await?;
    Ok(Rights::of(&app.engine, peer).await.over("copy files of", &[session])?)
}

/// A request's body as an archive.
struct Given(Body);

#[async_trait::async_trait]
impl Archive for Given {
    async fn next(&mut self) -> Result<Option<Vec<u8>>, Failure> {
        loop {
            let frame = tokio::time::timeout(SILENCE, self.0.frame()).await;
            let frame = frame.map_err(|_| {
                Failure::new(Code::Timeout, format!("nothing came for {} s", SILENCE.as_secs()))
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

//! Routes for one session: show, resize, rename, variables, pipe, wait, stats.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::http::header;
use axum::response::IntoResponse;
use axum::{Extension, Json};
use serde::Deserialize;
use wharf_api::{EnvRequest, PipeRequest, RenameRequest};
use wharf_model::{Code, ExitRecord, Failure, Session, Size, Stats, Text};

use super::sessions::unwritable;
use crate::app::App;
use crate::input;
use crate::refusal::Answer;
use crate::rights::Rights;

#[derive(Deserialize)]
pub(super) struct Look {
    /// A session that nobody attends is looked at first, so that its state is that of now.
    #[serde(default)]
    glance: bool,
}

pub(super) async fn show(
    State(app): State<Arc<App>>,
    Extension(rights): Extension<Rights>,
    input::Key(key): input::Key,
    input::Query(look): input::Query<Look>,
) -> Answer<impl IntoResponse> {
    let session = app.engine.session(&key).await?;
    let session = if look.glance { session.glance().await? } else { session.snapshot().await? };
    let text = app.full.one(&rights.shown(&session)).map_err(|error| unwritable(&error))?;
    Ok(([(header::CONTENT_TYPE, "application/json")], text))
}

pub(super) async fn resize(
    State(app): State<Arc<App>>,
    input::Key(key): input::Key,
    input::Json(size, ..): input::Json<Size>,
) -> Answer<Json<()>> {
    Ok(Json(app.engine.session(&key).await?.resize(size).await?))
}

pub(super) async fn rename(
    State(app): State<Arc<App>>,
    input::Key(key): input::Key,
    input::Json(request, ..): input::Json<RenameRequest>,
) -> Answer<Json<Session>> {
    let engine = app.engine.clone();
    let renamed = app
        .work
        .carry_out(async move { Ok(engine.session(&key).await?.rename(request.name).await?) })
        .await?;
    Ok(Json(Session::clone(&renamed)))
}

pub(super) async fn env(
    State(app): State<Arc<App>>,
    input::Key(key): input::Key,
) -> Answer<Json<Vec<(Text, Text)>>> {
    Ok(Json(app.engine.session(&key).await?.env().await?))
}

pub(super) async fn set_env(
    State(app): State<Arc<App>>,
    input::Key(key): input::Key,
    input::Json(request, ..): input::Json<EnvRequest>,
) -> Answer<Json<()>> {
    let engine = app.engine.clone();
    let work = async move { Ok(engine.session(&key).await?.set_env(request.set, request.unset).await?) };
    app.work.carry_out(work).await.map(Json)
}

pub(super) async fn pipe(
    State(app): State<Arc<App>>,
    input::Key(key): input::Key,
    input::Json(request, ..): input::Json<PipeRequest>,
) -> Answer<Json<()>> {
    let engine = app.engine.clone();
    let work = async move { Ok(engine.session(&key).await?.pipe(request.file, request.from_start).await?) };
    app.work.carry_out(work).await.map(Json)
}

#[derive(Deserialize)]
pub(super) struct Wait {
    timeout_ms: Option<u64>,
}

pub(super) async fn wait(
    State(app): State<Arc<App>>,
    input::Key(key): input::Key,
    input::Query(query): input::Query<Wait>,
) -> Answer<Json<ExitRecord>> {
    let session = app.engine.session(&key).await?;
    let end = session.wait();
    let end = async {
        let Some(timeout) = query.timeout_ms else { return end.await };
        tokio::time::timeout(Duration::from_millis(timeout), end).await.unwrap_or_else(|_| {
            Err(Failure::new(Code::Timeout, format!("session \"{key}\" did not end within {timeout} ms")))
        })
    };
    Ok(Json(app.work.meanwhile(end).await??))
}

pub(super) async fn stats(State(app): State<Arc<App>>, input::Key(key): input::Key) -> Answer<Json<Stats>> {
    Ok(Json(app.engine.session(&key).await?.stats().await?))
}

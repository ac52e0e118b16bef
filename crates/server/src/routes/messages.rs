//! Routes: sends, lists, shows, cancels and retries messages, and asks agents.

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use serde::Deserialize;
use wharf_api::{Await, Retry, SendRequest};
use wharf_model::{Receipt, Reply};

use crate::app::App;
use crate::input;
use crate::refusal::Answer;

/// How long is waited where nothing is said.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(120);
/// How long is waited at most.
const MAX_TIMEOUT: Duration = Duration::from_secs(30 * 24 * 3600);

#[derive(Deserialize)]
pub(super) struct Waiting {
    #[serde(default)]
    wait: Await,
    timeout_ms: Option<u64>,
}

/// A time that a request names, within what can be waited.
pub(super) fn within(timeout_ms: Option<u64>) -> Duration {
    timeout_ms.map_or(DEFAULT_TIMEOUT, Duration::from_millis).min(MAX_TIMEOUT)
}

pub(super) async fn send(
    State(app): State<Arc<App>>,
    input::Key(key): input::Key,
    input::Query(waiting): input::Query<Waiting>,
    input::Json(request, ..): input::Json<SendRequest>,
) -> Answer<Json<Receipt>> {
    let session = app.engine.session(&key).await?;
    // Finished though the asker hangs up: he asks again with the same key.
    let send = async move { Ok(session.send(request.text, request.manner).await?) };
    let receipt = app.work.carry_out(send).await?;
    waited(&app, receipt, &waiting).await
}

pub(super) async fn retry(
    State(app): State<Arc<App>>,
    input::Key(key): input::Key,
    input::Query(waiting): input::Query<Waiting>,
    input::Json(request, ..): input::Json<Retry>,
) -> Answer<Json<Receipt>> {
    let session = app.engine.session(&key).await?;
    let within = within(waiting.timeout_ms);
    let work = async move { Ok(session.retry(request, within).await?) };
    let receipt = app.work.carry_out(work).await?;
    waited(&app, receipt, &waiting).await
}

pub(super) async fn list(
    State(app): State<Arc<App>>,
    input::Key(key): input::Key,
) -> Answer<Json<Vec<Receipt>>> {
    Ok(Json(app.engine.session(&key).await?.messages().await?))
}

pub(super) async fn show(
    State(app): State<Arc<App>>,
    input::Key(id): input::Key,
    input::Query(waiting): input::Query<Waiting>,
) -> Answer<Json<Receipt>> {
    waited(&app, app.engine.session_of_message(&id).await?.receipt(&id).await?, &waiting).await
}

pub(super) async fn cancel(State(app): State<Arc<App>>, input::Key(id): input::Key) -> Answer<Json<Receipt>> {
    let engine = app.engine.clone();
    app.work
        .carry_out(async move { Ok(engine.session_of_message(&id).await?.cancel(&id).await?) })
        .await
        .map(Json)
}

pub(super) async fn ask(
    State(app): State<Arc<App>>,
    input::Key(key): input::Key,
    input::Query(waiting): input::Query<Waiting>,
    input::Json(request, ..): input::Json<SendRequest>,
) -> Answer<Json<Reply>> {
    let session = app.engine.session(&key).await?;
    let reply = session.ask(request.text, request.manner, within(waiting.timeout_ms));
    Ok(Json(app.work.meanwhile(reply).await??))
}

/// Waits as far as was asked. A message that is over is an answer too: its receipt says so.
async fn waited(app: &App, receipt: Receipt, waiting: &Waiting) -> Answer<Json<Receipt>> {
    if waiting.wait == Await::Accepted {
        return Ok(Json(receipt));
    }
    let session = app.engine.session(receipt.session.as_str()).await?;
    let wait = session.await_receipt(&receipt.id, waiting.wait, within(waiting.timeout_ms));
    Ok(Json(app.work.meanwhile(wait).await??))
}

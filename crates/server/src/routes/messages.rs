use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::{Extension, Json};
use serde::Deserialize;
use wharf_api::linux::Peer;
use wharf_api::{Await, SendRequest};
use wharf_model::{Receipt, Reply};

use crate::app::App;
use crate::input;
use crate::refusal::Answer;
use crate::rights::Rights;

/// How long is waited where nothing is said.
const PATIENCE: Duration = Duration::from_secs(120);
/// How long is waited at most.
const LONGEST: Duration = Duration::from_secs(30 * 24 * 3600);

#[derive(Deserialize)]
pub(super) struct Waiting {
    #[serde(default)]
    wait: Await,
    timeout_ms: Option<u64>,
}

/// A time that a request names, within what can be waited.
pub(super) fn within(timeout_ms: Option<u64>) -> Duration {
    timeout_ms.map_or(PATIENCE, Duration::from_millis).min(LONGEST)
}

pub(super) async fn send(
    State(app): State<Arc<App>>,
    Extension(peer): Extension<Peer>,
    input::Key(key): input::Key,
    input::Query(waiting): input::Query<Waiting>,
    input::Json(request): input::Json<SendRequest>,
) -> Answer<Json<Receipt>> {
    let session = app.engine.find(&key).await?;
    Rights::of(&app.engine, peer).await.over("send a message to", &[Arc::clone(&session)])?;
    let engine = app.engine.clone();
    // Finished though the asker hangs up: he asks again with the same key.
    let send = async move { Ok(engine.send(session.id.as_str(), request.text, request.manner).await?) };
    let receipt = app.work.carry_out(send).await?;
    waited(&app, receipt, &waiting).await
}

pub(super) async fn list(
    State(app): State<Arc<App>>,
    input::Key(key): input::Key,
) -> Answer<Json<Vec<Receipt>>> {
    Ok(Json(app.engine.messages(&key).await?))
}

pub(super) async fn show(
    State(app): State<Arc<App>>,
    input::Key(id): input::Key,
    input::Query(waiting): input::Query<Waiting>,
) -> Answer<Json<Receipt>> {
    waited(&app, app.engine.receipt(&id).await?, &waiting).await
}

pub(super) async fn cancel(
    State(app): State<Arc<App>>,
    Extension(peer): Extension<Peer>,
    input::Key(id): input::Key,
) -> Answer<Json<Receipt>> {
    let receipt = app.engine.receipt(&id).await?;
    let session = app.engine.find(receipt.session.as_str()).await?;
    Rights::of(&app.engine, peer).await.over("cancel a message to", &[session])?;
    let engine = app.engine.clone();
    app.work.carry_out(async move { Ok(engine.cancel(&id).await?) }).await.map(Json)
}

pub(super) async fn ask(
    State(app): State<Arc<App>>,
    Extension(peer): Extension<Peer>,
    input::Key(key): input::Key,
    input::Query(waiting): input::Query<Waiting>,
    input::Json(request): input::Json<SendRequest>,
) -> Answer<Json<Reply>> {
    let session = app.engine.find(&key).await?;
    Rights::of(&app.engine, peer).await.over("send a message to", &[Arc::clone(&session)])?;
    let within = within(waiting.timeout_ms);
    let reply = app.engine.ask(session.id.as_str(), request.text, request.manner, within);
    Ok(Json(app.work.meanwhile(reply).await??))
}

/// Waits as far as was asked. A message that is over is an answer too: its receipt says so.
async fn waited(app: &App, receipt: Receipt, waiting: &Waiting) -> Answer<Json<Receipt>> {
    let how = match waiting.wait {
        Await::Accepted => return Ok(Json(receipt)),
        Await::Submitted => wharf_engine::Await::Submitted,
        Await::Confirmed => wharf_engine::Await::Confirmed,
        Await::Idle => wharf_engine::Await::Idle,
    };
    let wait = app.engine.await_receipt(&receipt.id, how, within(waiting.timeout_ms));
    Ok(Json(app.work.meanwhile(wait).await??))
}

//! Routes: interrupt, escape, keys, and the answers to an agent's question.

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use serde::Deserialize;
use wharf_api::{ApproveRequest, KeysRequest};
use wharf_engine::Answer as Reaction;
use wharf_model::{Answered, Interrupted, Question, Report, Session};

use super::messages::within;
use crate::app::App;
use crate::input;
use crate::refusal::{Answer, Refusal};

/// How long an agent may take to stop, or to take an answer, where nothing is said.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(15);
/// The most keys of one request.
const MAX_KEYS: usize = 1024;

#[derive(Deserialize)]
pub(super) struct Timed {
    timeout_ms: Option<u64>,
}

impl Timed {
    fn within(&self) -> Duration {
        self.timeout_ms.map_or(DEFAULT_TIMEOUT, |timeout| within(Some(timeout)))
    }
}

pub(super) async fn interrupt(
    State(app): State<Arc<App>>,
    input::Key(key): input::Key,
    input::Query(timed): input::Query<Timed>,
) -> Answer<Json<Interrupted>> {
    let session = app.engine.find(&key).await?;
    let engine = app.engine.clone();
    let work = async move { Ok(engine.session(session.id.as_str()).await?.interrupt(timed.within()).await?) };
    app.work.carry_out(work).await.map(Json)
}

pub(super) async fn escape(State(app): State<Arc<App>>, input::Key(key): input::Key) -> Answer<Json<Report>> {
    let session = app.engine.find(&key).await?;
    press(&app, &session, vec!["Escape".to_owned()]).await?;
    let session = app.engine.find(session.id.as_str()).await?;
    let evidence = session.evidence.clone().unwrap_or_default();
    Ok(Json(Report { state: session.state, source: session.source, since: session.since, evidence }))
}

pub(super) async fn keys(
    State(app): State<Arc<App>>,
    input::Key(key): input::Key,
    input::Json(request, ..): input::Json<KeysRequest>,
) -> Answer<Json<()>> {
    if request.keys.len() > MAX_KEYS {
        return Err(Refusal::invalid(format!("more than {MAX_KEYS} keys at once")));
    }
    let session = app.engine.find(&key).await?;
    press(&app, &session, request.keys).await.map(Json)
}

pub(super) async fn question(
    State(app): State<Arc<App>>,
    input::Key(key): input::Key,
) -> Answer<Json<Option<Question>>> {
    Ok(Json(app.engine.session(&key).await?.question().await?))
}

pub(super) async fn approve(
    State(app): State<Arc<App>>,
    input::Key(key): input::Key,
    input::Query(timed): input::Query<Timed>,
    input::Json(request, ..): input::Json<ApproveRequest>,
) -> Answer<Json<Answered>> {
    answer(app, key, Reaction::Approve(request.choice), timed.within()).await
}

pub(super) async fn deny(
    State(app): State<Arc<App>>,
    input::Key(key): input::Key,
    input::Query(timed): input::Query<Timed>,
) -> Answer<Json<Answered>> {
    answer(app, key, Reaction::Deny, timed.within()).await
}

async fn answer(app: Arc<App>, key: String, reaction: Reaction, within: Duration) -> Answer<Json<Answered>> {
    let session = app.engine.find(&key).await?;
    let engine = app.engine.clone();
    // Half an answer would be worse than either.
    let work = async move { Ok(engine.session(session.id.as_str()).await?.answer(reaction, within).await?) };
    app.work.carry_out(work).await.map(Json)
}

async fn press(app: &App, session: &Arc<Session>, keys: Vec<String>) -> Answer<()> {
    let (engine, id) = (app.engine.clone(), session.id.clone());
    app.work.carry_out(async move { Ok(engine.session(id.as_str()).await?.press(&keys).await?) }).await
}

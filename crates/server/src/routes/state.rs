//! Routes: waits for a state, an end, a line or an event, and explains a state.

use std::sync::Arc;

use axum::extract::State;
use axum::{Extension, Json};
use serde::Deserialize;
use wharf_api::Met;
use wharf_model::{Act, Explanation, Session, Until};

use super::messages::within;
use crate::app::App;
use crate::input;
use crate::refusal::{Answer, Refusal};
use crate::rights::Rights;

#[derive(Deserialize)]
pub(super) struct Waiting {
    until: String,
    timeout_ms: Option<u64>,
}

pub(super) async fn until(
    State(app): State<Arc<App>>,
    Extension(rights): Extension<Rights>,
    input::Key(key): input::Key,
    input::Query(query): input::Query<Waiting>,
) -> Answer<Json<Met>> {
    let until: Until = query.until.parse().map_err(|error| Refusal::invalid(format!("{error}")))?;
    let session = app.engine.find(&key).await?;
    match until {
        Until::Match(_) => rights.to(Act::Read, "watch the screen of", &session)?,
        Until::Event(_) => rights.to(Act::Read, "read the events of", &session)?,
        Until::Exit | Until::State(_) => rights.to(Act::See, "wait for", &session)?,
    }
    let timeout = query.timeout_ms.map(|timeout| within(Some(timeout)));
    let session = app.engine.session(session.id.as_str()).await?;
    let met = app.work.meanwhile(session.until(until, timeout)).await??;
    let shown = rights.shown(&met.session);
    // What the state rests on is a piece of the screen.
    let evidence = if Arc::ptr_eq(&shown, &met.session) { met.evidence } else { String::new() };
    Ok(Json(Met { session: Session::clone(&shown), evidence }))
}

pub(super) async fn explain(
    State(app): State<Arc<App>>,
    input::Key(key): input::Key,
) -> Answer<Json<Explanation>> {
    Ok(Json(app.engine.session(&key).await?.explain().await?))
}

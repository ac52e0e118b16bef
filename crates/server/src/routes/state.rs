use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use serde::Deserialize;
use wharf_api::Met;
use wharf_model::{Explanation, Session, Until};

use super::messages::within;
use crate::app::App;
use crate::input;
use crate::refusal::{Answer, Refusal};

#[derive(Deserialize)]
pub(super) struct Waiting {
    until: String,
    timeout_ms: Option<u64>,
}

pub(super) async fn until(
    State(app): State<Arc<App>>,
    input::Key(key): input::Key,
    input::Query(query): input::Query<Waiting>,
) -> Answer<Json<Met>> {
    let until: Until = query.until.parse().map_err(|error| Refusal::invalid(format!("{error}")))?;
    let timeout = query.timeout_ms.map(|timeout| within(Some(timeout)));
    let met = app.work.meanwhile(app.engine.until(&key, until, timeout)).await??;
    Ok(Json(Met { session: Session::clone(&met.session), evidence: met.evidence }))
}

pub(super) async fn explain(
    State(app): State<Arc<App>>,
    input::Key(key): input::Key,
) -> Answer<Json<Explanation>> {
    Ok(Json(app.engine.explain(&key).await?))
}

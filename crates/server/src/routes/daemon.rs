//! Routes: the daemon's own status, and its end.

use std::sync::Arc;

use axum::extract::State;
use axum::{Extension, Json};
use wharf_api::DaemonStatus;
use wharf_api::linux::Peer;

use crate::app::App;
use crate::refusal::Answer;

pub(super) async fn status(State(app): State<Arc<App>>) -> Json<DaemonStatus> {
    Json(DaemonStatus {
        pid: std::process::id() as i32,
        socket: app.home.socket().into(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        started: app.started,
        live: u32::try_from(app.engine.live()).unwrap_or(u32::MAX),
        state_dir: app.home.state().to_owned().into(),
    })
}

pub(super) async fn stop(State(app): State<Arc<App>>, Extension(peer): Extension<Peer>) -> Answer<Json<()>> {
    tracing::info!(pid = peer.pid, "asked to end");
    app.work.stop();
    Ok(Json(()))
}

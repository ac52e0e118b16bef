//! What only some places have: ports and images.

use std::sync::Arc;

use axum::extract::State;
use axum::{Extension, Json};
use serde::Deserialize;
use wharf_api::{PruneRequest, RemoveImageRequest};
use wharf_model::{Act, Code, EngineVariables, Failure, ImageSummary, Published};

use crate::app::App;
use crate::input::{self, Key, Query};
use crate::refusal::Answer;
use crate::rights::Rights;

pub(super) async fn ports(State(app): State<Arc<App>>, Key(key): Key) -> Answer<Json<Vec<Published>>> {
    Ok(Json(app.engine.session(&key).await?.published().await?))
}

#[derive(Deserialize)]
pub(super) struct Which {
    backend: Option<String>,
    /// The caller's variables that say which engine is meant, as JSON.
    engine: Option<String>,
}

/// The engine that a caller means. One who may start nothing here has no word in it: the daemon would go to any address, and
/// read any certificate, on behalf of whoever is kept from both. It is shown the instance's own.
fn meant(rights: &Rights, said: Option<EngineVariables>) -> Option<EngineVariables> {
    said.filter(|_| rights.over_all(Act::Start, "name an engine").is_ok())
}

pub(super) async fn images(
    State(app): State<Arc<App>>,
    Extension(rights): Extension<Rights>,
    Query(which): Query<Which>,
) -> Answer<Json<Vec<ImageSummary>>> {
    let caller: Option<EngineVariables> =
        which.engine.as_deref().map(serde_json::from_str).transpose().map_err(|error| {
            Failure::new(Code::Invalid, format!("the variables of the engine cannot be read: {error}"))
        })?;
    let caller = meant(&rights, caller);
    Ok(Json(app.engine.images(which.backend.as_deref(), caller.as_ref()).await?))
}

pub(super) async fn prune(
    State(app): State<Arc<App>>,
    Extension(rights): Extension<Rights>,
    input::Json(request, ..): input::Json<PruneRequest>,
) -> Answer<Json<Vec<ImageSummary>>> {
    if !request.dry_run {
        rights.over_all(Act::Manage, "remove images")?;
    }
    let engine = app.engine.clone();
    let caller = meant(&rights, request.engine);
    let work = async move {
        let (backend, caller) = (request.backend.as_deref(), caller.as_ref());
        Ok(engine.prune_images(backend, caller, request.all, request.dry_run).await?)
    };
    app.work.carry_out(work).await.map(Json)
}

pub(super) async fn remove(
    State(app): State<Arc<App>>,
    input::Json(request, ..): input::Json<RemoveImageRequest>,
) -> Answer<Json<()>> {
    let engine = app.engine.clone();
    let work = async move {
        let (backend, caller) = (request.backend.as_deref(), request.engine.as_ref());
        Ok(engine.remove_image(backend, caller, &request.name).await?)
    };
    app.work.carry_out(work).await.map(Json)
}

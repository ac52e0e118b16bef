//! What only some places have: ports and images.

use std::sync::Arc;

use axum::extract::State;
use axum::{Extension, Json};
use serde::Deserialize;
use wharf_api::linux::Peer;
use wharf_api::{PruneRequest, RemoveImageRequest};
use wharf_model::{ImageSummary, Published};

use crate::app::App;
use crate::input::{self, Key, Query};
use crate::refusal::Answer;
use crate::rights::Rights;

pub(super) async fn ports(State(app): State<Arc<App>>, Key(key): Key) -> Answer<Json<Vec<Published>>> {
    Ok(Json(app.engine.published(&key).await?))
}

#[derive(Deserialize)]
pub(super) struct Which {
    backend: Option<String>,
}

pub(super) async fn images(
    State(app): State<Arc<App>>,
    Query(which): Query<Which>,
) -> Answer<Json<Vec<ImageSummary>>> {
    Ok(Json(app.engine.images(which.backend.as_deref()).await?))
}

pub(super) async fn prune(
    State(app): State<Arc<App>>,
    Extension(peer): Extension<Peer>,
    input::Json(request): input::Json<PruneRequest>,
) -> Answer<Json<Vec<ImageSummary>>> {
    if !request.dry_run {
        Rights::of(&app.engine, peer).await.over_all("remove images")?;
    }
    let engine = app.engine.clone();
    let work = async move {
        Ok(engine.prune_images(request.backend.as_deref(), request.all, request.dry_run).await?)
    };
    app.work.carry_out(work).await.map(Json)
}

pub(super) async fn remove(
    State(app): State<Arc<App>>,
    Extension(peer): Extension<Peer>,
    input::Json(request): input::Json<RemoveImageRequest>,
) -> Answer<Json<()>> {
    Rights::of(&app.engine, peer).await.over_all("remove images")?;
    let engine = app.engine.clone();
    let work = async move { Ok(engine.remove_image(request.backend.as_deref(), &request.name).await?) };
    app.work.carry_out(work).await.map(Json)
}

//! Routes: agent profiles, agents' hook settings, and what hooks tell.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use axum::extract::State;
use axum::{Extension, Json};
use serde::Deserialize;
use wharf_agents::{Profiles, hooks};
use wharf_api::{AgentSummary, HookAction, HookRequest, HookSettings, HookState};
use wharf_model::{Act, Code, Failure};

use crate::app::App;
use crate::refusal::Answer;
use crate::rights::Rights;
use crate::{credentials, input};

#[derive(Deserialize)]
pub(super) struct Place {
    /// The directory whose `wharf.toml` counts.
    dir: Option<PathBuf>,
}

pub(super) async fn list(
    State(app): State<Arc<App>>,
    input::Query(place): input::Query<Place>,
) -> Answer<Json<Vec<AgentSummary>>> {
    Ok(Json(app.engine.agents(place.dir.as_deref().unwrap_or(Path::new("/"))).await?))
}

/// Writes, removes or looks for our entries in an agent's settings. They are the user's: no session may.
pub(super) async fn settings(
    State(app): State<Arc<App>>,
    Extension(rights): Extension<Rights>,
    input::Key(agent): input::Key,
    input::Json(request, ..): input::Json<HookSettings>,
) -> Answer<Json<HookState>> {
    if request.action != HookAction::Status {
        rights.over_all(Act::Manage, "change the settings of an agent")?;
    }
    let config = app.home.config().to_owned();
    let work = async move {
        let done = tokio::task::spawn_blocking(move || apply(&config, agent, &request)).await;
        Ok(done.map_err(|error| Failure::new(Code::Internal, format!("a fault of Wharf: {error}")))??)
    };
    app.work.carry_out(work).await.map(Json)
}

fn apply(config: &Path, agent: String, request: &HookSettings) -> Result<HookState, Failure> {
    let profile = Profiles::load(Some(config), None)?.named(&agent)?;
    let lookup = |name: &str| {
        let found = request.variables.iter().find(|(variable, _)| variable == name);
        found.map(|(_, value)| value.clone())
    };
    let hooked = match request.action {
        HookAction::Install => {
            let command = request.command.as_path().to_str().ok_or_else(|| {
                Failure::new(Code::Unsupported, "the path of wharf is not UTF-8, and settings are")
                    .hint("install wharf in another place")
            })?;
            hooks::install(&profile, &lookup, &[command.to_owned(), "hook".to_owned(), profile.name.clone()])
        }
        HookAction::Remove => hooks::remove(&profile, &lookup),
        HookAction::Status => hooks::status(&profile, &lookup),
    }?;
    Ok(HookState { agent, installed: hooked.installed, changed: hooked.changed, file: hooked.file.into() })
}

pub(super) async fn hook(
    State(app): State<Arc<App>>,
    Extension(rights): Extension<Rights>,
    input::Json(request, ..): input::Json<HookRequest>,
) -> Answer<Json<()>> {
    let said = Some((request.session.as_str(), request.token.as_str()));
    let id = credentials::speaker(&app.engine, rights.found(), said).await?;
    let engine = app.engine.clone();
    let tell = async move {
        Ok(engine.session(id.as_str()).await?.hook(request.agent.as_deref(), request.payload).await?)
    };
    app.work.carry_out(tell).await.map(Json)
}

//! Routes: backends, garbage collection and the checks of `doctor`.

use std::sync::Arc;

use axum::extract::State;
use axum::{Extension, Json};
use wharf_api::{BackendStatus, Check, GcItem, GcRequest};
use wharf_model::{Act, NameScope};

use crate::app::App;
use crate::input;
use crate::notify::Rules;
use crate::refusal::Answer;
use crate::rights::Rights;
use crate::settings;

pub(super) async fn backends(State(app): State<Arc<App>>) -> Json<Vec<BackendStatus>> {
    let statuses = app.engine.backends().await.into_iter().map(|status| BackendStatus {
        name: status.name,
        default: status.default,
        available: status.probe.available,
        version: status.probe.version,
        detail: status.probe.detail,
        hint: status.probe.hint,
        capabilities: status.capabilities,
    });
    Json(statuses.collect())
}

pub(super) async fn gc(
    State(app): State<Arc<App>>,
    Extension(rights): Extension<Rights>,
    input::Json(request, ..): input::Json<GcRequest>,
) -> Answer<Json<Vec<GcItem>>> {
    if !request.dry_run {
        rights.over_all(Act::Manage, "collect what is left of sessions")?;
    }
    let engine = app.engine.clone();
    let work = async move { Ok(engine.gc(request.dry_run, request.ended_before).await?) };
    app.work.carry_out(work).await.map(Json)
}

pub(super) async fn doctor(State(app): State<Arc<App>>) -> Json<Vec<Check>> {
    let mut checks = app.engine.checks().await;
    checks.extend([notifications(&app), names(&app)]);
    Json(checks)
}

/// Whether the rules for notifications can be read.
fn notifications(app: &App) -> Check {
    let name = "notify".to_owned();
    match Rules::check(&app.home) {
        Ok(rules) => Check { name, ok: true, detail: format!("{rules} rules"), hint: None },
        Err(failure) => Check { name, ok: false, detail: failure.message, hint: failure.hint },
    }
}

/// What names are unique in, if that can be read.
fn names(app: &App) -> Check {
    let name = "names".to_owned();
    match settings::name_scope(&app.home) {
        Ok(scope) => {
            let within = match scope {
                NameScope::Instance => "instance",
                NameScope::Group => "group",
            };
            Check { name, ok: true, detail: format!("unique in their {within}"), hint: None }
        }
        Err(failure) => Check { name, ok: false, detail: failure.message, hint: failure.hint },
    }
}

//! The routes. Each file has one subject; this one is the table.

mod agents;
mod daemon;
mod environments;
mod events;
mod files;
mod input;
mod instance;
mod log;
mod many;
mod messages;
mod places;
mod questions;
mod screen;
mod session;
mod sessions;
mod state;
mod trust;

use std::sync::Arc;

use axum::Router;
use axum::http::{Method, StatusCode, Uri};
use axum::routing::{get, post, put};
use wharf_model::{Code, Failure};

use crate::app::App;
use crate::refusal::Refusal;
use crate::route_rights;

/// Every route there is.
pub(crate) fn all(app: Arc<App>) -> Router {
    Router::new()
        .route("/v1/daemon", get(daemon::status))
        .route("/v1/daemon/stop", post(daemon::stop))
        .route("/v1/sessions", get(sessions::list).post(sessions::start))
        .route("/v1/sessions/{key}", get(session::show))
        .route("/v1/sessions/{key}/write", post(input::write))
        .route("/v1/sessions/{key}/close-input", post(input::close))
        .route("/v1/sessions/{key}/resize", post(session::resize))
        .route("/v1/sessions/{key}/rename", post(session::rename))
        .route("/v1/sessions/{key}/env", get(session::env).post(session::set_env))
        .route("/v1/sessions/{key}/pipe", post(session::pipe))
        .route("/v1/sessions/{key}/wait", get(session::wait))
        .route("/v1/sessions/{key}/stats", get(session::stats))
        .route("/v1/sessions/{key}/ports", get(places::ports))
        .route("/v1/sessions/{key}/files", put(files::put))
        .route("/v1/sessions/{key}/files/look", post(files::look))
        .route("/v1/sessions/{key}/files/take", post(files::take))
        .route("/v1/sessions/{key}/log", get(log::read))
        .route("/v1/sessions/{key}/messages", get(messages::list).post(messages::send))
        .route("/v1/sessions/{key}/ask", post(messages::ask))
        .route("/v1/sessions/{key}/retry", post(messages::retry))
        .route("/v1/sessions/{key}/interrupt", post(questions::interrupt))
        .route("/v1/sessions/{key}/escape", post(questions::escape))
        .route("/v1/sessions/{key}/keys", post(questions::keys))
        .route("/v1/sessions/{key}/question", get(questions::question))
        .route("/v1/sessions/{key}/approve", post(questions::approve))
        .route("/v1/sessions/{key}/deny", post(questions::deny))
        .route("/v1/sessions/{key}/screen", get(screen::capture))
        .route("/v1/sessions/{key}/screen/changes", get(screen::changes))
        .route("/v1/sessions/{key}/repaint", get(screen::repaint))
        .route("/v1/sessions/{key}/explain", get(state::explain))
        .route("/v1/sessions/{key}/until", get(state::until))
        .route("/v1/sessions/{key}/events", get(events::read))
        .route("/v1/messages/{id}", get(messages::show))
        .route("/v1/messages/{id}/cancel", post(messages::cancel))
        .route("/v1/agents", get(agents::list))
        .route("/v1/agents/{name}/hooks", post(agents::settings))
        .route("/v1/trust", get(trust::list))
        .route("/v1/trust/look", post(trust::look))
        .route("/v1/trust/accept", post(trust::accept))
        .route("/v1/trust/revoke", post(trust::revoke))
        .route("/v1/hook", post(agents::hook))
        .route("/v1/stop", post(many::stop))
        .route("/v1/kill", post(many::kill))
        .route("/v1/signal", post(many::signal))
        .route("/v1/restart", post(many::restart))
        .route("/v1/remove", post(many::remove))
        .route("/v1/pause", post(many::pause))
        .route("/v1/unpause", post(many::unpause))
        .route("/v1/images", get(places::images))
        .route("/v1/images/prune", post(places::prune))
        .route("/v1/images/remove", post(places::remove))
        .route("/v1/backends", get(instance::backends))
        .route("/v1/environments/prepare", post(environments::prepare))
        .route("/v1/gc", post(instance::gc))
        .route("/v1/doctor", get(instance::doctor))
        .route_layer(axum::middleware::from_fn_with_state(Arc::clone(&app), route_rights::ask))
        .fallback(unknown)
        .method_not_allowed_fallback(not_so)
        .with_state(app)
}

async fn unknown(method: Method, uri: Uri) -> Refusal {
    Failure::new(Code::NotFound, format!("there is no route {method} {}", uri.path())).into()
}

async fn not_so(method: Method, uri: Uri) -> Refusal {
    let failure = Failure::new(Code::Invalid, format!("{} does not take {method}", uri.path()));
    Refusal::with_status(StatusCode::METHOD_NOT_ALLOWED, failure)
}

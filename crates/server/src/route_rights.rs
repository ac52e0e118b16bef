//! What each route asks for: the table, and the one place that all requests go through.

use std::collections::HashMap;
use std::sync::Arc;

use axum::extract::{MatchedPath, Path, Request, State};
use axum::http::Method;
use axum::middleware::Next;
use axum::response::Response;
use axum::{Extension, RequestExt};
use wharf_model::{Act, Code, Failure, Name, SessionId};

use crate::app::App;
use crate::refusal::Refusal;
use crate::rights::Rights;

/// What a route asks for.
#[derive(Debug, Clone, Copy)]
enum Asks {
    /// Something of the session in its path.
    Session(Act, &'static str),
    /// To type into the session in its path.
    Typing(&'static str),
    /// Something of the session that the message in its path is for.
    Message(Act, &'static str),
    /// Something of the instance.
    Instance(Act, &'static str),
    /// What it is stands in the request itself: the route asks, with [`Rights`].
    Itself,
}

/// Every route. One that is not here is refused to all who are inside a session, and a test names it.
const ASKED: &[(&str, &str, Asks)] = {
    use Act::{Accept, Change, Look, Manage, Reach, Read, See, Start};
    use Asks::{Instance, Itself, Message, Session, Typing};
    &[
        ("get", "/v1/daemon", Instance(Look, "see the daemon")),
        ("post", "/v1/daemon/stop", Instance(Manage, "end the daemon")),
        ("get", "/v1/sessions", Itself),
        ("post", "/v1/sessions", Itself),
        ("get", "/v1/sessions/{key}", Session(See, "see")),
        ("post", "/v1/sessions/{key}/write", Typing("type into")),
        ("post", "/v1/sessions/{key}/close-input", Session(Change, "end the input of")),
        ("post", "/v1/sessions/{key}/resize", Session(Change, "resize")),
        ("post", "/v1/sessions/{key}/rename", Session(Change, "rename")),
        // Secrets live in variables; and who runs a further command in a session asks for them first.
        ("get", "/v1/sessions/{key}/env", Session(Read, "read the variables of")),
        ("post", "/v1/sessions/{key}/env", Session(Reach, "change the variables of")),
        ("post", "/v1/sessions/{key}/pipe", Session(Reach, "copy the output of")),
        ("get", "/v1/sessions/{key}/wait", Session(See, "wait for")),
        ("get", "/v1/sessions/{key}/stats", Session(See, "measure")),
        ("get", "/v1/sessions/{key}/ports", Session(See, "see the ports of")),
        ("put", "/v1/sessions/{key}/files", Session(Reach, "copy files of")),
        ("post", "/v1/sessions/{key}/files/look", Session(Reach, "copy files of")),
        ("post", "/v1/sessions/{key}/files/take", Session(Reach, "copy files of")),
        ("get", "/v1/sessions/{key}/log", Session(Read, "read the output of")),
        ("get", "/v1/sessions/{key}/messages", Session(Read, "read the messages of")),
        ("post", "/v1/sessions/{key}/messages", Session(Change, "send a message to")),
        ("post", "/v1/sessions/{key}/ask", Session(Change, "send a message to")),
        ("post", "/v1/sessions/{key}/retry", Session(Change, "send a message to")),
        ("post", "/v1/sessions/{key}/interrupt", Typing("interrupt")),
        ("post", "/v1/sessions/{key}/escape", Typing("type into")),
        ("post", "/v1/sessions/{key}/keys", Typing("type into")),
        ("get", "/v1/sessions/{key}/question", Session(Read, "read the question of")),
        ("post", "/v1/sessions/{key}/approve", Session(Act::Answer, "answer for")),
        ("post", "/v1/sessions/{key}/deny", Session(Act::Answer, "answer for")),
        ("get", "/v1/sessions/{key}/screen", Session(Read, "see the screen of")),
        ("get", "/v1/sessions/{key}/screen/changes", Session(Read, "see the screen of")),
        ("get", "/v1/sessions/{key}/repaint", Session(Read, "see the screen of")),
        ("get", "/v1/sessions/{key}/explain", Session(Read, "explain the state of")),
        ("get", "/v1/sessions/{key}/until", Itself),
        ("get", "/v1/sessions/{key}/events", Session(Read, "read the events of")),
        ("get", "/v1/messages/{id}", Message(Read, "read a message to")),
        ("post", "/v1/messages/{id}/cancel", Message(Change, "cancel a message to")),
        ("get", "/v1/agents", Instance(Look, "list the agents")),
        ("post", "/v1/agents/{name}/hooks", Itself),
        // It is told by the session itself, for itself.
        ("post", "/v1/hook", Itself),
        ("post", "/v1/stop", Itself),
        ("post", "/v1/kill", Itself),
        ("post", "/v1/signal", Itself),
        ("post", "/v1/restart", Itself),
        ("post", "/v1/remove", Itself),
        ("post", "/v1/pause", Itself),
        ("post", "/v1/unpause", Itself),
        ("get", "/v1/images", Instance(Look, "list the images")),
        ("post", "/v1/images/prune", Itself),
        ("post", "/v1/images/remove", Instance(Manage, "remove images")),
        ("get", "/v1/backends", Instance(Look, "list the backends")),
        ("post", "/v1/environments/prepare", Instance(Start, "make environments ready")),
        ("post", "/v1/gc", Itself),
        ("get", "/v1/doctor", Instance(Look, "check the instance")),
        ("get", "/v1/trust", Instance(Look, "list the trusted files")),
        // Shown to nobody inside: from a sandbox it would be a way to read what cannot be read there.
        ("post", "/v1/trust/look", Instance(Accept, "look at a project's file for trust")),
        ("post", "/v1/trust/accept", Instance(Accept, "trust a project's file")),
        ("post", "/v1/trust/revoke", Instance(Accept, "revoke the trust in a project's file")),
    ]
};

/// The session that a caller was allowed to ask about: the route takes this one, whatever has the name by then.
#[derive(Clone)]
pub(crate) struct Checked(pub(crate) SessionId);

/// Asks whether the caller may, before a route does anything.
pub(crate) async fn ask(
    State(app): State<Arc<App>>,
    Extension(rights): Extension<Rights>,
    mut request: Request,
    next: Next,
) -> Result<Response, Refusal> {
    if !rights.are_all() {
        let checked = check(&app, &rights, &mut request).await?;
        if let Some(id) = checked {
            request.extensions_mut().insert(Checked(id));
        }
    }
    Ok(next.run(request).await)
}

async fn check(app: &App, rights: &Rights, request: &mut Request) -> Result<Option<SessionId>, Refusal> {
    let path = request.extensions().get::<MatchedPath>().map(|path| path.as_str().to_owned());
    let Some(asks) = path.as_deref().and_then(|path| asked(request.method(), path)) else {
        let message = format!("{} {} is not for sessions", request.method(), request.uri().path());
        return Err(Failure::new(Code::Forbidden, message).into());
    };
    let word = parameter(request).await;
    match asks {
        Asks::Session(act, verb) => {
            let session = app.engine.find(&word?).await?;
            rights.to(act, verb, &session)?;
            Ok(Some(session.id.clone()))
        }
        Asks::Typing(verb) => {
            let session = app.engine.find(&word?).await?;
            rights.to_type(verb, &session).await?;
            Ok(Some(session.id.clone()))
        }
        Asks::Message(act, verb) => {
            let id = word?;
            let receipt = app.engine.session_of_message(&id).await?.receipt(&id).await?;
            rights.to(act, verb, &*app.engine.find(receipt.session.as_str()).await?)?;
            Ok(None)
        }
        Asks::Instance(act, what) => {
            rights.over_all(act, what)?;
            Ok(None)
        }
        Asks::Itself => Ok(None),
    }
}

fn asked(method: &Method, path: &str) -> Option<Asks> {
    let found =
        ASKED.iter().find(|(verb, route, _)| *route == path && method.as_str().eq_ignore_ascii_case(verb));
    found.map(|(.., asks)| *asks)
}

/// The one word that a route has in its path.
async fn parameter(request: &mut Request) -> Result<String, Refusal> {
    let words = request.extract_parts::<Path<HashMap<String, String>>>().await;
    let word = words.ok().and_then(|words| words.0.into_values().next()).unwrap_or_default();
    let name: Name = word.parse().map_err(Failure::from)?;
    Ok(name.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The routes as they stand in the table of routes.
    fn routes() -> Vec<(String, String)> {
        let table = include_str!("routes/mod.rs");
        let mut routes = Vec::new();
        for line in table.lines().filter_map(|line| line.trim().strip_prefix(".route(\"")) {
            let (path, methods) = line.split_once('"').unwrap();
            for method in ["get", "post", "put", "delete", "patch", "any", "on"] {
                if methods.contains(&format!(" {method}(")) || methods.contains(&format!(").{method}(")) {
                    routes.push((method.to_owned(), path.to_owned()));
                }
            }
        }
        routes
    }

    #[test]
    fn every_route_says_what_it_asks_for() {
        let routes = routes();
        assert!(routes.len() > 50, "{}", routes.len());
        for (method, path) in &routes {
            assert!(
                ASKED.iter().any(|(verb, route, _)| verb == method && route == path),
                "{method} {path} is not in the table: say there what it asks for"
            );
        }
        assert_eq!(routes.len(), ASKED.len(), "the table has a route that is none");
    }
}

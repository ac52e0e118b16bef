//! Routes: lists, selects and starts sessions.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::extract::State;
use axum::http::header;
use axum::response::IntoResponse;
use axum::{Extension, Json};
use wharf_api::{Selector, StartRequest, Started};
use wharf_engine::Filter;
use wharf_model::{Act, Code, Failure, Session};

use crate::app::App;
use crate::input;
use crate::refusal::{Answer, Refusal};
use crate::rights::Rights;

pub(super) async fn list(
    State(app): State<Arc<App>>,
    Extension(rights): Extension<Rights>,
    input::Query(query): input::Query<Vec<(String, String)>>,
) -> Answer<impl IntoResponse> {
    let asked = |form: &str| query.iter().any(|(name, value)| name == form && is_true(value));
    let (list, kind) = match (asked("table"), asked("brief")) {
        (true, _) => (&app.rows, "text/tab-separated-values; charset=utf-8"),
        (_, true) => (&app.brief, "application/json"),
        _ => (&app.full, "application/json"),
    };
    let mut sessions = select(&app, &selector(query)?).await?;
    if !rights.are_all() {
        sessions = sessions.iter().map(|session| rights.shown(session)).collect();
    }
    let text = list.write(sessions).map_err(|error| unwritable(&error))?;
    Ok(([(header::CONTENT_TYPE, kind)], text))
}

pub(super) async fn start(
    State(app): State<Arc<App>>,
    Extension(rights): Extension<Rights>,
    input::Json(mut request, ..): input::Json<StartRequest>,
) -> Answer<Json<Started>> {
    let spec = &mut request.spec;
    rights.over_all(Act::Start, "start a session")?;
    if spec.control_others {
        rights.over_all(Act::StartWider, "start a session with --allow-control")?;
    }
    if spec.adopt.is_some() {
        rights.over_all(Act::StartWider, "take somebody else's session in")?;
    }
    spec.starter = rights.session().cloned();
    let engine = app.engine.clone();
    // A container has those of its engine.
    let hard_limits = if request.spec.container.is_none() { app.hard_limits.clone() } else { Vec::new() };
    let work = Box::pin(async move {
        let (session, created) = if request.ensure {
            engine.ensure(request.spec).await?
        } else {
            (engine.start(request.spec).await?, true)
        };
        Ok(Started { session: Session::clone(&rights.shown(&session)), created, hard_limits })
    });
    app.work.carry_out(work).await.map(Json)
}

/// The sessions that a selector means; a name or a group that there is not is a failure.
pub(super) async fn select(app: &App, selector: &Selector) -> Result<Vec<Arc<Session>>, Failure> {
    let filter = Filter { group: selector.group.clone(), labels: selector.labels.clone(), live: false };
    if let Some(group) = &selector.group
        && !app.engine.has_group(group)
    {
        return Err(Failure::new(Code::NotFound, format!("there is no group {:?}", group.as_str()))
            .hint("`wharf groups` lists them"));
    }
    if selector.names.is_empty() {
        return Ok(app.engine.list(&filter));
    }
    let mut found: Vec<Arc<Session>> = Vec::new();
    for name in &selector.names {
        let session = app.engine.find(name).await?;
        if filter.matches(&session) && !found.iter().any(|other| other.id == session.id) {
            found.push(session);
        }
    }
    Ok(found)
}

fn selector(query: Vec<(String, String)>) -> Answer<Selector> {
    let mut selector = Selector { labels: BTreeMap::new(), ..Selector::default() };
    for (name, value) in query {
        match name.as_str() {
            "name" => selector.names.push(value),
            "group" if value.is_empty() => {}
            "group" => selector.group = Some(value.parse().map_err(Failure::from)?),
            "label" => {
                let (label, value) = value.split_once('=').unwrap_or((&value, ""));
                selector.labels.insert(label.to_owned(), value.to_owned());
            }
            "all" => selector.all = is_true(&value),
            // Of a newer version.
            _ => {}
        }
    }
    Ok(selector)
}

fn is_true(value: &str) -> bool {
    matches!(value, "" | "1" | "true")
}

pub(super) fn unwritable(error: &serde_json::Error) -> Refusal {
    Failure::new(Code::Internal, format!("cannot write the answer: {error}")).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_is_a_selector() {
        let pairs = [
            ("name", "a"),
            ("name", "b"),
            ("group", "g"),
            ("label", "k=v=w"),
            ("label", "only"),
            ("new", "x"),
        ];
        let query = pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let expected = Selector {
            names: vec!["a".into(), "b".into()],
            group: Some("g".parse().unwrap()),
            labels: [("k".to_owned(), "v=w".to_owned()), ("only".to_owned(), String::new())].into(),
            all: false,
        };
        assert_eq!(selector(query).unwrap(), expected);
        assert!(selector(vec![("group".into(), "../x".into())]).is_err());
    }
}

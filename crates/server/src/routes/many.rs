//! One operation on many sessions, in parallel.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::{Extension, Json};
use tokio::task::JoinSet;
use wharf_api::linux::Peer;
use wharf_api::{ManyRequest, Outcome, Selector};
use wharf_engine::Engine;
use wharf_model::{Act, ExitRecord, Failure, Session, SessionId};

use super::sessions::select;
use crate::app::App;
use crate::input;
use crate::refusal::{Answer, Refusal};
use crate::rights::Rights;

type Outcomes = Answer<Json<Vec<Outcome>>>;
type Many = input::Json<ManyRequest>;
type Asker = (Extension<Peer>, Extension<Rights>);

pub(super) async fn stop(State(app): State<Arc<App>>, asker: Asker, body: Many) -> Outcomes {
    let grace = body.0.grace.map(|grace| Duration::from_millis(grace.0));
    each(app, asker, Verb::Stop { grace }, body.0).await
}

pub(super) async fn kill(State(app): State<Arc<App>>, asker: Asker, body: Many) -> Outcomes {
    each(app, asker, Verb::Kill, body.0).await
}

pub(super) async fn signal(State(app): State<Arc<App>>, asker: Asker, body: Many) -> Outcomes {
    let (signal, tree) = (body.0.signal, body.0.tree);
    if !(1..=64).contains(&signal) {
        return Err(Refusal::invalid(format!("{signal} is no signal")));
    }
    each(app, asker, Verb::Signal { signal, tree }, body.0).await
}

pub(super) async fn restart(State(app): State<Arc<App>>, asker: Asker, body: Many) -> Outcomes {
    let grace = body.0.grace.map(|grace| Duration::from_millis(grace.0));
    let repin = body.0.repin;
    if repin {
        asker.1.over_all(Act::Accept, "accept changed paths")?;
    }
    each(app, asker, Verb::Restart { grace, repin }, body.0).await
}

pub(super) async fn remove(State(app): State<Arc<App>>, asker: Asker, body: Many) -> Outcomes {
    let force = body.0.force;
    each(app, asker, Verb::Remove { force }, body.0).await
}

pub(super) async fn pause(State(app): State<Arc<App>>, asker: Asker, body: Many) -> Outcomes {
    each(app, asker, Verb::Pause, body.0).await
}

pub(super) async fn unpause(State(app): State<Arc<App>>, asker: Asker, body: Many) -> Outcomes {
    each(app, asker, Verb::Unpause, body.0).await
}

/// What is done to each.
#[derive(Clone, Copy)]
enum Verb {
    Stop { grace: Option<Duration> },
    Kill,
    Signal { signal: i32, tree: bool },
    Restart { grace: Option<Duration>, repin: bool },
    Remove { force: bool },
    Pause,
    Unpause,
}

impl Verb {
    fn word(self) -> &'static str {
        match self {
            Self::Stop { .. } => "stop",
            Self::Kill => "kill",
            Self::Signal { .. } => "signal",
            Self::Restart { .. } => "restart",
            Self::Remove { .. } => "remove",
            Self::Pause => "pause",
            Self::Unpause => "unpause",
        }
    }

    /// Whether it is only for sessions that are not over.
    fn wants_live(self) -> bool {
        matches!(self, Self::Stop { .. } | Self::Kill | Self::Signal { .. } | Self::Pause | Self::Unpause)
    }

    async fn apply(self, engine: &Engine, id: &SessionId, by: &str) -> Result<Option<ExitRecord>, Failure> {
        let session = engine.session(id.as_str()).await?;
        match self {
            Self::Stop { grace } => session.stop(grace, by).await.map(Some),
            Self::Kill => session.kill(by).await.map(Some),
            Self::Signal { signal, tree } => session.signal(signal, tree).await.map(|()| None),
            Self::Restart { grace, repin: false } => session.restart(grace, by).await.map(|_| None),
            Self::Restart { grace, repin: true } => session.restart_repinned(grace, by).await.map(|_| None),
            Self::Remove { force } => session.remove(force).await.map(|()| None),
            Self::Pause => session.pause().await.map(|_| None),
            Self::Unpause => session.unpause().await.map(|_| None),
        }
    }
}

async fn each(
    app: Arc<App>,
    (Extension(peer), Extension(rights)): Asker,
    verb: Verb,
    request: ManyRequest,
) -> Outcomes {
    let selector = &request.selector;
    let named = !selector.names.is_empty();
    if !named && selector.group.is_none() && selector.labels.is_empty() && !selector.all {
        return Err(Refusal::invalid("no session is named"));
    }
    let Meant { mut sessions, missing } = Meant::by(&app, selector).await?;
    // Of many, those that it can be done to. Of named ones, each must be told.
    sessions.retain(|session| named || !verb.wants_live() || !session.state.is_over());
    rights.over(verb.word(), &sessions)?;
    let engine = app.engine.clone();
    let by = format!("pid {}", peer.pid);
    let work = async move {
        let mut outcomes = apply(engine, verb, sessions, by).await;
        for (place, outcome) in missing {
            outcomes.insert(place.min(outcomes.len()), outcome);
        }
        Ok(Json(outcomes))
    };
    app.work.carry_out(work).await
}

/// What a selector means.
struct Meant {
    sessions: Vec<Arc<Session>>,
    /// What there is to say of names that mean nothing, each with its place among all that is said. One of them stops
    /// nothing for the others.
    missing: Vec<(usize, Outcome)>,
}

impl Meant {
    async fn by(app: &App, selector: &Selector) -> Result<Self, Failure> {
        if selector.names.len() < 2 {
            return Ok(Self { sessions: select(app, selector).await?, missing: Vec::new() });
        }
        let (mut sessions, mut missing): (Vec<Arc<Session>>, Vec<(usize, Outcome)>) =
            (Vec::new(), Vec::new());
        for name in &selector.names {
            match select(app, &Selector { names: vec![name.clone()], ..selector.clone() }).await {
                Ok(found) => {
                    sessions.extend(
                        found
                            .into_iter()
                            .filter(|one| !sessions.iter().any(|other| other.id == one.id))
                            .collect::<Vec<_>>(),
                    );
                }
                Err(failure) => {
                    let outcome = Outcome { name: name.parse()?, exit: None, failure: Some(failure) };
                    missing.push((sessions.len() + missing.len(), outcome));
                }
            }
        }
        match missing.first().and_then(|(_, outcome)| outcome.failure.clone()) {
            // Nothing is done to anything: the request as a whole has failed.
            Some(failure) if sessions.is_empty() => Err(failure),
            _ => Ok(Self { sessions, missing }),
        }
    }
}

async fn apply(engine: Engine, verb: Verb, sessions: Vec<Arc<Session>>, by: String) -> Vec<Outcome> {
    let mut tasks = JoinSet::new();
    let by: Arc<str> = by.into();
    for (place, session) in sessions.iter().enumerate() {
        let (engine, by, id) = (engine.clone(), Arc::clone(&by), session.id.clone());
        tasks.spawn(async move { (place, verb.apply(&engine, &id, &by).await) });
    }
    // A task that panics leaves this behind.
    let fault = || {
        Failure::new(wharf_model::Code::Internal, "a fault of Wharf ended this; the daemon's log says more")
    };
    let mut outcomes: Vec<Outcome> = sessions
        .iter()
        .map(|session| Outcome { name: session.name.clone(), exit: None, failure: Some(fault()) })
        .collect();
    while let Some(done) = tasks.join_next().await {
        match done {
            Ok((place, Ok(exit))) => {
                outcomes[place].failure = exit.as_ref().and_then(|exit| survivors(&sessions[place], exit));
                outcomes[place].exit = exit;
            }
            Ok((place, Err(failure))) => outcomes[place].failure = Some(failure),
            Err(error) => tracing::error!("{} failed by a fault: {error}", verb.word()),
        }
    }
    outcomes
}

/// An end that left something is none that was asked for.
fn survivors(session: &Session, exit: &ExitRecord) -> Option<Failure> {
    let (name, left) = (&session.name, exit.survivors);
    let message = format!("{left} processes of session \"{name}\" could not be ended");
    let hint = format!("`wharf rm {name}` tries once more before it forgets the session");
    (left > 0).then(|| Failure::new(wharf_model::Code::Survivors, message).hint(hint))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_end_with_survivors_is_a_failure_and_one_without_is_not() {
        let session = serde_json::json!({
            "id": "0000000000000000", "name": "one", "group": null, "backend": "x", "state": "exited", "pid": null,
            "dir": "/", "created": 0, "attached": 0, "exit": null, "argv": [], "tty": true, "run": 1, "since": 0,
            "path": "/", "isolation": "none",
        });
        let session: Session = serde_json::from_value(session).unwrap();
        let ended = |survivors| ExitRecord { survivors, ..ExitRecord::default() };
        assert_eq!(survivors(&session, &ended(0)), None);
        let failure = survivors(&session, &ended(2)).unwrap();
        assert_eq!(failure.code, wharf_model::Code::Survivors);
        assert!(failure.message.contains("2 processes of session \"one\""));
    }
}

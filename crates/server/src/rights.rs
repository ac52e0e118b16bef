//! Who asks, and whether they may: found once for a connection, asked by every route.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;
use wharf_api::linux::Peer;
use wharf_engine::Engine;
use wharf_holder::linux::callers::{Found, relation};
use wharf_holder::linux::origin::{Outside, Traces};
use wharf_model::{Act, Caller, Failure, Grant, Session, SessionId, Whose, may};

/// How long a session may take from the start of its command until it is known here, and how often it is looked.
const START_TIMEOUT: Duration = Duration::from_secs(2);
const POLL_INTERVAL: Duration = Duration::from_millis(5);
/// How many processes are remembered that belong to no session. Then it begins anew.
const MAX_OUTSIDE: usize = 1024;

/// Finds out who asks.
#[derive(Clone)]
pub(crate) struct Callers {
    engine: Engine,
    outside: Arc<Mutex<Outside>>,
}

/// What one look at a process gives.
enum Look {
    Sure(Found),
    /// It belongs to a session that is just being started; if that is all there ever is to say, then it is this.
    Perhaps(Found),
}

impl Callers {
    pub(crate) fn new(engine: Engine) -> Self {
        Self { engine, outside: Arc::new(Mutex::new(Outside::new(MAX_OUTSIDE))) }
    }

    /// Who is at the other end of a socket. One that was just started is waited for.
    pub(crate) async fn at(&self, peer: Peer, pidfd: Option<OwnedFd>) -> Found {
        let until = Instant::now() + START_TIMEOUT;
        loop {
            match self.look(peer.pid, pidfd.as_ref()) {
                Look::Sure(found) => return found,
                Look::Perhaps(found) if Instant::now() >= until => return found,
                Look::Perhaps(_) => tokio::time::sleep(POLL_INTERVAL).await,
            }
        }
    }

    fn look(&self, pid: i32, pidfd: Option<&OwnedFd>) -> Look {
        let own = std::process::id() as i32;
        let settled = |pid, start| pid != own && self.lock().holds(pid, start);
        let Some(traces) = Traces::of(pid, pidfd.map(AsFd::as_fd), settled) else {
            return Look::Sure(Found::UNCLEAR);
        };
        if let Some(id) = self.beyond_doubt(&traces) {
            return Look::Sure(self.inside(id, true));
        }
        let said = traces.marks.iter().find(|id| self.engine.grant_of(id).is_some());
        let below_us = traces.chain.iter().position(|link| link.pid == own && pid != own);
        let held = |links: usize| traces.chain[..links].iter().any(|link| link.holder);
        match said {
            // A command may ask before its start has been told to us.
            Some(id) if held(traces.chain.len()) => Look::Perhaps(self.inside(id.clone(), false)),
            Some(id) => Look::Sure(self.inside(id.clone(), false)),
            None if below_us.is_some_and(held) => Look::Perhaps(Found::UNCLEAR),
            None => {
                if below_us.is_none() && !held(traces.chain.len()) {
                    self.lock().remember(&traces);
                }
                Look::Sure(Found::OUTSIDE)
            }
        }
    }

    /// The session that a process shows by more than what it says itself.
    fn beyond_doubt(&self, traces: &Traces) -> Option<SessionId> {
        let kin = |pid, start| self.engine.session_of_process(pid, start);
        let led = |pid| {
            let (id, start) = self.engine.session_of_leader(pid)?;
            traces.is_led_by(pid, start).then_some(id)
        };
        let by_kin = traces.chain.iter().find_map(|link| kin(link.pid, link.start));
        by_kin.or_else(|| traces.chain.iter().find_map(|link| led(link.leader))).or_else(|| {
            let known = traces.groups.iter().find(|(id, _)| self.engine.grant_of(id).is_some());
            known.map(|(id, _)| id.clone())
        })
    }

    fn inside(&self, id: SessionId, sure: bool) -> Found {
        let grant = self.engine.grant_of(&id).unwrap_or_default();
        // What a process only says of itself takes rights away, and gives none.
        let grant = Grant { control: grant.control && sure, ..grant };
        Found { caller: Caller::Inside(grant), session: Some(id) }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Outside> {
        self.outside.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What whoever is at the other end of a connection may.
    pub(crate) async fn rights(&self, peer: Peer, pidfd: Option<OwnedFd>) -> Rights {
        Rights { engine: self.engine.clone(), found: self.at(peer, pidfd).await }
    }
}

/// What a caller may. Agents call the command line themselves: one that ends "all sessions" must not end its neighbours.
#[derive(Clone)]
pub(crate) struct Rights {
    engine: Engine,
    found: Found,
}

impl Rights {
    /// Whether nothing is refused.
    pub(crate) fn are_all(&self) -> bool {
        self.found.caller == Caller::Outside
    }

    /// What is known of where the caller comes from.
    pub(crate) fn found(&self) -> &Found {
        &self.found
    }

    /// The session that the caller is inside of.
    pub(crate) fn session(&self) -> Option<&SessionId> {
        self.found.session.as_ref()
    }

    /// Whose a session is, as the caller sees it.
    pub(crate) fn whose(&self, id: &SessionId) -> Whose {
        let starter = |id: &SessionId| self.engine.starter_of(id);
        self.found.session.as_ref().map_or(Whose::Other, |caller| relation(caller, id, starter))
    }

    /// Refuses what the caller may not do to a session.
    pub(crate) fn to(&self, act: Act, verb: &str, session: &Session) -> Result<(), Failure> {
        if self.are_all() {
            return Ok(());
        }
        may(self.found.caller, act, self.whose(&session.id))
            .map_err(|refused| refused.failure(format!("{verb} session \"{}\"", session.name)))
    }

    /// Refuses unless every one of these sessions may be changed; then none is.
    pub(crate) fn over(&self, verb: &str, sessions: &[Arc<Session>]) -> Result<(), Failure> {
        sessions.iter().try_for_each(|session| self.to(Act::Change, verb, session))
    }

    /// Refuses typing into a session. Where a question is open, whatever is typed may be its answer.
    pub(crate) async fn to_type(&self, verb: &str, session: &Session) -> Result<(), Failure> {
        self.to(Act::Change, verb, session)?;
        if may(self.found.caller, Act::Answer, self.whose(&session.id)).is_err()
            && (session.state == wharf_model::State::Asking || self.asks(session).await)
        {
            return self.to(Act::Answer, verb, session);
        }
        Ok(())
    }

    async fn asks(&self, session: &Session) -> bool {
        let Ok(session) = self.engine.session(session.id.as_str()).await else { return false };
        session.question().await.is_ok_and(|question| question.is_some())
    }

    /// Refuses what concerns the instance and no session.
    pub(crate) fn over_all(&self, act: Act, what: &str) -> Result<(), Failure> {
        may(self.found.caller, act, Whose::Other).map_err(|refused| refused.failure(what))
    }

    /// A session as the caller may see it: of others' its name, place and state, and nothing that was said in it.
    pub(crate) fn shown(&self, session: &Arc<Session>) -> Arc<Session> {
        if self.to(Act::Read, "read", session).is_ok() {
            return Arc::clone(session);
        }
        let mut shown = Session::clone(session);
        // A prompt may stand among the arguments; evidence is a piece of the screen.
        shown.argv.truncate(1);
        shown.labels.clear();
        (shown.detail, shown.evidence, shown.conversation, shown.copy_to) = (None, None, None, None);
        Arc::new(shown)
    }
}

//! Watches the state of all sessions and queues notifications of changes.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use tokio::task::JoinSet;
use wharf_engine::{Change, Engine, Filter};
use wharf_model::{Session, SessionId, State};

use super::delivery::Delivery;
use super::rules::Rules;
use crate::work::Work;

/// How many are told at once.
const MAX_DELIVERIES: usize = 8;
/// How many wait. Of more, the oldest are dropped: they are the least news.
const MAX_WAITING: usize = 64;

/// Watches sessions until the daemon ends, and tells whom the rules name.
pub(crate) async fn witness(engine: Engine, rules: Rules, work: Work) {
    let mut changes = engine.changes();
    let mut seen = Seen::default();
    for session in engine.list(&Filter::default()) {
        seen.first(&session);
    }
    let mut witness = Witness { rules, waiting: VecDeque::new() };
    let mut told = JoinSet::new();
    loop {
        while told.len() < MAX_DELIVERIES
            && let Some(delivery) = witness.waiting.pop_front()
        {
            told.spawn(delivery.deliver());
        }
        tokio::select! {
            change = changes.next() => match change {
                Some(Change::Session(session)) => witness.look(&mut seen, &session),
                Some(Change::Removed(id)) => seen.forget(&id),
                Some(Change::Missed) => {
                    for session in engine.list(&Filter::default()) {
                        witness.look(&mut seen, &session);
                    }
                }
                None => break,
            },
            Some(done) = told.join_next() => match done {
                Ok((_, Ok(()))) => {}
                Ok((name, Err(why))) => tracing::warn!("cannot notify: {name}: {why}"),
                Err(error) => tracing::error!("a notification failed by a fault: {error}"),
            },
            () = work.stopping() => {
                let left = told.len() + witness.waiting.len();
                if left > 0 {
                    tracing::warn!("{left} notifications are left untold");
                }
                break;
            }
        }
    }
    told.shutdown().await;
}

struct Witness {
    rules: Rules,
    waiting: VecDeque<Delivery>,
}

impl Witness {
    fn look(&mut self, seen: &mut Seen, session: &Arc<Session>) {
        let from = match seen.changed(session) {
            News::None => return,
            News::First => None,
            News::From(state) => Some(state),
        };
        for rule in self.rules.now().iter().filter(|rule| rule.is_for(session)) {
            if self.waiting.len() == MAX_WAITING
                && let Some(oldest) = self.waiting.pop_front()
            {
                tracing::warn!("too many notifications wait: {} is dropped", oldest.name());
            }
            self.waiting.push_back(Delivery::new(Arc::clone(rule), Arc::clone(session), from));
        }
    }
}

/// What a look at a session came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum News {
    None,
    First,
    From(State),
}

/// The last known state of each session. *Unknown* is none: after it, a state is news only where it is another one
/// than before.
#[derive(Default)]
struct Seen(HashMap<SessionId, Option<State>>);

impl Seen {
    /// A session that was there before us.
    fn first(&mut self, session: &Session) {
        self.0.insert(session.id.clone(), known(session.state));
    }

    fn forget(&mut self, id: &SessionId) {
        self.0.remove(id);
    }

    /// Whether a session has come to another state, and from which.
    fn changed(&mut self, session: &Session) -> News {
        let Some(now) = known(session.state) else { return News::None };
        match self.0.insert(session.id.clone(), Some(now)) {
            None => News::First,
            // One from before us that was just found again: only its end is news.
            Some(None) if now.is_over() => News::First,
            Some(Some(before)) if before != now => News::From(before),
            Some(_) => News::None,
        }
    }
}

fn known(state: State) -> Option<State> {
    (state != State::Unknown).then_some(state)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn session(state: State) -> Session {
        let session = serde_json::json!({
            "id": "0000000000000000", "name": "one", "group": null, "backend": "x", "state": state, "pid": null,
            "dir": "/", "created": 0, "attached": 0, "exit": null, "argv": [], "tty": true, "run": 1,
            "state_since": 0, "path": "/", "isolation": "none",
        });
        serde_json::from_value(session).unwrap()
    }

    #[test]
    fn a_change_is_told_once_and_unknown_is_none() {
        let mut seen = Seen::default();
        let mut changed = |state| seen.changed(&session(state));
        assert_eq!(changed(State::Starting), News::First);
        assert_eq!(changed(State::Idle), News::From(State::Starting));
        assert_eq!(changed(State::Idle), News::None);
        assert_eq!(changed(State::Unknown), News::None);
        assert_eq!(changed(State::Idle), News::None);
        assert_eq!(changed(State::Unknown), News::None);
        assert_eq!(changed(State::Asking), News::From(State::Idle));
    }

    #[test]
    fn what_was_there_before_us_is_no_news_but_its_end_is() {
        for (later, news) in [(State::Idle, News::None), (State::Exited, News::First)] {
            let mut seen = Seen::default();
            seen.first(&session(State::Unknown));
            assert_eq!(seen.changed(&session(later)), news);
        }
        let mut seen = Seen::default();
        seen.first(&session(State::Exited));
        assert_eq!(seen.changed(&session(State::Exited)), News::None);
    }
}

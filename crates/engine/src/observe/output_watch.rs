//! Notices output of sessions that nobody watches, and wakes their observers where needed.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::{Arc, Mutex, Weak};
use std::time::{Duration, Instant};

use tokio::sync::Notify;
use wharf_log::{Chunk, Reader};
use wharf_model::{Home, Offset, SessionId, Source, State};
use wharf_sequences::Queries;

use crate::instance::shared::{Shared, now};
use crate::observe::observed::lock;
use crate::output::read::log_end;
use crate::platform::Watches;
use crate::session::handle::Handle;

/// How much of a burst is looked at: a program that asks its terminal something waits for the answer.
const TAIL_LEN: u64 = 64 * 1024;
/// How often the sessions that print are looked at, at most.
const MIN_LOOK_INTERVAL: Duration = Duration::from_millis(15);
/// How long one that has just been looked at may print before it is looked at again. It is not watched meanwhile: being
/// woken by each key that comes back would be felt by whoever types.
const SESSION_REST_TIME: Duration = Duration::from_millis(100);
/// What part of a processor's time looking may take: one in this many.
const PROCESSOR_SHARE: u32 = 20;

/// Hears when a session that nobody attends prints something, and wakes its observer where there is need: an agent is
/// always attended when it stirs; any other program when it asks its terminal a question, because it waits for the answer.
///
/// One watch descriptor serves all sessions, and a flood costs no more than a look at its end now and then. A state that was
/// seen before its observer went to sleep stands until the session prints again.
pub(crate) struct OutputWatch {
    watched: Mutex<Watched>,
    watches: Option<Watches>,
    /// Tells that a session is new here: it may have printed before it was watched.
    fresh: Notify,
}

#[derive(Default)]
struct Watched {
    sessions: HashMap<i32, Session>,
    numbers: HashMap<SessionId, i32>,
    fresh: Vec<i32>,
    /// Those that print to somebody who is attached, whose terminal answers: each key that is typed there would wake us.
    attached: HashSet<SessionId>,
    /// Those that are not watched until then.
    resting: VecDeque<(Instant, SessionId)>,
}

struct Session {
    handle: Weak<Handle>,
    /// Whether it is woken whenever it prints.
    agent: bool,
    queries: Queries,
    /// Where the next look begins.
    from: Offset,
}

impl OutputWatch {
    pub(crate) fn new() -> Self {
        let watches = Watches::new();
        if let Err(error) = &watches {
            tracing::warn!(%error, "sessions that nobody looks at get no answers from their terminal");
        }
        Self { watched: Mutex::default(), watches: watches.ok(), fresh: Notify::new() }
    }

    /// Watches a session from a place in its log on.
    pub(crate) fn watch(&self, shared: &Shared, handle: &Arc<Handle>, agent: bool, from: Offset) {
        let Some(watches) = &self.watches else { return };
        let log = shared.home.session(&handle.id).join(Home::LOG);
        let mut watched = lock(&self.watched);
        if !agent && handle.typists() > 0 {
            watched.attached.insert(handle.id.clone());
            drop(watched);
            forget_state(shared, handle);
            return;
        }
        match watches.add(&log) {
            Ok(Some(number)) => {
                watched.numbers.insert(handle.id.clone(), number);
                let handle = Arc::downgrade(handle);
                let session = Session { handle, agent, queries: Queries::default(), from };
                watched.sessions.insert(number, session);
                watched.fresh.push(number);
                self.fresh.notify_one();
            }
            // A backend that keeps no log here answers its terminals itself.
            Ok(None) => {}
            Err(error) => tracing::warn!(session = %handle.id, %error, "a session's log cannot be watched"),
        }
    }

    /// Watches a session no longer.
    pub(crate) fn unwatch(&self, id: &SessionId) {
        let mut watched = lock(&self.watched);
        watched.attached.remove(id);
        let Some(number) = watched.numbers.remove(id) else { return };
        watched.sessions.remove(&number);
        if let Some(watches) = &self.watches {
            watches.remove(number);
        }
    }

    /// How far the log of a session that is watched was looked at.
    pub(crate) fn looked_to(&self, id: &SessionId) -> Option<Offset> {
        let watched = lock(&self.watched);
        let session = watched.sessions.get(watched.numbers.get(id)?)?;
        Some(session.from)
    }

    /// Somebody is attached whose terminal answers, or nobody any more: what is printed from then on is looked at.
    pub(crate) fn set_attached(&self, shared: &Shared, handle: &Arc<Handle>, attached: bool) {
        let mut watched = lock(&self.watched);
        let from = || log_end(&shared.home.session(&handle.id).join(Home::LOG)).unwrap_or_default();
        let known = if attached {
            let session = watched.numbers.get(&handle.id).and_then(|number| watched.sessions.get(number));
            session.is_some_and(|session| !session.agent)
        } else {
            watched.attached.remove(&handle.id)
        };
        drop(watched);
        if !attached && let Some(observed) = handle.observed() {
            // What was asked until now his terminal has answered.
            observed.mark_processed(from());
        }
        if known {
            self.unwatch(&handle.id);
            self.watch(shared, handle, false, from());
        }
    }

    /// Watches those again that have rested. What they printed meanwhile is looked at as that of fresh ones is.
    fn resume(&self, shared: &Shared) {
        let Some(watches) = &self.watches else { return };
        let mut watched = lock(&self.watched);
        while watched.resting.front().is_some_and(|(due, _)| *due <= Instant::now()) {
            let Some((_, id)) = watched.resting.pop_front() else { break };
            let Some(old) = watched.numbers.remove(&id) else { continue };
            let Some(session) = watched.sessions.remove(&old) else { continue };
            // One whose log is gone is over, or about to be.
            if let Ok(Some(number)) = watches.add(&shared.home.session(&id).join(Home::LOG)) {
                watched.numbers.insert(id, number);
                watched.sessions.insert(number, session);
                watched.fresh.push(number);
            }
        }
        self.fresh.notify_one();
    }

    /// Listens until the engine closes.
    pub(crate) async fn listen(shared: Arc<Shared>) {
        let Some(watches) = &shared.output_watch.watches else { return };
        let closed = shared.closed();
        tokio::pin!(closed);
        let mut rest = Duration::ZERO;
        loop {
            tokio::select! {
                () = &mut closed => return,
                () = tokio::time::sleep(rest) => {}
            }
            let due = lock(&shared.output_watch.watched).resting.front().map(|(due, _)| *due);
            let changed = tokio::select! {
                () = &mut closed => return,
                () = tokio::time::sleep_until(due.unwrap_or_else(Instant::now).into()), if due.is_some() => {
                    shared.output_watch.resume(&shared);
                    continue;
                }
                changed = watches.changed_dirs() => changed,
                () = shared.output_watch.fresh.notified() => {
                    // Whoever had it started hears of that first.
                    tokio::select! {
                        () = &mut closed => return,
                        () = tokio::time::sleep(MIN_LOOK_INTERVAL) => {}
                    }
                    Ok(std::mem::take(&mut lock(&shared.output_watch.watched).fresh))
                }
            };
            let changed = match changed {
                Ok(changed) => changed,
                Err(error) => {
                    tracing::warn!(%error, "logs are not watched any more");
                    return;
                }
            };
            let began = Instant::now();
            for number in changed {
                shared.output_watch.look(&shared, number);
            }
            rest = MIN_LOOK_INTERVAL.max(began.elapsed() * PROCESSOR_SHARE);
        }
    }

    fn look(&self, shared: &Arc<Shared>, number: i32) {
        let mut watched = lock(&self.watched);
        let Some(session) = watched.sessions.get_mut(&number) else { return };
        let Some(handle) = session.handle.upgrade() else { return };
        let observed = handle.observed();
        if observed.is_some_and(|observed| observed.has_observer()) {
            return;
        }
        let before = session.from;
        let asked = session.agent || session.asks(shared, &handle);
        let from = session.from;
        let printed = from > before;
        if printed
            && !asked
            && let Some(watches) = &self.watches
        {
            watches.remove(number);
            watched.resting.push_back((Instant::now() + SESSION_REST_TIME, handle.id.clone()));
        }
        drop(watched);
        if asked {
            shared.observed_from(&handle, from).ensure_observer(shared, &handle);
        } else if printed {
            forget_state(shared, &handle);
        }
    }
}

/// What was seen holds no longer, and nobody looks: that it runs is all that is known.
fn forget_state(shared: &Shared, handle: &Handle) {
    if matches!(handle.session().state, State::Idle | State::Working | State::Asking) {
        shared.update(handle, |session| {
            session.state = State::Running;
            session.since = now();
            session.source = Source::Life;
            session.evidence = None;
        });
    }
}

impl Session {
    /// Whether what was printed since the last look holds a question to the terminal.
    fn asks(&mut self, shared: &Shared, handle: &Handle) -> bool {
        let log = shared.home.session(&handle.id).join(Home::LOG);
        if self.from == Offset(0) && Reader::is_unwritten(&log) {
            return false;
        }
        let Ok((_, end)) = Reader::bounds(&log) else { return false };
        let from = self.from.0.max(end.0.saturating_sub(TAIL_LEN));
        let Ok(mut reader) = Reader::open(&log, Offset(from)) else { return false };
        let mut buffer = vec![0; usize::try_from(end.0.saturating_sub(from).max(1)).unwrap_or(1)];
        let mut asked = false;
        while let Ok(Chunk::Data { offset, len }) = reader.read(&mut buffer) {
            asked |= self.queries.scan(&buffer[..len]);
            if asked {
                break;
            }
            self.from = offset + len as u64;
            if self.from >= end {
                break;
            }
        }
        if !asked && let Some(observed) = handle.observed() {
            observed.mark_processed(self.from);
        }
        asked
    }
}

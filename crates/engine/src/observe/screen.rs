//! Answers questions about a session's screen and state: capture, changes, repaint, explain, until.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::oneshot;
use wharf_model::{Code, Explanation, Failure, Offset, Report, Session, Until};
use wharf_screen::{Format, What};

use crate::Result;
use crate::deliver::typing::Typist;
use crate::observe::view::{ScreenChanges, View};
use crate::session::handle::Handle;
use crate::session::requests::ObserverRequest;
use crate::session::session_handle::SessionHandle;

/// How long `show` waits for a first sight of a session that nobody attended until then.
const GLANCE_TIMEOUT: Duration = Duration::from_millis(400);

/// What was waited for, and came.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Met {
    /// The session then.
    pub session: Arc<Session>,
    /// What was seen: the line that matched, the event's kind, the state's evidence.
    pub evidence: String,
}

/// What is seen of a session.
impl SessionHandle {
    /// A session with its state as it is now: one that nobody attends is looked at first.
    pub async fn glance(&self) -> Result<Arc<Session>> {
        let handle = self.entry().await?;
        if handle.session().tty && !handle.is_over() && handle.links().connection.is_some() {
            let observed = self.engine.shared.observed(&handle);
            let mut typist = Typist::new(&self.engine.shared, &handle, &observed);
            let deadline = std::time::Instant::now() + GLANCE_TIMEOUT;
            let judged = |seen: &crate::observe::seen::Seen| {
                seen.still.elapsed() >= GLANCE_TIMEOUT || seen.is_judged() && seen.settled
            };
            let mut changes = handle.watch();
            changes.mark_unchanged();
            // Whatever changes meanwhile, an end included, is what is shown.
            tokio::select! {
                _ = typist.until(deadline, judged) => {}
                _ = changes.changed() => {}
            }
        }
        Ok(handle.session())
    }

    /// The screen, its last lines or everything, as text.
    pub async fn capture(&self, what: What, format: Format) -> Result<String> {
        let handle = self.entry().await?;
        if what == What::Screen && !handle.is_over() {
            return self.request(&handle, |reply| ObserverRequest::Capture(what, format, reply)).await;
        }
        let view = self.everything(&handle).await?;
        Ok(view.screen.capture(what, format))
    }

    /// What changed on the screen since a cursor of an earlier call; all of it without one.
    pub async fn screen_since(&self, cursor: Option<&str>) -> Result<ScreenChanges> {
        let handle = self.entry().await?;
        let cursor = cursor.map(str::to_owned);
        if handle.is_over() {
            let mut view = self.everything(&handle).await?;
            return Ok(view.since(cursor.as_deref()));
        }
        self.request(&handle, |reply| ObserverRequest::Since(cursor, reply)).await
    }

    /// Waits for a change of the screen, at most this long, and returns what changed.
    pub async fn screen_change(&self, cursor: &str, within: Duration) -> Result<ScreenChanges> {
        let handle = self.entry().await?;
        if handle.is_over() {
            return self.screen_since(Some(cursor)).await;
        }
        let observed = self.engine.shared.observed(&handle);
        let mut typist = Typist::new(&self.engine.shared, &handle, &observed);
        let deadline = std::time::Instant::now() + within;
        loop {
            let before = typist.look().await?.generation;
            let changes = self.screen_since(Some(cursor)).await?;
            if changes.whole || !changes.rows.is_empty() || !changes.scrolled.is_empty() {
                return Ok(changes);
            }
            match typist.until(deadline, |seen| seen.generation != before).await {
                Ok(Some(_)) => {}
                Ok(None) => return Ok(changes),
                Err(failure) if failure.code == Code::Ended => return Ok(changes),
                Err(failure) => return Err(failure),
            }
        }
    }

    /// What paints the session on a terminal of its size, and where in the log to go on from.
    pub async fn repaint(&self) -> Result<(Vec<u8>, Offset)> {
        let handle = self.entry().await?;
        if handle.is_over() {
            let view = self.everything(&handle).await?;
            return Ok((view.screen.repaint(), view.offset));
        }
        self.request(&handle, ObserverRequest::Repaint).await
    }

    /// What every source says of the state, and which rule decided.
    pub async fn explain(&self) -> Result<Explanation> {
        let handle = self.entry().await?;
        let session = handle.session();
        let observed = self.engine.shared.observed(&handle);
        let profile = observed.profile().name.clone();
        if session.state.is_over() {
            let evidence = session.exit.as_ref().map_or_else(String::new, |exit| format!("{exit:?}"));
            let report =
                Report { state: session.state, source: session.source, since: session.since, evidence };
            let decided = "its end is on record".to_owned();
            let (claims, switched_off) = (Vec::new(), Vec::new());
            return Ok(Explanation { report, decided, claims, profile, composer: None, switched_off });
        }
        let mut typist = Typist::new(&self.engine.shared, &handle, &observed);
        let explanation = typist.look().await?.explain(&profile);
        let switched_off = observed.budget().switched_off(&observed.profile());
        Ok(Explanation { switched_off, ..explanation })
    }

    /// Waits for a state, an end, a line on the screen or an event.
    pub async fn until(&self, until: Until, within: Option<Duration>) -> Result<Met> {
        let wait = self.met(&until);
        let Some(within) = within else { return wait.await };
        tokio::time::timeout(within, wait).await.unwrap_or_else(|_| {
            let name = self.called();
            Err(Failure::new(Code::Timeout, format!("{name} was not at {until} within {within:?}"))
                .hint(format!("`wharf explain {name}` says what it is doing")))
        })
    }

    async fn met(&self, until: &Until) -> Result<Met> {
        let handle = self.entry().await?;
        let met = |evidence: String| Met { session: handle.session(), evidence };
        match until {
            Until::Exit => {
                let exit = self.wait().await?;
                Ok(met(format!("it ended: {:?}", exit.reason).to_lowercase()))
            }
            Until::State(state) => {
                let observed = self.engine.shared.observed(&handle);
                let mut typist = Typist::new(&self.engine.shared, &handle, &observed);
                // What was seen last stands after the end, and is no state that the session has.
                let is_so =
                    |seen: &crate::observe::seen::Seen| !handle.is_over() && seen.report.state == *state;
                let seen = typist.until(never(), is_so).await?;
                // The session itself is changed together with what is seen.
                Ok(met(seen.map(|seen| seen.report.evidence.clone()).unwrap_or_default()))
            }
            Until::Match(pattern) => {
                let wrong = |error| Failure::new(Code::Invalid, format!("the expression is wrong: {error}"));
                let pattern = wharf_agents::Pattern::new(pattern).map_err(wrong)?;
                let budget = wharf_agents::Budget::default();
                let observed = self.engine.shared.observed(&handle);
                let mut typist = Typist::new(&self.engine.shared, &handle, &observed);
                let found = |seen: &crate::observe::seen::Seen| {
                    budget.look(|| seen.rows.iter().find(|row| pattern.is_match(row)).cloned())
                };
                let until = |seen: &crate::observe::seen::Seen| found(seen).is_some() || budget.is_exceeded();
                let seen = typist.until(never(), until).await?;
                if budget.is_exceeded() {
                    return Err(wrong("it takes too long to look for".to_owned()));
                }
                Ok(met(seen.and_then(|seen| found(&seen)).unwrap_or_default()))
            }
            Until::Event(kind) => {
                let mut events = self.new_events(&handle)?;
                while let Some(event) = events.next(true).await? {
                    if event.kind == *kind {
                        return Ok(met(format!("{} {}", event.kind, event.data)));
                    }
                }
                Err(Failure::new(Code::Ended, format!("session {} ended before", handle.session().name)))
            }
        }
    }

    async fn request<T>(
        &self,
        handle: &Arc<Handle>,
        ask: impl FnOnce(oneshot::Sender<T>) -> ObserverRequest,
    ) -> Result<T> {
        let observed = self.engine.shared.observed(handle);
        let _awake = observed.follow(&self.engine.shared, handle);
        let (reply, answer) = oneshot::channel();
        let within = self.engine.shared.timeouts.call;
        let asked = async {
            observed.ask_observer(&self.engine.shared, handle, ask(reply)).await.then_some(())?;
            answer.await.ok()
        };
        let name = || handle.session().name.clone();
        match tokio::time::timeout(within, asked).await {
            Ok(Some(answer)) => Ok(answer),
            Ok(None) => {
                Err(Failure::new(Code::Unreachable, format!("the screen of {} cannot be read now", name())))
            }
            Err(_) => {
                Err(Failure::new(Code::Timeout, format!("the screen of {} took over {within:?}", name())))
            }
        }
    }

    /// The screen with all of the log above it.
    async fn everything(&self, handle: &Arc<Handle>) -> Result<View> {
        let session = handle.session();
        let (dir, size, pipes) = (self.engine.shared.home.session(&handle.id), session.size, !session.tty);
        // One at a time of each session, whoever asks and however often: a log may take long, and what was begun is ended.
        let turn = Arc::clone(&self.engine.shared.observed(handle).whole_reads).acquire_owned().await;
        let turn = turn.map_err(|error| Failure::new(Code::Internal, error.to_string()))?;
        let built = self
            .engine
            .shared
            .tasks
            .spawn_blocking(move || {
                let _turn = turn;
                View::everything(&dir, size, pipes)
            })
            .await;
        built.map_err(|error| Failure::new(Code::Internal, format!("reading failed: {error}")))?
    }
}

/// Later than anybody waits.
fn never() -> std::time::Instant {
    std::time::Instant::now() + Duration::from_secs(365 * 24 * 3600)
}

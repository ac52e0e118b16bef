//! Takes events from hooks and programs, and streams a session's events to readers.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::watch;
pub use wharf_model::AgentSummary;
use wharf_model::{Code, Event, Failure, State};

use crate::Result;
use crate::instance::engine::Engine;
use crate::instance::shared::{Shared, now};
use crate::observe::event_log::EventReader;
use crate::observe::observed::Observed;
use crate::observe::profiles::load_profiles;
use crate::session::handle::Handle;
use crate::session::requests::{AgentEvent, ObserverRequest};
use crate::session::session_handle::SessionHandle;

/// The source of an event that a hook told.
const HOOK: &str = "hook";
/// The largest event that is taken.
const MAX_EVENT_LEN: usize = 16 << 20;

/// The events of a session, one after the other.
pub struct EventStream {
    handle: Arc<Handle>,
    observed: Arc<Observed>,
    last: watch::Receiver<u64>,
    after: u64,
    reader: EventReader,
    ready: VecDeque<Event>,
}

impl EventStream {
    /// The next event. At the end of what there is, waits for more with `follow`; `None` once there will be none.
    pub async fn next(&mut self, follow: bool) -> Result<Option<Event>> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                self.after = event.seq;
                return Ok(Some(event));
            }
            // Its end comes last, once all that it had to tell is told.
            let told = || self.observed.events.is_sealed() || !self.handle.has_task();
            let over = self.handle.is_over() && told();
            if over {
                self.observed.ensure_first_and_last_event(&self.handle);
            }
            if *self.last.borrow_and_update() > self.after {
                match self.observed.events.read(self.after, &mut self.reader)? {
                    Some(events) => self.ready = events.into(),
                    // The file went away under us.
                    None => self.after = *self.last.borrow(),
                }
                // There may be many pieces before one that we want.
                tokio::task::yield_now().await;
                continue;
            }
            if over || !(follow || self.handle.is_over()) {
                return Ok(None);
            }
            if self.handle.is_over() {
                // What its last output tells is still being read.
                let _ = tokio::time::timeout(Duration::from_millis(20), self.last.changed()).await;
                continue;
            }
            let mut changes = self.handle.watch();
            tokio::select! {
                changed = self.last.changed() => {
                    if changed.is_err() {
                        return Ok(None);
                    }
                }
                changed = changes.wait_for(|session| session.state.is_over()) => drop(changed),
            }
        }
    }
}

/// What is told of a session, and to whom.
impl SessionHandle {
    /// The events of a session after a number.
    pub async fn events(&self, after: u64) -> Result<EventStream> {
        let handle = self.entry().await?;
        let observed = self.engine.shared.observed(&handle);
        observed.ensure_first_and_last_event(&handle);
        let last = observed.events.last()?;
        // Whoever has all of them already need not read any again.
        let all = after >= *last.borrow();
        let reader = if all { observed.events.reader_at_end()? } else { EventReader::default() };
        Ok(EventStream { handle, observed, last, after, reader, ready: VecDeque::new() })
    }

    /// The events of a session from now on.
    pub(crate) fn new_events(&self, handle: &Arc<Handle>) -> Result<EventStream> {
        let observed = self.engine.shared.observed(handle);
        let last = observed.events.last()?;
        let (after, reader) = (*last.borrow(), observed.events.reader_at_end()?);
        Ok(EventStream { handle: Arc::clone(handle), observed, last, after, reader, ready: VecDeque::new() })
    }

    /// Takes an event that a session's own programs tell. Kinds that are known move its state; all are kept.
    pub async fn tell(&self, source: &str, kind: &str, data: Value) -> Result<Event> {
        let handle = self.entry().await?;
        let observed = self.engine.shared.observed(&handle);
        observed.ensure_first_and_last_event(&handle);
        if kind.is_empty() || kind.len() > 200 {
            return Err(Failure::new(Code::Invalid, "an event has a kind of at most 200 bytes"));
        }
        if serde_json::to_vec(&data).map_or(0, |text| text.len()) > MAX_EVENT_LEN {
            return Err(Failure::new(Code::TooLong, format!("an event of more than {MAX_EVENT_LEN} bytes")));
        }
        let state = match kind {
            "turn.started" | "tool.started" | "tool.ended" => Some(State::Working),
            "turn.ended" => Some(State::Idle),
            "permission.asked" => Some(State::Asking),
            "state" => data.get("state").and_then(|state| serde_json::from_value(state.clone()).ok()),
            _ => None,
        };
        let state = state.filter(|state| matches!(state, State::Idle | State::Working | State::Asking));
        self.add_agent_event(&handle, source, kind, state, data).await
    }

    /// Takes what an agent's hook says: the profile translates it.
    pub async fn hook(&self, agent: Option<&str>, payload: Value) -> Result<()> {
        let handle = self.entry().await?;
        let observed = self.engine.shared.observed(&handle);
        observed.ensure_first_and_last_event(&handle);
        let profile = match agent {
            Some(name) if name != observed.profile().name => {
                load_profiles(&self.engine.shared.home, handle.ticket().spec.project.as_deref())?
                    .named(name)?
            }
            _ => Arc::clone(&observed.profile()),
        };
        for told in wharf_agents::hooks::translate(&profile, &payload) {
            self.add_agent_event(&handle, HOOK, &told.kind, told.state, told.data).await?;
        }
        Ok(())
    }

    async fn add_agent_event(
        &self,
        handle: &Arc<Handle>,
        source: &str,
        kind: &str,
        state: Option<State>,
        data: Value,
    ) -> Result<Event> {
        let observed = self.engine.shared.observed(handle);
        let prompt = (kind == "turn.started").then(|| data.get("prompt").and_then(Value::as_str)).flatten();
        let prompt = prompt.map(|prompt| (now(), prompt.to_owned()));
        let by_hook = source == HOOK;
        let event = observed.events.add(observed.processed(), source, kind, data)?;
        if (state.is_some() || prompt.is_some() || by_hook) && !handle.is_over() {
            let evidence = format!("{source} told {kind} (event {})", event.seq);
            let told = AgentEvent { kind: kind.to_owned(), state, evidence, prompt, by_hook };
            // A flood waits for the observer, and holds up only those who tell it.
            if !observed.ask_observer(&self.engine.shared, handle, ObserverRequest::Told(told)).await {
                tracing::warn!(session = %handle.id, kind, "what was told does not move the state: nobody looks in time");
            }
        }
        Ok(event)
    }
}

impl Engine {
    /// The patterns of a profile that are switched off for sessions that live.
    fn switched_off(&self, profile: &str) -> Vec<String> {
        let mut all = Vec::new();
        for handle in self.shared.registry.all() {
            let Some(observed) = handle.observed().filter(|_| !handle.is_over()) else { continue };
            let own = observed.profile();
            if own.name == profile {
                let name = &handle.session().name;
                let off = observed.budget().switched_off(&own);
                all.extend(off.into_iter().map(|pattern| format!("{pattern} in session {name}")));
            }
        }
        all.sort();
        all
    }

    /// The agent profiles that there are.
    pub async fn agents(&self, dir: &std::path::Path) -> Result<Vec<AgentSummary>> {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let found = |program: &String| {
            let mut places = std::env::split_paths(&path).map(|place| place.join(program));
            places.find(|place| !program.contains('/') && place.is_file())
        };
        let project = self.shared.project(dir).await?;
        let profiles = load_profiles(&self.shared.home, project.as_deref())?;
        let summaries = profiles.iter().map(|profile| AgentSummary {
            name: profile.name.clone(),
            title: profile.title.clone(),
            programs: profile.programs.clone(),
            installed: profile.programs.iter().find_map(found).map(|path| path.display().to_string()),
            // Whoever lists them asks the programs.
            version: None,
            install: profile.launch.install.clone(),
            switched_off: self.switched_off(&profile.name),
        });
        Ok(summaries.collect())
    }
}

impl Shared {
    /// Adds an event of the engine's own to a session, whether an observer is at work or not.
    pub(crate) fn add_engine_event(&self, handle: &Handle, kind: &str, data: Value) {
        // Output that was not looked at yet shall still be.
        let observed = match self.output_watch.looked_to(&handle.id) {
            Some(looked) => self.observed_from(handle, looked),
            None => self.observed(handle),
        };
        observed.ensure_first_and_last_event(handle);
        observed.add_event("engine", kind, data);
    }
}

impl Observed {
    /// Adds `session.created` where there is no event yet, and `exit` where the session is over and its task is gone.
    pub(crate) fn ensure_first_and_last_event(&self, handle: &Handle) {
        let Ok(last) = self.events.last() else { return };
        let session = handle.session();
        if *last.borrow() == 0 {
            let data = json!({ "name": session.name, "run": session.run, "created": session.created });
            self.add_event("engine", "session.created", data);
        }
        // While the session has a task, that task adds the end.
        if let Some(exit) = session.exit.as_ref().filter(|_| session.state.is_over() && !handle.has_task())
            && let Err(failure) = self.events.end(self.processed(), exit)
        {
            tracing::warn!(session = %handle.id, %failure, "the end of a session is not among its events");
        }
    }
}

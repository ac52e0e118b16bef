//! Starts a session's command, first or again, and takes a failed start back.

use std::fs;
use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use wharf_backend::{Adoption, Connection, Launch};
use wharf_boundary::SessionDir;
use wharf_model::{Code, ExitRecord, Failure, Home, Millis, Offset, Reason, SessionId, State, Ticket};

use crate::Result;
use crate::instance::disk;
use crate::instance::shared::{Shared, now, without_start_data};
use crate::launch::backend_launch;
use crate::lifecycle::first_prompt::first_message;
use crate::lifecycle::restart::over;
use crate::observe::profiles::profile_of;
use crate::output::copy_to_file::OutputCopy;
use crate::output::read::log_end;
use crate::session::handle::{Handle, Stage};
use crate::session::requests::{Command, RestartRequest};
use crate::session::task::{Phase, RunStart, Task};

impl Task {
    pub(crate) async fn start_run(&mut self, start: RunStart) -> Phase {
        match start {
            RunStart::First { ticket, displaced, reply } => {
                let prompt = first_message(&ticket.spec);
                let (phase, answer) = match self.try_start(ticket).await {
                    Ok(connection) => (Phase::Live(connection, false), Ok(())),
                    // The command may run although the start failed: only the answer may have been lost.
                    Err(failure) => (self.resolve_failed_start(displaced.as_ref()).await, Err(failure)),
                };
                if answer.is_ok() {
                    self.publish_running(None);
                    self.start_observing(Some(Offset(0)));
                    self.hand_over(prompt).await;
                }
                // A caller that went away still has its session.
                let _ = reply.send(answer);
                phase
            }
            RunStart::Waited { ticket } => {
                let prompt = first_message(&ticket.spec);
                match self.try_start(ticket).await {
                    Ok(connection) => {
                        self.publish_running(None);
                        self.start_observing(Some(Offset(0)));
                        self.hand_over(prompt).await;
                        Phase::Live(connection, false)
                    }
                    Err(failure) => self.never_ran(Reason::Failed, None, Some(failure.message)),
                }
            }
            RunStart::Again { ended, restarters } => self.again(ended, restarters).await,
        }
    }

    /// Starts one more run in the same directory; the log goes on.
    async fn again(&mut self, ended: ExitRecord, restarters: Vec<RestartRequest>) -> Phase {
        let dir = self.shared.home.session(&self.handle.id);
        self.end_requested = false;
        let before = log_end(&dir.join(Home::LOG)).ok();
        let (answer, phase) = match self
            .next_run(&ended, restarters.iter().any(|restarter| restarter.repin))
            .await
        {
            Ok(connection) => {
                self.publish_running(None);
                self.add_restart_event(&ended, before, !restarters.is_empty());
                self.start_observing(before);
                (Ok(()), Phase::Live(connection, false))
            }
            Err(failure) => {
                tracing::warn!(session = %self.handle.id, %failure, "a session could not be started again");
                self.shared.update(&self.handle, |session| session.detail = Some(failure.message.clone()));
                self.handle.end_search();
                if failure.code == Code::Timeout && disk::exit(&dir).is_ok_and(|exit| exit.is_none()) {
                    // It may run after all: find out, and conclude nothing.
                    (Err(failure), Phase::Adopt)
                } else if restarters.is_empty() && failure.code != Code::Forbidden {
                    (Err(failure), self.conclude(ended, true))
                } else {
                    // What is not allowed now is not tried again and again: somebody has to look at it.
                    (Err(failure), over(ended))
                }
            }
        };
        for restarter in restarters {
            let _ = restarter.reply.send(answer.clone());
        }
        phase
    }

    /// Makes an event of another run.
    fn add_restart_event(&self, ended: &ExitRecord, before: Option<Offset>, asked: bool) {
        if let Some(before) = before {
            // What it prints from here on is looked at.
            self.shared.observed_from(&self.handle, before);
        }
        let by = if asked { "request" } else { "policy" };
        let run = self.handle.session().run;
        let data = json!({ "run": run, "by": by, "attempt": self.attempts, "exit": ended });
        self.shared.add_engine_event(&self.handle, "restarted", data);
    }

    async fn next_run(&mut self, ended: &ExitRecord, repin: bool) -> Result<Arc<dyn Connection>> {
        let dir = self.shared.home.session(&self.handle.id);
        let path = dir.join(Home::TICKET);
        let named =
            |error: std::io::Error| Failure::system(format!("cannot read {}", path.display()), &error);
        let old = SessionDir::open(&dir).and_then(|dir| dir.read_ticket()).map_err(named)?;
        let mut ticket: Ticket = serde_json::from_slice(&old).map_err(|error| named(error.into()))?;
        if ended.reason == Reason::Lost {
            // Its command is gone, but what it started may not be. On doubt there is no second copy.
            let (backend, within) = (self.shared.backend(&ticket.backend)?, self.shared.timeouts.call);
            let swept = tokio::time::timeout(within, backend.sweep(&ticket)).await;
            swept.map_err(|_| {
                Failure::new(Code::Unreachable, format!("{} did not answer", backend.name()))
            })??;
        }
        let kept = dir.join(format!("exit.{}.json", ticket.run));
        let had_exit = fs::rename(dir.join(Home::EXIT), &kept).is_ok();
        if !had_exit {
            // A lost run has no record of its own; what is known of its end is kept all the same.
            disk::write_json(&kept, ended)?;
        }
        if let Err(failure) = self.next_ticket(&mut ticket, repin).await {
            if had_exit {
                // Its end is not forgotten because there is no room for another beginning.
                let _ = fs::rename(&kept, dir.join(Home::EXIT));
            }
            return Err(failure);
        }
        let run = ticket.run;
        let next = self.shared.describe(&ticket, State::Starting);
        // A run without a turn before it has a conversation of its own, and a command line that names it.
        let before_restart = self.handle.session();
        if let Some(observed) = self.handle.observed() {
            observed.set_profile(profile_of(&self.shared.home, &ticket));
            observed.events.go_on();
        }
        self.shared.update(&self.handle, |session| {
            session.state = State::Starting;
            session.run = run;
            session.exit = None;
            (session.project, session.argv, session.conversation) =
                (next.project, next.argv, next.conversation);
        });
        match self.try_start(ticket).await {
            Ok(connection) => Ok(connection),
            Err(failure) => {
                self.shared.update(&self.handle, |session| {
                    session.run = run - 1;
                    session.argv.clone_from(&before_restart.argv);
                    session.conversation.clone_from(&before_restart.conversation);
                });
                if failure.code != Code::Timeout {
                    if !path.exists() {
                        disk::session_dir(&dir)?;
                    }
                    disk::replace(&path, &old)?;
                    if had_exit {
                        // It came from there a moment ago.
                        let _ = fs::rename(&kept, dir.join(Home::EXIT));
                    }
                }
                Err(failure)
            }
        }
    }

    /// Makes the ticket of the next run out of that of the last.
    async fn next_ticket(&self, ticket: &mut Ticket, repin: bool) -> Result<()> {
        OutputCopy::reopen(&self.shared, &self.handle)?;
        if repin {
            ticket.spec.pins.clear();
        }
        ticket.run += 1;
        ticket.token = backend_launch::token()?;
        (ticket.holder, ticket.command, ticket.private) = (None, None, None);
        self.shared.expand_again(ticket).await
    }

    async fn try_start(&mut self, ticket: Ticket) -> Result<Arc<dyn Connection>> {
        let backend = Arc::clone(self.shared.backend(&ticket.backend)?);
        let launch = self.prepared(ticket).await?;
        let timeouts = &self.shared.timeouts;
        let fetched = launch.spec.container.as_ref().map_or(Duration::ZERO, |_| timeouts.image);
        let within = timeouts.start + fetched;
        let started = tokio::time::timeout(within, backend.start(launch)).await;
        let started = started.unwrap_or_else(|_| {
            Err(Failure::new(
                Code::Timeout,
                format!("the backend {} did not start it within {within:?}", backend.name()),
            ))
        });
        let (mut ticket, connection) =
            started.map_err(|failure| self.shared.how_to_get(failure, &self.handle.ticket()))?;
        // A rename may have come in between; what the backend wrote has the name of before.
        let name = self.handle.session().name.clone();
        if ticket.name != name {
            ticket.name = name;
            let _disk = self.handle.disk();
            disk::write_json(&self.shared.home.session(&ticket.id).join(Home::TICKET), &ticket)?;
        }
        self.handle.links().ticket = Arc::new(without_start_data(ticket));
        self.handle.links().connection = Some(Arc::clone(&connection));
        Ok(connection)
    }

    /// The launch. Building a dev shell may take minutes: a stop ends that, and so does closing the engine.
    async fn prepared(&mut self, ticket: Ticket) -> Result<Launch> {
        let shared = Arc::clone(&self.shared);
        let needs_environment = shared.needs_environment(&ticket.spec);
        // Boxed: what may be waited for here is large, and is moved as often as what holds it.
        let mut prepare = Box::pin(shared.prepare(ticket));
        if !needs_environment {
            return prepare.await;
        }
        let name = self.handle.session().name.clone();
        loop {
            let command = tokio::select! {
                launch = &mut prepare => return launch,
                () = shared.closed() => {
                    let message = format!("the engine is closing: session {name} was not started");
                    return Err(Failure::new(Code::Unreachable, message));
                }
                Some(command) = self.commands.recv() => command,
            };
            match command {
                Command::Stop(stop) => {
                    let message = format!("session {name} was stopped before it began");
                    self.begin_stop(*stop);
                    return Err(Failure::new(Code::Cancelled, message));
                }
                Command::Restart(_, restarter) => {
                    let message = format!("session {name} does not run yet");
                    let _ = restarter.reply.send(Err(Failure::new(Code::NotStarted, message)));
                }
                Command::Pipe { file, from_start, reply } => {
                    let _ = reply.send(self.pipe_to(file, from_start).await);
                }
            }
        }
    }

    /// Publishes that the command runs.
    pub(crate) fn publish_running(&mut self, detail: Option<String>) {
        let ticket = self.handle.ticket();
        let pids = [ticket.holder.as_ref(), ticket.command.as_ref()];
        self.shared
            .registry
            .processes(&self.handle.id, pids.into_iter().flatten().map(|process| process.pid));
        let connection = self.handle.links().connection.clone();
        let isolation = self.shared.isolation(&ticket);
        let status = connection.map(|connection| connection.status().borrow().clone()).unwrap_or_default();
        self.handle.set_typists(status.typists);
        if self.handle.stage() != Stage::Searching {
            self.handle.set_stage(Stage::Exists);
        }
        if let Some(observed) = self.handle.observed() {
            observed.events.go_on();
        }
        self.shared.update(&self.handle, |session| {
            session.state = State::Running;
            if ticket.started.0 != 0 {
                session.since = ticket.started;
            }
            session.exit = None;
            session.detail = detail;
            session.pid = status.pid.or(ticket.command.as_ref().map(|command| command.pid));
            session.attached = status.attached;
            session.size = status.size;
            // What was taken in has what it has.
            session.tty = ticket.spec.tty;
            session.run = ticket.run;
            session.dir.clone_from(ticket.spec.runs_in());
            session.ports.clone_from(&ticket.spec.ports);
            session.limits = ticket.spec.limits;
            session.environment.clone_from(&ticket.spec.in_force);
            session.mounts.clone_from(&ticket.spec.mounts);
            session.container.clone_from(&ticket.spec.made);
            // An image may have said what is run.
            session.argv.clone_from(&ticket.spec.argv);
            session.pins.clone_from(&ticket.spec.pins);
            session.isolation = isolation;
            session.scope.clone_from(&ticket.scope);
            session.holder.clone_from(&ticket.holder);
        });
        self.handle.end_search();
        self.shared.remember(&self.handle, self.attempts);
    }

    /// Begins to observe the session where there is need: an agent by its observer at once, any other terminal by the output
    /// watch. Its output counts as processed up to `processed`, or up to now.
    pub(crate) fn start_observing(&mut self, processed: Option<Offset>) {
        let (shared, handle) = (&self.shared, &self.handle);
        let (ticket, dir) = (handle.ticket(), shared.home.session(&handle.id));
        if processed.is_none() && dir.join(Home::MESSAGES).exists() {
            shared.observed(handle).wake_courier(shared, handle);
        }
        if shared.profile_cache.is_agent(&shared.home, &ticket) {
            if processed.is_some() {
                shared.update(handle, |session| session.state = State::Starting);
            }
            let observed = match processed {
                Some(processed) => shared.observed_from(handle, processed),
                None => shared.observed(handle),
            };
            let agent = observed.profile().name.clone();
            shared.update(handle, |session| session.agent = Some(agent));
            observed.ensure_first_and_last_event(handle);
            observed.ensure_observer(shared, handle);
        } else if ticket.spec.tty {
            let end = || log_end(&dir.join(Home::LOG)).unwrap_or_default();
            shared.output_watch.watch(shared, handle, false, processed.unwrap_or_else(end));
        }
    }

    /// Decides what a first start that failed or took too long has left. The command may run: ends it where it can be found,
    /// keeps the session where that cannot be told.
    async fn resolve_failed_start(&mut self, displaced: Option<&SessionId>) -> Phase {
        let dir = self.shared.home.session(&self.handle.id);
        let Ok(Some(ticket)) = disk::ticket(&dir) else {
            return self.take_back_start(displaced);
        };
        let within = self.shared.timeouts.adopt;
        let found = match self.shared.backend(&ticket.backend).map(Arc::clone) {
            Ok(backend) => {
                tokio::time::timeout(within, backend.adopt(&ticket)).await.ok().and_then(Result::ok)
            }
            Err(_) => None,
        };
        let ended = match found {
            Some(Adoption::Alive(connection)) => {
                let stop = wharf_backend::Stop {
                    grace: Duration::ZERO,
                    reason: Reason::Failed,
                    by: "its start, which failed".to_owned(),
                };
                tokio::time::timeout(self.shared.timeouts.stop_margin, connection.stop(stop))
                    .await
                    .is_ok_and(|r| r.is_ok())
            }
            Some(Adoption::Ended(_)) => true,
            Some(Adoption::Lost) => self.swept(&ticket).await.is_ok(),
            None => false,
        };
        if ended {
            return self.take_back_start(displaced);
        }
        self.handle.links().ticket = Arc::new(without_start_data(ticket));
        self.handle.set_stage(Stage::Exists);
        Phase::Adopt
    }

    fn take_back_start(&mut self, displaced: Option<&SessionId>) -> Phase {
        undo(&self.shared, &self.handle, displaced);
        // Whoever stopped it before it began.
        self.answer_stops(&record(Reason::Stopped, None));
        Phase::Leave
    }

    /// Ends a session whose command never ran. The record is on disk, or another engine would go on waiting.
    pub(crate) fn never_ran(&mut self, reason: Reason, by: Option<String>, detail: Option<String>) -> Phase {
        let exit = record(reason, by);
        if let Err(failure) = disk::write_exit(&self.shared.home.session(&self.handle.id), &exit) {
            tracing::warn!(session = %self.handle.id, %failure, "the end of a session is not on disk");
        }
        self.shared.update(&self.handle, |session| session.detail = detail);
        over(exit)
    }
}

/// The record of an end that no holder saw.
pub(crate) fn record(reason: Reason, by: Option<String>) -> ExitRecord {
    ExitRecord {
        code: None,
        signal: None,
        oom: false,
        limit: None,
        reason,
        by,
        started: Millis(0),
        ended: now(),
        log_end: Offset(0),
        leftovers: 0,
        survivors: 0,
        unsure: false,
    }
}

/// Takes back a session that did not come to be: directory, name, ports, entry.
pub(crate) fn undo(shared: &Arc<Shared>, handle: &Arc<Handle>, displaced: Option<&SessionId>) {
    let name = handle.session().name.clone();
    let dir = shared.home.session(&handle.id);
    if let Err(failure) = disk::remove_session(&dir) {
        tracing::warn!(session = %handle.id, %failure, "a failed start left its directory");
    }
    shared.release_environments(&handle.id, &handle.ticket().spec);
    match displaced.filter(|old| shared.home.session(old).exists()) {
        Some(old) if disk::linked(&shared.home, &name).as_ref() == Some(&handle.id) => {
            if let Err(failure) = disk::point_link(&shared.home, &name, old) {
                tracing::warn!(%name, %failure, "a name was not given back");
            }
        }
        _ => disk::free_link(&shared.home, &name, &handle.id),
    }
    shared.ports.free(&handle.id);
    shared.registry.unclaim(&handle.id, &name, displaced);
    handle.end_task();
    handle.set_stage(Stage::Gone);
}

//! Looks after a command that runs: status, stops, timeouts and broken connections.

use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::Instant;
use wharf_backend::{Connection, Status, Stop};
use wharf_model::{Code, ExitRecord, Failure, Reason, State};

use crate::lifecycle::run_timeouts::{Due, Supervision};
use crate::output::copy_to_file::OutputCopy;
use crate::session::requests::{Command, StopRequest};
use crate::session::task::{JobResult, Phase, Task};

/// A connection that broke sooner was hardly one.
const BRIEF_CONNECTION_TIME: Duration = Duration::from_secs(5);

impl Task {
    /// Looks after a command that runs, until its end is known or the connection breaks.
    pub(crate) async fn live(&mut self, connection: Arc<dyn Connection>, found: bool) -> Phase {
        let ticket = self.handle.ticket();
        let mut supervision = if found { Supervision::found(&ticket) } else { Supervision::fresh(&ticket) };
        let mut status = connection.status();
        self.silent = false;
        let first = status.borrow().clone();
        self.reported = self.already_reported(found, first).await;
        let begun = Instant::now();
        if self.pipe.is_none() && ticket.spec.copy_to.is_some() {
            self.pipe = OutputCopy::resume(&self.shared, &self.handle);
        }
        for stop in std::mem::take(&mut self.waiting_stops) {
            self.stop(&connection, stop);
        }
        let shared = Arc::clone(&self.shared);
        let closed = shared.closed();
        tokio::pin!(closed);
        // The status as it is now counts as a change: the end may have come before this task looked.
        status.mark_changed();
        loop {
            let next = supervision.next();
            let timer = async {
                match next {
                    Some(at) => tokio::time::sleep_until(at).await,
                    None => std::future::pending().await,
                }
            };
            let end = tokio::select! {
                () = &mut closed => return self.leave().await,
                changed = status.changed() => {
                    let news = status.borrow_and_update().clone();
                    self.on_status(news, changed.is_err())
                }
                Some(command) = self.commands.recv() => {
                    self.command(&connection, command).await;
                    None
                }
                Some(done) = self.jobs.join_next() => match done {
                    Ok(JobResult::Stopped(job, result)) => self.stopped(job, result),
                    Ok(JobResult::Stats(stats)) => {
                        let due = supervision.looked(stats.as_ref(), &status.borrow());
                        self.due(&connection, due);
                        None
                    }
                    Err(failed) => {
                        self.job_failed(&failed.to_string());
                        None
                    }
                },
                () = timer => {
                    let due = supervision.due();
                    self.due(&connection, due);
                    None
                }
            };
            let Some(end) = end else { continue };
            self.handle.links().connection = None;
            // Jobs belong to this run: drop them, so that the next run does not get their results.
            self.jobs = JoinSet::new();
            match end {
                End::Ended(record) => {
                    let backoff = self.handle.ticket().spec.backoff;
                    if supervision.lasted() >= Duration::from_millis(backoff.cap.0).saturating_mul(10) {
                        self.attempts = 0;
                    }
                    return self.conclude(record, false);
                }
                End::Broken => {
                    self.brief_connections =
                        if begun.elapsed() < BRIEF_CONNECTION_TIME { self.brief_connections + 1 } else { 0 };
                    self.stop_again();
                    return Phase::Adopt;
                }
            }
        }
    }

    /// Stops that a broken connection took with it are carried out on the next one, once; a kill then by its place.
    fn stop_again(&mut self) {
        for (_, mut stop) in std::mem::take(&mut self.running_stops) {
            if !stop.again || stop.refused.is_some() {
                stop.again = true;
                self.waiting_stops.push(stop);
                continue;
            }
            let name = &self.handle.session().name;
            let failure =
                Failure::new(Code::Unreachable, format!("the connection to session {name} broke twice"));
            if stop.is_kill() {
                stop.refused = Some(failure);
                self.waiting_stops.push(stop);
                continue;
            }
            if let Some(reply) = stop.reply {
                let _ = reply.send(Err(failure));
            }
        }
    }

    fn on_status(&mut self, status: Status, closed: bool) -> Option<End> {
        self.report_run_events(&status);
        if let Some(exit) = status.exit {
            return Some(End::Ended(exit));
        }
        if status.broken || closed {
            return Some(End::Broken);
        }
        self.note_silence(status.silent.as_deref());
        let typed = self.handle.set_typists(status.typists) > 0;
        self.shared.update(&self.handle, |session| {
            session.attached = status.attached;
            session.size = status.size;
            session.suspended = status.suspended;
            if status.pid.is_some() {
                session.pid = status.pid;
            }
        });
        if typed != (status.typists > 0) {
            self.shared.output_watch.set_attached(&self.shared, &self.handle, !typed);
        }
        None
    }

    /// Publishes that its holder does not answer, and that it answers again. Nothing is concluded from that.
    fn note_silence(&mut self, silent: Option<&str>) {
        match (silent, self.silent) {
            (Some(why), false) => {
                self.silent = true;
                self.shared.update(&self.handle, |session| {
                    session.state = State::Unknown;
                    session.detail = Some(why.to_owned());
                });
            }
            (None, true) => {
                self.silent = false;
                self.publish_running(None);
                self.start_observing(None);
            }
            _ => {}
        }
    }

    async fn command(&mut self, connection: &Arc<dyn Connection>, command: Command) {
        match command {
            Command::Stop(stop) => self.stop(connection, *stop),
            Command::Restart(stop, restarter) => {
                self.restarters.push(restarter);
                self.stop(connection, *stop);
            }
            Command::Pipe { file, from_start, reply } => {
                let result = self.pipe_to(file, from_start).await;
                let _ = reply.send(result);
            }
        }
    }

    /// Ends the session beside everything else: a second, harder stop need not wait for the first.
    fn stop(&mut self, connection: &Arc<dyn Connection>, stop: StopRequest) {
        let within = stop.grace + self.shared.timeouts.stop_margin;
        let connection = Arc::clone(connection);
        let how = Stop { grace: stop.grace, reason: stop.reason, by: stop.by.clone() };
        let job = self.begin_stop(stop);
        let (shared, handle) = (Arc::clone(&self.shared), Arc::clone(&self.handle));
        self.jobs.spawn(self.shared.tasks.track(async move {
            shared.unpause_to_end(&handle).await;
            let stopped = tokio::time::timeout(within, connection.stop(how)).await;
            let late = || {
                Failure::new(Code::Timeout, format!("it was not over after {within:?}"))
                    .hint("`wharf doctor` looks for processes that cannot be ended")
            };
            JobResult::Stopped(job, stopped.unwrap_or_else(|_| Err(late())))
        }));
    }

    fn stopped(&mut self, job: u64, result: crate::Result<ExitRecord>) -> Option<End> {
        let failure = match result {
            Ok(exit) => return Some(End::Ended(exit)),
            Err(failure) => failure,
        };
        tracing::warn!(session = %self.handle.id, %failure, "a stop failed");
        let at = self.running_stops.iter().position(|(of, _)| *of == job)?;
        let stop = &mut self.running_stops[at].1;
        if failure.code == Code::Unreachable && !stop.again {
            return Some(End::Broken);
        }
        if stop.is_kill() {
            // A kill is carried out whatever the holder answers: the session's backend has means of its own.
            stop.refused = Some(failure);
            return Some(End::Broken);
        }
        // The session goes on, and so does what was planned for it.
        self.end_requested = false;
        if let Some(reply) = self.running_stops.swap_remove(at).1.reply {
            let _ = reply.send(Err(failure.clone()));
        }
        for restarter in self.restarters.drain(..) {
            let _ = restarter.reply.send(Err(failure.clone()));
        }
        None
    }

    fn job_failed(&mut self, why: &str) {
        tracing::error!(session = %self.handle.id, why, "a call to the backend failed");
        self.refuse(&Failure::new(Code::Internal, format!("a call to the backend failed: {why}")));
    }

    fn due(&mut self, connection: &Arc<dyn Connection>, due: Option<Due>) {
        match due {
            None => {}
            Some(Due::AskStats) => {
                let (connection, within) = (Arc::clone(connection), self.shared.timeouts.call);
                self.jobs.spawn(self.shared.tasks.track(async move {
                    let stats = tokio::time::timeout(within, connection.stats()).await;
                    JobResult::Stats(stats.ok().and_then(Result::ok))
                }));
            }
            Some(Due::Stop(reason)) => {
                let by = if reason == Reason::Idle { "idle timeout" } else { "run timeout" };
                tracing::info!(session = %self.handle.id, by, at = ?Instant::now(), "a session is ended");
                let grace = self.handle.ticket().spec.grace;
                let grace = grace.map_or(self.shared.timeouts.grace, |grace| Duration::from_millis(grace.0));
                let by = by.to_owned();
                self.stop(
                    connection,
                    StopRequest { grace, reason, by, reply: None, again: false, refused: None },
                );
            }
        }
    }
}

/// How looking after a live session ended.
enum End {
    Ended(ExitRecord),
    Broken,
}

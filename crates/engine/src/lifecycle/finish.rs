//! Publishes a session's end, then frees its ports, its secrets and the copy of its output.

use std::time::Duration;

use tokio::time::{Instant, sleep};
use wharf_model::{ExitRecord, Home, State, Text};

use crate::Result;
use crate::launch::ports;
use crate::output::copy_to_file::OutputCopy;
use crate::output::read::log_end;
use crate::session::handle::Stage;
use crate::session::requests::Command;
use crate::session::task::{Phase, Task};

/// How long those who make events of a session's last output and messages may take.
const LAST_EVENTS_TIMEOUT: Duration = Duration::from_secs(5);

impl Task {
    /// Publishes the end, then lets go of everything.
    pub(crate) async fn finish(&mut self, exit: ExitRecord, state: State) -> Phase {
        self.handle.links().connection = None;
        if self.pipe.is_none() {
            // An engine that went away may have left a copy unfinished.
            self.pipe = OutputCopy::resume(&self.shared, &self.handle);
        }
        if self.end_requested {
            self.ports_free().await;
        }
        self.shared.ports.free(&self.handle.id);
        let searched = self.handle.stage() == Stage::Searching;
        self.shared.update(&self.handle, |session| {
            session.state = state;
            session.since = exit.ended;
            session.pid = None;
            session.attached = 0;
            (session.paused, session.suspended) = (false, false);
            session.exit = Some(exit.clone());
            session.detail.take_if(|_| searched);
        });
        // Found: not as hoped, but the engine that opens waits for that alone.
        self.handle.end_search();
        self.shared.registry.ended(&self.handle.id);
        self.shared.output_watch.unwatch(&self.handle.id);
        self.answer_stops(&exit);
        self.tell_end(&exit).await;
        let mut copied = true;
        if let Some(pipe) = self.pipe.take() {
            copied = pipe.finish(self.shared.timeouts.pipe_drain).await;
        }
        self.shared.drop_secrets(&self.handle).await;
        // Only now is there nothing left that another engine would have to do.
        if copied && self.handle.stage() != Stage::Gone {
            self.shared.remember(&self.handle, self.attempts);
        }
        self.handle.end_task();
        self.commands.close();
        while let Some(command) = self.commands.recv().await {
            // Other commands are dropped: their senders see that, and find the session over.
            if let Command::Stop(stop) = command
                && let Some(reply) = stop.reply
            {
                let _ = reply.send(Ok(exit.clone()));
            }
        }
        Phase::Leave
    }

    /// Tells the end in the session's events, after all that the session still had to tell.
    async fn tell_end(&self, exit: &ExitRecord) {
        let (shared, handle) = (&self.shared, &self.handle);
        if handle.observed().is_none() && !shared.home.session(&handle.id).join(Home::EVENTS).exists() {
            // Whoever asks first begins the stream, and ends it.
            return;
        }
        let observed = shared.observed(handle);
        let end = log_end(&shared.home.session(&handle.id).join(Home::LOG)).unwrap_or_default();
        if observed.profile().attend && observed.processed() < end {
            observed.ensure_observer(shared, handle);
        }
        // Messages that wait are told that there is nobody left to read them.
        observed.wake_courier(shared, handle);
        tokio::select! {
            () = shared.closed() => {}
            rested = tokio::time::timeout(LAST_EVENTS_TIMEOUT, observed.at_rest()) => drop(rested),
        }
        if shared.is_closing() {
            // Another engine finds out what is left to tell, and tells it first.
            return;
        }
        if let Err(failure) = observed.events.end(observed.processed(), exit) {
            tracing::warn!(session = %handle.id, %failure, "the end of a session is not among its events");
        }
    }

    /// The engine is closing: the session goes on without it.
    pub(crate) async fn leave(&mut self) -> Phase {
        self.end_pipe().await;
        Phase::Leave
    }

    /// Begins, changes or ends the copy of the output.
    pub(crate) async fn pipe_to(&mut self, file: Option<Text>, from_start: bool) -> Result<()> {
        self.end_pipe().await;
        self.pipe = OutputCopy::begin(&self.shared, &self.handle, file, from_start)?;
        Ok(())
    }

    /// Ends the copy for good before anybody else may write: two at once would double bytes.
    async fn end_pipe(&mut self) {
        if let Some(pipe) = self.pipe.take() {
            pipe.end(self.shared.timeouts.call).await;
        }
    }

    /// Waits, not for long, until a server could listen on the session's ports again.
    async fn ports_free(&self) {
        let numbers: Vec<u16> = self.handle.session().ports.iter().map(|port| port.number).collect();
        let until = Instant::now() + self.shared.timeouts.port_release;
        for number in numbers {
            while !ports::can_bind(number) && Instant::now() < until {
                sleep(Duration::from_millis(10)).await;
            }
        }
    }
}

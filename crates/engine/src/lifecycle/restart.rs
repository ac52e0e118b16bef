//! Decides after a run whether there is another, and waits before it.

use std::sync::Arc;
use std::time::Duration;

use wharf_model::{ExitRecord, Reason, Restart, State};

use crate::instance::disk;
use crate::instance::shared::random;
use crate::session::requests::Command;
use crate::session::task::{Phase, RunStart, Task};

impl Task {
    /// Decides after the end of a run whether there is another. `failed_start`: the end is that of an older run, and the start
    /// after it has failed.
    pub(crate) fn conclude(&mut self, exit: ExitRecord, failed_start: bool) -> Phase {
        if !self.restarters.is_empty() {
            self.answer_stops(&exit);
            let restarters = std::mem::take(&mut self.restarters);
            return Phase::StartRun(Box::new(RunStart::Again { ended: exit, restarters }));
        }
        let spec = &self.handle.ticket().spec;
        // A stop that somebody asked for stands, also where the command was faster and ended by itself.
        let by_itself = !self.end_requested && matches!(exit.reason, Reason::Exited | Reason::Lost);
        let wanted = match spec.restart {
            Restart::No => false,
            Restart::OnFailure => failed_start || exit.failed(),
            Restart::Always => true,
        };
        if by_itself && wanted && spec.backoff.most.is_none_or(|most| self.attempts < most) {
            return Phase::BackOff(Box::new(exit));
        }
        over(if wanted { self.with_stop(exit) } else { exit })
    }

    /// Where a stop met a command that had ended by itself: notes it in the record, on disk. An engine that comes after
    /// a crash of this one would else take the end for one to start again after.
    fn with_stop(&self, mut exit: ExitRecord) -> ExitRecord {
        let Some((_, stop)) = self.running_stops.last() else { return exit };
        if !matches!(exit.reason, Reason::Exited | Reason::Lost) {
            return exit;
        }
        (exit.reason, exit.by) = (stop.reason, Some(stop.by.clone()));
        if let Err(failure) = disk::write_exit(&self.shared.home.session(&self.handle.id), &exit) {
            tracing::warn!(session = %self.handle.id, %failure, "a stop is not on disk");
        }
        exit
    }

    /// Waits before the next run.
    pub(crate) async fn back_off(&mut self, ended: ExitRecord) -> Phase {
        let wait = self.handle.ticket().spec.backoff.wait(self.attempts, random().unwrap_or(0));
        let wait = Duration::from_millis(wait.0);
        self.attempts += 1;
        let attempt = self.attempts;
        self.shared.update(&self.handle, |session| {
            session.state = State::Starting;
            session.pid = None;
            session.attached = 0;
            (session.paused, session.suspended) = (false, false);
            let code = ended.shell_code();
            session.detail =
                Some(format!("run {} ended with {code}; restart {attempt} in {wait:?}", session.run));
        });
        self.handle.end_search();
        self.shared.remember(&self.handle, self.attempts);
        let shared = Arc::clone(&self.shared);
        let closed = shared.closed();
        tokio::pin!(closed);
        let pause = tokio::time::sleep(wait);
        tokio::pin!(pause);
        loop {
            tokio::select! {
                () = &mut closed => return self.leave().await,
                () = &mut pause => {
                    return Phase::StartRun(Box::new(RunStart::Again { ended, restarters: Vec::new() }));
                }
                Some(command) = self.commands.recv() => match command {
                    Command::Stop(stop) => {
                        self.begin_stop(*stop);
                        return over(self.with_stop(ended));
                    }
                    Command::Restart(stop, restarter) => {
                        self.begin_stop(*stop);
                        self.answer_stops(&ended);
                        let restarters = vec![restarter];
                        return Phase::StartRun(Box::new(RunStart::Again { ended, restarters }));
                    }
                    Command::Pipe { file, from_start, reply } => {
                        let _ = reply.send(self.pipe_to(file, from_start).await);
                    }
                },
            }
        }
    }
}

/// The session is over with this record.
pub(crate) fn over(exit: ExitRecord) -> Phase {
    let state = if exit.reason == Reason::Lost { State::Lost } else { State::Exited };
    Phase::Over(Box::new(exit), state)
}

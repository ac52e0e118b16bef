//! Finds a session again after a restart or a broken connection, or concludes that it is lost.

use std::sync::Arc;

use wharf_backend::Adoption;
use wharf_model::{Code, ExitRecord, Failure, Reason, State};

use crate::Result;
use crate::instance::disk;
use crate::lifecycle::start_run::undo;
use crate::session::handle::Stage;
use crate::session::requests::Command;
use crate::session::task::{Phase, Task};

/// How many connections in a row may break as soon as they are there before the next one waits.
const MAX_BRIEF_CONNECTIONS: u32 = 3;

impl Task {
    /// Looks for the session until it is known what became of it. Nothing is concluded from a failure.
    pub(crate) async fn adopt(&mut self) -> Phase {
        self.handle.links().connection = None;
        if self.handle.stage() != Stage::Searching {
            self.handle.set_stage(Stage::Exists);
        }
        let shared = Arc::clone(&self.shared);
        let closed = shared.closed();
        tokio::pin!(closed);
        let mut wait = shared.timeouts.retry.0;
        // A holder that answers and hangs up again and again is asked after a growing wait.
        let mut hangs_up = self.brief_connections.checked_sub(MAX_BRIEF_CONNECTIONS).map(|times| {
            wait = wait.saturating_mul(1 << times.min(10)).min(shared.timeouts.retry.1);
            Failure::new(Code::Unreachable, "its holder hangs up as soon as it has answered")
        });
        loop {
            let unasked = self.waiting_stops.iter().find_map(|stop| stop.refused.clone()).or(hangs_up.take());
            let found = tokio::select! {
                () = &mut closed => return self.leave().await,
                found = async {
                    match unasked {
                        Some(failure) => Err(failure),
                        None => self.look().await,
                    }
                } => found,
            };
            let failure = match found {
                Ok(Adoption::Alive(connection)) => {
                    self.handle.links().connection = Some(Arc::clone(&connection));
                    self.publish_running(None);
                    self.look_for_pause().await;
                    self.start_observing(None);
                    return Phase::Live(connection, true);
                }
                Ok(Adoption::Ended(exit)) => return self.conclude(exit, false),
                Ok(Adoption::Lost) if self.never_was() => return self.forget(),
                Ok(Adoption::Lost) => return self.lost().await,
                Err(failure) => {
                    let killed = tokio::select! {
                        () = &mut closed => return self.leave().await,
                        killed = self.kill_unasked() => killed,
                    };
                    match killed {
                        None => failure,
                        Some(Ok(exit)) => return self.conclude(exit, false),
                        Some(Err(cannot)) => {
                            let name = self.handle.session().name.clone();
                            let (why, cannot) = (&failure.message, &cannot.message);
                            let message = format!("session {name} cannot be reached: {why}; {cannot}");
                            self.refuse(&Failure::new(Code::Unreachable, message));
                            failure
                        }
                    }
                }
            };
            // A paused session cannot answer: ask its backend whether it is paused.
            tokio::select! {
                () = &mut closed => return self.leave().await,
                () = shared.ask_paused(&self.handle) => {}
            }
            self.shared.update(&self.handle, |session| {
                session.state = State::Unknown;
                session.attached = 0;
                session.detail = Some(failure.message.clone());
            });
            self.handle.end_search();
            self.unreachable(&failure);
            let still = self.handle.session().paused;
            let mut known = self.handle.watch();
            let resumed = async {
                // The sender is in the handle, which is here.
                let _ = known.wait_for(|session| !session.paused).await.map(drop);
            };
            tokio::pin!(resumed);
            let pause = tokio::time::sleep(wait);
            tokio::pin!(pause);
            loop {
                tokio::select! {
                    () = &mut closed => return self.leave().await,
                    () = &mut pause => break,
                    () = &mut resumed, if still => {
                        wait = shared.timeouts.retry.0;
                        break;
                    }
                    Some(command) = self.commands.recv() => {
                        if self.asked_while_away(command).await {
                            break;
                        }
                    }
                }
            }
            wait = (wait * 2).min(shared.timeouts.retry.1);
        }
    }

    /// Asks whether a session that was found is paused, where its backend sends no news of that.
    async fn look_for_pause(&self) {
        let freezer = self.shared.freezer(&self.handle);
        match freezer.map(wharf_backend::Freezer::news) {
            Some(None) => self.shared.ask_paused(&self.handle).await,
            // It has just answered.
            _ => self.shared.note_paused(&self.handle, false),
        }
    }

    async fn look(&self) -> Result<Adoption> {
        let ticket = self.handle.ticket();
        // An exit record that the holder left is the answer: the backend need not be asked.
        let backend = self.shared.backend(&ticket.backend)?;
        if let Some(exit) = disk::exit(&self.shared.home.session(&ticket.id))?
            && !backend.seen_running(&ticket)
        {
            return Ok(Adoption::Ended(exit));
        }
        let turn = self.shared.adopting.get(backend.name());
        let _turn = match turn {
            Some(turn) => turn.acquire().await.ok(),
            None => None,
        };
        let within = self.shared.timeouts.adopt;
        tokio::time::timeout(within, backend.adopt(&ticket)).await.unwrap_or_else(|_| {
            let message = format!("the backend {} did not answer within {within:?}", backend.name());
            Err(Failure::new(Code::Unreachable, message))
        })
    }

    /// Takes what is asked of a session that cannot be reached. True where it is worth to look again at once.
    async fn asked_while_away(&mut self, command: Command) -> bool {
        match command {
            Command::Stop(stop) => {
                self.waiting_stops.push(*stop);
                self.shared.unpause_to_end(&self.handle).await;
                true
            }
            Command::Restart(stop, restarter) => {
                self.waiting_stops.push(*stop);
                self.restarters.push(restarter);
                self.shared.unpause_to_end(&self.handle).await;
                true
            }
            Command::Pipe { file, from_start, reply } => {
                let _ = reply.send(self.pipe_to(file, from_start).await);
                false
            }
        }
    }

    /// Where somebody asked for the session to be killed and its holder cannot be asked, its place ends it by its own means:
    /// a hostile session must not keep itself alive by its silence. None where nobody asked for that.
    async fn kill_unasked(&self) -> Option<Result<ExitRecord>> {
        let by = self.waiting_stops.iter().find(|stop| stop.is_kill()).map(|stop| stop.by.clone())?;
        let ended = match self.kill_by_place().await {
            Ok(()) => self.end_of_killed().await,
            Err(failure) => {
                tracing::warn!(session = %self.handle.id, %failure, "its place cannot end it");
                Err(Failure { message: format!("its place cannot end it: {}", failure.message), ..failure })
            }
        };
        Some(ended.map(|mut exit| {
            // A holder that took over meanwhile saw the signal, and not who sent it.
            let unseen = exit.reason == Reason::Exited && exit.signal == Some(9);
            if unseen || matches!(exit.reason, Reason::Lost | Reason::Killed) {
                (exit.reason, exit.by) = (Reason::Killed, Some(by));
            }
            exit
        }))
    }

    async fn kill_by_place(&self) -> Result<()> {
        // An engine that has much to do at once, as where many are hostile, takes its time.
        let (ticket, within) = (self.handle.ticket(), 3 * self.shared.timeouts.stop_margin);
        let backend = self.shared.backend(&ticket.backend)?;
        let late = |_| Failure::new(Code::Timeout, format!("no answer within {within:?}"));
        tokio::time::timeout(within, backend.kill(&ticket)).await.map_err(late)?
    }

    /// Waits for the end of a session that its backend has killed: the exit record may take a while.
    async fn end_of_killed(&self) -> Result<ExitRecord> {
        let until = tokio::time::Instant::now() + 2 * self.shared.timeouts.stop_margin;
        loop {
            match self.look().await {
                Ok(Adoption::Ended(exit)) => return Ok(exit),
                Ok(Adoption::Lost) => {
                    let mut exit = crate::lifecycle::start_run::record(Reason::Lost, None);
                    (exit.signal, exit.started) = (Some(9), self.handle.ticket().started);
                    exit.unsure = !self.all_found().await;
                    return Ok(exit);
                }
                Ok(Adoption::Alive(_)) | Err(_) if tokio::time::Instant::now() >= until => {
                    return Err(Failure::new(
                        Code::Timeout,
                        "its place has ended it, and what it left is not here yet",
                    ));
                }
                Ok(Adoption::Alive(_)) | Err(_) => tokio::time::sleep(self.shared.timeouts.retry.0).await,
            }
        }
    }

    /// Tells those who wait for a stop that it could not be carried out.
    fn unreachable(&mut self, why: &Failure) {
        let name = self.handle.session().name.clone();
        let failure =
            Failure::new(Code::Unreachable, format!("session {name} cannot be reached: {}", why.message))
                .hint("nothing was ended; `wharf kill` has its place end it without its holder");
        self.refuse(&failure);
    }

    /// Whether its holder took its start back while this engine opened: then its ticket is gone.
    fn never_was(&self) -> bool {
        self.handle.stage() == Stage::Searching
            && matches!(disk::ticket(&self.shared.home.session(&self.handle.id)), Ok(None))
    }

    fn forget(&mut self) -> Phase {
        self.shared.store.remove(&self.handle.id);
        // Whoever waits for it to be found need not wait any more.
        undo(&self.shared, &self.handle, None);
        Phase::Leave
    }

    /// Its holder is gone. Has the backend end what is left of it; where that fails, the exit record says that its processes
    /// may live on. A restart must not put a second copy beside them.
    async fn lost(&mut self) -> Phase {
        let ticket = self.handle.ticket();
        let mut exit = crate::lifecycle::start_run::record(Reason::Lost, None);
        exit.started = ticket.started;
        match self.swept(&ticket).await {
            Ok(count) => exit.leftovers = count,
            Err(failure) => {
                tracing::warn!(session = %self.handle.id, %failure, "what is left of a lost session was not ended");
                // At least one, or nothing would have been in the way.
                exit.survivors = 1;
                let detail = format!("its processes may live on: {}", failure.message);
                self.shared.update(&self.handle, |session| session.detail = Some(detail));
                self.handle.end_search();
            }
        }
        exit.unsure = !self.all_found().await;
        self.conclude(exit, false)
    }

    /// Whether the backend is sure to have found every process of a session whose holder was killed.
    async fn all_found(&self) -> bool {
        let (ticket, within) = (self.handle.ticket(), self.shared.timeouts.call);
        let Ok(backend) = self.shared.backend(&ticket.backend) else { return false };
        tokio::time::timeout(within, backend.finds_all(&ticket)).await.unwrap_or_default()
    }

    /// Ends what is left of a session that nobody holds. How many processes that were.
    pub(crate) async fn swept(&self, ticket: &wharf_model::Ticket) -> Result<u32> {
        let (backend, within) = (self.shared.backend(&ticket.backend)?, self.shared.timeouts.call);
        tokio::time::timeout(within, backend.sweep(ticket)).await.unwrap_or_else(|_| {
            let message = format!("the backend {} did not answer within {within:?}", backend.name());
            Err(Failure::new(Code::Unreachable, message))
        })
    }
}

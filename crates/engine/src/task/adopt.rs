use std::sync::Arc;

use wharf_backend::Adoption;
use wharf_model::{Code, Failure, Reason, State};

use super::{Phase, Task, undo};
use crate::command::Command;
use crate::handle::Stage;
use crate::open::LOOKING;
use crate::{Result, disk};

impl Task {
    /// Looks for the session until it is known what became of it. Nothing is concluded from a failure.
    pub(super) async fn adopt(&mut self) -> Phase {
        self.handle.ways().connection = None;
        self.handle.set_stage(Stage::There);
        let shared = Arc::clone(&self.shared);
        let closed = shared.closed();
        tokio::pin!(closed);
        let mut wait = shared.timeouts.retry.0;
        loop {
            let found = tokio::select! {
                () = &mut closed => return self.leave().await,
                found = self.look() => found,
            };
            let failure = match found {
                Ok(Adoption::Alive(connection)) => {
                    self.handle.ways().connection = Some(Arc::clone(&connection));
                    self.running(None);
                    self.look_for_pause().await;
                    self.attended(None);
                    return Phase::Live(connection, true);
                }
                Ok(Adoption::Ended(exit)) => return self.conclude(exit, false),
                Ok(Adoption::Lost) if self.never_was() => return self.forget(),
                Ok(Adoption::Lost) => return self.lost(),
                Err(failure) => failure,
            };
            // What stands still cannot answer, and goes on when somebody lets it.
            tokio::select! {
                () = &mut closed => return self.leave().await,
                () = shared.ask_paused(&self.handle) => {}
            }
            self.shared.update(&self.handle, |session| {
                session.state = State::Unknown;
                session.attached = 0;
                session.detail = Some(failure.message.clone());
            });
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

    /// Whether a session that was found stands still, where no news would tell.
    async fn look_for_pause(&self) {
        let freezer = self.shared.freezer(&self.handle);
        match freezer.map(wharf_backend::Freezer::news) {
            Some(None) => self.shared.ask_paused(&self.handle).await,
            // It has just answered.
            _ => self.shared.paused(&self.handle, false),
        }
    }

    async fn look(&self) -> Result<Adoption> {
        let ticket = self.handle.ticket();
        // What its holder left is the answer, and costs its backend nothing.
        if let Some(exit) = disk::exit(&self.shared.home.session(&ticket.id))? {
            return Ok(Adoption::Ended(exit));
        }
        let backend = self.shared.backend(&ticket.backend)?;
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
                self.stops.push(*stop);
                self.shared.thaw(&self.handle).await;
                true
            }
            Command::Restart(stop, reply) => {
                self.stops.push(*stop);
                self.restarters.push(reply);
                self.shared.thaw(&self.handle).await;
                true
            }
            Command::Pipe { file, from_start, reply } => {
                let _ = reply.send(self.pipe_to(file, from_start).await);
                false
            }
        }
    }

    /// Tells those who wait for a stop that it could not be carried out.
    fn unreachable(&mut self, why: &Failure) {
        let name = self.handle.session().name.clone();
        let failure =
            Failure::new(Code::Unreachable, format!("session {name} cannot be reached: {}", why.message))
                .hint("nothing was ended; it is looked for again and again");
        self.refuse(&failure);
    }

    /// Whether its start was taken back by its holder just when this engine began to look for it.
    fn never_was(&self) -> bool {
        let first = self.handle.session().detail.as_deref() == Some(LOOKING);
        first && matches!(disk::ticket(&self.shared.home.session(&self.handle.id)), Ok(None))
    }

    fn forget(&mut self) -> Phase {
        undo(&self.shared, &self.handle, None);
        self.shared.store.remove(&self.handle.id);
        // Whoever waits for it to be found need not wait any more.
        self.shared.update(&self.handle, |session| session.detail = None);
        Phase::Leave
    }

    fn lost(&mut self) -> Phase {
        let mut exit = super::launching::record(Reason::Lost, None);
        exit.started = self.handle.ticket().started;
        self.conclude(exit, false)
    }
}

//! Waits for other sessions before the first run: their end, success, port or idle state.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpStream;
use wharf_model::{After, AfterWhat, Code, Failure, Reason, Spec, State};

use crate::Result;
use crate::deliver::typing::Typist;
use crate::instance::disk;
use crate::instance::engine::Engine;
use crate::instance::shared::Shared;
use crate::session::handle::{Handle, Stage};
use crate::session::requests::Command;
use crate::session::task::{Phase, RunStart, Task};

/// How often a port is tried.
const PORT_POLL_INTERVAL: Duration = Duration::from_millis(100);
/// How long one try of a port may take.
const PORT_CONNECT_TIMEOUT: Duration = Duration::from_millis(500);
/// How long one look for a session's state lasts.
const LOOK_TIMEOUT: Duration = Duration::from_secs(3600);
/// How soon a look that failed is followed by another.
const LOOK_RETRY_INTERVAL: Duration = Duration::from_secs(1);

impl Engine {
    /// Refuses to wait for what can never be.
    pub(crate) async fn check_after(&self, spec: &Spec) -> Result<()> {
        for after in &spec.after {
            let other = self.find(after.name.as_str()).await?;
            if after.what == AfterWhat::Port && other.ports.is_empty() {
                return Err(Failure::new(
                    Code::Invalid,
                    format!("session {} has no reserved port", after.name),
                )
                .hint("start it with -p"));
            }
        }
        Ok(())
    }
}

impl Task {
    /// Waits for other sessions. Its name, ports and ticket are there already.
    pub(crate) async fn wait_for_others(&mut self) -> Phase {
        let after = self.handle.ticket().spec.after.clone();
        let shared = Arc::clone(&self.shared);
        let closed = shared.closed();
        tokio::pin!(closed);
        for after in &after {
            let word = match after.what {
                AfterWhat::Exit => "to end",
                AfterWhat::Success => "to end with 0",
                AfterWhat::Port => "to listen on its port",
                AfterWhat::Idle => "to be idle",
            };
            self.shared.update(&self.handle, |session| {
                session.detail = Some(format!("waits for {} {word}", after.name));
            });
            let met = wait_until_met(&shared, after);
            tokio::pin!(met);
            loop {
                let command = tokio::select! {
                    () = &mut closed => return self.leave().await,
                    met = &mut met => match met {
                        Ok(()) => break,
                        Err(why) => return self.never_ran(Reason::Failed, None, Some(why)),
                    },
                    Some(command) = self.commands.recv() => command,
                };
                match command {
                    Command::Stop(stop) => {
                        let (reason, by) = (stop.reason, stop.by.clone());
                        self.begin_stop(*stop);
                        return self.never_ran(reason, Some(by), None);
                    }
                    Command::Restart(_, restarter) => {
                        let name = self.handle.session().name.clone();
                        let failure =
                            Failure::new(Code::NotStarted, format!("session {name} does not run yet"));
                        let _ = restarter.reply.send(Err(failure));
                    }
                    Command::Pipe { file, from_start, reply } => {
                        let _ = reply.send(self.pipe_to(file, from_start).await);
                    }
                }
            }
        }
        match disk::ticket(&self.shared.home.session(&self.handle.id)) {
            Ok(Some(ticket)) => Phase::StartRun(Box::new(RunStart::Waited { ticket })),
            Ok(None) => self.never_ran(Reason::Failed, None, Some("its directory is gone".to_owned())),
            Err(failure) => self.never_ran(Reason::Failed, None, Some(failure.message)),
        }
    }
}

/// Waits until a condition holds; an error where it never will.
async fn wait_until_met(shared: &Arc<Shared>, after: &After) -> std::result::Result<(), String> {
    let name = &after.name;
    let Some(other) = shared.registry.by_name(name.as_str()) else {
        // It was there when the wait began, so it has ended and was removed, or is older than memory.
        return match after.what {
            AfterWhat::Exit => Ok(()),
            _ => Err(format!("session {name} is gone")),
        };
    };
    match after.what {
        AfterWhat::Exit => {
            wait_for_end(&other).await;
            Ok(())
        }
        AfterWhat::Success => {
            wait_for_end(&other).await;
            match other.session().exit.clone() {
                Some(exit) if exit.failed() => {
                    Err(format!("session {name} ended with {}", exit.shell_code()))
                }
                Some(_) => Ok(()),
                None => Err(format!("session {name} is gone")),
            }
        }
        AfterWhat::Port => {
            let Some(port) = other.session().ports.first().map(|port| port.number) else {
                return Err(format!("session {name} has no reserved port"));
            };
            tokio::select! {
                () = wait_for_end(&other) => Err(format!("session {name} ended before it listened on its port {port}")),
                () = listening(port) => Ok(()),
            }
        }
        AfterWhat::Idle => {
            tokio::select! {
                () = wait_for_end(&other) => Err(format!("session {name} ended before it was idle")),
                () = idle(shared, &other) => Ok(()),
            }
        }
    }
}

/// Looks at a session, as long as this lasts, until it is seen to be idle.
async fn idle(shared: &Arc<Shared>, other: &Arc<Handle>) {
    let observed = shared.observed(other);
    let mut typist = Typist::new(shared, other, &observed);
    loop {
        let deadline = std::time::Instant::now() + LOOK_TIMEOUT;
        let seen = typist.until(deadline, |seen| seen.report.state == State::Idle).await;
        match seen {
            Ok(Some(_)) => return,
            // It may run again, or be reached again; whoever waits sees its end by himself.
            Ok(None) | Err(_) => tokio::time::sleep(LOOK_RETRY_INTERVAL).await,
        }
    }
}

async fn wait_for_end(other: &Handle) {
    let mut watch = other.watch();
    while !watch.borrow_and_update().state.is_over() && other.stage() != Stage::Gone {
        if watch.changed().await.is_err() {
            return;
        }
    }
}

/// There is no event for a port that is listened on, so this one asks.
async fn listening(port: u16) {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    while !matches!(tokio::time::timeout(PORT_CONNECT_TIMEOUT, TcpStream::connect(address)).await, Ok(Ok(_)))
    {
        tokio::time::sleep(PORT_POLL_INTERVAL).await;
    }
}

//! Sessions of this host that stand still: by their cgroup, since signals would be seen by whoever waits for a child.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::broadcast;
use tokio::time::Instant;
use wharf_backend::{Freezer, Frozen, Result};
use wharf_holder_client::session::read_ticket;
use wharf_model::{Code, Failure, ScopeKind, Text, Ticket};

/// How long the kernel may take until everything stands still.
const FREEZE_TIMEOUT: Duration = Duration::from_secs(2);
/// How often it is looked at meanwhile.
const FREEZE_POLL_INTERVAL: Duration = Duration::from_millis(2);

/// Freezes by cgroups.
pub(crate) struct CgroupFreezer;

/// What makes one session stand still.
struct Control {
    dir: PathBuf,
    version: u8,
}

impl Control {
    fn of(ticket: &Ticket) -> Result<Self> {
        // A holder that was replaced has signed it anew.
        let scope =
            read_ticket(ticket.dir.as_path()).map_or_else(|_| ticket.scope.clone(), |found| found.scope);
        let version = match scope.kind {
            ScopeKind::Cgroup2 => 2,
            ScopeKind::Cgroup1 => 1,
            ScopeKind::Namespace | ScopeKind::Walk => 0,
        };
        // The first one has all of the session's processes, and the holder is not among them.
        match scope.dirs.first().map(Text::as_path) {
            Some(dir) if version > 0 => Ok(Self { dir: dir.to_owned(), version }),
            _ => Err(Failure::unsupported(
                "a pause",
                format!("session {}: it has no cgroup, and that", ticket.name),
            )
            .hint("start the daemon where cgroups can be made, or run the session in a container")),
        }
    }

    fn write(&self, still: bool) -> io::Result<()> {
        let (file, word) = match (self.version, still) {
            (2, true) => ("cgroup.freeze", "1"),
            (2, false) => ("cgroup.freeze", "0"),
            (_, true) => ("freezer.state", "FROZEN"),
            (_, false) => ("freezer.state", "THAWED"),
        };
        std::fs::write(self.dir.join(file), word)
    }

    fn is_still(&self) -> io::Result<bool> {
        if self.version == 2 {
            let events = std::fs::read_to_string(self.dir.join("cgroup.events"))?;
            return Ok(events.lines().any(|line| line == "frozen 1"));
        }
        // Of its own accord, and not because a group around it stands still: that is not for us to end.
        let own = std::fs::read_to_string(self.dir.join("freezer.self_freezing"))?;
        let state = std::fs::read_to_string(self.dir.join("freezer.state"))?;
        Ok(own.trim() == "1" && state.trim() == "FROZEN")
    }

    fn cannot(&self, what: &str, error: &io::Error) -> Failure {
        let dir: &Path = &self.dir;
        if error.kind() == io::ErrorKind::NotFound {
            return Failure::new(
                Code::Ended,
                format!("the cgroup {} is gone: the session has ended", dir.display()),
            );
        }
        Failure::system(format!("cannot {what} the cgroup {}", dir.display()), error)
    }
}

#[async_trait]
impl Freezer for CgroupFreezer {
    async fn freeze(&self, ticket: &Ticket, still: bool) -> Result<()> {
        let control = Control::of(ticket)?;
        let what = if still { "freeze" } else { "thaw" };
        let until = Instant::now() + FREEZE_TIMEOUT;
        loop {
            // Again and again: a process that was just being born may have been missed.
            control.write(still).map_err(|error| control.cannot(what, &error))?;
            if control.is_still().map_err(|error| control.cannot("look at", &error))? == still {
                return Ok(());
            }
            if Instant::now() >= until {
                // Half frozen is worse than not at all.
                let _ = control.write(false);
                return Err(Failure::new(
                    Code::Timeout,
                    format!("session {} does not {what} within {FREEZE_TIMEOUT:?}", ticket.name),
                )
                .hint("one of its processes waits in the kernel, as for a disk that is away"));
            }
            tokio::time::sleep(FREEZE_POLL_INTERVAL).await;
        }
    }

    async fn is_frozen(&self, ticket: &Ticket) -> Result<bool> {
        let control = Control::of(ticket)?;
        control.is_still().map_err(|error| control.cannot("look at", &error))
    }

    fn news(&self) -> Option<broadcast::Receiver<Frozen>> {
        None
    }
}

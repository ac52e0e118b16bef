//! What is left of a session whose holder is gone: looked at, or ended.

use std::io;
use std::os::unix::ffi::OsStrExt;
use std::time::Duration;

use wharf_backend::Result;
use wharf_holder::linux;
use wharf_model::{Code, Failure, ProcessIdentity, Scope, Ticket};

use super::host::{HostHolders, newest};

impl HostHolders {
    /// Does something with what is left of a session whose holder is gone; none where it never ran.
    pub(super) async fn leavings<T: Send + 'static>(
        &self,
        ticket: &Ticket,
        patience: Duration,
        work: impl FnOnce(&Scope, &ProcessIdentity, &str, Option<linux::Orphans>) -> io::Result<T>
        + Send
        + 'static,
    ) -> Result<Option<T>> {
        let ticket = &newest(ticket);
        let (Some(holder), Some(command)) = (ticket.holder.clone(), ticket.command.clone()) else {
            return Ok(None);
        };
        // A cgroup is named by its session; one of another session is not ours to sweep, whatever a ticket says.
        let (mut scope, token) = (ticket.scope.clone(), ticket.token.clone());
        let own = format!("wharf-{}-", ticket.id);
        scope.dirs.retain(|dir| {
            dir.as_path().file_name().is_some_and(|name| name.as_bytes().starts_with(own.as_bytes()))
        });
        let door = self.pool.nursery.door();
        let work = move || -> io::Result<Option<T>> {
            if linux::proc::open(&holder)?.is_some_and(|pidfd| !linux::proc::ends(pidfd, patience)) {
                return Ok(None);
            }
            let orphans = door.map(|door| linux::Orphans::new(door, &holder, &holder));
            work(&scope, &command, &token, orphans).map(Some)
        };
        let done = tokio::task::spawn_blocking(work).await;
        match done.map_err(|error| Failure::new(Code::Internal, error.to_string()))? {
            Ok(Some(done)) => Ok(Some(done)),
            Ok(None) => Err(Failure::new(Code::Running, "the session's holder still lives")),
            Err(error) if error.kind() == io::ErrorKind::TimedOut => {
                Err(Failure::new(Code::Survivors, error.to_string()))
            }
            Err(error) => Err(Failure::system("cannot sweep", &error)),
        }
    }
}

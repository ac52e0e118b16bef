//! Changes a session while it runs: its name, its variables, the copy of its output.

use std::sync::Arc;

use tokio::sync::oneshot;
use wharf_model::{Change, Code, Failure, Home, Name, Session, Text, Ticket};

use crate::Result;
use crate::instance::registry::taken;
use crate::instance::shared::without_start_data;
use crate::instance::{disk, lookup};
use crate::launch::{backend_launch, validate};
use crate::lifecycle::stop::send;
use crate::session::handle::Handle;
use crate::session::requests::Command;
use crate::session::session_handle::SessionHandle;

/// What is changed of a session without touching its command.
impl SessionHandle {
    /// Gives a session another name, in the group that it is in. At every moment it is found by one of the two.
    pub async fn rename(&self, name: Name) -> Result<Arc<Session>> {
        let handle = self.entry().await?;
        let old = handle.session().name.clone();
        if old == name {
            return Ok(handle.session());
        }
        let name = self.engine.shared.requalify(name, handle.session().group.as_ref()).await?;
        if old == name {
            return Ok(handle.session());
        }
        let displaced = self.engine.shared.registry.reserve(&name, &handle.id)?;
        let renamed = self.rename_on_disk(&handle, &name).await;
        if let Err(failure) = renamed {
            self.engine.shared.registry.release(&name, &handle.id);
            if let Some(old) = displaced {
                // It goes back to whom it belonged, where that one is still known.
                let _ = self.engine.shared.registry.reserve(&name, &old);
            }
            return Err(failure);
        }
        self.engine.shared.registry.release(&old, &handle.id);
        disk::free_link(&self.engine.shared.home, &old, &handle.id);
        self.engine.shared.update(&handle, |session| session.name = name);
        self.remember(&handle).await;
        Ok(handle.session())
    }

    async fn rename_on_disk(&self, handle: &Arc<Handle>, name: &Name) -> Result<()> {
        let home = &self.engine.shared.home;
        if !disk::claim_link(home, name, &handle.id)? {
            let owner = disk::linked(home, name).ok_or_else(|| taken(name))?;
            if !self.engine.is_past(&owner).await? {
                return Err(taken(name));
            }
            disk::point_link(home, name, &handle.id)?;
        }
        let written = self.edit(handle, |ticket| {
            ticket.name = name.clone();
            ticket.spec.name = Some(name.clone());
        });
        if written.is_err() {
            disk::free_link(home, name, &handle.id);
        }
        written
    }

    /// The variables that a command which starts in the session now would get.
    pub async fn env(&self) -> Result<Vec<(Text, Text)>> {
        let handle = self.entry().await?;
        let ticket = self.ticket_of(&handle)?;
        let env = self.engine.shared.variables(&ticket).await?;
        if !self.engine.shared.needs_environment(&ticket.spec) {
            return Ok(env);
        }
        let home = self.engine.shared.home.session(&ticket.id);
        Ok(self.engine.shared.apply_environments(backend_launch::of(ticket, home, env)).await?.env)
    }

    /// Changes the variables of what starts later in the session: a further command, the next run.
    pub async fn set_env(&self, set: Vec<(Text, Text)>, unset: Vec<Text>) -> Result<()> {
        let handle = self.entry().await?;
        for (name, value) in &set {
            validate::variable(name, value)?;
        }
        self.edit(&handle, |ticket| {
            let changes = &mut ticket.spec.env.changes;
            // The last word on a variable is the only one that counts, unless it adds to an earlier one.
            let touched = |name: &Text| set.iter().any(|(n, _)| n == name) || unset.contains(name);
            changes.retain(|change| match change {
                Change::Set(name, _) | Change::Append(name, ..) | Change::Unset(name) => !touched(name),
            });
            changes.extend(unset.into_iter().map(Change::Unset));
            changes.extend(set.iter().map(|(name, value)| Change::Set(name.clone(), value.clone())));
        })
    }

    /// Copies a session's output to a file as it comes, from the log's start or from now on; `None` ends that.
    pub async fn pipe(&self, file: Option<Text>, from_start: bool) -> Result<()> {
        let handle = self.entry().await?;
        for _ in 0..4 {
            if handle.is_over() {
                let name = &handle.session().name;
                return Err(Failure::new(Code::Ended, format!("session {name} has ended"))
                    .hint(format!("`wharf logs {name}` prints its output")));
            }
            let (reply, answer) = oneshot::channel();
            if send(&handle, Command::Pipe { file: file.clone(), from_start, reply }).await
                && let Ok(answer) = answer.await
            {
                return answer;
            }
        }
        Err(Failure::new(Code::Unreachable, "the session is between two states; nothing was done")
            .hint("try again"))
    }

    /// The whole ticket, with what is not kept in memory.
    pub(crate) fn ticket_of(&self, handle: &Handle) -> Result<Ticket> {
        let found = disk::ticket(&self.engine.shared.home.session(&handle.id))?;
        found.ok_or_else(|| lookup::no_ticket(&handle.session().name))
    }

    /// Changes the ticket on disk in one step.
    fn edit(&self, handle: &Handle, change: impl FnOnce(&mut Ticket)) -> Result<()> {
        let _disk = handle.disk();
        let mut ticket = self.ticket_of(handle)?;
        change(&mut ticket);
        disk::write_json(&self.engine.shared.home.session(&handle.id).join(Home::TICKET), &ticket)?;
        handle.links().ticket = Arc::new(without_start_data(ticket));
        Ok(())
    }

    /// Writes a session's row again without what only its task knows.
    async fn remember(&self, handle: &Handle) {
        // A history that cannot be read takes nothing back: what was asked for is done, and on disk.
        let row = self.engine.row(&handle.id).await.ok().flatten();
        self.engine.shared.remember(handle, row.map_or(0, |row| row.attempts));
    }
}

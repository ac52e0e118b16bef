//! Decides the `Launch` that a backend is told: ports, variables, files, environments.

use std::path::PathBuf;

use wharf_backend::Launch;
use wharf_model::{Failure, Home, Text, Ticket};

use crate::Result;
use crate::instance::disk;
use crate::instance::shared::Shared;
use crate::launch::required_programs;

impl Shared {
    /// Decides everything that a backend must be told: ports, variables, files. On failure the caller undoes.
    pub(crate) async fn prepare(&self, mut ticket: Ticket) -> Result<Launch> {
        self.ports.reserve(&ticket.id, &mut ticket.spec.ports)?;
        let mut env = self.variables(&ticket).await?;
        self.agent_variables(&ticket, &mut env);
        let home = self.home.session(&ticket.id);
        crate::launch::secrets::check(&home, &ticket)?;
        if let Some(prompt) = &ticket.spec.prompt {
            disk::session_dir(&home)?;
            disk::replace(&home.join(Home::PROMPT), prompt.as_bytes())?;
        }
        let launch = self.apply_environments(of(ticket, home, env)).await?;
        let spec = &launch.spec;
        if spec.container.is_none() {
            required_programs::check(&spec.require, &launch.env, spec.dir.as_path())?;
        } else if !spec.require.is_empty() {
            return Err(Failure::unsupported("a look for programs before the start", "a container"));
        }
        Ok(launch)
    }
}

/// The launch of a ticket with these variables, before any environment has changed it.
pub(crate) fn of(ticket: Ticket, home: PathBuf, env: Vec<(Text, Text)>) -> Launch {
    Launch {
        home,
        id: ticket.id,
        name: ticket.name,
        run: ticket.run,
        token: ticket.token,
        created: ticket.created,
        argv: ticket.spec.argv.clone(),
        env,
        spec: ticket.spec,
    }
}

/// A mark for one run's processes.
pub(crate) fn token() -> Result<String> {
    Ok(format!("{:016x}{:016x}", crate::instance::shared::random()?, crate::instance::shared::random()?))
}

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::SystemTime;

use wharf_agents::{Profile, Profiles};
use wharf_model::{Home, Ticket};

use super::attention::lock;
use crate::Result;

/// The instance's profiles where the user has some, read again when the directory of them changes.
#[derive(Default)]
pub(crate) struct Shelf(Mutex<Option<(SystemTime, Arc<Profiles>)>>);

impl Shelf {
    /// The built-in profiles and the user's.
    fn profiles(&self, home: &Home, changed: SystemTime) -> Arc<Profiles> {
        let mut known = lock(&self.0);
        if let Some((at, profiles)) = &*known
            && *at == changed
        {
            return Arc::clone(profiles);
        }
        let profiles = Arc::new(Profiles::load(Some(home.config()), None).unwrap_or_else(|failure| {
            tracing::warn!(%failure, "the user's profiles cannot be read; the built-in ones are used");
            Profiles::built_in()
        }));
        *known = Some((changed, Arc::clone(&profiles)));
        profiles
    }

    /// Whether a command is an agent's, which is attended from its start.
    pub(crate) fn attends(&self, home: &Home, ticket: &Ticket) -> bool {
        let argv = &ticket.spec.argv;
        let own = || std::fs::metadata(home.config().join("profiles")).and_then(|dir| dir.modified());
        ticket.spec.agent.is_some()
            || own().map_or_else(
                |_| Profiles::is_known_agent(argv),
                |changed| self.profiles(home, changed).for_argv(argv).attend,
            )
    }
}

/// The profiles for a directory: the built-in ones, the user's, and the project's changes to them.
pub(crate) fn load(home: &Home, dir: &Path) -> Result<Profiles> {
    Profiles::load(Some(home.config()), Some(dir))
}

/// The profile that a session is driven by. One that cannot be read is no reason to lose sight of a session.
pub(crate) fn of(home: &Home, ticket: &Ticket) -> Arc<Profile> {
    let profiles = load(home, ticket.spec.dir.as_path()).unwrap_or_else(|failure| {
        tracing::warn!(session = %ticket.id, %failure, "profiles cannot be read; the built-in ones are used");
        Profiles::built_in()
    });
    let named = ticket.spec.agent.as_ref().and_then(|agent| profiles.get(&agent.name));
    named.unwrap_or_else(|| profiles.for_argv(&ticket.spec.argv))
}

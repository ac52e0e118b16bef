//! Chooses the profile that a session is driven by, with the user's and the project's changes.

use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::SystemTime;

use wharf_agents::{Profile, Profiles, ProjectFile, Trust, Variables};
use wharf_model::{Home, Ignored, Project, Ticket};

use crate::Result;
use crate::observe::observed::lock;

/// The instance's profiles where the user has some, read again when the directory of them changes.
#[derive(Default)]
pub(crate) struct ProfileCache(Mutex<Option<(SystemTime, Arc<Profiles>)>>);

impl ProfileCache {
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

    /// The marks that agents leave for their children.
    pub(crate) fn marks(&self, home: &Home) -> Cow<'static, Variables> {
        match std::fs::metadata(home.config().join("profiles")).and_then(|dir| dir.modified()) {
            Ok(changed) => Cow::Owned(self.profiles(home, changed).marks()),
            Err(_) => Cow::Borrowed(Profiles::known_marks()),
        }
    }

    /// Whether a command is an agent's, which is attended from its start.
    pub(crate) fn is_agent(&self, home: &Home, ticket: &Ticket) -> bool {
        let argv = &ticket.spec.argv;
        let own = || std::fs::metadata(home.config().join("profiles")).and_then(|dir| dir.modified());
        ticket.spec.agent.is_some()
            || own().map_or_else(
                |_| Profiles::is_known_agent(argv),
                |changed| self.profiles(home, changed).for_argv(argv).attend,
            )
    }
}

/// Whether sessions in a directory surely have no project's file. It never waits.
pub(crate) fn has_no_project(dir: &Path) -> bool {
    ProjectFile::is_surely_absent(dir, std::env::var_os("HOME").map(PathBuf::from).as_deref())
}

/// What the project's file changes for sessions in a directory, as it is now: read once, and by the bytes that were read.
pub(crate) fn project(home: &Home, dir: &Path) -> Option<Box<Project>> {
    let own = std::env::var_os("HOME").map(PathBuf::from);
    let ignored = |file: PathBuf, why: String| Project {
        file: file.into(),
        sha256: String::new(),
        trusted: false,
        changes: String::new(),
        ignored: vec![Ignored { setting: "*".to_owned(), why }],
    };
    let project = match ProjectFile::find(dir, own.as_deref())? {
        Err(refused) => ignored(refused.path, refused.why),
        Ok(file) => {
            let trust = Trust::read(home.state()).unwrap_or_else(|failure| {
                tracing::warn!(%failure, "no project's file is trusted");
                Trust::default()
            });
            let considered = Profiles::consider(Some(home.config()), &file, trust.accepts(&file));
            considered.unwrap_or_else(|failure| ignored(file.path, failure.message))
        }
    };
    for told in project.told() {
        tracing::info!("{told}");
    }
    Some(Box::new(project))
}

/// The profiles under a project's changes: the built-in ones, the user's, and those changes.
pub(crate) fn load_profiles(home: &Home, project: Option<&Project>) -> Result<Profiles> {
    Profiles::load(Some(home.config()), project)
}

/// The profile that a session is driven by. One that cannot be read is no reason to lose sight of a session.
pub(crate) fn profile_of(home: &Home, ticket: &Ticket) -> Arc<Profile> {
    let profiles = load_profiles(home, ticket.spec.project.as_deref()).unwrap_or_else(|failure| {
        tracing::warn!(session = %ticket.id, %failure, "profiles cannot be read; the built-in ones are used");
        Profiles::built_in()
    });
    let named = ticket.spec.agent.as_ref().and_then(|agent| profiles.get(&agent.name));
    named.unwrap_or_else(|| profiles.for_argv(&ticket.spec.argv))
}

//! Decides where an instance lives, and names every file in it.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::path::{Path, PathBuf};

use crate::{Name, SessionId};

/// Where an instance of Wharf lives. `HOME` and `XDG_*` alone decide it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Home {
    state: PathBuf,
    config: PathBuf,
}

/// Neither `HOME` nor the XDG variables name a place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HomeError;

impl Home {
    /// Decides the place from environment variables. As the XDG rules say, a relative path counts as unset.
    pub fn resolve(var: impl Fn(&str) -> Option<OsString>) -> Result<Self, HomeError> {
        let absolute = |name: &str| var(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let below = |xdg: &str, rest: &str| {
            absolute(xdg).or_else(|| absolute("HOME").map(|home| home.join(rest))).ok_or(HomeError)
        };
        Ok(Self {
            state: below("XDG_STATE_HOME", ".local/state")?.join("wharf"),
            config: below("XDG_CONFIG_HOME", ".config")?.join("wharf"),
        })
    }

    /// An instance below one directory: for embedders and tests.
    pub fn below(root: &Path) -> Self {
        Self { state: root.join("state"), config: root.join("config") }
    }

    /// Everything that Wharf writes is below this.
    pub fn state(&self) -> &Path {
        &self.state
    }

    /// The user's configuration.
    pub fn config_file(&self) -> PathBuf {
        self.config.join("config.toml")
    }

    /// The user's own agent profiles are in `profiles/` here.
    pub fn config(&self) -> &Path {
        &self.config
    }

    /// The socket that agents tell events to.
    pub fn events_socket(&self) -> PathBuf {
        self.state.join(Self::EVENTS_SOCKET)
    }

    /// The daemon's socket.
    pub fn socket(&self) -> PathBuf {
        self.state.join("daemon.sock")
    }

    /// The lock that the one engine of this instance holds; its text is the owner's pid.
    pub fn lock(&self) -> PathBuf {
        self.state.join("daemon.lock")
    }

    /// What the daemon has to say.
    pub fn daemon_log(&self) -> PathBuf {
        self.state.join("daemon.log")
    }

    /// The store.
    pub fn store(&self) -> PathBuf {
        self.state.join("store.db")
    }

    /// One directory a session.
    pub fn sessions(&self) -> PathBuf {
        self.state.join("sessions")
    }

    /// The directory of one session.
    pub fn session(&self, id: &SessionId) -> PathBuf {
        self.sessions().join(id.as_str())
    }

    /// Links from names to sessions, so that a name is found with no daemon.
    pub fn names(&self) -> PathBuf {
        self.state.join("names")
    }

    /// The link of one name. They stand side by side: `GROUP/NAME` is the file `GROUP:NAME`, for no name has a colon.
    pub fn name(&self, name: &Name) -> PathBuf {
        self.names().join(name.as_str().replace('/', ":"))
    }

    /// The name whose link a file among the [names](Self::names) is; none where it is not called like one.
    pub fn name_of(file: &OsStr) -> Option<Name> {
        file.to_str()?.replacen(':', "/", 1).parse().ok()
    }
}

/// The files of a session's directory.
impl Home {
    /// The ticket.
    pub const TICKET: &'static str = "ticket.json";
    /// The exit record.
    pub const EXIT: &'static str = "exit.json";
    /// The log's directory.
    pub const LOG: &'static str = "log";
    /// The holder's socket.
    pub const SOCKET: &'static str = "sock";
    /// The messages and their receipts.
    pub const MESSAGES: &'static str = "messages";
    /// The events.
    pub const EVENTS: &'static str = "events";
    /// The screen as it was at some offset of the log.
    pub const SCREEN: &'static str = "screen";
    /// The prompt.
    pub const PROMPT: &'static str = "prompt";
    /// Its secrets, a file each, while it lives.
    pub const SECRETS: &'static str = "secrets";
    /// The name of the socket that agents tell events to, in the instance's own directory.
    pub const EVENTS_SOCKET: &'static str = "events.sock";
}

impl fmt::Display for HomeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("HOME is not set to an absolute path, and XDG_STATE_HOME is not either")
    }
}

impl std::error::Error for HomeError {}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(vars: &[(&str, &str)]) -> Result<Home, HomeError> {
        Home::resolve(|name| vars.iter().find(|(n, _)| *n == name).map(|(_, v)| OsString::from(v)))
    }

    #[test]
    fn xdg_wins_over_home_and_relative_paths_do_not_count() {
        assert_eq!(at(&[("HOME", "/h")]).unwrap().state(), Path::new("/h/.local/state/wharf"));
        let both = [("HOME", "/h"), ("XDG_STATE_HOME", "/x")];
        assert_eq!(at(&both).unwrap().state(), Path::new("/x/wharf"));
        let relative = [("HOME", "/h"), ("XDG_STATE_HOME", "x")];
        assert_eq!(at(&relative).unwrap().state(), Path::new("/h/.local/state/wharf"));
        assert_eq!(at(&[]), Err(HomeError));
        assert_eq!(at(&[("HOME", "")]), Err(HomeError));
    }

    #[test]
    fn every_name_is_one_file_among_the_names() {
        let home = Home::below(Path::new("/r"));
        for (name, file) in [("api", "api"), ("team/api", "team:api")] {
            let name: Name = name.parse().unwrap();
            assert_eq!(home.name(&name), home.names().join(file));
            assert_eq!(Home::name_of(OsStr::new(file)), Some(name));
        }
        for file in ["", ".0123456789abcdef", "a:b:c", ":a", "a:", "a:..", "..", "a/b:c"] {
            assert_eq!(Home::name_of(OsStr::new(file)), None, "{file:?}");
        }
    }
}

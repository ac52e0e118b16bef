//! Defines the sandbox rules as data, and words what of them is in force.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use wharf_model::{Expected, Home, Network, Text};

/// What a command may do, as its step is told.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rules {
    /// What it may read and run, beyond what every program needs of the system.
    pub read: Vec<Text>,
    /// What it may also change.
    pub write: Vec<Text>,
    /// A directory for temporary files, which is made where it is not there.
    pub temporary: Option<Text>,
    /// How far its network reaches.
    pub network: Network,
    /// Who makes a network of its own.
    #[serde(default)]
    pub namespace: Namespace,
    /// What must be at which of those paths.
    #[serde(default)]
    pub expected: Vec<Expected>,
    /// What of Wharf's own it never gets, whatever else it may.
    #[serde(default)]
    pub guarded: Guarded,
}

/// Wharf's own directories.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Guarded {
    /// What is not there for it but for what is its own: tickets with tokens, sockets, logs of others.
    pub hidden: Vec<PathBuf>,
    /// What it cannot change: settings that the user's next command believes.
    pub fixed: Vec<PathBuf>,
}

impl Guarded {
    /// Those of an instance.
    pub fn of(home: &Home) -> Self {
        Self { hidden: vec![home.state().to_owned()], fixed: vec![home.config().to_owned()] }
    }
}

/// Who makes a namespace.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Namespace {
    /// The step itself.
    #[default]
    Own,
    /// Bubblewrap, which may be allowed what the user is not.
    Bubblewrap,
}

/// What is in force once a step is done.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct InForce {
    /// Signals reach only processes of the sandbox.
    pub(crate) signals: bool,
    /// It has a view of the files of its own: modes, owners and times of files outside cannot be changed either, and it
    /// has terminals of its own.
    pub(crate) modes: bool,
}

/// What every program needs to run at all: programs, libraries, settings. No user's files are below any of these.
pub(crate) const SYSTEM: &[&str] = &[
    "/bin",
    "/etc",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/nix",
    "/opt",
    "/proc",
    "/run/systemd/resolve",
    "/sbin",
    "/sys",
    "/usr",
];

/// Devices that hold nothing of anybody. Terminals are another matter: they are the user's, or its own.
pub(crate) const DEVICES: &[&str] =
    &["/dev/full", "/dev/null", "/dev/random", "/dev/tty", "/dev/urandom", "/dev/zero"];

/// Where terminals are in a view of its own, in which there is nothing else: those that it makes, and the one that it was
/// started on, whose name is looked for in the directory.
pub(crate) const OWN_TERMINALS: &str = "/dev";

impl Rules {
    /// What is in force, in words.
    pub(crate) fn words(&self, in_force: InForce) -> Vec<String> {
        let list = |paths: &[Text]| {
            paths.iter().map(|path| path.lossy().into_owned()).collect::<Vec<_>>().join(", ")
        };
        let read = if self.read.is_empty() { String::new() } else { format!(" and {}", list(&self.read)) };
        let network = match (self.network, self.namespace) {
            (Network::Off, _) => "no network",
            (Network::Loopback, Namespace::Own) => "a network of its own, with nothing but a loopback",
            (Network::Loopback, Namespace::Bubblewrap) => {
                "a network of its own by bubblewrap, with nothing but a loopback"
            }
            (Network::Open, _) => "the network of the host",
        };
        let signals = if in_force.signals {
            "no signals to processes outside"
        } else {
            "signals are not kept inside: this kernel cannot"
        };
        let modes = if in_force.modes {
            ""
        } else {
            "; modes, owners and times of other files are not covered, and no terminals can be made: no mount \
             namespace can be had"
        };
        vec![
            format!("sandbox: files: reads the system{read}; changes {}{modes}", list(&self.write)),
            format!("sandbox: {network}, no Unix sockets, {signals}"),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_say_what_is_in_force_and_no_more() {
        let mut rules = Rules { write: vec!["/w".into()], network: Network::Off, ..Rules::default() };
        let words = rules.words(InForce { signals: true, modes: true });
        assert_eq!(words[0], "sandbox: files: reads the system; changes /w");
        assert_eq!(words[1], "sandbox: no network, no Unix sockets, no signals to processes outside");
        rules.read = vec!["/r".into(), "/s".into()];
        let words = rules.words(InForce::default());
        assert!(words[0].contains("the system and /r, /s;"));
        assert!(words[0].contains("not covered"));
        assert!(words[1].contains("not kept inside"));
    }
}

//! Declares the trait of a benchmarked program: the ways to start, type at and read a session.

use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::Result;
use wharf_tool_support::process;

use crate::kept::Kept;

/// Something that holds sessions, and the ways to use it. `None` is what it cannot do.
pub(crate) trait Contestant {
    /// Its column.
    fn name(&self) -> &'static str;

    /// Whether the command that starts a session returns while the session runs.
    fn detaches(&self) -> bool;

    /// The command that starts a session.
    fn create(&self, session: &str, argv: &[String]) -> Command;

    /// A connection over which sessions are started. `ready` is the command line up to the session's number.
    fn creator(&self, _ready: &[String]) -> Result<Option<Box<dyn Creator>>> {
        Ok(None)
    }

    /// A connection to a session that runs `echo`.
    fn line(&self, _session: &str) -> Result<Option<Box<dyn Line>>> {
        Ok(None)
    }

    /// The same through one more of its processes, where it has such a way.
    fn relayed_line(&self, _session: &str) -> Result<Option<Box<dyn Line>>> {
        Ok(None)
    }

    /// The command that attaches a terminal to a session.
    fn attach(&self, _session: &str) -> Option<Command> {
        None
    }

    /// The command that types at a session and returns.
    fn send(&self, session: &str, text: &str) -> Option<Command>;

    /// The command that lists sessions.
    fn list(&self) -> Option<Command> {
        None
    }

    /// The command that prints the last 50 lines of a session.
    fn tail(&self, _session: &str) -> Option<Command> {
        None
    }

    /// The commands that type a whole file at a session, one after the other.
    fn paste(&self, _session: &str, _file: &Path) -> Result<Option<Vec<Command>>> {
        Ok(None)
    }

    /// A connection to a session that takes a whole text.
    fn paste_line(&self, _session: &str) -> Result<Option<Box<dyn Paste>>> {
        Ok(None)
    }

    /// Someone who follows a session's output.
    fn reader(&self, session: &str) -> Result<Option<Reader>>;

    /// The processes that it needs for its sessions, without the sessions' own.
    fn servers(&self) -> Vec<i32>;

    /// The memory that only those have, in bytes.
    fn private_memory(&self) -> u64 {
        self.servers().iter().filter_map(|pid| process::private_memory(*pid).ok()).sum()
    }

    /// Forgets a session whose command has ended, where it would be kept.
    fn forget(&self, _session: &str) -> Result<()> {
        Ok(())
    }
}

/// Starts sessions over one connection.
pub(crate) trait Creator {
    /// Asks for a session; its command speaks for itself.
    fn ask(&mut self, session: &str, argv: &[String]) -> Result<()>;
    /// Takes the answer.
    fn answer(&mut self) -> Result<()>;
}

/// One byte there and back.
pub(crate) trait Line {
    fn round_trip(&mut self, byte: u8) -> Result<Duration>;
}

/// A whole text over one connection.
pub(crate) trait Paste {
    /// Types it; the command says when it has all of it.
    fn paste(&mut self, bytes: &[u8]) -> Result<()>;
}

/// A reader: what it gets, and the process that gets it, if it is one.
pub(crate) struct Reader {
    pub(crate) from: OwnedFd,
    pub(crate) process: Option<Kept>,
}

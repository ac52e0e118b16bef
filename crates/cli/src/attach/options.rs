use std::path::PathBuf;
use std::time::Duration;

use wharf_model::{Geometry, Offset};

use crate::detach::DetachKeys;

/// Where output begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Begin {
    /// With the screen as it is, or else with the end of what was printed before, made safe to show again.
    Tail,
    /// At this offset; what was printed before is made safe to show again.
    At(Offset),
    /// With the first byte, and all of it is new.
    Fresh,
    /// With what comes next.
    Now,
}

/// How to attach.
#[derive(Debug)]
pub(crate) struct Options {
    /// The session's name.
    pub(crate) name: String,
    /// Its directory.
    pub(crate) dir: PathBuf,
    /// Whether it has a terminal.
    pub(crate) tty: bool,
    /// Look and do not type.
    pub(crate) read_only: bool,
    /// Whose terminal decides its size.
    pub(crate) geometry: Geometry,
    /// The keys that leave it.
    pub(crate) keys: DetachKeys,
    /// Where output begins.
    pub(crate) begin: Begin,
    /// The end of our input is the end of the session's, and our signals are its signals: it is ours.
    pub(crate) owned: bool,
    /// How long to wait for its holder; none is for ever.
    pub(crate) patience: Option<Duration>,
}

impl Options {
    /// What we are to the holder.
    pub(super) fn role(&self) -> &'static str {
        match (self.read_only, self.tty) {
            (true, _) => "watch",
            (false, true) => "attach",
            (false, false) => "program",
        }
    }
}

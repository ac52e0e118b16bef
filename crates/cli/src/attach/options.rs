//! Holds the options of one attachment, and words the notes that it prints.

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

/// A session that another is brought to the terminal of.
#[derive(Debug)]
pub(crate) struct Outer {
    /// Its name.
    pub(crate) name: String,
    /// The keys that leave it, as far as can be known: whoever is attached to it may have been told others.
    pub(crate) keys: DetachKeys,
}

/// How to attach.
#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a question of its own")]
pub(crate) struct Options {
    /// The session's name.
    pub(crate) name: String,
    /// Its directory.
    pub(crate) dir: PathBuf,
    /// Whether it has a terminal.
    pub(crate) tty: bool,
    /// Whether its holder runs in a place of its own, and is not believed.
    pub(crate) isolated: bool,
    /// Look and do not type.
    pub(crate) read_only: bool,
    /// Whose terminal decides its size.
    pub(crate) geometry: Geometry,
    /// The keys that leave it.
    pub(crate) keys: DetachKeys,
    /// The session that this terminal is in, where it is in one.
    pub(crate) outer: Option<Outer>,
    /// Where output begins.
    pub(crate) begin: Begin,
    /// The end of our input is the end of the session's, and our signals are its signals: it is ours.
    pub(crate) owned: bool,
    /// How long to wait for its holder; none is for ever.
    pub(crate) patience: Option<Duration>,
}

impl Options {
    /// What somebody at a terminal is told: which keys leave which session.
    pub(super) fn welcome(&self) -> String {
        let (name, keys) = (&self.name, &self.keys);
        match &self.outer {
            None => format!("attached to {name}; detach with {keys}"),
            Some(outer) if outer.keys.same_as(keys) && !keys.are_none() => format!(
                "attached to {name} inside of {}; {keys} leaves {}, and never comes as far as {name}: --detach-keys takes others",
                outer.name, outer.name
            ),
            Some(outer) if outer.keys.are_none() => {
                format!("attached to {name} inside of {}; {keys} leaves {name}", outer.name)
            }
            Some(outer) => format!(
                "attached to {name} inside of {}; {keys} leaves {name}, {} leaves {}",
                outer.name, outer.keys, outer.name
            ),
        }
    }

    /// What is told where no keys can be pressed, on one side or the other.
    pub(super) fn without_terminal(&self, input_is_terminal: bool) -> String {
        let name = &self.name;
        let input = match (self.read_only, self.tty, input_is_terminal) {
            (true, ..) => "it is only looked at".to_owned(),
            (_, false, true) => "what you type goes to it line by line".to_owned(),
            _ => "standard input goes to it as it comes".to_owned(),
        };
        let place = match (self.tty, input_is_terminal) {
            (false, true) => "which has no terminal",
            _ => "without a terminal",
        };
        let leaves =
            if input_is_terminal { "ctrl-c leaves it running" } else { "a signal leaves it running" };
        format!("attached to {name}, {place}: {input}, its output comes here until it ends; {leaves}")
    }

    /// What we are to the holder.
    pub(super) fn role(&self) -> &'static str {
        match (self.read_only, self.tty) {
            (true, _) => "watch",
            (false, true) => "attach",
            (false, false) => "program",
        }
    }
}

//! Lists what a backend can do, as flags.

use serde::{Deserialize, Serialize};

/// What a backend can do. What is absent answers with a typed *unsupported* error.
#[expect(clippy::struct_excessive_bools, reason = "a flat list of yes and no is what callers want to read")]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Capabilities {
    /// Sessions with a terminal.
    pub tty: bool,
    /// Sessions with three pipes and no terminal.
    pub pipes: bool,
    /// Input is acknowledged once it is in the terminal.
    pub input_ack: bool,
    /// Can say how much input the application has not read, and whether the terminal is canonical.
    pub pending_input: bool,
    /// Can change the terminal's size.
    pub resize: bool,
    /// Can send any signal.
    pub signal: bool,
    /// A stop ends every process of the session.
    pub tree_kill: bool,
    /// A session outlives the process that started it, and is found again with input working.
    pub adopt: bool,
    /// Can list what carries our marks.
    pub list: bool,
    /// Output is addressed by offset, from the first byte on.
    pub offsets: bool,
    /// Can run further commands beside the session's own.
    pub exec: bool,
    /// Can report processor time and memory.
    pub stats: bool,
    /// Can limit memory, processors, processes.
    pub limits: bool,
    /// Can copy files in and out.
    pub copy: bool,
    /// Can make a session stand still and go on.
    #[serde(default)]
    pub pause: bool,
    /// Has images to run in.
    #[serde(default)]
    pub images: bool,
    /// Can take in what somebody else started, to watch it and to type.
    #[serde(default)]
    pub guests: bool,
    /// Its terminals answer what applications ask them: nobody else may.
    #[serde(default)]
    pub answers: bool,
    /// Keeps the session from the host's files and processes.
    pub isolation: bool,
}

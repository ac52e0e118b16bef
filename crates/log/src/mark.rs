//! Defines the index records of a log: time, stream, size and restart.

use wharf_model::{Offset, Size};

/// The stream that bytes came on.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Stream {
    /// Standard output, or all that a terminal shows. What a log begins with.
    #[default]
    Stdout,
    /// Standard error of a session on pipes.
    Stderr,
}

/// What the index can say about a position in the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mark {
    /// The bytes before this position had come by this time.
    Time,
    /// From here on the bytes come on this stream.
    Stream(Stream),
    /// From here on the terminal has this size.
    Resize(Size),
    /// From here on the bytes are those of this run of the command.
    Restart(u32),
}

/// A mark with its place and time.
///
/// Whatever the mark says, its time is also a bound: bytes before `offset` came no later than `micros`, bytes
/// after it no earlier.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Record {
    /// Where the mark stands.
    pub offset: Offset,
    /// When it was made, in microseconds since the Unix epoch. The clock may have been set back meanwhile.
    pub micros: u64,
    /// What it says.
    pub mark: Mark,
}

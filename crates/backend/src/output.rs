//! Declares the `Output` trait, which reads a session's log from an offset on and reports gaps.

use async_trait::async_trait;
use wharf_model::Offset;

use crate::Result;

/// Output as it is read: a reader is an offset, and a slow one costs the session nothing.
#[async_trait]
pub trait Output: Send {
    /// The next piece; waits for it. `None` once the session has ended and everything was read.
    async fn next(&mut self) -> Result<Option<OutputChunk>>;
}

/// A piece of output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OutputChunk {
    /// Bytes as the command wrote them.
    Data {
        /// Where in the log they stand.
        offset: Offset,
        /// Which stream wrote them.
        stream: Stream,
        /// The bytes.
        bytes: Vec<u8>,
    },
    /// Bytes that are not there any more: `from` up to and without `to`.
    Gap {
        /// The first missing byte.
        from: Offset,
        /// The first byte that is there again.
        to: Offset,
    },
}

/// Which of the command's streams printed something; a terminal has only one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Stream {
    /// Standard output, or the terminal.
    Out,
    /// Standard error of a pipe session.
    Err,
}

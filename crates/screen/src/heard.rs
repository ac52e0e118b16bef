//! Defines what feeding the screen returns besides the picture: signals and replies.

use crate::signal::Signal;

/// What was in a piece of output beside what it painted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[must_use]
pub struct Heard {
    /// Signals, each with the index, within the piece, of the byte that completed it.
    pub signals: Vec<(u64, Signal)>,
    /// The answers to the terminal's questions, in order. Whoever feeds the screen decides whether to send them: not
    /// for output that is replayed, and not while somebody's own terminal answers.
    pub replies: Vec<u8>,
    /// The index of the byte that completed the last question that has an answer.
    pub asked: Option<u64>,
    /// The index of the last byte that was printed and is no blank: what comes after a question may be somebody else's.
    pub printed: Option<u64>,
}

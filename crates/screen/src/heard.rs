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
}

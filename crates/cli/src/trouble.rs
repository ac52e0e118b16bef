//! Defines what a verb returns: an exit code, or the failure to print.

use std::io;

use wharf_model::{Code, Failure};

/// What a verb answers: the exit code, or why it did not work.
pub(crate) type Done = Result<u8, Trouble>;

/// Why a verb ended early.
#[derive(Debug)]
pub(crate) enum Trouble {
    /// An expected failure, which is told.
    Failed(Failure),
    /// Nobody reads our output any more: nothing is left to say.
    Closed,
}

impl From<Failure> for Trouble {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

impl Trouble {
    /// A failed write to standard output. A closed one ends the command quietly.
    pub(crate) fn output(error: &io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Self::Closed,
            _ => Self::Failed(Failure::system("cannot write to standard output", error)),
        }
    }
}

/// A request that is wrong, with the way to do it right.
pub(crate) fn invalid(message: impl Into<String>) -> Failure {
    Failure::new(Code::Invalid, message)
}

//! Limits how much of a tar header is read, so that a name without an end cannot fill memory.

use std::cell::Cell;
use std::io::{self, Read};
use std::rc::Rc;

/// The most that a header with its long names may have.
const MAX_HEADER_LEN: u64 = 1 << 20;

/// How much may be read before somebody asks why. The reader of the format keeps names in memory, however long they are
/// said to be.
#[derive(Clone, Default)]
pub(crate) struct Budget(Rc<Cell<u64>>);

impl Budget {
    /// A header comes.
    pub(crate) fn header(&self) {
        self.0.set(MAX_HEADER_LEN);
    }

    /// The bytes of a file come, which nobody keeps.
    pub(crate) fn data(&self) {
        self.0.set(u64::MAX);
    }
}

/// A reader with a budget.
pub(crate) struct Budgeted<R> {
    pub(crate) reader: R,
    pub(crate) budget: Budget,
}

impl<R: Read> Read for Budgeted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let left = self.budget.0.get();
        if left == 0 {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "a name in the archive has no end"));
        }
        let most = buffer.len().min(usize::try_from(left).unwrap_or(usize::MAX));
        let got = self.reader.read(&mut buffer[..most])?;
        if left != u64::MAX {
            self.budget.0.set(left - got as u64);
        }
        Ok(got)
    }
}

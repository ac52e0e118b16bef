//! Collects a session's output for a case and asserts that no byte is skipped or doubled.

use wharf_model::Offset;

use super::{CASE_TIMEOUT, within};
use crate::{Connection, Output, OutputChunk, Stream};

/// Output as a reader has seen it. It checks on the way that no byte is skipped or doubled.
pub struct Transcript {
    output: Box<dyn Output>,
    at: Option<Offset>,
    passed: usize,
    /// All bytes, in order.
    pub seen: Vec<u8>,
    /// Those of standard error.
    pub errors: Vec<u8>,
    /// Bytes that are not there any more: from, to.
    pub gaps: Vec<(Offset, Offset)>,
    /// Where the first byte stood.
    pub first: Option<Offset>,
}

impl Transcript {
    /// The output of a session from an offset on.
    pub async fn of(connection: &dyn Connection, from: Offset) -> Self {
        let output =
            within(CASE_TIMEOUT, "output", connection.output(from)).await.expect("output can be read");
        Self {
            output,
            at: None,
            passed: 0,
            seen: Vec::new(),
            errors: Vec::new(),
            gaps: Vec::new(),
            first: None,
        }
    }

    /// Reads one more piece; false at the end.
    pub async fn more(&mut self) -> bool {
        match self.output.next().await.unwrap_or_else(|failure| panic!("output broke: {failure:?}\n{self}")) {
            None => return false,
            Some(OutputChunk::Gap { from, to }) => {
                assert!(from < to, "an empty gap at {from}");
                assert!(self.at.is_none_or(|at| at == from), "a gap from {from} after {:?}", self.at);
                self.gaps.push((from, to));
                self.at = Some(to);
            }
            Some(OutputChunk::Data { offset, stream, bytes }) => {
                assert!(!bytes.is_empty(), "an empty piece at {offset}");
                assert!(self.at.is_none_or(|at| at == offset), "a piece at {offset} after {:?}", self.at);
                self.first = self.first.or(Some(offset));
                self.at = Some(offset + bytes.len() as u64);
                if stream == Stream::Err {
                    self.errors.extend_from_slice(&bytes);
                }
                self.seen.extend(bytes);
            }
        }
        true
    }

    /// Reads until this was printed, after what an earlier call has found.
    pub async fn until(&mut self, pattern: impl AsRef<[u8]>) {
        let pattern = pattern.as_ref();
        let wanted = String::from_utf8_lossy(pattern).into_owned();
        let deadline = tokio::time::Instant::now() + CASE_TIMEOUT;
        while !self.pass(pattern) {
            match tokio::time::timeout_at(deadline, self.more()).await.ok() {
                Some(true) => {}
                Some(false) => panic!("{wanted:?} was never printed:\n{self}"),
                None => panic!("{wanted:?} was not printed within {CASE_TIMEOUT:?}:\n{self}"),
            }
        }
    }

    /// Reads until the session has ended and everything was read.
    pub async fn rest(mut self) -> Self {
        let deadline = tokio::time::Instant::now() + CASE_TIMEOUT;
        loop {
            match tokio::time::timeout_at(deadline, self.more()).await.ok() {
                Some(true) => {}
                Some(false) => return self,
                None => panic!("output did not end within {CASE_TIMEOUT:?}:\n{self}"),
            }
        }
    }

    fn pass(&mut self, pattern: &[u8]) -> bool {
        if pattern.is_empty() {
            return true;
        }
        let found = self.seen[self.passed..].windows(pattern.len()).position(|window| window == pattern);
        if let Some(at) = found {
            self.passed += at + pattern.len();
        }
        found.is_some()
    }
}

impl std::fmt::Display for Transcript {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let tail = &self.seen[self.seen.len().saturating_sub(4096)..];
        write!(f, "--- the last of {} bytes seen ---\n{}\n---", self.seen.len(), tail.escape_ascii())
    }
}

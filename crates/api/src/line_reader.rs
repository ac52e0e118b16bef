//! Reads a streamed answer that has one JSON value on each line.

use bytes::BytesMut;
use serde::de::DeserializeOwned;
use wharf_model::{Code, Failure};

use crate::client::{Answer, decode};
use crate::connection::Body;
use crate::{PROBLEM_TRAILER, Problem};

/// An answer of one JSON value a line, as it comes.
#[derive(Debug)]
pub(crate) struct LineReader {
    body: Body,
    /// The part of a line that has come.
    part: BytesMut,
    /// How much of it has no line feed.
    looked: usize,
    /// What to do when it breaks off.
    hint: &'static str,
}

/// The most that one line may have: more than the daemon takes from anybody.
const MAX_LINE_LEN: usize = 64 << 20;

impl LineReader {
    pub(crate) fn new(body: Body, hint: &'static str) -> Self {
        Self { body, part: BytesMut::new(), looked: 0, hint }
    }

    /// The next value; `None` at the end.
    pub(crate) async fn next<T: DeserializeOwned>(&mut self) -> Answer<Option<T>> {
        loop {
            if let Some(at) = self.part[self.looked..].iter().position(|byte| *byte == b'\n') {
                let line = self.part.split_to(self.looked + at + 1);
                self.looked = 0;
                // An empty one only says that the daemon is there.
                if line.trim_ascii().is_empty() {
                    continue;
                }
                return decode(&line).map(Some);
            }
            self.looked = self.part.len();
            if self.looked > MAX_LINE_LEN {
                return Err(Failure::new(Code::Internal, "the daemon sends a line without an end"));
            }
            let Some(frame) = self.body.frame().await else { return Ok(None) };
            let frame = frame.map_err(|error| {
                Failure::new(Code::Unreachable, format!("the daemon's stream broke off: {error}"))
                    .hint(self.hint)
            })?;
            match frame.into_data() {
                Ok(bytes) => self.part.extend_from_slice(&bytes),
                Err(frame) => {
                    let trailers = frame.into_trailers().unwrap_or_default();
                    if let Some(problem) = trailers.get(PROBLEM_TRAILER) {
                        return Err(decode::<Problem>(problem.as_bytes())?.into());
                    }
                }
            }
        }
    }
}

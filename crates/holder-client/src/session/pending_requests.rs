//! What was asked of a holder and not answered yet, and the frames that are not sent yet.

use std::collections::HashMap;
use std::io;
use std::time::{Duration, Instant};

use tokio::net::UnixStream;
use tokio::sync::oneshot;
use wharf_holder::frame::{self, Kind};
use wharf_model::{Code, Failure};

/// The most bytes that wait to be sent: a holder that reads nothing is asked nothing more.
const MAX_UNSENT_LEN: usize = 8 << 20;

/// The answer to a request.
pub(super) type Reply = Result<Vec<u8>, Failure>;

/// Whoever waits for an answer hears it here.
pub(super) type Waiter = oneshot::Sender<Reply>;

/// The requests of one connection.
#[derive(Default)]
pub(super) struct PendingRequests {
    unsent: Vec<u8>,
    requests: HashMap<u32, Request>,
    /// No holder and none to come: nothing can be asked any more.
    closed: bool,
    /// When the holder last said anything.
    heard: Option<Instant>,
}

/// A request that waits for its answer.
struct Request {
    waiter: Waiter,
    /// The frame, where the next holder is to be asked the same: an end that was asked for is still wanted.
    repeated: Option<Vec<u8>>,
}

impl PendingRequests {
    /// Has a request sent. None where nothing can be asked any more.
    pub(super) fn add(
        &mut self,
        kind: Kind,
        seq: u32,
        payload: &[u8],
    ) -> Option<Result<oneshot::Receiver<Reply>, Failure>> {
        if self.closed {
            return None;
        }
        let frame = frame::encode(kind, seq, payload);
        if self.unsent.len() + frame.len() > MAX_UNSENT_LEN {
            return Some(Err(Failure::new(Code::Busy, "the holder does not read what it is asked")));
        }
        self.unsent.extend_from_slice(&frame);
        let (waiter, answer) = oneshot::channel();
        self.requests.insert(seq, Request { waiter, repeated: (kind == Kind::Stop).then_some(frame) });
        Some(Ok(answer))
    }

    /// Takes a request out, answered or given up: whoever waits for it, where somebody does.
    pub(super) fn take(&mut self, seq: u32) -> Option<Waiter> {
        self.requests.remove(&seq).map(|request| request.waiter)
    }

    /// Sends what the connection takes now.
    pub(super) fn flush(&mut self, stream: &UnixStream) -> io::Result<()> {
        while !self.unsent.is_empty() {
            match stream.try_write(&self.unsent) {
                Ok(n) if n == self.unsent.len() => self.unsent = Vec::new(),
                Ok(n) => drop(self.unsent.drain(..n)),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Whether something waits to be sent.
    pub(super) fn has_unsent(&self) -> bool {
        !self.unsent.is_empty()
    }

    /// The holder said something.
    pub(super) fn note_heard(&mut self) {
        self.heard = Some(Instant::now());
    }

    /// Whether the holder said something lately.
    pub(super) fn was_heard_within(&self, time: Duration) -> bool {
        self.heard.is_some_and(|heard| heard.elapsed() < time)
    }

    /// The holder is gone. Of what was on its way nobody knows how far it came: only an end is asked for again. Returns who
    /// waits for the rest.
    pub(super) fn interrupt(&mut self) -> Vec<Waiter> {
        let (repeated, lost): (HashMap<_, _>, HashMap<_, _>) =
            self.requests.drain().partition(|(_, request)| request.repeated.is_some());
        self.unsent =
            repeated.values().filter_map(|request| request.repeated.as_deref()).flatten().copied().collect();
        self.requests = repeated;
        lost.into_values().map(|request| request.waiter).collect()
    }

    /// Nothing can be asked any more. Returns who waits for an answer.
    pub(super) fn close(&mut self) -> Vec<Waiter> {
        self.closed = true;
        self.unsent = Vec::new();
        self.requests.drain().map(|(_, request)| request.waiter).collect()
    }
}

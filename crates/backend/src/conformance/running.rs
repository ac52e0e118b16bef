//! Wraps a session that a case started: types at it, stops it, and reads its output.

use std::sync::Arc;
use std::time::Duration;

use wharf_model::{Code, ExitRecord, Offset, Reason, Ticket};

use super::{CASE_TIMEOUT, Transcript, within};
use crate::{Connection, Result, Stop};

/// A session that a case started.
pub struct Running {
    /// Its ticket.
    pub ticket: Ticket,
    /// The connection to it.
    pub connection: Arc<dyn Connection>,
    /// The mark that its processes carry.
    pub token: String,
}

/// A stop as a user would ask for it.
pub(super) fn stop(grace: Duration) -> Stop {
    let reason = if grace.is_zero() { Reason::Killed } else { Reason::Stopped };
    Stop { grace, reason, by: "conformance".to_owned() }
}

impl Running {
    /// The end, which must come.
    pub async fn ended(&self) -> ExitRecord {
        within(CASE_TIMEOUT, "the end", self.connection.wait()).await.expect("the end is known")
    }

    /// Types something that must go in.
    pub async fn type_in(&self, bytes: impl AsRef<[u8]>) {
        self.connection.write(bytes.as_ref(), CASE_TIMEOUT).await.expect("input goes in");
    }

    /// Stops it, in grace and a second.
    pub async fn stop(&self, grace: Duration) -> ExitRecord {
        let time = grace + super::ANSWER_TIMEOUT;
        within(time, "a stop", self.connection.stop(stop(grace))).await.expect("a stop succeeds")
    }

    /// Its output from an offset on, as it comes.
    pub async fn transcript(&self, from: u64) -> Transcript {
        Transcript::of(&*self.connection, Offset(from)).await
    }

    /// Its output from an offset to the end, which must come.
    pub async fn rest(&self, from: u64) -> Vec<u8> {
        self.transcript(from).await.rest().await.seen
    }

    /// All its output, with the returns taken out that a terminal puts in.
    pub async fn lines(&self) -> String {
        String::from_utf8_lossy(&self.rest(0).await).replace("\r\n", "\n")
    }
}

/// Asserts that something which the backend does not claim says so.
pub(super) fn absent<T>(what: &str, answer: Result<T>) {
    match answer {
        Ok(_) => panic!("{what} is not claimed, and yet it answers"),
        Err(failure) => assert_eq!(failure.code, Code::Unsupported, "{what} is not claimed: {failure:?}"),
    }
}

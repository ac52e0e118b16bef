//! What a holder says, taken from its frames.

use std::io;

use wharf_holder::frame::{Header, Kind};
use wharf_holder::wire::HolderStatus;
use wharf_model::{ExitRecord, Failure, Offset};

/// What a holder says.
#[derive(Debug)]
pub enum Event {
    /// Output.
    Output {
        /// Where it stands in the log.
        offset: Offset,
        /// Whether it is standard error.
        stderr: bool,
        /// The bytes.
        bytes: Vec<u8>,
    },
    /// Output that is gone.
    Gap {
        /// The first missing byte.
        from: Offset,
        /// The first byte that is there again.
        to: Offset,
    },
    /// A request was done.
    Done {
        /// Which.
        seq: u32,
        /// Its answer.
        answer: Vec<u8>,
    },
    /// A request was refused.
    Refused {
        /// Which.
        seq: u32,
        /// Why.
        failure: Failure,
    },
    /// The session changed.
    News(HolderStatus),
    /// The session ended; nothing follows.
    Exit(ExitRecord),
}

impl Event {
    /// What a frame means; none for one that is not news to a client of this version.
    pub(crate) fn of(header: Header, payload: &[u8]) -> io::Result<Option<Self>> {
        let word = |at: usize| -> io::Result<Offset> {
            let bytes = payload.get(at..at + 8).and_then(|bytes| bytes.first_chunk());
            bytes
                .map(|bytes| Offset(u64::from_le_bytes(*bytes)))
                .ok_or_else(|| io::ErrorKind::InvalidData.into())
        };
        Ok(Some(match Kind::known(header.kind) {
            Some(Kind::Output) => {
                let bytes = payload.get(9..).unwrap_or_default().to_vec();
                Self::Output { offset: word(0)?, stderr: payload.get(8) == Some(&1), bytes }
            }
            Some(Kind::Gap) => Self::Gap { from: word(0)?, to: word(8)? },
            Some(Kind::Ack) => Self::Done { seq: header.seq, answer: payload.to_vec() },
            Some(Kind::Error) => Self::Refused { seq: header.seq, failure: serde_json::from_slice(payload)? },
            Some(Kind::News) => Self::News(serde_json::from_slice(payload)?),
            Some(Kind::Exit) => Self::Exit(serde_json::from_slice(payload)?),
            _ => return Ok(None),
        }))
    }
}

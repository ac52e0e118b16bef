//! Frames: a header of twelve bytes, then a payload. Little-endian throughout.
//!
//! ```text
//! kind: u8 | flags: u8 | 0: u16 | seq: u32 | length: u32 | payload
//! ```
//! A request with `seq` zero wants no answer. A kind that the holder does not know is answered with an
//! error, or ignored when no answer is wanted; a kind that the client does not know is ignored.

use std::io;

/// Bytes of a header.
pub const HEADER_LEN: usize = 12;

/// The longest payload: a spec with two megabytes of environment fits, a hostile length does not.
pub const MAX_PAYLOAD_LEN: usize = 16 << 20;

/// The longest payload of an answer, of output and of news: what a holder sends has a few hundred bytes, or one piece of
/// output.
pub const MAX_ANSWER_LEN: usize = 256 << 10;

/// The longest input in one frame: twice what a holder takes at once.
const MAX_INPUT_LEN: usize = 2 << 20;

/// What a frame is. Requests are below 128, answers and news from 128 on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Kind {
    /// Who the client is, and what it can do: [`crate::wire::Hello`].
    Hello = 1,
    /// Start the session: four [sections], on a fresh holder's first connection alone.
    ///
    /// [sections]: crate::wire::sections
    Start = 2,
    /// Take a session over whose holder died: sections, with its descriptors.
    Resume = 3,
    /// Bytes to type.
    Input = 4,
    /// Forget what is not typed yet of input `seq` = the payload's u32; answers how much was typed.
    Cancel = 5,
    /// End the input of a pipe session.
    CloseInput = 6,
    /// Columns and rows, two u16.
    Resize = 7,
    /// Signal number as i32, then one byte: 1 for the whole tree.
    Signal = 8,
    /// End the session: [`crate::wire::StopRequest`]. Answered when nothing of it is left.
    Stop = 9,
    /// Ask for [`crate::wire::HolderStatus`].
    Status = 10,
    /// Send output from this u64 offset on, and go on with it.
    Read = 11,
    /// Ask for [`crate::wire::PendingInput`].
    Pending = 12,
    /// Ask for duplicates of the descriptors that keep the session alive.
    Duplicates = 13,
    /// Run a further command: sections, with three descriptors.
    Exec = 14,
    /// Start the daemon outside the session's tree: sections, with one descriptor for readiness.
    Daemon = 15,
    /// Ask for [`crate::wire::ResourceUsage`].
    Usage = 16,
    /// Ask for the terminal itself, to type past the holder: answered with its descriptor.
    Borrow = 17,
    /// Something was typed past the holder: when, as milliseconds in a u64.
    Typed = 18,
    /// The terminal comes back: when something was last typed that was not told yet, as a u64, or zero.
    Return = 19,

    /// The holder's [`crate::wire::Hello`].
    Welcome = 128,
    /// Done. The payload depends on the request.
    Ack = 129,
    /// Not done: [`wharf_model::Failure`].
    Error = 130,
    /// Output: offset u64, stream u8 (0 output, 1 error), bytes.
    Output = 131,
    /// Output that is gone: from u64 to u64.
    Gap = 132,
    /// The session ended: [`wharf_model::ExitRecord`]. The last frame.
    Exit = 133,
    /// The number of attached terminals, the size or the time of input changed: [`crate::wire::HolderStatus`].
    News = 134,
    /// The terminal is wanted back: somebody else has something to type.
    Recall = 135,
}

impl Kind {
    /// The kind of a byte, if this version knows it.
    pub fn known(byte: u8) -> Option<Self> {
        use Kind::{
            Ack, Borrow, Cancel, CloseInput, Daemon, Duplicates, Error, Exec, Exit, Gap, Hello, Input, News,
            Output, Pending, Read, Recall, Resize, Resume, Return, Signal, Start, Status, Stop, Typed, Usage,
            Welcome,
        };
        const ALL: [Kind; 27] = [
            Hello, Start, Resume, Input, Cancel, CloseInput, Resize, Signal, Stop, Status, Read, Pending,
            Duplicates, Exec, Daemon, Usage, Borrow, Typed, Return, Welcome, Ack, Error, Output, Gap, Exit,
            News, Recall,
        ];
        ALL.into_iter().find(|kind| *kind as u8 == byte)
    }
}

/// The longest payload of a kind, by its byte. What a version does not know is short.
fn max_len(kind: u8) -> usize {
    match Kind::known(kind) {
        Some(Kind::Start | Kind::Resume | Kind::Exec | Kind::Daemon) => MAX_PAYLOAD_LEN,
        Some(Kind::Input) => MAX_INPUT_LEN,
        _ => MAX_ANSWER_LEN,
    }
}

/// A header as it came; the kind may be one that this version does not know.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// The kind's byte.
    pub kind: u8,
    /// Ties an answer to its request.
    pub seq: u32,
    /// Bytes of payload.
    pub length: u32,
}

impl Header {
    /// A header for a payload of `length` bytes.
    pub fn new(kind: Kind, seq: u32, length: usize) -> Self {
        Self { kind: kind as u8, seq, length: length as u32 }
    }

    /// As bytes.
    pub fn encode(self) -> [u8; HEADER_LEN] {
        let mut bytes = [0; HEADER_LEN];
        bytes[0] = self.kind;
        bytes[4..8].copy_from_slice(&self.seq.to_le_bytes());
        bytes[8..].copy_from_slice(&self.length.to_le_bytes());
        bytes
    }

    /// From bytes. A length that no peer of ours sends is an error, and the connection is done for.
    pub fn decode(bytes: &[u8; HEADER_LEN]) -> io::Result<Self> {
        let word = |at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        let header = Self { kind: bytes[0], seq: word(4), length: word(8) };
        let most = max_len(header.kind);
        if header.length as usize > most {
            let what = format!("a frame of kind {} is longer than {most} bytes", header.kind);
            return Err(io::Error::new(io::ErrorKind::InvalidData, what));
        }
        Ok(header)
    }
}

/// A whole frame as bytes.
pub fn encode(kind: Kind, seq: u32, payload: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(HEADER_LEN + payload.len());
    bytes.extend_from_slice(&Header::new(kind, seq, payload.len()).encode());
    bytes.extend_from_slice(payload);
    bytes
}

/// Takes whole frames out of bytes that arrive in any pieces.
#[derive(Debug, Default)]
pub struct Decoder {
    bytes: Vec<u8>,
    /// Where the next frame starts: frames are given out without moving the rest each time.
    at: usize,
    /// Whether only a holder's side is heard, which sends nothing long.
    answers_only: bool,
}

impl Decoder {
    /// For what a holder says: a frame that is longer than an answer is an error, of whatever kind.
    pub fn of_answers() -> Self {
        Self { answers_only: true, ..Self::default() }
    }

    /// Adds bytes as they came.
    pub fn push(&mut self, bytes: &[u8]) {
        if self.at == self.bytes.len() {
            self.bytes.clear();
            self.at = 0;
        } else if self.at > 64 << 10 {
            self.bytes.drain(..self.at);
            self.at = 0;
        }
        self.bytes.extend_from_slice(bytes);
    }

    /// The next whole frame, if it is there.
    #[expect(clippy::should_implement_trait, reason = "the frame borrows from the decoder: not an iterator")]
    pub fn next(&mut self) -> io::Result<Option<(Header, &[u8])>> {
        let rest = &self.bytes[self.at..];
        let Some(head) = rest.first_chunk::<HEADER_LEN>() else { return Ok(None) };
        let header = Header::decode(head)?;
        if self.answers_only && header.length as usize > MAX_ANSWER_LEN {
            return Err(io::Error::new(
                io::ErrorKind::InvalidData,
                "a holder's frame is longer than an answer",
            ));
        }
        let whole = HEADER_LEN + header.length as usize;
        if rest.len() < whole {
            return Ok(None);
        }
        let start = self.at + HEADER_LEN;
        self.at += whole;
        Ok(Some((header, &self.bytes[start..self.at])))
    }

    /// How many bytes the next frame lacks, as far as can be told: its header first, then its payload.
    pub fn missing(&self) -> usize {
        let rest = &self.bytes[self.at..];
        let head = rest.first_chunk::<HEADER_LEN>().and_then(|head| Header::decode(head).ok());
        head.map_or(HEADER_LEN, |header| HEADER_LEN + header.length as usize).saturating_sub(rest.len())
    }

    /// Gives the memory back where nothing waits in it.
    pub fn rest(&mut self) {
        if self.at == self.bytes.len() {
            self.bytes = Vec::new();
            self.at = 0;
        }
    }
}

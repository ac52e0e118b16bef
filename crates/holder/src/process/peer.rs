//! A connection: frames in, answers and output out. It never makes the session wait.

use std::io::{self, IoSlice};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;

use wharf_log::{Chunk, Reader, Stream, Streams};
use wharf_model::{Failure, Home, Offset};

use super::caller_rights::CallerRights;
use crate::frame::{Decoder, HEADER_LEN, Header, Kind};
use crate::linux;
use crate::linux::events::Interest;

/// Output in one frame at most. Less than a socket buffer, so that a frame most often goes in one call.
const MAX_OUTPUT_LEN: usize = 32 << 10;
/// Answers that a peer lets pile up before it is taken for dead.
const MAX_QUEUED_ANSWERS_LEN: usize = 256 << 10;
/// Frames that one peer is sent before it is the others' turn.
const MAX_FRAMES_PER_TURN: usize = 32;
/// Descriptors that a peer may have passed and not used.
const MAX_PASSED_FDS: usize = 8;
/// What stands before the bytes in a frame of output.
const OUTPUT_HEADER_LEN: usize = HEADER_LEN + 9;
/// What is read of a peer at first, and at once where there is more than that.
const FIRST_READ_LEN: usize = 2 << 10;
const MAX_READ_LEN: usize = 64 << 10;
/// Up to this, a frame of output is copied together: one call with one piece costs less than one with two.
const MAX_COPIED_LEN: usize = 512;

/// What a peer is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    /// A program: it hears the news.
    Program,
    /// A terminal.
    Attach,
    /// A terminal that may not type.
    Watch,
}

/// One connection.
pub(super) struct Peer {
    pub(super) id: u64,
    pub(super) role: Role,
    /// What it may ask for.
    pub(super) rights: CallerRights,
    pub(super) interest: Interest,
    socket: UnixStream,
    frames: Decoder,
    /// Descriptors that came and belong to the next frame that wants some.
    pub(super) passed: Vec<OwnedFd>,
    /// Bytes on their way: answers, and the rest of a frame that did not go at once.
    out: Vec<u8>,
    sent: usize,
    /// How far it has been sent output; none while it reads none.
    position: Option<Offset>,
    /// How it catches up while it is behind.
    behind: Option<(Reader, Streams)>,
    /// The exit frame, to follow the last output.
    last: Option<Vec<u8>>,
    /// It could have been sent more, had it not been the others' turn.
    hungry: bool,
}

impl Peer {
    pub(super) fn new(id: u64, socket: UnixStream, rights: CallerRights) -> io::Result<Self> {
        socket.set_nonblocking(true)?;
        Ok(Self {
            id,
            role: Role::Program,
            rights,
            interest: Interest::READ,
            socket,
            frames: Decoder::default(),
            passed: Vec::new(),
            out: Vec::new(),
            sent: 0,
            position: None,
            behind: None,
            last: None,
            hungry: false,
        })
    }

    /// Tells one that is not taken in why. It is the answer to its greeting, which is what everybody says first.
    pub(super) fn turn_away(socket: &UnixStream, why: &Failure) {
        const GREETING_SEQ: u32 = 1;
        let json = serde_json::to_vec(why).unwrap_or_default();
        let head = Header::new(Kind::Error, GREETING_SEQ, json.len()).encode();
        // It has an empty buffer, or is no caller of ours.
        let _ = socket.set_nonblocking(true);
        let _ = linux::send(socket.as_fd(), &[IoSlice::new(&head), IoSlice::new(&json)], &[]);
    }

    pub(super) fn fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    /// Reads what came. False once the peer is gone.
    pub(super) fn receive(&mut self) -> bool {
        // On the stack and small: an idle peer costs no buffer, and a key that is typed touches one page.
        let mut bytes = [0_u8; FIRST_READ_LEN];
        match self.receive_into(&mut bytes) {
            // There is more, a paste say: it comes in larger pieces.
            // If that was all of one that has gone, the next look tells: what it said comes first.
            Some(FIRST_READ_LEN) => {
                self.receive_into(&mut vec![0; MAX_READ_LEN]);
                true
            }
            got => got.is_some(),
        }
    }

    /// Reads what came, and how much. None once the peer is gone.
    fn receive_into(&mut self, bytes: &mut [u8]) -> Option<usize> {
        match linux::receive(&self.socket, bytes, &mut self.passed) {
            Ok(0) => None,
            Ok(n) => {
                self.passed.truncate(MAX_PASSED_FDS);
                self.frames.push(&bytes[..n]);
                Some(n)
            }
            Err(error) => (error.kind() == io::ErrorKind::WouldBlock).then_some(0),
        }
    }

    /// The next whole frame: its header and a copy of its payload. An error means that it speaks nonsense.
    pub(super) fn next(&mut self) -> io::Result<Option<(Header, Vec<u8>)>> {
        if let Some((header, payload)) = self.frames.next()? {
            return Ok(Some((header, payload.to_vec())));
        }
        self.frames.rest();
        Ok(None)
    }

    /// Sends a frame as soon as it can. False when the peer lets too much pile up.
    pub(super) fn answer(&mut self, kind: Kind, seq: u32, payload: &[u8]) -> bool {
        self.out.extend_from_slice(&Header::new(kind, seq, payload.len()).encode());
        self.out.extend_from_slice(payload);
        self.out.len() - self.sent <= MAX_QUEUED_ANSWERS_LEN
    }

    /// Sends a frame with descriptors. What is on its way goes first, so that they arrive with their frame.
    pub(super) fn answer_with(
        &mut self,
        kind: Kind,
        seq: u32,
        payload: &[u8],
        descriptors: &[BorrowedFd<'_>],
    ) -> io::Result<()> {
        self.socket.set_nonblocking(false)?;
        self.socket.set_write_timeout(Some(std::time::Duration::from_millis(500)))?;
        let header = Header::new(kind, seq, payload.len()).encode();
        let before = self.out.split_off(self.sent);
        (self.out, self.sent) = (Vec::new(), 0);
        let bytes = [before.as_slice(), &header, payload].concat();
        let went = linux::send(self.socket.as_fd(), &[IoSlice::new(&bytes)], descriptors)?;
        self.out.extend_from_slice(&bytes[went..]);
        self.socket.set_nonblocking(true)
    }

    /// From now on it is sent output, from an offset on.
    pub(super) fn read_from(&mut self, from: Offset) {
        self.position = Some(from);
        self.behind = None;
    }

    /// Whether it is sent output.
    pub(super) fn reads(&self) -> bool {
        self.position.is_some()
    }

    /// The session is over: this is the last frame, after all output.
    pub(super) fn finish(&mut self, exit: Vec<u8>) {
        self.last = Some(exit);
    }

    /// Whether everything has been sent.
    pub(super) fn is_done(&self) -> bool {
        self.last.is_none() && self.sent == self.out.len()
    }

    /// Sends fresh output that stands at `at` to a peer that has all before it. Others catch up in [`Peer::flush`].
    pub(super) fn offer(&mut self, at: Offset, stream: Stream, bytes: &[u8]) {
        let current = self.position == Some(at) && self.out.is_empty() && self.behind.is_none();
        if current && self.send_output(at, stream, bytes).is_ok() {
            self.position = Some(at + bytes.len() as u64);
        }
    }

    /// Sends what it can. False once the peer is gone.
    pub(super) fn flush(&mut self, home: &Path, end: Offset, scratch: &mut Vec<u8>) -> bool {
        self.hungry = false;
        for turn in 0.. {
            while self.sent < self.out.len() {
                match linux::send_bytes(self.socket.as_fd(), &self.out[self.sent..]) {
                    Ok(n) => self.sent += n,
                    Err(error) => return error.kind() == io::ErrorKind::WouldBlock,
                }
            }
            (self.out, self.sent) = (Vec::new(), 0);
            match self.position {
                // Others wait for their turn, and a stop does.
                Some(at) if at < end && turn >= MAX_FRAMES_PER_TURN => {
                    self.hungry = true;
                    return true;
                }
                Some(at) if at < end => match self.catch_up(home, at, scratch) {
                    Ok(true) => {}
                    // What is counted is not all there: the disk is full.
                    Ok(false) if self.last.is_none() => return true,
                    Ok(false) => self.out = self.last.take().unwrap_or_default(),
                    Err(_) => return false,
                },
                _ => match self.last.take() {
                    Some(exit) => self.out = exit,
                    None => return true,
                },
            }
        }
        true
    }

    /// Whether it is to be told when its socket takes more.
    pub(super) fn waits(&self) -> bool {
        self.hungry || self.sent < self.out.len()
    }

    /// Sends the next piece of the log. False where there is none.
    fn catch_up(&mut self, home: &Path, at: Offset, scratch: &mut Vec<u8>) -> io::Result<bool> {
        let (mut reader, mut streams) = match self.behind.take() {
            Some(place) => place,
            None => (Reader::open(&home.join(Home::LOG), at)?, Streams::new()),
        };
        scratch.resize(MAX_OUTPUT_LEN, 0);
        match reader.read(scratch)? {
            Chunk::Data { offset, len } => {
                for (stream, range) in streams.split(&reader, offset, len)? {
                    let place = offset + range.start as u64;
                    self.send_output(place, stream, &scratch[range])?;
                }
                self.position = Some(offset + len as u64);
                self.behind = Some((reader, streams));
            }
            Chunk::Gap { from, to } => {
                let mut payload = [0; 16];
                payload[..8].copy_from_slice(&from.0.to_le_bytes());
                payload[8..].copy_from_slice(&to.0.to_le_bytes());
                self.answer(Kind::Gap, 0, &payload);
                self.position = Some(to);
                self.behind = Some((reader, streams));
            }
            // It has caught up: what comes next is offered to it fresh.
            Chunk::End => return Ok(false),
        }
        Ok(true)
    }

    fn send_frame(&self, head: &[u8; OUTPUT_HEADER_LEN], bytes: &[u8]) -> io::Result<usize> {
        if bytes.len() > MAX_COPIED_LEN {
            return linux::send(self.socket.as_fd(), &[IoSlice::new(head), IoSlice::new(bytes)], &[]);
        }
        let mut whole = [0; OUTPUT_HEADER_LEN + MAX_COPIED_LEN];
        whole[..OUTPUT_HEADER_LEN].copy_from_slice(head);
        whole[OUTPUT_HEADER_LEN..OUTPUT_HEADER_LEN + bytes.len()].copy_from_slice(bytes);
        linux::send_bytes(self.socket.as_fd(), &whole[..OUTPUT_HEADER_LEN + bytes.len()])
    }

    /// Sends one frame of output; what does not go at once waits in `out`.
    fn send_output(&mut self, at: Offset, stream: Stream, bytes: &[u8]) -> io::Result<()> {
        for (piece, bytes) in bytes.chunks(MAX_OUTPUT_LEN).enumerate() {
            let mut head = [0; OUTPUT_HEADER_LEN];
            head[..HEADER_LEN].copy_from_slice(&Header::new(Kind::Output, 0, bytes.len() + 9).encode());
            let place = at.0 + (piece * MAX_OUTPUT_LEN) as u64;
            head[HEADER_LEN..HEADER_LEN + 8].copy_from_slice(&place.to_le_bytes());
            head[HEADER_LEN + 8] = u8::from(stream == Stream::Stderr);
            let went = if self.out.is_empty() {
                match self.send_frame(&head, bytes) {
                    Ok(n) => n,
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => 0,
                    Err(error) => return Err(error),
                }
            } else {
                0
            };
            if went < head.len() {
                self.out.extend_from_slice(&head[went..]);
            }
            self.out.extend_from_slice(&bytes[went.saturating_sub(head.len())..]);
        }
        Ok(())
    }
}

//! Input that waits for the terminal: one queue a session, so that two writers never mix.

use std::collections::VecDeque;
use std::io;
use std::os::fd::BorrowedFd;

use crate::line::Line;

/// The most that may wait: what would exceed it is refused whole, and nothing of it is typed.
pub(super) const MAX_QUEUED_INPUT_LEN: usize = 1 << 20;

/// The most frames that may wait, however short.
const MAX_QUEUED_FRAMES: usize = 4_096;

/// Input of one frame.
struct Item {
    peer: u64,
    seq: u32,
    bytes: Vec<u8>,
    written: usize,
}

/// All input that is not in the terminal yet.
#[derive(Default)]
pub(super) struct Input {
    items: VecDeque<Item>,
    waiting: usize,
}

/// An input that is in the terminal: whom to tell.
pub(super) type Done = (u64, u32);

impl Input {
    /// Takes input in, unless too much waits already.
    pub(super) fn push(&mut self, peer: u64, seq: u32, bytes: &[u8]) -> bool {
        if self.waiting + bytes.len() > MAX_QUEUED_INPUT_LEN || self.items.len() >= MAX_QUEUED_FRAMES {
            return false;
        }
        self.waiting += bytes.len();
        self.items.push_back(Item { peer, seq, bytes: bytes.to_vec(), written: 0 });
        true
    }

    /// Bytes that wait.
    pub(super) fn waiting(&self) -> usize {
        self.waiting
    }

    /// Writes what the terminal takes now, and no more than there is room for. `canonical`: whether it is in line mode. An error means that nobody will ever
    /// read.
    pub(super) fn write(
        &mut self,
        sink: BorrowedFd<'_>,
        mut room: usize,
        (line, canonical): (&mut Line, bool),
        done: &mut Vec<Done>,
    ) -> io::Result<()> {
        while let Some(item) = self.items.front_mut() {
            while item.written < item.bytes.len() {
                let piece = &item.bytes[item.written..];
                if room == 0 {
                    return Ok(());
                }
                match rustix::io::write(sink, &piece[..piece.len().min(room)]) {
                    Ok(n @ 1..) => {
                        line.typed(&piece[..n], canonical);
                        room -= n;
                        item.written += n;
                        self.waiting -= n;
                    }
                    Err(rustix::io::Errno::INTR) => {}
                    Ok(0) | Err(rustix::io::Errno::AGAIN) => return Ok(()),
                    Err(error) => return Err(error.into()),
                }
            }
            done.push((item.peer, item.seq));
            self.items.pop_front();
        }
        self.items = VecDeque::new();
        Ok(())
    }

    /// Forgets what is not written of one input. Returns how much was, or none where there is no such input.
    pub(super) fn cancel(&mut self, peer: u64, seq: u32) -> Option<usize> {
        let at = self.items.iter().position(|item| (item.peer, item.seq) == (peer, seq))?;
        let item = self.items.remove(at)?;
        self.waiting -= item.bytes.len() - item.written;
        Some(item.written)
    }

    /// Forgets everything of a peer that is gone.
    pub(super) fn forget(&mut self, peer: u64) {
        self.items.retain(|item| item.peer != peer);
        self.waiting = self.items.iter().map(|item| item.bytes.len() - item.written).sum();
    }

    /// Forgets everything: whom to tell.
    pub(super) fn clear(&mut self) -> Vec<Done> {
        self.waiting = 0;
        self.items.drain(..).map(|item| (item.peer, item.seq)).collect()
    }
}

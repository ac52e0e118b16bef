//! Bytes between a thread and a task.

use std::io::{self, Read, Write};

use tokio::sync::mpsc;

/// How large a piece is.
const CHUNK_LEN: usize = 64 << 10;
/// How many pieces wait for whoever takes them.
const MAX_QUEUED_CHUNKS: usize = 4;

/// Pieces of bytes for a thread, and where a task puts them; or the other way about.
pub fn pipe() -> (mpsc::Sender<Vec<u8>>, mpsc::Receiver<Vec<u8>>) {
    mpsc::channel(MAX_QUEUED_CHUNKS)
}

/// Reads what a task sends, on a thread that may wait.
#[derive(Debug)]
pub struct Feed {
    pieces: mpsc::Receiver<Vec<u8>>,
    piece: Vec<u8>,
    at: usize,
}

impl Feed {
    /// Reads these pieces.
    pub fn new(pieces: mpsc::Receiver<Vec<u8>>) -> Self {
        Self { pieces, piece: Vec::new(), at: 0 }
    }
}

impl Read for Feed {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.at == self.piece.len() {
            let Some(piece) = self.pieces.blocking_recv() else { return Ok(0) };
            (self.piece, self.at) = (piece, 0);
        }
        let count = buffer.len().min(self.piece.len() - self.at);
        buffer[..count].copy_from_slice(&self.piece[self.at..self.at + count]);
        self.at += count;
        Ok(count)
    }
}

/// Writes to a task, on a thread that may wait. A task that has left is a broken pipe.
#[derive(Debug)]
pub struct Drain {
    pieces: mpsc::Sender<Vec<u8>>,
    piece: Vec<u8>,
}

impl Drain {
    /// Writes such pieces. Whoever is done calls `flush`.
    pub fn new(pieces: mpsc::Sender<Vec<u8>>) -> Self {
        Self { pieces, piece: Vec::with_capacity(CHUNK_LEN) }
    }
}

impl Write for Drain {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = bytes.len().min(CHUNK_LEN - self.piece.len());
        self.piece.extend_from_slice(&bytes[..count]);
        if self.piece.len() == CHUNK_LEN {
            self.flush()?;
        }
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.piece.is_empty() {
            return Ok(());
        }
        let piece = std::mem::replace(&mut self.piece, Vec::with_capacity(CHUNK_LEN));
        self.pieces.blocking_send(piece).map_err(|_| io::ErrorKind::BrokenPipe.into())
    }
}

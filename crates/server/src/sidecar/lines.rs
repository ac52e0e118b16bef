use std::io;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// A line, or that one was longer than anybody may send.
pub(super) enum Line {
    /// Its bytes, without the end.
    Whole(Vec<u8>, Room),
    /// It was passed over.
    TooLong,
}

/// The right to hold a large line. It is given back when the line is done with.
pub(super) struct Room(#[expect(dead_code, reason = "it is held")] Option<OwnedSemaphorePermit>);

/// Reads lines of any length up to a limit, in bounded memory.
pub(super) struct Lines<R> {
    reader: BufReader<R>,
    /// How many large lines all senders together may have in memory.
    large: Arc<Semaphore>,
    most: usize,
}

/// A line beyond this is a large one.
const LARGE: usize = 256 << 10;
/// How long a large line may take to come.
const SLOWEST: Duration = Duration::from_secs(30);

impl<R: AsyncRead + Unpin> Lines<R> {
    pub(super) fn new(reader: R, large: Arc<Semaphore>, most: usize) -> Self {
        Self { reader: BufReader::with_capacity(16 << 10, reader), large, most }
    }

    /// The next line; `None` at the end. The last one needs no line feed.
    pub(super) async fn next(&mut self) -> io::Result<Option<Line>> {
        let mut line = Vec::new();
        if self.take(&mut line, LARGE).await? {
            return Ok(if line.is_empty() { None } else { Some(whole(line, None)) });
        }
        // It is a large one, and goes on when there is room.
        let Ok(room) = Arc::clone(&self.large).acquire_owned().await else { return Ok(None) };
        let rest = tokio::time::timeout(SLOWEST, self.take(&mut line, self.most)).await;
        if rest.map_err(|_| io::Error::from(io::ErrorKind::TimedOut))?? {
            return Ok(Some(whole(line, Some(room))));
        }
        drop((line, room));
        self.skip().await?;
        Ok(Some(Line::TooLong))
    }

    /// Takes bytes up to the end of the line. False where it goes on beyond `most`.
    async fn take(&mut self, line: &mut Vec<u8>, most: usize) -> io::Result<bool> {
        loop {
            let bytes = self.reader.fill_buf().await?;
            if bytes.is_empty() {
                return Ok(true);
            }
            let room = most + 1 - line.len();
            let end = bytes.iter().position(|byte| *byte == b'\n').map(|at| at + 1);
            let count = end.unwrap_or(bytes.len()).min(room);
            line.extend_from_slice(&bytes[..count]);
            self.reader.consume(count);
            if end.is_some_and(|end| end <= count) {
                return Ok(true);
            }
            if line.len() > most {
                return Ok(false);
            }
        }
    }

    /// Passes over the rest of a line.
    async fn skip(&mut self) -> io::Result<()> {
        loop {
            let bytes = self.reader.fill_buf().await?;
            let end = bytes.iter().position(|byte| *byte == b'\n').map(|at| at + 1);
            let count = end.unwrap_or(bytes.len());
            self.reader.consume(count);
            if end.is_some() || count == 0 {
                return Ok(());
            }
        }
    }
}

fn whole(line: Vec<u8>, room: Option<OwnedSemaphorePermit>) -> Line {
    Line::Whole(line, Room(room))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOST: usize = 1 << 20;

    async fn read(bytes: &[u8]) -> Vec<Option<usize>> {
        let mut lines = Lines::new(bytes, Arc::new(Semaphore::new(1)), MOST);
        let mut read = Vec::new();
        while let Some(line) = lines.next().await.unwrap() {
            read.push(match line {
                Line::Whole(line, _) => Some(line.len()),
                Line::TooLong => None,
            });
        }
        read
    }

    #[tokio::test]
    async fn lines_come_whole_and_too_long_ones_are_passed_over() {
        assert_eq!(read(b"ab\n\nc").await, [Some(3), Some(1), Some(1)]);
        assert_eq!(read(b"").await, [None; 0]);
        let line = |length: usize| [vec![b'x'; length], b"\n".to_vec()].concat();
        for length in [LARGE - 1, LARGE, LARGE + 1, MOST - 1] {
            assert_eq!(
                read(&[line(length), line(2)].concat()).await,
                [Some(length + 1), Some(3)],
                "{length}"
            );
        }
        for length in [MOST + 1, 3 * MOST] {
            assert_eq!(
                read(&[line(length), line(2), line(length)].concat()).await,
                [None, Some(3), None],
                "{length}"
            );
        }
        assert_eq!(read(&vec![b'x'; 2 * MOST]).await, [None]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_large_line_that_does_not_come_ends_the_connection() {
        let (mut sender, receiver) = tokio::io::duplex(1 << 20);
        let mut lines = Lines::new(receiver, Arc::new(Semaphore::new(1)), MOST);
        tokio::io::AsyncWriteExt::write_all(&mut sender, &vec![b'x'; LARGE + 10]).await.unwrap();
        let error = lines.next().await.err().unwrap();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    }
}

//! Lines from somebody who is not believed: of any length up to a limit, in bounded memory.

use std::io;
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};

/// A line, or the beginning of one.
pub(super) enum Line {
    /// All of it, without the end.
    Whole(Vec<u8>),
    /// It goes on: [`Lines::rest`] reads the rest once there is room for it.
    Long(Vec<u8>),
}

/// Reads lines.
pub(super) struct Lines<R> {
    reader: BufReader<R>,
    most: usize,
}

/// A line beyond this is a long one.
const LONG_LINE_LEN: usize = 64 << 10;
/// How long a long line may take to come.
const LONG_LINE_TIMEOUT: Duration = Duration::from_secs(10);
/// By how much the room for a line grows at least: memory that is not needed is not taken.
const MIN_GROWTH_LEN: usize = 16 << 10;
/// By which part of its length it grows else: one in this many.
const GROWTH_DIVISOR: usize = 4;
/// How much is passed over at a time.
const SKIP_LEN: usize = 1 << 20;

impl<R: AsyncRead + Unpin> Lines<R> {
    pub(super) fn new(reader: R, most: usize) -> Self {
        Self { reader: BufReader::with_capacity(16 << 10, reader), most }
    }

    /// The next line; `None` at the end. The last one needs no line feed.
    pub(super) async fn next(&mut self) -> io::Result<Option<Line>> {
        let mut line = Vec::new();
        if !self.take(&mut line, LONG_LINE_LEN).await? {
            return Ok(Some(Line::Long(line)));
        }
        Ok(if line.is_empty() { None } else { Some(Line::Whole(line)) })
    }

    /// The whole of a long line. None where it is too long: then [`Lines::skip`] passes over the rest.
    pub(super) async fn rest(&mut self, mut line: Vec<u8>) -> io::Result<Option<Vec<u8>>> {
        let whole = tokio::time::timeout(LONG_LINE_TIMEOUT, self.take(&mut line, self.most)).await;
        let whole = whole.map_err(|_| io::Error::from(io::ErrorKind::TimedOut))??;
        Ok(whole.then_some(line))
    }

    /// Passes over a piece of a line: how much that was, and whether the line is over.
    pub(super) async fn skip(&mut self) -> io::Result<(usize, bool)> {
        let mut skipped = 0;
        while skipped < SKIP_LEN {
            let bytes = self.reader.fill_buf().await?;
            let end = bytes.iter().position(|byte| *byte == b'\n').map(|at| at + 1);
            let count = end.unwrap_or(bytes.len());
            self.reader.consume(count);
            skipped += count;
            if end.is_some() || count == 0 {
                return Ok((skipped, true));
            }
        }
        Ok((skipped, false))
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
            if line.capacity() - line.len() < count {
                line.reserve_exact(count.max(MIN_GROWTH_LEN).max(line.len() / GROWTH_DIVISOR));
            }
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
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAX_LINE_LEN: usize = 1 << 20;

    async fn read(bytes: &[u8]) -> Vec<Option<usize>> {
        let mut lines = Lines::new(bytes, MAX_LINE_LEN);
        let mut read = Vec::new();
        while let Some(line) = lines.next().await.unwrap() {
            let whole = match line {
                Line::Whole(line) => Some(line),
                Line::Long(line) => lines.rest(line).await.unwrap(),
            };
            if whole.is_none() {
                while !lines.skip().await.unwrap().1 {}
            }
            read.push(whole.map(|line| line.len()));
        }
        read
    }

    #[tokio::test]
    async fn lines_come_whole_and_too_long_ones_are_passed_over() {
        assert_eq!(read(b"ab\n\nc").await, [Some(3), Some(1), Some(1)]);
        assert_eq!(read(b"").await, [None; 0]);
        let line = |length: usize| [vec![b'x'; length], b"\n".to_vec()].concat();
        for length in [LONG_LINE_LEN - 1, LONG_LINE_LEN, LONG_LINE_LEN + 1, MAX_LINE_LEN - 1] {
            assert_eq!(
                read(&[line(length), line(2)].concat()).await,
                [Some(length + 1), Some(3)],
                "{length}"
            );
        }
        for length in [MAX_LINE_LEN + 1, 3 * MAX_LINE_LEN] {
            assert_eq!(
                read(&[line(length), line(2), line(length)].concat()).await,
                [None, Some(3), None],
                "{length}"
            );
        }
        assert_eq!(read(&vec![b'x'; 2 * MAX_LINE_LEN]).await, [None]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_long_line_that_does_not_come_ends_the_connection() {
        let (mut sender, receiver) = tokio::io::duplex(1 << 20);
        let mut lines = Lines::new(receiver, MAX_LINE_LEN);
        tokio::io::AsyncWriteExt::write_all(&mut sender, &vec![b'x'; LONG_LINE_LEN + 10]).await.unwrap();
        let Some(Line::Long(line)) = lines.next().await.unwrap() else { panic!("it is long") };
        let error = lines.rest(line).await.err().unwrap();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    }
}

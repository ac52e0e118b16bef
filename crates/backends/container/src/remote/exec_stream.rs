//! The standard streams of a program that an engine runs in a container, over one hijacked connection.

use std::io;

use bytes::{Buf, BytesMut};
use tokio::io::{AsyncReadExt, AsyncWriteExt, ReadHalf, WriteHalf};

use crate::engine::transport::{Stream, Transport};

/// The longest header of an answer, in bytes.
const MAX_HEADER_LEN: usize = 16 << 10;
/// How many bytes are read at once.
const READ_LEN: usize = 64 << 10;

/// What the program prints.
pub(crate) struct ExecOutput {
    stream: ReadHalf<Stream>,
    bytes: BytesMut,
    /// The bytes left of the current chunk, and whether it belongs to standard error.
    piece: (usize, bool),
    /// Whether the program has a terminal: then there is one stream, without chunk headers.
    plain: bool,
}

/// What the program reads.
pub(crate) struct ExecInput {
    stream: WriteHalf<Stream>,
}

/// Starts an exec that the engine has created, and takes its connection over for the program's streams.
pub(crate) async fn open(
    transport: &Transport,
    exec: &str,
    tty: bool,
) -> io::Result<(ExecInput, ExecOutput)> {
    let mut stream = transport.dial().await?;
    let body = format!(r#"{{"Detach":false,"Tty":{tty}}}"#);
    let request = format!(
        "POST /exec/{exec}/start HTTP/1.1\r\nHost: engine\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(request.as_bytes()).await?;
    stream.flush().await?;
    let mut bytes = BytesMut::with_capacity(READ_LEN);
    let end = loop {
        if let Some(at) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            break at;
        }
        if bytes.len() > MAX_HEADER_LEN || stream.read_buf(&mut bytes).await? == 0 {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "the engine's answer is odd"));
        }
    };
    let head = bytes.split_to(end + 4);
    let line = String::from_utf8_lossy(head[..].split(|byte| *byte == b'\r').next().unwrap_or_default())
        .into_owned();
    // Docker answers 101, Podman 200.
    if !matches!(line.split(' ').nth(1), Some("101" | "200")) {
        while bytes.len() < MAX_HEADER_LEN && matches!(stream.read_buf(&mut bytes).await, Ok(1..)) {}
        let why = String::from_utf8_lossy(&bytes).trim().to_owned();
        return Err(io::Error::other(format!("the engine refused a stream: {line}: {why}")));
    }
    let (read, write) = tokio::io::split(stream);
    Ok((ExecInput { stream: write }, ExecOutput { stream: read, bytes, piece: (0, false), plain: tty }))
}

impl ExecInput {
    /// Writes bytes to the program's input.
    pub(crate) async fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.write_all(bytes).await?;
        self.stream.flush().await
    }

    /// Ends the program's input.
    pub(crate) async fn close(&mut self) -> io::Result<()> {
        self.stream.shutdown().await
    }
}

impl ExecOutput {
    /// Skips everything up to and including a mark.
    pub(crate) async fn until(&mut self, mark: &[u8]) -> io::Result<()> {
        loop {
            if let Some(at) = self.bytes.windows(mark.len()).position(|window| window == mark) {
                self.bytes.advance(at + mark.len());
                return Ok(());
            }
            if self.bytes.len() > MAX_HEADER_LEN || self.stream.read_buf(&mut self.bytes).await? == 0 {
                let said = String::from_utf8_lossy(&self.bytes).trim().to_owned();
                return Err(io::Error::new(io::ErrorKind::UnexpectedEof, said));
            }
        }
    }

    /// The next bytes, and whether they come from standard error; none at the end.
    pub(crate) async fn next(&mut self) -> io::Result<Option<(bool, BytesMut)>> {
        loop {
            if self.plain && !self.bytes.is_empty() {
                return Ok(Some((false, self.bytes.split())));
            }
            if !self.plain
                && let Some(piece) = take(&mut self.bytes, &mut self.piece)?
            {
                return Ok(Some(piece));
            }
            self.bytes.reserve(READ_LEN);
            if self.stream.read_buf(&mut self.bytes).await? == 0 {
                return Ok(None);
            }
        }
    }
}

/// Takes the bytes that are here of the current chunk. A chunk's header names its stream and its length.
fn take(bytes: &mut BytesMut, piece: &mut (usize, bool)) -> io::Result<Option<(bool, BytesMut)>> {
    while piece.0 == 0 {
        let Some(head) = bytes.first_chunk::<8>() else { return Ok(None) };
        if head[0] > 2 || head[1..4] != [0, 0, 0] {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "the engine's stream is odd"));
        }
        let [.., a, b, c, d] = *head;
        *piece = (u32::from_be_bytes([a, b, c, d]) as usize, head[0] == 2);
        bytes.advance(8);
    }
    if bytes.is_empty() {
        return Ok(None);
    }
    let taken = bytes.split_to(piece.0.min(bytes.len()));
    piece.0 -= taken.len();
    Ok(Some((piece.1, taken)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_cut_gives_the_same_two_streams() {
        let mut whole = Vec::new();
        for (stream, text) in [(1_u8, "out"), (2, "error"), (1, ""), (1, "more")] {
            whole.extend_from_slice(&[stream, 0, 0, 0]);
            whole.extend_from_slice(&(text.len() as u32).to_be_bytes());
            whole.extend_from_slice(text.as_bytes());
        }
        for size in 1..=whole.len() {
            let (mut bytes, mut piece) = (BytesMut::new(), (0, false));
            let (mut out, mut err) = (Vec::new(), Vec::new());
            for part in whole.chunks(size) {
                bytes.extend_from_slice(part);
                while let Some((error, taken)) = take(&mut bytes, &mut piece).unwrap() {
                    if error { &mut err } else { &mut out }.extend_from_slice(&taken);
                }
            }
            assert_eq!(
                (out.as_slice(), err.as_slice()),
                (&b"outmore"[..], &b"error"[..]),
                "in pieces of {size}"
            );
        }
        let mut nonsense = BytesMut::from(&b"HTTP/1.1 500"[..]);
        assert!(take(&mut nonsense, &mut (0, false)).is_err());
    }
}

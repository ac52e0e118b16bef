//! As much of HTTP/1.1 as the agents use: a request with a body, then one answer, then the end of the connection.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::TcpStream;

/// One request, whole.
pub(super) struct Request {
    pub(super) method: String,
    pub(super) path: String,
    pub(super) body: Vec<u8>,
}

/// A body larger than this is refused.
const MAX_BODY_LEN: u64 = 64 << 20;

/// A header line longer than this is refused.
const MAX_HEADER_LINE_LEN: u64 = 64 << 10;

impl Request {
    /// Reads one request; nothing when the other side has closed.
    pub(super) fn read(stream: &TcpStream) -> io::Result<Option<Self>> {
        let mut reader = BufReader::new(stream);
        let Some(first) = line(&mut reader)? else { return Ok(None) };
        let mut words = first.split_whitespace().map(str::to_owned);
        let (Some(method), Some(path)) = (words.next(), words.next()) else {
            return Err(io::Error::other("no request line"));
        };
        let (mut length, mut chunked, mut waits) = (0_u64, false, false);
        while let Some(header) = line(&mut reader)?
            && !header.is_empty()
        {
            let (name, value) = header.split_once(':').unwrap_or((&header, ""));
            match name.to_ascii_lowercase().as_str() {
                "content-length" => length = value.trim().parse().map_err(io::Error::other)?,
                "transfer-encoding" => chunked = value.to_ascii_lowercase().contains("chunked"),
                "expect" => waits = true,
                _ => {}
            }
        }
        if waits {
            let mut stream = stream;
            stream.write_all(b"HTTP/1.1 100 Continue\r\n\r\n")?;
        }
        let body = if chunked { chunks(&mut reader)? } else { exactly(&mut reader, length)? };
        Ok(Some(Self { method, path, body }))
    }
}

fn line(reader: &mut impl BufRead) -> io::Result<Option<String>> {
    let mut line = Vec::new();
    if reader.by_ref().take(MAX_HEADER_LINE_LEN).read_until(b'\n', &mut line)? == 0 {
        return Ok(None);
    }
    Ok(Some(String::from_utf8_lossy(&line).trim_end().to_owned()))
}

fn exactly(reader: &mut impl Read, length: u64) -> io::Result<Vec<u8>> {
    if length > MAX_BODY_LEN {
        return Err(io::Error::other("a body that is too large"));
    }
    let mut body = Vec::new();
    reader.take(length).read_to_end(&mut body)?;
    Ok(body)
}

fn chunks(reader: &mut impl BufRead) -> io::Result<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let size = line(reader)?.unwrap_or_default();
        let size = u64::from_str_radix(size.split(';').next().unwrap_or_default().trim(), 16);
        let size = size.map_err(io::Error::other)?;
        if size == 0 {
            return Ok(body);
        }
        body.extend(exactly(reader, size)?);
        line(reader)?;
        if body.len() as u64 > MAX_BODY_LEN {
            return Err(io::Error::other("a body that is too large"));
        }
    }
}

/// Answers with a whole body.
pub(super) fn answer(mut stream: &TcpStream, status: &str, kind: &str, body: &str) -> io::Result<()> {
    write!(
        stream,
        "HTTP/1.1 {status}\r\ncontent-type: {kind}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
        body.len()
    )
}

/// Begins an answer of server-sent events, which the end of the connection ends.
pub(super) fn begin_events(mut stream: &TcpStream) -> io::Result<()> {
    stream.write_all(
        b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncache-control: no-cache\r\nconnection: close\r\n\r\n",
    )
}

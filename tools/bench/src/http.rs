//! Speaks minimal HTTP/1.1 to the daemon over a kept connection.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, bail};

/// The least of HTTP/1.1 that a kept connection to the daemon needs.
pub(crate) struct Http {
    socket: BufReader<UnixStream>,
}

impl Http {
    pub(crate) fn connect(path: &Path) -> Result<Self> {
        let socket = UnixStream::connect(path).with_context(|| path.display().to_string())?;
        socket.set_read_timeout(Some(Duration::from_secs(10)))?;
        Ok(Self { socket: BufReader::new(socket) })
    }

    pub(crate) fn post(&mut self, path: &str, media_type: &str, body: &[u8]) -> Result<()> {
        let mut request = format!(
            "POST {path} HTTP/1.1\r\nHost: wharf\r\nContent-Type: {media_type}\r\nContent-Length: {}\r\n\r\n",
            body.len()
        )
        .into_bytes();
        request.extend_from_slice(body);
        Ok(self.socket.get_mut().write_all(&request)?)
    }

    /// Takes one answer. Anything but success is an error with what the daemon said.
    pub(crate) fn answer(&mut self) -> Result<Vec<u8>> {
        let mut status = String::new();
        self.socket.read_line(&mut status)?;
        let mut length = 0;
        loop {
            let mut line = String::new();
            self.socket.read_line(&mut line)?;
            let line = line.trim_end().to_ascii_lowercase();
            if line.is_empty() {
                break;
            }
            if let Some(value) = line.strip_prefix("content-length:") {
                length = value.trim().parse().context("a length")?;
            }
        }
        let mut body = vec![0; length];
        self.socket.read_exact(&mut body)?;
        if status.split(' ').nth(1).is_none_or(|code| !code.starts_with('2')) {
            bail!("{}: {}", status.trim_end(), String::from_utf8_lossy(&body));
        }
        Ok(body)
    }
}

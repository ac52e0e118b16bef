//! Sends server-sent events to an agent, and notices when it hangs up.

use std::io::{self, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde_json::Value;

/// Server-sent events on their way to an agent.
pub(super) struct Events<'a> {
    pub(super) to: &'a TcpStream,
    pub(super) ended: &'a AtomicBool,
}

impl Events<'_> {
    /// An event with its name, which is also in its data as `type`.
    pub(super) fn named(&mut self, data: &Value) -> io::Result<()> {
        let name = data["type"].as_str().unwrap_or_default();
        let mut to = self.to;
        to.write_all(format!("event: {name}\ndata: {data}\n\n").as_bytes())
    }

    /// An event without a name.
    pub(super) fn data(&mut self, data: &str) -> io::Result<()> {
        let mut to = self.to;
        to.write_all(format!("data: {data}\n\n").as_bytes())
    }

    /// Waits, unless the service ends or the agent hangs up; a turn that was interrupted is an error.
    pub(super) fn pause(&mut self, pause: Duration) -> io::Result<()> {
        let until = Instant::now() + pause;
        let mut scrap = [0];
        self.to.set_read_timeout(Some(Duration::from_millis(20)))?;
        while Instant::now() < until {
            if self.ended.load(Ordering::Relaxed) {
                return Err(io::Error::other("the service ends"));
            }
            match io::Read::read(&mut { self.to }, &mut scrap) {
                Ok(0) => return Err(io::ErrorKind::ConnectionAborted.into()),
                Ok(_) => {}
                Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

//! Input, through as many connections as it takes.

use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// The connection that input goes to now.
#[derive(Default)]
pub(super) struct Line {
    now: Mutex<Now>,
    changed: Condvar,
}

#[derive(Default)]
struct Now {
    stream: Option<Arc<UnixStream>>,
    /// How many there were, this one included.
    count: u64,
}

impl Line {
    fn now(&self) -> MutexGuard<'_, Now> {
        self.now.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Input goes here from now on.
    pub(super) fn connect(&self, stream: UnixStream) {
        let mut now = self.now();
        now.stream = Some(Arc::new(stream));
        now.count += 1;
        self.changed.notify_all();
    }

    /// Input waits for the next connection.
    pub(super) fn disconnect(&self) {
        self.now().stream = None;
    }

    /// Has nothing more come from the engine: what is here already is read to its end.
    pub(super) fn hang_up(&self) {
        if let Some(stream) = &self.now().stream {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }

    /// A connection beyond the ones up to a number, as soon as there is one.
    fn after(&self, count: u64) -> (Arc<UnixStream>, u64) {
        let mut now = self.now();
        loop {
            match &now.stream {
                Some(stream) if now.count > count => return (Arc::clone(stream), now.count),
                _ => now = self.changed.wait(now).unwrap_or_else(PoisonError::into_inner),
            }
        }
    }

    /// Passes everything on until there is no more. What a broken connection did not take goes into the next.
    pub(super) fn carry(&self, mut from: impl Read) -> io::Result<()> {
        let (mut buffer, mut broken) = ([0_u8; 16 << 10], 0);
        loop {
            let n = match from.read(&mut buffer) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                read => read?,
            };
            let mut rest = &buffer[..n];
            while !rest.is_empty() {
                let (stream, count) = self.after(broken);
                match (&*stream).write(rest) {
                    Ok(n @ 1..) => rest = &rest[n..],
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    _ => broken = count,
                }
            }
            if n == 0 {
                let (stream, _) = self.after(broken);
                return stream.shutdown(Shutdown::Write);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_one_connection_does_not_take_goes_into_the_next() {
        let line = Arc::new(Line::default());
        let (input, typed) = UnixStream::pair().unwrap();
        let carrier = {
            let line = Arc::clone(&line);
            std::thread::spawn(move || line.carry(input))
        };
        let (ours, theirs) = UnixStream::pair().unwrap();
        line.connect(ours);
        (&typed).write_all(b"one").unwrap();
        let mut seen = [0_u8; 3];
        (&theirs).read_exact(&mut seen).unwrap();
        drop(theirs);
        line.disconnect();
        (&typed).write_all(b"two").unwrap();
        typed.shutdown(Shutdown::Write).unwrap();
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        line.connect(ours);
        let mut rest = String::new();
        theirs.read_to_string(&mut rest).unwrap();
        assert_eq!((&seen, rest.as_str()), (b"one", "two"));
        carrier.join().unwrap().unwrap();
    }
}

//! A session's output: its log files, read here, so that readers cost the holder nothing.

use std::collections::VecDeque;
use std::io;
use std::path::Path;

use async_trait::async_trait;
use tokio::io::unix::AsyncFd;
use tokio::sync::watch;
use wharf_backend::{Output, OutputChunk, Result, Status, Stream};
use wharf_log::{Chunk, Follower, Reader, Streams};
use wharf_model::{Failure, Home, Offset};

/// How many bytes are read at once.
const READ_LEN: usize = 64 << 10;

/// Reads a log and follows it until the session is over.
pub(super) struct LogOutput {
    reader: Reader,
    streams: Streams,
    follower: AsyncFd<Follower>,
    status: watch::Receiver<Status>,
    ready: VecDeque<OutputChunk>,
}

impl LogOutput {
    pub(super) fn open(home: &Path, from: Offset, status: watch::Receiver<Status>) -> Result<Self> {
        let log = home.join(Home::LOG);
        let open = || -> io::Result<_> {
            // Watched before it is read: what comes in between wakes us for nothing, and is not missed.
            let follower = watched(Follower::new(&log)?)?;
            Ok((follower, Reader::open(&log, from)?))
        };
        let (follower, reader) = open().map_err(|error| failed(&error))?;
        Ok(Self { reader, streams: Streams::new(), follower, status, ready: VecDeque::new() })
    }

    /// Takes the next piece from the files. False at their end.
    fn fill(&mut self) -> io::Result<bool> {
        let mut buffer = vec![0; READ_LEN];
        match self.reader.read(&mut buffer)? {
            Chunk::Data { offset, len } => {
                for (stream, range) in self.streams.split(&self.reader, offset, len)? {
                    let stream = if stream == wharf_log::Stream::Stderr { Stream::Err } else { Stream::Out };
                    let offset = offset + range.start as u64;
                    self.ready.push_back(OutputChunk::Data { offset, stream, bytes: buffer[range].to_vec() });
                }
            }
            Chunk::Gap { from, to } => self.ready.push_back(OutputChunk::Gap { from, to }),
            Chunk::End => return Ok(false),
        }
        Ok(true)
    }
}

#[async_trait]
impl Output for LogOutput {
    async fn next(&mut self) -> Result<Option<OutputChunk>> {
        loop {
            if let Some(chunk) = self.ready.pop_front() {
                return Ok(Some(chunk));
            }
            // Looked at before the files: what is over now has no more to print.
            let over = self.status.borrow_and_update().exit.is_some() || self.status.has_changed().is_err();
            if self.fill().map_err(|error| failed(&error))? {
                continue;
            }
            if over {
                return Ok(None);
            }
            tokio::select! {
                ready = self.follower.readable_mut() => {
                    let mut ready = ready.map_err(|error| failed(&error))?;
                    let drained = ready.get_inner_mut().drain();
                    ready.clear_ready();
                    drained.map_err(|error| failed(&error))?;
                }
                // An error means that the connection is gone for good; the files say the rest.
                _ = self.status.changed() => {}
            }
        }
    }
}

/// Has the runtime tell when a follower may have news.
#[expect(unsafe_code, reason = "the runtime takes any descriptor on our word that it stays open")]
fn watched(follower: Follower) -> io::Result<AsyncFd<Follower>> {
    // SAFETY: a follower owns its descriptor for as long as it lives, and lives in the AsyncFd from here on.
    Ok(unsafe { AsyncFd::register(follower)? })
}

fn failed(error: &io::Error) -> Failure {
    Failure::system("cannot read the log", error)
}

//! Reads a session's output from its log files, and follows it across restarts.

use std::collections::VecDeque;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use wharf_backend::{Connection, Output, OutputChunk, Stream};
use wharf_log::{Chunk, Reader, Streams};
use wharf_model::{Failure, Home, Offset, Session};

use crate::Result;
use crate::instance::shared::Shared;
use crate::instance::tasks::Tasks;
use crate::session::handle::{Handle, Stage};

/// How much is read at once.
const CHUNK_LEN: usize = 64 * 1024;
/// How soon a connection that refused is asked again.
const RETRY_INTERVAL: Duration = Duration::from_secs(1);

/// The end of the log in a directory.
pub(crate) fn log_end(dir: &Path) -> Result<Offset> {
    match Reader::bounds(dir) {
        Ok((_, end)) => Ok(end),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Offset(0)),
        Err(error) => Err(Failure::system(format!("cannot read the log in {}", dir.display()), &error)),
    }
}

/// Output that is in a log directory already; it does not wait for more.
pub(crate) struct LogOutput {
    tasks: Tasks,
    ready: VecDeque<OutputChunk>,
    /// Absent while it is being read.
    log: Option<LogFiles>,
    /// The read that is under way. It is kept when `next` is cancelled, so that no output is lost.
    reading: Option<JoinHandle<Read>>,
}

/// The files, and what was read of them: nothing at their end.
type Read = (LogFiles, io::Result<Option<Vec<OutputChunk>>>);

/// The files of a log, and how far they were read.
struct LogFiles {
    dir: PathBuf,
    from: Offset,
    reader: Option<(Reader, Streams)>,
}

impl LogOutput {
    pub(crate) fn new(tasks: &Tasks, dir: PathBuf, from: Offset) -> Self {
        let tasks = tasks.clone();
        Self { tasks, ready: VecDeque::new(), log: Some(LogFiles { dir, from, reader: None }), reading: None }
    }
}

impl LogFiles {
    /// Reads on; nothing at the end.
    fn read(&mut self) -> io::Result<Option<Vec<OutputChunk>>> {
        let (mut reader, mut streams) = match self.reader.take() {
            Some(reader) => reader,
            None => match Reader::open(&self.dir, self.from) {
                Ok(reader) => (reader, Streams::new()),
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
                Err(error) => return Err(error),
            },
        };
        let mut buf = vec![0; CHUNK_LEN];
        let mut chunks = Vec::new();
        match reader.read(&mut buf)? {
            Chunk::End => return Ok(None),
            Chunk::Gap { from, to } => chunks.push(OutputChunk::Gap { from, to }),
            Chunk::Data { offset, len } => {
                for (stream, range) in streams.split(&reader, offset, len)? {
                    let stream = match stream {
                        wharf_log::Stream::Stderr => Stream::Err,
                        wharf_log::Stream::Stdout => Stream::Out,
                    };
                    let at = offset + range.start as u64;
                    chunks.push(OutputChunk::Data { offset: at, stream, bytes: buf[range].to_vec() });
                }
            }
        }
        self.reader = Some((reader, streams));
        Ok(Some(chunks))
    }
}

#[async_trait]
impl Output for LogOutput {
    async fn next(&mut self) -> Result<Option<OutputChunk>> {
        loop {
            if let Some(chunk) = self.ready.pop_front() {
                return Ok(Some(chunk));
            }
            if let Some(mut log) = self.log.take() {
                self.reading = Some(self.tasks.spawn_blocking(move || {
                    let read = log.read();
                    (log, read)
                }));
            }
            // Only a read that failed for good leaves neither.
            let Some(reading) = &mut self.reading else { return Ok(None) };
            let read = reading.await;
            self.reading = None;
            let (log, read) = read.map_err(|error| {
                Failure::new(wharf_model::Code::Internal, format!("reading failed: {error}"))
            })?;
            let failed =
                |error| Failure::system(format!("cannot read the log in {}", log.dir.display()), &error);
            let chunks = read.map_err(failed)?;
            self.log = Some(log);
            match chunks {
                Some(chunks) => self.ready.extend(chunks),
                None => return Ok(None),
            }
        }
    }
}

/// Output of a session for as long as it is not over: across broken connections and restarts.
pub(crate) struct FollowedOutput {
    tasks: Tasks,
    handle: Arc<Handle>,
    log: PathBuf,
    changes: watch::Receiver<Arc<Session>>,
    at: Offset,
    source: Option<Box<dyn Output>>,
    used: Option<Arc<dyn Connection>>,
    last: bool,
}

impl FollowedOutput {
    pub(crate) fn new(shared: &Shared, handle: &Arc<Handle>, from: Offset) -> Self {
        Self {
            tasks: shared.tasks.clone(),
            handle: Arc::clone(handle),
            log: shared.home.session(&handle.id).join(Home::LOG),
            changes: handle.watch(),
            at: from,
            source: None,
            used: None,
            last: false,
        }
    }

    /// Finds the next source; waits for one. False where there will be none.
    async fn find(&mut self) -> bool {
        loop {
            self.changes.borrow_and_update();
            if self.last || self.handle.stage() == Stage::Gone {
                return false;
            }
            if self.handle.is_over() {
                // What the connection did not bring is in the log.
                self.last = true;
                self.source = Some(Box::new(LogOutput::new(&self.tasks, self.log.clone(), self.at)));
                return true;
            }
            let connection = self.handle.links().connection.clone();
            let fresh =
                connection.filter(|new| !self.used.as_ref().is_some_and(|used| Arc::ptr_eq(used, new)));
            if let Some(connection) = fresh {
                if let Ok(source) = connection.output(self.at).await {
                    self.source = Some(source);
                    self.used = Some(connection);
                    return true;
                }
                // Nothing may change by itself then, so ask again after a while.
                let _ = tokio::time::timeout(RETRY_INTERVAL, self.changes.changed()).await;
            } else if self.changes.changed().await.is_err() {
                return false;
            }
        }
    }
}

#[async_trait]
impl Output for FollowedOutput {
    async fn next(&mut self) -> Result<Option<OutputChunk>> {
        loop {
            if let Some(source) = &mut self.source {
                match source.next().await {
                    Ok(Some(chunk)) => {
                        self.at = match &chunk {
                            OutputChunk::Data { offset, bytes, .. } => *offset + bytes.len() as u64,
                            OutputChunk::Gap { to, .. } => *to,
                        };
                        return Ok(Some(chunk));
                    }
                    Err(failure) if self.last => return Err(failure),
                    // Its run ended or its connection broke; there may be another.
                    Ok(None) | Err(_) => self.source = None,
                }
            }
            if !self.find().await {
                return Ok(None);
            }
        }
    }
}

//! Copies the log of a session on another host: every byte at its own offset, whatever becomes of the connection.
//!
//! The mirror asks the holder for output from the mirror's own end on. So after any interruption it continues where
//! it stopped, and what the holder discarded meanwhile is a gap here as it is there. The mirror writes the exit
//! record only once all output before it is here.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use tokio::sync::{oneshot, watch};
use wharf_boundary::MAX_EXIT_LEN;
use wharf_holder::frame::{self, Decoder, Header, Kind};
use wharf_holder::pace::{Pace, TOO_MUCH_OUTPUT};
use wharf_holder::wire::{self, Hello, StartedReply};
use wharf_log::{Mark, Retention, Stream, Writer};
use wharf_model::{ExitRecord, Failure, Home, Offset, Size};

use super::container::{RemoteContainer, SOCKET};
use super::exec_stream::{ExecInput, ExecOutput};
use super::leftover_download;
use crate::containers::end_seen_by_engine;
use crate::session_dirs::SessionDirs;

/// The first and the longest wait before the mirror connects again.
const RETRY_BACKOFF: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(5));
/// A connection that lasted this long resets the wait before the next attempt.
const STABLE_CONNECTION_TIME: Duration = Duration::from_secs(10);
/// After this much silence the mirror asks the holder for its status; after twice as much it hangs up.
const HEARTBEAT_INTERVAL: Duration = Duration::from_secs(15);
/// The length of what precedes the bytes in a frame of output: an offset and a stream.
const OUTPUT_HEADER_LEN: usize = 9;
/// How many gaps a mirror records. An honest holder makes one for each long interruption; each one costs files here,
/// and time of everyone who reads the log.
const MAX_GAPS: u32 = 256;
/// How many terminal sizes a mirror records.
const MAX_SIZES: u32 = 4096;
/// How many downloads of a stopped container's leftovers may fail while the engine answers. Then the mirror goes on
/// without them: no session may stay undecided because of what it put there.
const MAX_FETCHES: u32 = 6;
/// The largest offset that a holder can honestly mean.
const MAX_OFFSET: u64 = 1 << 62;

/// What this side knows about the end of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// The session may still run.
    Running,
    /// The session is over, and its log and exit record are here.
    Complete,
    /// The session is over, and nobody will ever know how it ended.
    Lost,
}

/// The request that has the holder start the session's command, and the channel for its answer.
pub(crate) struct StartRequest {
    pub(crate) input: ExecInput,
    pub(crate) output: ExecOutput,
    pub(crate) frame: Vec<u8>,
    pub(crate) tell: oneshot::Sender<Result<StartedReply, Failure>>,
}

/// A log on this side that copies one on another host.
pub(crate) struct LogMirror {
    remote: Arc<RemoteContainer>,
    log: Writer,
    tell: watch::Sender<Outcome>,
    /// How often the mirror lost its connection: other streams to the engine broke then too.
    disconnects: Arc<AtomicU64>,
    /// How many gaps and sizes were recorded.
    gaps: u32,
    sizes: u32,
    /// The last terminal size.
    size: Option<Size>,
}

impl LogMirror {
    /// Opens the log on this side.
    pub(crate) fn open(remote: Arc<RemoteContainer>, tell: watch::Sender<Outcome>) -> io::Result<Self> {
        let (spec, run) = (&remote.ticket.spec, remote.ticket.run);
        let retention =
            spec.log_size.filter(|size| *size > 0).map_or_else(Retention::default, Retention::new);
        let mut log = Writer::open(&remote.home().join(Home::LOG), retention)?;
        if spec.tty {
            log.mark(Mark::Resize(spec.size.sane()), micros())?;
        }
        // Only the first proxy of a run writes this: once the command has started, the mark is in the log.
        if run > 1 && remote.ticket.started.is_zero() {
            log.mark(Mark::Restart(run), micros())?;
        }
        Ok(Self { remote, log, tell, disconnects: Arc::default(), gaps: 0, sizes: 0, size: None })
    }

    /// The live count of lost connections.
    pub(crate) fn disconnects(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.disconnects)
    }

    /// Copies the session's output until its end. For a new session it sends the start request first.
    pub(crate) async fn run(mut self, request: Option<StartRequest>) {
        if let Some(request) = request {
            match self.start_session(request).await {
                Ok(Some(record)) => return self.complete(&record),
                Ok(None) => return,
                Err(error) => {
                    tracing::debug!(session = %self.remote.ticket.id, %error, "the mirror is cut off");
                }
            }
        }
        self.disconnects.fetch_add(1, Ordering::Relaxed);
        let (mut wait, mut stream, mut fetches) = (RETRY_BACKOFF.0, None, 0);
        loop {
            if let Some(stream) = stream.take() {
                let (before, since) = (self.log.end(), Instant::now());
                match self.follow(stream).await {
                    Ok(record) => return self.complete(&record),
                    Err(error) => {
                        tracing::debug!(session = %self.remote.ticket.id, %error, "the mirror is cut off");
                    }
                }
                self.disconnects.fetch_add(1, Ordering::Relaxed);
                if self.log.end() > before || since.elapsed() > STABLE_CONNECTION_TIME {
                    wait = RETRY_BACKOFF.0;
                } else {
                    // Back off: every attempt starts a process in the container, and this holder hangs up at once or
                    // sends nonsense.
                    tokio::time::sleep(wait).await;
                    wait = (wait * 2).min(RETRY_BACKOFF.1);
                }
            }
            match self.remote.state().await {
                Ok(Some(state)) if state.running => match self.remote.relay(SOCKET, false).await {
                    Ok(opened) => stream = Some(opened),
                    Err(failure) => {
                        tracing::debug!(session = %self.remote.ticket.id, %failure, "the mirror waits");
                    }
                },
                Ok(_) => match self.finish(fetches >= MAX_FETCHES).await {
                    Ok(outcome) => {
                        self.tell.send_replace(outcome);
                        return;
                    }
                    Err(error) => {
                        tracing::warn!(session = %self.remote.ticket.id, %error, "its last output is not here yet");
                        // Do not count errors of this host, such as a full disk: they pass.
                        fetches += u32::from(error.raw_os_error().is_none());
                    }
                },
                Err(failure) => {
                    tracing::debug!(session = %self.remote.ticket.id, %failure, "the mirror waits");
                }
            }
            if stream.is_none() {
                tokio::time::sleep(wait).await;
                wait = (wait * 2).min(RETRY_BACKOFF.1);
            }
        }
    }

    /// Writes the exit record and publishes the outcome.
    fn complete(&mut self, record: &ExitRecord) {
        let _ = self.log.mark(Mark::Time, micros());
        SessionDirs::of(self.remote.home()).write_exit(record);
        self.tell.send_replace(Outcome::Complete);
    }

    /// Greets the holder, asks for output from the log's end, and copies it until the exit record.
    async fn follow(&mut self, (mut input, mut output): (ExecInput, ExecOutput)) -> io::Result<ExitRecord> {
        let hello =
            Hello { role: "program".into(), version: env!("CARGO_PKG_VERSION").into(), ..Hello::default() };
        let mut first = frame::encode(Kind::Hello, 1, &serde_json::to_vec(&hello)?);
        first.extend(frame::encode(Kind::Read, 2, &self.log.end().0.to_le_bytes()));
        input.write(&first).await?;
        self.listen(&mut input, &mut output, Decoder::of_answers()).await
    }

    /// Has the holder start the command, and copies its output until the exit record. None where the holder refused;
    /// the requester gets the reason.
    async fn start_session(&mut self, request: StartRequest) -> io::Result<Option<ExitRecord>> {
        let StartRequest { mut input, mut output, frame, tell } = request;
        input.write(&frame).await?;
        let mut frames = Decoder::of_answers();
        loop {
            match output.next().await? {
                Some((false, bytes)) => frames.push(&bytes),
                Some((true, said)) => {
                    return Err(io::Error::other(String::from_utf8_lossy(&said).into_owned()));
                }
                None => return Err(io::ErrorKind::UnexpectedEof.into()),
            }
            let Some((header, payload)) = frames.next()? else { continue };
            if header.kind == Kind::Error as u8 {
                let _ = tell.send(Err(serde_json::from_slice(payload)?));
                return Ok(None);
            }
            let _ = tell.send(Ok(serde_json::from_slice(payload)?));
            return self.listen(&mut input, &mut output, frames).await.map(Some);
        }
    }

    async fn listen(
        &mut self,
        input: &mut ExecInput,
        output: &mut ExecOutput,
        mut frames: Decoder,
    ) -> io::Result<ExitRecord> {
        let (mut asked, mut pace) = (false, Pace::new(Instant::now()));
        loop {
            while let Some((header, payload)) = frames.next()? {
                // Only output may come without limit: the mirror asked for it.
                let kind = Kind::known(header.kind);
                if !matches!(kind, Some(Kind::Output | Kind::Gap)) {
                    pace.spend(kind, payload.len());
                }
                if let Some(record) = self.take_frame(header, payload)? {
                    return Ok(record);
                }
            }
            frames.rest();
            self.log.tick(micros())?;
            if pace.pause(Instant::now).is_some() {
                // Hang up instead of pausing: an engine whose streams nobody reads notices the container's end late.
                return Err(io::Error::new(io::ErrorKind::InvalidData, TOO_MUCH_OUTPUT));
            }
            // Let other tasks run, however much there is to read.
            tokio::task::yield_now().await;
            match tokio::time::timeout(HEARTBEAT_INTERVAL, output.next()).await {
                Err(_) if asked => return Err(io::ErrorKind::TimedOut.into()),
                Err(_) => {
                    asked = true;
                    input.write(&frame::encode(Kind::Status, 3, &[])).await?;
                    continue;
                }
                Ok(next) => match next? {
                    Some((false, bytes)) => frames.push(&bytes),
                    Some((true, said)) => {
                        return Err(io::Error::other(String::from_utf8_lossy(&said).trim().to_owned()));
                    }
                    None => return Err(io::ErrorKind::UnexpectedEof.into()),
                },
            }
            asked = false;
        }
    }

    fn take_frame(&mut self, header: Header, payload: &[u8]) -> io::Result<Option<ExitRecord>> {
        let word = |at: usize| -> io::Result<Offset> {
            let bytes = payload.get(at..at + 8).and_then(|bytes| bytes.first_chunk());
            bytes
                .map(|bytes| Offset(u64::from_le_bytes(*bytes)))
                .ok_or_else(|| io::ErrorKind::InvalidData.into())
        };
        match Kind::known(header.kind) {
            Some(Kind::Output) => {
                let stream = if payload.get(8) == Some(&1) { Stream::Stderr } else { Stream::Stdout };
                self.take(word(0)?, stream, payload.get(OUTPUT_HEADER_LEN..).unwrap_or_default())?;
            }
            Some(Kind::Gap) => self.skip_to(word(8)?)?,
            Some(Kind::News) if self.remote.ticket.spec.tty => {
                let news: wire::HolderStatus = serde_json::from_slice(payload)?;
                self.resized(news.size)?;
            }
            Some(Kind::Exit) => {
                if payload.len() as u64 > MAX_EXIT_LEN {
                    return Err(io::ErrorKind::InvalidData.into());
                }
                let record: ExitRecord = serde_json::from_slice(payload)?;
                // The holder discarded that output before it was asked for: download it.
                if record.log_end > self.log.end() {
                    return Err(io::Error::other("the session ended before its output was asked for"));
                }
                return Ok(Some(record));
            }
            _ => {}
        }
        Ok(None)
    }

    /// Appends output that belongs at an offset.
    pub(super) fn take(&mut self, at: Offset, stream: Stream, bytes: &[u8]) -> io::Result<()> {
        self.skip_to(at)?;
        // Skip what the log has already.
        let known = self.log.end().0.saturating_sub(at.0) as usize;
        let fresh = bytes.get(known..).unwrap_or_default();
        if fresh.is_empty() {
            return Ok(());
        }
        self.log.mark(Mark::Stream(stream), micros())?;
        self.log.append(fresh)
    }

    /// Records the bytes between the log's end and an offset as a gap, which takes no space.
    pub(super) fn skip_to(&mut self, at: Offset) -> io::Result<()> {
        let missing = at.0.saturating_sub(self.log.end().0);
        if missing > 0 {
            self.gaps = self.gaps.saturating_add(1);
            if at.0 > MAX_OFFSET || self.gaps > MAX_GAPS {
                return Err(io::Error::new(io::ErrorKind::InvalidData, "the holder's output has no order"));
            }
            self.log.skip(missing);
        }
        Ok(())
    }

    /// Records a terminal's size if it changed.
    fn resized(&mut self, size: Size) -> io::Result<()> {
        if self.size == Some(size) || self.sizes >= MAX_SIZES {
            return Ok(());
        }
        self.sizes += 1;
        self.size = Some(size);
        self.log.mark(Mark::Resize(size), micros())
    }

    /// The end of the log on this side.
    pub(super) fn end(&self) -> Offset {
        self.log.end()
    }

    /// Decides the outcome of a container that does not run: downloads what is left in it, unless `give_up` says that
    /// this failed too often.
    async fn finish(&mut self, give_up: bool) -> io::Result<Outcome> {
        let remote = Arc::clone(&self.remote);
        let state = remote.state().await.map_err(|failure| io::Error::other(failure.message))?;
        if state.is_some() {
            let downloaded =
                if give_up { None } else { leftover_download::download_leftovers(&remote, self).await? };
            if let Some(record) = downloaded {
                self.complete(&record);
                return Ok(Outcome::Complete);
            }
            let _ = self.log.mark(Mark::Time, micros());
        }
        Ok(match end_seen_by_engine(&remote.ticket, state.as_ref()) {
            wharf_backend::Adoption::Ended(_) => Outcome::Complete,
            _ => Outcome::Lost,
        })
    }
}

fn micros() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |now| now.as_micros() as u64)
}

//! The mirror of a session's log: every byte at its own offset, whatever becomes of the connection in between.
//!
//! It asks for output from its own end on. So after any interruption it goes on where it stood, and what the holder had to
//! let go of meanwhile is a gap here as it is there. An end is written down once all output before it is.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use tokio::sync::{oneshot, watch};
use wharf_boundary::MAX_EXIT_LEN;
use wharf_holder::client::TALKS;
use wharf_holder::frame::{self, Decoder, Header, Kind};
use wharf_holder::pace::Pace;
use wharf_holder::wire::{self, Hello, Started};
use wharf_log::{Mark, Retention, Stream, Writer};
use wharf_model::{ExitRecord, Failure, Home, Offset, Size};

use super::fetch;
use super::site::{SOCKET, Site};
use super::tube::{Input, Output};
use crate::place::over;
use crate::rooms::Rooms;

/// The first and the longest wait before the next attempt to go on.
const RETRY_BACKOFF: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(5));
/// A connection that lasted so long was one.
const STABLE_CONNECTION_TIME: Duration = Duration::from_secs(10);
/// After how long a silence the holder is asked whether it is there; after twice that it is taken for gone.
const HEARTBEAT_INTERVAL: Duration = Duration::from_secs(15);
/// What stands before the bytes in a frame of output.
const OUTPUT_HEADER_LEN: usize = 9;
/// How many gaps a mirror writes down: an honest holder has one when it was cut off for long, and each costs files here, and
/// time of whoever reads the log.
const MAX_GAPS: u32 = 256;
/// How many sizes it writes down.
const MAX_SIZES: u32 = 4096;
/// How often an engine that answers may fail to hand out what a container left that does not run. Then it is done without:
/// a session must not stay unknown for ever because of what it has put there.
const MAX_FETCHES: u32 = 6;
/// The last offset that anybody can mean.
const MAX_OFFSET: u64 = 1 << 62;

/// What is known of the session on this side.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fate {
    /// It may go on.
    Open,
    /// It is over, and all of it is here.
    Whole,
    /// Nobody will ever know.
    Lost,
}

/// The first word with a holder: what to start, and who is told what came of it.
pub(crate) struct Birth {
    pub(crate) input: Input,
    pub(crate) output: Output,
    pub(crate) frame: Vec<u8>,
    pub(crate) tell: oneshot::Sender<Result<Started, Failure>>,
}

/// A log on this side that follows one on the other.
pub(crate) struct Mirror {
    site: Arc<Site>,
    log: Writer,
    tell: watch::Sender<Fate>,
    /// How often it was cut off: other streams were too, then.
    cuts: Arc<AtomicU64>,
    /// How many gaps and how many sizes it wrote down.
    gaps: u32,
    sizes: u32,
    /// The last size.
    size: Option<Size>,
}

impl Mirror {
    /// Opens the log on this side.
    pub(crate) fn open(site: Arc<Site>, tell: watch::Sender<Fate>) -> io::Result<Self> {
        let (spec, run) = (&site.ticket.spec, site.ticket.run);
        let retention =
            spec.log_size.filter(|size| *size > 0).map_or_else(Retention::default, Retention::new);
        let mut log = Writer::open(&site.home().join(Home::LOG), retention)?;
        if spec.tty {
            log.mark(Mark::Resize(spec.size.sane()), micros())?;
        }
        // Written once: who finds the run's first bytes has written it before.
        if run > 1 && site.ticket.started.is_zero() {
            log.mark(Mark::Restart(run), micros())?;
        }
        Ok(Self { site, log, tell, cuts: Arc::default(), gaps: 0, sizes: 0, size: None })
    }

    /// How often it was cut off, as it goes.
    pub(crate) fn cuts(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.cuts)
    }

    /// Follows the session to its end, from its birth where it is yet to begin.
    pub(crate) async fn run(mut self, birth: Option<Birth>) {
        if let Some(birth) = birth {
            match self.bear(birth).await {
                Ok(Some(record)) => return self.whole(&record),
                Ok(None) => return,
                Err(error) => {
                    tracing::debug!(session = %self.site.ticket.id, %error, "the mirror is cut off");
                }
            }
        }
        self.cuts.fetch_add(1, Ordering::Relaxed);
        let (mut wait, mut stream, mut fetches) = (RETRY_BACKOFF.0, None, 0);
        loop {
            if let Some(stream) = stream.take() {
                let (before, since) = (self.log.end(), Instant::now());
                match self.follow(stream).await {
                    Ok(record) => return self.whole(&record),
                    Err(error) => {
                        tracing::debug!(session = %self.site.ticket.id, %error, "the mirror is cut off");
                    }
                }
                self.cuts.fetch_add(1, Ordering::Relaxed);
                if self.log.end() > before || since.elapsed() > STABLE_CONNECTION_TIME {
                    wait = RETRY_BACKOFF.0;
                } else {
                    // One who hangs up at once, or makes no sense, is not called again and again: each call is a process there.
                    tokio::time::sleep(wait).await;
                    wait = (wait * 2).min(RETRY_BACKOFF.1);
                }
            }
            match self.site.state().await {
                Ok(Some(state)) if state.running => match self.site.relay(SOCKET, false).await {
                    Ok(opened) => stream = Some(opened),
                    Err(failure) => {
                        tracing::debug!(session = %self.site.ticket.id, %failure, "the mirror waits");
                    }
                },
                Ok(_) => match self.finish(fetches >= MAX_FETCHES).await {
                    Ok(fate) => {
                        self.tell.send_replace(fate);
                        return;
                    }
                    Err(error) => {
                        tracing::warn!(session = %self.site.ticket.id, %error, "its last output is not here yet");
                        // A full disk of this side is not the session's doing, and passes.
                        fetches += u32::from(error.raw_os_error().is_none());
                    }
                },
                Err(failure) => tracing::debug!(session = %self.site.ticket.id, %failure, "the mirror waits"),
            }
            if stream.is_none() {
                tokio::time::sleep(wait).await;
                wait = (wait * 2).min(RETRY_BACKOFF.1);
            }
        }
    }

    /// Writes the end down, and tells of it.
    fn whole(&mut self, record: &ExitRecord) {
        let _ = self.log.mark(Mark::Time, micros());
        Rooms::of(self.site.home()).write_exit(record);
        self.tell.send_replace(Fate::Whole);
    }

    /// Takes in what the holder sends, to the exit record.
    async fn follow(&mut self, (mut input, mut output): (Input, Output)) -> io::Result<ExitRecord> {
        let hello =
            Hello { role: "program".into(), version: env!("CARGO_PKG_VERSION").into(), ..Hello::default() };
        let mut first = frame::encode(Kind::Hello, 1, &serde_json::to_vec(&hello)?);
        first.extend(frame::encode(Kind::Read, 2, &self.log.end().0.to_le_bytes()));
        input.write(&first).await?;
        self.listen(&mut input, &mut output, Decoder::of_answers()).await
    }

    /// Has the holder start the session, and takes in what it sends. None where it was refused, which the asker is told.
    async fn bear(&mut self, birth: Birth) -> io::Result<Option<ExitRecord>> {
        let Birth { mut input, mut output, frame, tell } = birth;
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
        input: &mut Input,
        output: &mut Output,
        mut frames: Decoder,
    ) -> io::Result<ExitRecord> {
        let (mut asked, mut pace) = (false, Pace::new(Instant::now()));
        loop {
            while let Some((header, payload)) = frames.next()? {
                // Output was asked for; whatever else is said has a limit.
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
                // Hung up on, and not left waiting: an engine whose streams nobody reads is slow to see a container's end.
                return Err(io::Error::new(io::ErrorKind::InvalidData, TALKS));
            }
            // Others are served meanwhile, however much there is to be read at once.
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
            Some(Kind::News) if self.site.ticket.spec.tty => {
                let news: wire::Status = serde_json::from_slice(payload)?;
                self.resized(news.size)?;
            }
            Some(Kind::Exit) => {
                if payload.len() as u64 > MAX_EXIT_LEN {
                    return Err(io::ErrorKind::InvalidData.into());
                }
                let record: ExitRecord = serde_json::from_slice(payload)?;
                // Asked too late for what came before: it is fetched.
                if record.log_end > self.log.end() {
                    return Err(io::Error::other("the session ended before its output was asked for"));
                }
                return Ok(Some(record));
            }
            _ => {}
        }
        Ok(None)
    }

    /// Takes in output that stands at an offset.
    pub(super) fn take(&mut self, at: Offset, stream: Stream, bytes: &[u8]) -> io::Result<()> {
        self.skip_to(at)?;
        // What is here already is not written again.
        let known = self.log.end().0.saturating_sub(at.0) as usize;
        let fresh = bytes.get(known..).unwrap_or_default();
        if fresh.is_empty() {
            return Ok(());
        }
        self.log.mark(Mark::Stream(stream), micros())?;
        self.log.append(fresh)
    }

    /// What lies before an offset and is not here is gone. It is said so, and takes no room.
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

    /// Notes a terminal's size, where it is another one.
    fn resized(&mut self, size: Size) -> io::Result<()> {
        if self.size == Some(size) || self.sizes >= MAX_SIZES {
            return Ok(());
        }
        self.sizes += 1;
        self.size = Some(size);
        self.log.mark(Mark::Resize(size), micros())
    }

    /// How far it is.
    pub(super) fn end(&self) -> Offset {
        self.log.end()
    }

    /// The container does not run: what is left in it is brought here, or given up.
    async fn finish(&mut self, give_up: bool) -> io::Result<Fate> {
        let site = Arc::clone(&self.site);
        let state = site.state().await.map_err(|failure| io::Error::other(failure.message))?;
        if state.is_some() {
            let brought = if give_up { None } else { fetch::rest(&site, self).await? };
            if let Some(record) = brought {
                self.whole(&record);
                return Ok(Fate::Whole);
            }
            let _ = self.log.mark(Mark::Time, micros());
        }
        Ok(match over(&site.ticket, state.as_ref()) {
            wharf_backend::Adoption::Ended(_) => Fate::Whole,
            _ => Fate::Lost,
        })
    }
}

fn micros() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |now| now.as_micros() as u64)
}

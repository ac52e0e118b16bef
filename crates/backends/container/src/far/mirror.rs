//! The mirror of a session's log: every byte at its own offset, whatever becomes of the connection in between.
//!
//! It asks for output from its own end on. So after any interruption it goes on where it stood, and what the holder had to
//! let go of meanwhile is a gap here as it is there. An end is written down once all output before it is.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tokio::sync::{oneshot, watch};
use wharf_holder::frame::{self, Decoder, Header, Kind};
use wharf_holder::wire::{self, Hello, Started};
use wharf_log::{Mark, Retention, Stream, Writer};
use wharf_model::{ExitRecord, Failure, Home, Offset};

use super::fetch;
use super::site::{SOCKET, Site};
use super::tube::{Input, Output};
use crate::place::over;
use crate::rooms::Rooms;

/// The first and the longest wait before the next attempt to go on.
const AGAIN: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(5));
/// After how long a silence the holder is asked whether it is there; after twice that it is taken for gone.
const HEART: Duration = Duration::from_secs(15);
/// What stands before the bytes in a frame of output.
const HEAD: usize = 9;

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
        Ok(Self { site, log, tell, cuts: Arc::default() })
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
        let (mut wait, mut stream) = (AGAIN.0, None);
        loop {
            if let Some(stream) = stream.take() {
                let before = self.log.end();
                match self.follow(stream).await {
                    Ok(record) => return self.whole(&record),
                    Err(error) => {
                        tracing::debug!(session = %self.site.ticket.id, %error, "the mirror is cut off");
                    }
                }
                self.cuts.fetch_add(1, Ordering::Relaxed);
                if self.log.end() > before {
                    wait = AGAIN.0;
                }
            }
            match self.site.state().await {
                Ok(Some(state)) if state.running => match self.site.relay(SOCKET, false).await {
                    Ok(opened) => stream = Some(opened),
                    Err(failure) => {
                        tracing::debug!(session = %self.site.ticket.id, %failure, "the mirror waits");
                    }
                },
                Ok(_) => match self.finish().await {
                    Ok(fate) => {
                        self.tell.send_replace(fate);
                        return;
                    }
                    Err(error) => {
                        tracing::warn!(session = %self.site.ticket.id, %error, "its last output is not here yet");
                    }
                },
                Err(failure) => tracing::debug!(session = %self.site.ticket.id, %failure, "the mirror waits"),
            }
            if stream.is_none() {
                tokio::time::sleep(wait).await;
                wait = (wait * 2).min(AGAIN.1);
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
        self.listen(&mut input, &mut output, Decoder::default()).await
    }

    /// Has the holder start the session, and takes in what it sends. None where it was refused, which the asker is told.
    async fn bear(&mut self, birth: Birth) -> io::Result<Option<ExitRecord>> {
        let Birth { mut input, mut output, frame, tell } = birth;
        input.write(&frame).await?;
        let mut frames = Decoder::default();
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
        let mut asked = false;
        loop {
            while let Some((header, payload)) = frames.next()? {
                if let Some(record) = self.take_frame(header, payload)? {
                    return Ok(record);
                }
            }
            frames.rest();
            self.log.tick(micros())?;
            match tokio::time::timeout(HEART, output.next()).await {
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
                self.take(word(0)?, stream, payload.get(HEAD..).unwrap_or_default())?;
            }
            Some(Kind::Gap) => self.skip_to(word(8)?),
            Some(Kind::News) if self.site.ticket.spec.tty => {
                let news: wire::Status = serde_json::from_slice(payload)?;
                self.log.mark(Mark::Resize(news.size), micros())?;
            }
            Some(Kind::Exit) => {
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
        self.skip_to(at);
        // What is here already is not written again.
        let known = self.log.end().0.saturating_sub(at.0) as usize;
        let fresh = bytes.get(known..).unwrap_or_default();
        if fresh.is_empty() {
            return Ok(());
        }
        self.log.mark(Mark::Stream(stream), micros())?;
        self.log.append(fresh)
    }

    /// What lies before an offset and is not here is gone.
    pub(super) fn skip_to(&mut self, at: Offset) {
        let missing = at.0.saturating_sub(self.log.end().0);
        if missing > 0 {
            self.log.skip(missing);
        }
    }

    /// How far it is.
    pub(super) fn end(&self) -> Offset {
        self.log.end()
    }

    /// The container does not run: what is left in it is brought here.
    pub(crate) async fn finish(&mut self) -> io::Result<Fate> {
        let site = Arc::clone(&self.site);
        let state = site.state().await.map_err(|failure| io::Error::other(failure.message))?;
        if state.is_some() {
            if let Some(record) = fetch::rest(&site, self).await? {
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

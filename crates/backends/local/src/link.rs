//! The connection to one holder. When that holder is killed, another takes its place behind the same link.

use std::collections::HashMap;
use std::io;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use tokio::io::Interest;
use tokio::net::UnixStream;
use tokio::sync::{Notify, Semaphore, oneshot, watch};
use wharf_backend::{Connection, ExecRequest, Output, Pending, Result, Status, Stop};
use wharf_holder::frame::{self, Decoder, Header, Kind};
use wharf_holder::wire;
use wharf_holder::{client, linux};
use wharf_model::{Code, ExitRecord, Failure, Home, Millis, Offset, Size, Stats};

use crate::backend::Place;
use crate::keep::{self, Keep};
use crate::output::LogOutput;

/// A request that the holder does at once takes no longer than this.
const PROMPT: Duration = Duration::from_secs(5);
/// What is done beyond the grace of a stop before the holder is taken for stuck: killing, draining, recording.
const STOP_MARGIN: Duration = Duration::from_secs(5);
/// The most input in one frame: what the holder holds at most, so that it is typed in one piece.
const INPUT: usize = 1 << 20;
/// How long to wait before input is offered again to a terminal that takes none.
const BUSY: Duration = Duration::from_millis(10);

/// How often a holder is replaced by one that dies at once, before the session is given up.
const REPLACEMENTS: u32 = 20;
/// How long a holder that closed its connection may take to be gone.
const DYING: Duration = Duration::from_millis(200);

type Reply = std::result::Result<Vec<u8>, Failure>;

/// A live session of this host.
pub(crate) struct Link {
    shared: Arc<Shared>,
    /// One writer at a time: a long input is not mixed with another's.
    writing: Semaphore,
}

struct Shared {
    home: PathBuf,
    place: Arc<Place>,
    status: watch::Sender<Status>,
    next: AtomicU32,
    wire: Mutex<Wire>,
    /// With what the holder is replaced.
    keep: Mutex<Option<Keep>>,
    /// Something waits to be sent.
    more: Notify,
}

/// What goes to and fro.
#[derive(Default)]
struct Wire {
    out: Vec<u8>,
    replies: HashMap<u32, oneshot::Sender<Reply>>,
    /// No holder and none to come: nothing can be asked any more.
    closed: bool,
}

impl Link {
    /// Serves a connection to a holder that has just said who it is.
    pub(crate) fn open(
        home: PathBuf,
        place: Arc<Place>,
        stream: UnixStream,
        keep: Option<Keep>,
        first: Status,
    ) -> Self {
        let shared = Arc::new(Shared {
            home,
            place,
            status: watch::Sender::new(first),
            next: AtomicU32::new(16),
            wire: Mutex::default(),
            keep: Mutex::new(keep),
            more: Notify::new(),
        });
        tokio::spawn(Arc::clone(&shared).serve(stream));
        Self { shared, writing: Semaphore::new(1) }
    }

    async fn ask(&self, kind: Kind, payload: &[u8], within: Duration) -> Result<Vec<u8>> {
        self.shared.ask(kind, payload, within).await.1
    }
}

impl Shared {
    fn wire(&self) -> std::sync::MutexGuard<'_, Wire> {
        self.wire.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn keep(&self) -> std::sync::MutexGuard<'_, Option<Keep>> {
        self.keep.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends a request and waits for its answer. Also says under which number it went.
    async fn ask(&self, kind: Kind, payload: &[u8], within: Duration) -> (u32, Result<Vec<u8>>) {
        let seq = self.next.fetch_add(1, Ordering::Relaxed).max(1);
        let (tell, told) = oneshot::channel();
        {
            let mut wire = self.wire();
            if wire.closed {
                return (seq, Err(self.closed()));
            }
            wire.out.extend_from_slice(&frame::encode(kind, seq, payload));
            wire.replies.insert(seq, tell);
        }
        self.more.notify_one();
        match tokio::time::timeout(within, told).await {
            Ok(Ok(reply)) => (seq, reply),
            Ok(Err(_)) => (seq, Err(self.closed())),
            Err(_) => {
                self.wire().replies.remove(&seq);
                let why = format!("the holder did not answer within {} ms", within.as_millis());
                (seq, Err(Failure::new(Code::Timeout, why)))
            }
        }
    }

    /// Why nothing can be asked any more.
    fn closed(&self) -> Failure {
        if self.status.borrow().exit.is_some() {
            return Failure::new(Code::Ended, "the session has ended")
                .hint("`wharf logs` shows its last output");
        }
        Failure::new(Code::Unreachable, "the connection to the holder broke")
    }

    /// Carries frames until the session is over, through as many holders as it takes.
    async fn serve(self: Arc<Self>, mut stream: UnixStream) {
        loop {
            let ended = self.carry(&stream).await;
            let over = ended || self.read_exit();
            // Nobody answers what the last holder was asked.
            let unanswered: Vec<_> = self.wire().replies.drain().collect();
            for (_, tell) in unanswered {
                let _ = tell.send(Err(self.closed()));
            }
            if over {
                break;
            }
            match self.replace().await {
                Some(next) => stream = next,
                None => break,
            }
        }
        self.wire().closed = true;
        self.wire().replies.clear();
        let broken = self.status.borrow().exit.is_none();
        self.status.send_modify(|status| status.broken = broken);
    }

    /// An exit record that came by file and not by frame.
    fn read_exit(&self) -> bool {
        let Ok(bytes) = std::fs::read(self.home.join(Home::EXIT)) else { return false };
        let Ok(record) = serde_json::from_slice::<ExitRecord>(&bytes) else { return false };
        self.status.send_modify(|status| status.exit = Some(record));
        true
    }

    /// Another holder in the place of one that died; none when that cannot be.
    async fn replace(&self) -> Option<UnixStream> {
        let kept = self.keep().take()?;
        // A holder that lives has only cut us off; it is not ours to replace.
        if linux::proc::open(&kept.started.holder)
            .ok()?
            .is_some_and(|pidfd| !linux::proc::ends(&pidfd, DYING))
        {
            return None;
        }
        let ticket = keep::read_ticket(&self.home).ok()?;
        // The next one may be killed before it could say that it has taken over; what we keep is still good.
        for _ in 0..REPLACEMENTS {
            match self.place.resume(&kept, &ticket).await {
                Ok((stream, started, fds)) => {
                    *self.keep() = Keep::new(started, fds);
                    return Some(stream);
                }
                // It may be at work all the same, and two would be worse than none.
                Err(failure) if failure.code == Code::Timeout => return None,
                Err(_) => {}
            }
        }
        None
    }

    /// Carries frames until the connection ends. True when it ended with the session.
    async fn carry(&self, stream: &UnixStream) -> bool {
        let (mut frames, mut passed) = (Decoder::default(), Vec::new());
        loop {
            if self.flush(stream).is_err() {
                return self.status.borrow().exit.is_some();
            }
            let stuck = !self.wire().out.is_empty();
            let interest = if stuck { Interest::READABLE | Interest::WRITABLE } else { Interest::READABLE };
            tokio::select! {
                ready = stream.ready(interest) => {
                    let Ok(ready) = ready else { return false };
                    if ready.is_readable() {
                        match self.receive(stream, &mut frames, &mut passed) {
                            Ok(true) => {}
                            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                            Ok(false) | Err(_) => return self.status.borrow().exit.is_some(),
                        }
                    }
                }
                () = self.more.notified() => {}
            }
        }
    }

    fn flush(&self, stream: &UnixStream) -> io::Result<()> {
        let mut wire = self.wire();
        while !wire.out.is_empty() {
            match stream.try_write(&wire.out) {
                Ok(n) if n == wire.out.len() => wire.out = Vec::new(),
                Ok(n) => drop(wire.out.drain(..n)),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn receive(
        &self,
        stream: &UnixStream,
        frames: &mut Decoder,
        passed: &mut Vec<OwnedFd>,
    ) -> io::Result<bool> {
        let mut buffer = [0_u8; 8 << 10];
        let n = stream.try_io(Interest::READABLE, || linux::receive(stream, &mut buffer, passed))?;
        if n == 0 {
            return Ok(false);
        }
        frames.push(&buffer[..n]);
        while let Some((header, payload)) = frames.next()? {
            self.on(header, payload);
        }
        frames.rest();
        Ok(true)
    }

    fn on(&self, header: Header, payload: &[u8]) {
        match Kind::known(header.kind) {
            Some(Kind::Ack | Kind::Welcome) => self.tell(header.seq, Ok(payload.to_vec())),
            Some(Kind::Error) => {
                let failure = serde_json::from_slice(payload);
                let failure =
                    failure.unwrap_or_else(|_| Failure::new(Code::Internal, "the holder gave no reason"));
                self.tell(header.seq, Err(failure));
            }
            Some(Kind::News) => {
                if let Ok(news) = serde_json::from_slice::<wire::Status>(payload) {
                    if news.input_closed
                        && let Some(keep) = self.keep().as_mut()
                    {
                        keep.close_input();
                    }
                    self.status.send_modify(|status| update(status, &news));
                }
            }
            Some(Kind::Exit) => {
                if let Ok(record) = serde_json::from_slice::<ExitRecord>(payload) {
                    self.status.send_modify(|status| status.exit = Some(record));
                }
            }
            _ => {}
        }
    }

    fn tell(&self, seq: u32, reply: Reply) {
        if let Some(tell) = self.wire().replies.remove(&seq) {
            let _ = tell.send(reply);
        }
    }

    async fn write_piece(&self, bytes: &[u8], until: tokio::time::Instant) -> Result<()> {
        loop {
            let left = until.saturating_duration_since(tokio::time::Instant::now());
            let (seq, answer) = self.ask(Kind::Input, bytes, left).await;
            match answer {
                Ok(_) => {
                    let now = Some(Millis::from(std::time::SystemTime::now()));
                    self.status.send_modify(|status| status.last_input = now);
                    return Ok(());
                }
                Err(busy) if busy.code == Code::Busy => {
                    if left.is_zero() {
                        return Err(late(0, bytes.len()));
                    }
                    tokio::time::sleep(BUSY.min(left)).await;
                }
                Err(failure) if failure.code == Code::Timeout => {
                    let (_, cancelled) = self.ask(Kind::Cancel, &seq.to_le_bytes(), PROMPT).await;
                    let written =
                        cancelled.ok().and_then(|json| serde_json::from_slice::<Option<usize>>(&json).ok());
                    return match written {
                        // It went in after all, a moment after the deadline.
                        Some(None) => Ok(()),
                        Some(Some(written)) => Err(late(written, bytes.len())),
                        None => Err(failure),
                    };
                }
                Err(failure) => return Err(failure),
            }
        }
    }
}

/// What a holder said of itself, for those above.
pub(crate) fn update(status: &mut Status, news: &wire::Status) {
    status.attached = news.attached;
    status.pid = Some(news.pid);
    status.size = news.size;
    status.last_input = news.last_input;
}

fn late(written: usize, of: usize) -> Failure {
    Failure::new(
        Code::Timeout,
        format!("{written} of {of} bytes went into the terminal in time; the rest was withdrawn"),
    )
    .hint("the command does not read its input")
}

fn json<T: serde::de::DeserializeOwned>(bytes: &[u8]) -> Result<T> {
    serde_json::from_slice(bytes)
        .map_err(|e| Failure::new(Code::Internal, format!("the holder's answer is odd: {e}")))
}

#[async_trait]
impl Connection for Link {
    async fn write(&self, bytes: &[u8], within: Duration) -> Result<()> {
        let until = tokio::time::Instant::now() + within;
        let turn = tokio::time::timeout_at(until, self.writing.acquire()).await;
        let _turn = turn.map_err(|_| late(0, bytes.len()))?;
        for (number, piece) in bytes.chunks(INPUT).enumerate() {
            let before = number * INPUT;
            self.shared.write_piece(piece, until).await.map_err(|failure| match failure.code {
                Code::Timeout if before > 0 => late(before, bytes.len()),
                _ => failure,
            })?;
        }
        Ok(())
    }

    async fn close_input(&self) -> Result<()> {
        self.ask(Kind::CloseInput, &[], PROMPT).await.map(drop)
    }

    async fn pending(&self) -> Result<Pending> {
        let pending: wire::Pending = json(&self.ask(Kind::Pending, &[], PROMPT).await?)?;
        let wire::Pending { queued, unread, canonical, echo } = pending;
        Ok(Pending { queued, unread, canonical, echo })
    }

    async fn resize(&self, size: Size) -> Result<()> {
        let [c0, c1] = size.cols.to_le_bytes();
        let [r0, r1] = size.rows.to_le_bytes();
        self.ask(Kind::Resize, &[c0, c1, r0, r1], PROMPT).await.map(drop)
    }

    async fn signal(&self, signal: i32, tree: bool) -> Result<()> {
        let mut payload = signal.to_le_bytes().to_vec();
        payload.push(u8::from(tree));
        self.ask(Kind::Signal, &payload, PROMPT).await.map(drop)
    }

    async fn stop(&self, stop: Stop) -> Result<ExitRecord> {
        let within = stop.grace + STOP_MARGIN;
        let grace = Millis(stop.grace.as_millis() as u64);
        let request = wire::StopRequest { grace, reason: stop.reason, by: stop.by };
        let request =
            serde_json::to_vec(&request).map_err(|e| Failure::new(Code::Internal, e.to_string()))?;
        let answer = self.ask(Kind::Stop, &request, within).await;
        // It may have ended by itself meanwhile, or its holder may have died in the middle of it.
        match answer {
            Ok(record) => json(&record),
            Err(failure) => match self.shared.status.borrow().exit.clone() {
                Some(record) => Ok(record),
                None => Err(failure),
            },
        }
    }

    async fn wait(&self) -> Result<ExitRecord> {
        let mut status = self.shared.status.subscribe();
        let over = status.wait_for(|status| status.exit.is_some() || status.broken).await;
        match over.ok().and_then(|status| status.exit.clone()) {
            Some(record) => Ok(record),
            None => Err(self.shared.closed()),
        }
    }

    fn status(&self) -> watch::Receiver<Status> {
        self.shared.status.subscribe()
    }

    async fn output(&self, from: Offset) -> Result<Box<dyn Output>> {
        Ok(Box::new(LogOutput::open(&self.shared.home, from, self.status())?))
    }

    async fn stats(&self) -> Result<Stats> {
        let status: wire::Status = json(&self.ask(Kind::Status, &[], PROMPT).await?)?;
        let home = self.shared.home.clone();
        let read = move || -> io::Result<Stats> {
            let ticket = keep::read_ticket(&home)?;
            let usage =
                ticket.holder.as_ref().map(|holder| linux::usage(&ticket.scope, holder)).transpose()?;
            let usage = usage.unwrap_or_default();
            let log = home.join(Home::LOG);
            let (log_start, log_end) = wharf_log::Reader::bounds(&log)?;
            Ok(Stats {
                cpu: Millis(usage.cpu),
                memory: usage.memory,
                processes: usage.processes,
                log_start,
                log_end,
                last_output: last_change(&log),
                last_input: status.last_input,
            })
        };
        let stats = tokio::task::spawn_blocking(read).await;
        let stats = stats.map_err(|error| Failure::new(Code::Internal, error.to_string()))?;
        stats.map_err(|error| Failure::system("cannot measure the session", &error))
    }

    async fn exec(&self, request: ExecRequest) -> Result<i32> {
        let home = self.shared.home.clone();
        let run = move || exec(&home, &request);
        tokio::task::spawn_blocking(run)
            .await
            .map_err(|error| Failure::new(Code::Internal, error.to_string()))?
    }
}

/// When the newest segment last grew.
fn last_change(log: &std::path::Path) -> Option<Millis> {
    let names = std::fs::read_dir(log).ok()?.filter_map(|entry| Some(entry.ok()?.path()));
    let newest = names.filter(|path| path.extension().is_some_and(|ext| ext == "log")).max()?;
    let meta = newest.metadata().ok()?;
    (meta.len() > 0).then(|| meta.modified().ok().map(Millis::from)).flatten()
}

/// Runs a further command, on a connection of its own that waits as long as the command takes.
fn exec(home: &std::path::Path, request: &ExecRequest) -> Result<i32> {
    use std::os::fd::AsFd;
    let failed = |error: io::Error| {
        if home.join(Home::EXIT).exists() {
            return Failure::new(Code::Ended, "the session has ended");
        }
        Failure::system("cannot run a further command", &error)
    };
    let mut client = client::Client::connect(home, "program").map_err(failed)?;
    let stdio = [request.stdio[0].as_fd(), request.stdio[1].as_fd(), request.stdio[2].as_fd()];
    let exec = wire::Exec { dir: request.dir.clone(), tty: request.tty };
    let wanted = client.exec(&request.argv, &request.env, &exec, stdio).map_err(failed)?;
    loop {
        match client.next_event().map_err(failed)? {
            Some(client::Event::Done { seq, answer }) if seq == wanted => {
                let code = answer.first_chunk().map(|bytes| i32::from_le_bytes(*bytes));
                return code.ok_or_else(|| Failure::new(Code::Internal, "the holder's answer is odd"));
            }
            Some(client::Event::Refused { seq, failure }) if seq == wanted => return Err(failure),
            Some(client::Event::Exit(_)) | None => {
                return Err(Failure::new(Code::Ended, "the session ended, and the command with it"));
            }
            Some(_) => {}
        }
    }
}

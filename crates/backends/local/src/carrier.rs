//! What carries frames between this process and one session's holder, through as many holders as it takes.

use std::collections::HashMap;
use std::io;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::io::Interest;
use tokio::net::UnixStream;
use tokio::sync::{Notify, oneshot, watch};
use wharf_backend::{Result, Status};
use wharf_holder::frame::{self, Decoder, Header, Kind};
use wharf_holder::pace::Pace;
use wharf_holder::{linux, wire};
use wharf_model::{Code, ExitRecord, Failure};

use crate::held;
use crate::keep::{self, Keep};
use crate::place::Place;

/// How often a holder is replaced by one that dies at once, once the command is dead too.
const MAX_REPLACEMENTS: u32 = 20;
/// The first and the longest wait before the next attempt to replace a holder.
const REPLACE_BACKOFF: (Duration, Duration) = (Duration::from_millis(5), Duration::from_secs(1));
/// The most that waits to be sent: a holder that reads nothing is asked nothing more.
const MAX_UNSENT: usize = 8 << 20;
/// How long a holder that closed its connection may take to be gone before it is asked whether it lives.
const HOLDER_DEATH_TIMEOUT: Duration = Duration::from_millis(500);
/// How long one may take that neither goes nor answers.
const SILENT_HOLDER_TIMEOUT: Duration = Duration::from_secs(30);

/// The answer to a request.
pub(crate) type Reply = std::result::Result<Vec<u8>, Failure>;

/// The connection to one session, whoever holds it.
pub(crate) struct Carrier {
    pub(crate) home: PathBuf,
    pub(crate) status: watch::Sender<Status>,
    /// Where another holder comes from, where there can be one.
    place: Option<Arc<Place>>,
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
    asked: HashMap<u32, Asked>,
    /// No holder and none to come: nothing can be asked any more.
    closed: bool,
    /// When the holder last said anything.
    heard: Option<Instant>,
}

/// A request that waits for its answer.
struct Asked {
    tell: oneshot::Sender<Reply>,
    /// The frame, where the next holder is to be asked the same: an end that was asked for is still wanted.
    again: Option<Vec<u8>>,
}

/// A request that is forgotten when nobody waits for its answer any more.
struct Forgotten<'a> {
    carrier: &'a Carrier,
    seq: u32,
}

impl Drop for Forgotten<'_> {
    fn drop(&mut self) {
        self.carrier.forget(self.seq);
    }
}

impl Carrier {
    /// Serves a connection to a holder that has just said who it is.
    pub(crate) fn open(
        home: PathBuf,
        place: Option<Arc<Place>>,
        stream: UnixStream,
        keep: Option<Keep>,
        first: Status,
    ) -> Arc<Self> {
        let carrier = Arc::new(Self {
            home,
            status: watch::Sender::new(first),
            place,
            next: AtomicU32::new(16),
            wire: Mutex::default(),
            keep: Mutex::new(keep),
            more: Notify::new(),
        });
        tokio::spawn(Arc::clone(&carrier).serve(stream));
        carrier
    }

    /// Whether the holder runs in another place than we do.
    pub(crate) fn is_elsewhere(&self) -> bool {
        self.place.is_none()
    }

    fn wire(&self) -> MutexGuard<'_, Wire> {
        self.wire.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn keep(&self) -> MutexGuard<'_, Option<Keep>> {
        self.keep.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends a request. The answer comes by itself; `forget` what is no longer waited for.
    pub(crate) fn request(&self, kind: Kind, payload: &[u8]) -> Result<(u32, oneshot::Receiver<Reply>)> {
        let seq = self.next.fetch_add(1, Ordering::Relaxed).max(1);
        let (tell, told) = oneshot::channel();
        let frame = frame::encode(kind, seq, payload);
        let again = (kind == Kind::Stop).then(|| frame.clone());
        {
            let mut wire = self.wire();
            if wire.closed {
                return Err(self.closed());
            }
            if wire.out.len() + frame.len() > MAX_UNSENT {
                return Err(Failure::new(Code::Busy, "the holder does not read what it is asked"));
            }
            wire.out.extend_from_slice(&frame);
            wire.asked.insert(seq, Asked { tell, again });
        }
        self.more.notify_one();
        Ok((seq, told))
    }

    /// Waits for no answer to a request any more.
    pub(crate) fn forget(&self, seq: u32) {
        self.wire().asked.remove(&seq);
    }

    /// Sends a request and waits for its answer. Whoever waits no longer has not asked: no later holder is asked in its stead.
    pub(crate) async fn ask(&self, kind: Kind, payload: &[u8], within: Duration) -> Reply {
        let (seq, told) = self.request(kind, payload)?;
        let _forgotten = Forgotten { carrier: self, seq };
        match tokio::time::timeout(within, told).await {
            Ok(Ok(reply)) => reply,
            Ok(Err(_)) => Err(self.closed()),
            Err(_) => {
                self.silence(within);
                let why = format!("the holder did not answer within {} ms", within.as_millis());
                Err(Failure::new(Code::Timeout, why))
            }
        }
    }

    /// A request was not answered in time. Where nothing else came from the holder meanwhile, its silence is told.
    pub(crate) fn silence(&self, within: Duration) {
        if self.wire().heard.is_some_and(|heard| heard.elapsed() < within) {
            return;
        }
        let who = match self.keep().as_ref() {
            Some(keep) => format!("its holder, process {},", keep.started.holder.pid),
            None => "its holder".to_owned(),
        };
        let what = format!("{who} does not answer");
        self.status.send_if_modified(|status| {
            let new = status.silent.is_none();
            status.silent.get_or_insert(what);
            new
        });
    }

    /// Lets a holder go on that somebody stopped: it is asked for the session's end, which nobody else can bring about.
    pub(crate) fn wake(&self) {
        let holder = self.keep().as_ref().map(|keep| keep.started.holder.clone());
        let Some(holder) = holder else { return };
        if linux::proc::stat(holder.pid).is_ok_and(|stat| stat.start == holder.start && stat.state == b'T')
            && let Ok(Some(pidfd)) = linux::proc::open(&holder)
        {
            let _ = linux::proc::signal(&pidfd, rustix::process::Signal::CONT.as_raw());
        }
    }

    /// Why nothing can be asked any more.
    pub(crate) fn closed(&self) -> Failure {
        if self.status.borrow().exit.is_some() {
            return Failure::new(Code::Ended, "the session has ended")
                .hint("`wharf logs` shows its last output");
        }
        Failure::new(Code::Unreachable, "the connection to the holder broke")
    }

    /// Carries frames until the session is over.
    async fn serve(self: Arc<Self>, mut stream: UnixStream) {
        while !self.carry(&stream).await && !self.read_exit() {
            self.interrupted();
            match self.replace().await {
                Some(next) => {
                    self.status.send_if_modified(|status| status.silent.take().is_some());
                    stream = next;
                }
                None => break,
            }
        }
        let asked: Vec<Asked> = {
            let mut wire = self.wire();
            wire.closed = true;
            wire.out = Vec::new();
            wire.asked.drain().map(|(_, asked)| asked).collect()
        };
        for Asked { tell, .. } in asked {
            let _ = tell.send(Err(self.closed()));
        }
        // Nothing is kept alive for a session that is over.
        drop(self.keep().take());
        let broken = self.status.borrow().exit.is_none();
        self.status.send_modify(|status| status.broken = broken);
    }

    /// The holder is gone. Of what was on its way nobody knows how far it came: only an end is asked for again.
    fn interrupted(&self) {
        let mut wire = self.wire();
        let (again, lost): (Vec<_>, Vec<_>) =
            wire.asked.drain().partition(|(_, asked)| asked.again.is_some());
        wire.out = again.iter().filter_map(|(_, asked)| asked.again.as_deref()).flatten().copied().collect();
        wire.asked = again.into_iter().collect();
        drop(wire);
        for (_, Asked { tell, .. }) in lost {
            let _ = tell.send(Err(self.closed()));
        }
    }

    /// An exit record that came by file and not by frame. While the command runs it is not its holder's.
    fn read_exit(&self) -> bool {
        if self.keep().as_ref().is_some_and(Keep::command_lives) {
            return false;
        }
        let Some(record) = held::read_exit_now(&self.home) else { return false };
        self.status.send_modify(|status| status.exit = Some(record));
        true
    }

    /// Another holder in the place of one that died; none when that cannot be.
    async fn replace(&self) -> Option<UnixStream> {
        let (place, kept) = (self.place.as_ref()?, self.keep().take()?);
        let given_up = |why: &str| {
            tracing::warn!(session = %self.home.display(), why, "a holder is not replaced");
        };
        match linux::proc::open(&kept.started.holder) {
            Ok(None) => {}
            Ok(Some(pidfd)) if self.is_gone(&pidfd).await => {}
            // A holder that lives has only cut us off; it is not ours to replace.
            Ok(Some(_)) => {
                given_up("it lives");
                return None;
            }
            Err(error) => {
                given_up(&error.to_string());
                return None;
            }
        }
        let (mut attempt, mut wait) = (0, REPLACE_BACKOFF.0);
        // For as long as there is something to hold. The next one may be killed before it could say that it has
        // taken over, or the system may be out of something: what we keep is still good.
        while attempt < MAX_REPLACEMENTS || kept.command_lives() {
            let resumed = match keep::read_ticket(&self.home) {
                Ok(ticket) => place.resume(&kept, &ticket).await,
                Err(error) => Err(Failure::system("cannot read the ticket", &error)),
            };
            match resumed {
                Ok((stream, started, fds)) => {
                    *self.keep() = Keep::new(started, fds);
                    return Some(stream);
                }
                // It may be at work all the same, and two would be worse than none.
                Err(failure) if failure.code == Code::Timeout => {
                    given_up(&failure.message);
                    return None;
                }
                Err(failure) => {
                    tracing::info!(session = %self.home.display(), %failure, attempt, "a holder is not replaced yet");
                }
            }
            tokio::time::sleep(wait).await;
            (attempt, wait) = (attempt + 1, (wait * 2).min(REPLACE_BACKOFF.1));
        }
        given_up("its command has ended");
        None
    }

    /// Whether a holder that closed its connection is gone. One that is killed may take its time to go on a machine that has
    /// none for it, and what is kept for its session is let go only for one that answers.
    async fn is_gone(&self, pidfd: &OwnedFd) -> bool {
        let until = Instant::now() + SILENT_HOLDER_TIMEOUT;
        while Instant::now() < until {
            if dies(pidfd).await {
                return true;
            }
            if let Ok(Ok(_)) = tokio::time::timeout(HOLDER_DEATH_TIMEOUT, held::find(&self.home)).await {
                return false;
            }
        }
        false
    }

    /// Carries frames until the connection ends. True when it ended with the session.
    async fn carry(&self, stream: &UnixStream) -> bool {
        let (mut frames, mut pace) = (Decoder::of_answers(), Pace::new(Instant::now()));
        loop {
            let ended = || self.status.borrow().exit.is_some();
            if self.flush(stream).is_err() {
                return ended();
            }
            let stuck = !self.wire().out.is_empty();
            let interest = if stuck { Interest::READABLE | Interest::WRITABLE } else { Interest::READABLE };
            if let Some(pause) = pace.pause(Instant::now) {
                // It says more than any holder has to: the rest waits on its side, and others are served meanwhile.
                tokio::time::sleep(pause).await;
                continue;
            }
            tokio::select! {
                ready = stream.ready(interest) => {
                    let Ok(ready) = ready else { return ended() };
                    if ready.is_readable() {
                        match self.receive(stream, &mut frames, &mut pace) {
                            // There may be more, and there may be others.
                            Ok(true) => tokio::task::yield_now().await,
                            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                            Ok(false) | Err(_) => return ended(),
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

    fn receive(&self, stream: &UnixStream, frames: &mut Decoder, pace: &mut Pace) -> io::Result<bool> {
        let mut buffer = [0_u8; 8 << 10];
        // Nothing that is asked here is answered with a descriptor. A plain read has the kernel close what comes.
        let n = stream.try_read(&mut buffer)?;
        if n == 0 {
            return Ok(false);
        }
        self.wire().heard = Some(Instant::now());
        if self.status.borrow().silent.is_some() {
            self.status.send_modify(|status| status.silent = None);
        }
        frames.push(&buffer[..n]);
        while let Some((header, payload)) = frames.next()? {
            if !self.on(header, payload) {
                pace.spend(Kind::known(header.kind), payload.len());
            }
        }
        frames.rest();
        Ok(true)
    }

    /// Takes a frame. Whether it was asked for.
    fn on(&self, header: Header, payload: &[u8]) -> bool {
        match Kind::known(header.kind) {
            Some(Kind::Ack | Kind::Welcome) => return self.tell(header.seq, || Ok(payload.to_vec())),
            Some(Kind::Error) => {
                return self.tell(header.seq, || {
                    let none = |_| Failure::new(Code::Internal, "the holder gave no reason");
                    Err(serde_json::from_slice(payload).unwrap_or_else(none))
                });
            }
            Some(Kind::News) => {
                if let Ok(news) = serde_json::from_slice::<wire::Status>(payload) {
                    if news.input_closed
                        && let Some(keep) = self.keep().as_mut()
                    {
                        keep.close_input();
                    }
                    self.status.send_if_modified(|status| {
                        let before = status.clone();
                        update(status, &news);
                        *status != before
                    });
                }
            }
            Some(Kind::Exit) => {
                // There is one end, and the first word on it counts.
                if self.status.borrow().exit.is_none()
                    && let Ok(record) = serde_json::from_slice::<ExitRecord>(payload)
                {
                    self.status.send_modify(|status| status.exit = Some(record));
                }
            }
            _ => {}
        }
        false
    }

    /// Answers a request. Whether there was one.
    fn tell(&self, seq: u32, reply: impl FnOnce() -> Reply) -> bool {
        let asked = self.wire().asked.remove(&seq);
        let known = asked.is_some();
        if let Some(Asked { tell, .. }) = asked {
            let _ = tell.send(reply());
        }
        known
    }
}

/// What a holder said of itself, for those above.
pub(crate) fn update(status: &mut Status, news: &wire::Status) {
    status.attached = news.attached;
    // It never changes; and where it was known before, it is known by the number that it has on this host.
    // One of another host has none.
    status.pid = status.pid.into_iter().chain([news.pid]).find(|pid| *pid > 0);
    status.size = news.size.affordable();
    status.last_input = news.last_input;
    // Older holders count those who only look, too.
    status.typists = news.typists.unwrap_or(news.attached);
    (status.line_open, status.line_kept) = (news.line_open, news.line_kept);
    (status.suspended, status.oom_kills) = (news.suspended, news.oom_kills);
}

/// Whether a process that let go of us ends soon. Asked in steps: this thread has others to serve.
async fn dies(pidfd: &OwnedFd) -> bool {
    let until = tokio::time::Instant::now() + HOLDER_DEATH_TIMEOUT;
    while !linux::proc::ends(pidfd, Duration::ZERO) {
        if tokio::time::Instant::now() >= until {
            return false;
        }
        tokio::time::sleep(REPLACE_BACKOFF.0).await;
    }
    true
}

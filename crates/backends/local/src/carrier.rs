//! What carries frames between this process and one session's holder, through as many holders as it takes.

use std::collections::HashMap;
use std::io;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::io::Interest;
use tokio::net::UnixStream;
use tokio::sync::{Notify, oneshot, watch};
use wharf_backend::{Result, Status};
use wharf_holder::frame::{self, Decoder, Header, Kind};
use wharf_holder::{linux, wire};
use wharf_model::{Code, ExitRecord, Failure, Home};

use crate::keep::{self, Keep};
use crate::place::Place;

/// How often a holder is replaced by one that dies at once, once the command is dead too.
const REPLACEMENTS: u32 = 20;
/// The first and the longest wait before the next attempt to replace a holder.
const AGAIN: (Duration, Duration) = (Duration::from_millis(5), Duration::from_secs(1));
/// How long a holder that closed its connection may take to be gone.
const DYING: Duration = Duration::from_millis(500);

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
}

/// A request that waits for its answer.
struct Asked {
    tell: oneshot::Sender<Reply>,
    /// The frame, where the next holder is to be asked the same: an end that was asked for is still wanted.
    again: Option<Vec<u8>>,
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

    /// Sends a request and waits for its answer.
    pub(crate) async fn ask(&self, kind: Kind, payload: &[u8], within: Duration) -> Reply {
        let (seq, told) = self.request(kind, payload)?;
        match tokio::time::timeout(within, told).await {
            Ok(Ok(reply)) => reply,
            Ok(Err(_)) => Err(self.closed()),
            Err(_) => {
                self.forget(seq);
                let why = format!("the holder did not answer within {} ms", within.as_millis());
                Err(Failure::new(Code::Timeout, why))
            }
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
                Some(next) => stream = next,
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

    /// An exit record that came by file and not by frame.
    fn read_exit(&self) -> bool {
        let Ok(bytes) = std::fs::read(self.home.join(Home::EXIT)) else { return false };
        let Ok(record) = serde_json::from_slice::<ExitRecord>(&bytes) else { return false };
        self.status.send_modify(|status| status.exit = Some(record));
        true
    }

    /// Another holder in the place of one that died; none when that cannot be.
    async fn replace(&self) -> Option<UnixStream> {
        let (place, kept) = (self.place.as_ref()?, self.keep().take()?);
        // A holder that lives has only cut us off; it is not ours to replace.
        if let Some(pidfd) = linux::proc::open(&kept.started.holder).ok()?
            && !dies(&pidfd).await
        {
            return None;
        }
        let (mut attempt, mut wait) = (0, AGAIN.0);
        // For as long as there is something to hold. The next one may be killed before it could say that it has
        // taken over, or the system may be out of something: what we keep is still good.
        while attempt < REPLACEMENTS || kept.command_lives() {
            let ticket = keep::read_ticket(&self.home).ok()?;
            match place.resume(&kept, &ticket).await {
                Ok((stream, started, fds)) => {
                    *self.keep() = Keep::new(started, fds);
                    return Some(stream);
                }
                // It may be at work all the same, and two would be worse than none.
                Err(failure) if failure.code == Code::Timeout => return None,
                Err(_) => {}
            }
            tokio::time::sleep(wait).await;
            (attempt, wait) = (attempt + 1, (wait * 2).min(AGAIN.1));
        }
        None
    }

    /// Carries frames until the connection ends. True when it ended with the session.
    async fn carry(&self, stream: &UnixStream) -> bool {
        let (mut frames, mut passed) = (Decoder::default(), Vec::new());
        loop {
            let ended = || self.status.borrow().exit.is_some();
            if self.flush(stream).is_err() {
                return ended();
            }
            let stuck = !self.wire().out.is_empty();
            let interest = if stuck { Interest::READABLE | Interest::WRITABLE } else { Interest::READABLE };
            tokio::select! {
                ready = stream.ready(interest) => {
                    let Ok(ready) = ready else { return ended() };
                    if ready.is_readable() {
                        match self.receive(stream, &mut frames, &mut passed) {
                            Ok(true) => {}
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
        let asked = self.wire().asked.remove(&seq);
        if let Some(Asked { tell, .. }) = asked {
            let _ = tell.send(reply);
        }
    }
}

/// What a holder said of itself, for those above.
pub(crate) fn update(status: &mut Status, news: &wire::Status) {
    status.attached = news.attached;
    // It never changes; and where it was known before, it is known by the number that it has on this host.
    // One of another host has none.
    status.pid = status.pid.into_iter().chain([news.pid]).find(|pid| *pid > 0);
    status.size = news.size;
    status.last_input = news.last_input;
}

/// Whether a process that let go of us ends soon. Asked in steps: this thread has others to serve.
async fn dies(pidfd: &OwnedFd) -> bool {
    let until = tokio::time::Instant::now() + DYING;
    while !linux::proc::ends(pidfd, Duration::ZERO) {
        if tokio::time::Instant::now() >= until {
            return false;
        }
        tokio::time::sleep(AGAIN.0).await;
    }
    true
}

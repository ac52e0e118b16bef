//! One session's holder as this process knows it: sends it requests, hears its answers, and replaces it when it is killed.

use std::io;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::io::Interest;
use tokio::net::UnixStream;
use tokio::sync::{Notify, oneshot, watch};
use wharf_backend::{BackendTasks, Result, Status};
use wharf_holder::frame::{Decoder, Header, Kind};
use wharf_holder::pace::Pace;
use wharf_holder::{linux, wire};
use wharf_model::{Code, Failure};

use super::kept_fds::KeptFds;
use super::pending_requests::{PendingRequests, Reply, Waiter};
use super::pool::HolderPool;
use super::{find, records};
use crate::event::Event;

/// How often a holder is replaced by one that dies at once, once the command is dead too.
const MAX_REPLACEMENTS: u32 = 20;
/// The first and the longest wait before the next attempt to replace a holder.
const REPLACE_BACKOFF: (Duration, Duration) = (Duration::from_millis(5), Duration::from_secs(1));
/// How long a holder that closed its connection may take to be gone before it is asked whether it lives.
const HOLDER_DEATH_TIMEOUT: Duration = Duration::from_millis(500);
/// How long one may take that neither goes nor answers.
const SILENT_HOLDER_TIMEOUT: Duration = Duration::from_secs(30);

/// The connection to one session, whoever holds it.
pub(super) struct HolderClient {
    pub(super) home: PathBuf,
    pub(super) status: watch::Sender<Status>,
    /// Where another holder comes from, where there can be one.
    pool: Option<Arc<HolderPool>>,
    next: AtomicU32,
    requests: Mutex<PendingRequests>,
    /// With what the holder is replaced.
    kept: Mutex<Option<KeptFds>>,
    /// Something waits to be sent.
    more: Notify,
}

/// A request that is forgotten when nobody waits for its answer any more.
struct Forgotten<'a> {
    client: &'a HolderClient,
    seq: u32,
}

impl Drop for Forgotten<'_> {
    fn drop(&mut self) {
        self.client.forget(self.seq);
    }
}

/// Ends the client when the task that serves it does, also where that task is dropped.
struct EndOnDrop(Arc<HolderClient>);

impl Drop for EndOnDrop {
    fn drop(&mut self) {
        self.0.end();
    }
}

impl HolderClient {
    /// Serves a connection to a holder that has just said who it is. `tasks` owns the task that does so.
    pub(super) fn open(
        tasks: &BackendTasks,
        home: PathBuf,
        pool: Option<Arc<HolderPool>>,
        stream: UnixStream,
        kept: Option<KeptFds>,
        first: Status,
    ) -> Arc<Self> {
        let client = Arc::new(Self {
            home,
            status: watch::Sender::new(first),
            pool,
            next: AtomicU32::new(16),
            requests: Mutex::default(),
            kept: Mutex::new(kept),
            more: Notify::new(),
        });
        let end = EndOnDrop(Arc::clone(&client));
        tasks.spawn(async move { end.0.serve(stream).await });
        client
    }

    /// Whether the holder runs in another place than we do.
    pub(super) fn is_elsewhere(&self) -> bool {
        self.pool.is_none()
    }

    fn requests(&self) -> MutexGuard<'_, PendingRequests> {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn kept(&self) -> MutexGuard<'_, Option<KeptFds>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends a request. The answer comes by itself; `forget` what is no longer waited for.
    pub(super) fn request(&self, kind: Kind, payload: &[u8]) -> Result<(u32, oneshot::Receiver<Reply>)> {
        let seq = self.next.fetch_add(1, Ordering::Relaxed).max(1);
        let told = self.requests().add(kind, seq, payload).ok_or_else(|| self.closed())??;
        self.more.notify_one();
        Ok((seq, told))
    }

    /// Waits for no answer to a request any more.
    pub(super) fn forget(&self, seq: u32) {
        drop(self.requests().take(seq));
    }

    /// Sends a request and waits for its answer. Whoever waits no longer has not asked: no later holder is asked in its stead.
    pub(super) async fn ask(&self, kind: Kind, payload: &[u8], within: Duration) -> Reply {
        let (seq, told) = self.request(kind, payload)?;
        let _forgotten = Forgotten { client: self, seq };
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
    pub(super) fn silence(&self, within: Duration) {
        if self.requests().was_heard_within(within) {
            return;
        }
        let who = match self.kept().as_ref() {
            Some(kept) => format!("its holder, process {},", kept.started.holder.pid),
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
    pub(super) fn wake(&self) {
        let holder = self.kept().as_ref().map(|kept| kept.started.holder.clone());
        let Some(holder) = holder else { return };
        if linux::proc::stat(holder.pid).is_ok_and(|stat| stat.start == holder.start && stat.state == b'T')
            && let Ok(Some(pidfd)) = linux::proc::open(&holder)
        {
            let _ = linux::proc::signal(&pidfd, rustix::process::Signal::CONT.as_raw());
        }
    }

    /// Why nothing can be asked any more.
    pub(super) fn closed(&self) -> Failure {
        if self.status.borrow().exit.is_some() {
            return Failure::new(Code::Ended, "the session has ended")
                .hint("`wharf logs` shows its last output");
        }
        Failure::new(Code::Unreachable, "the connection to the holder broke")
    }

    /// Carries frames until the session is over.
    async fn serve(&self, mut stream: UnixStream) {
        while !self.carry(&stream).await && !self.read_exit() {
            let lost = self.requests().interrupt();
            self.fail(lost);
            match self.replace().await {
                Some(next) => {
                    self.status.send_if_modified(|status| status.silent.take().is_some());
                    stream = next;
                }
                None => break,
            }
        }
    }

    /// Answers nothing any more: the session is over, or its task was dropped.
    fn end(&self) {
        let waiters = self.requests().close();
        self.fail(waiters);
        // Nothing is kept alive for a session that is over.
        drop(self.kept().take());
        let broken = self.status.borrow().exit.is_none();
        self.status.send_modify(|status| status.broken = broken);
    }

    /// Tells those who wait for an answer why there is none.
    fn fail(&self, waiters: Vec<Waiter>) {
        for waiter in waiters {
            let _ = waiter.send(Err(self.closed()));
        }
    }

    /// An exit record that came by file and not by frame. While the command runs it is not its holder's.
    fn read_exit(&self) -> bool {
        if self.kept().as_ref().is_some_and(KeptFds::command_lives) {
            return false;
        }
        let Some(record) = records::read_exit_now(&self.home) else { return false };
        self.status.send_modify(|status| status.exit = Some(record));
        true
    }

    /// Another holder in the place of one that died; none when that cannot be.
    async fn replace(&self) -> Option<UnixStream> {
        let (pool, kept) = (self.pool.as_ref()?, self.kept().take()?);
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
            let resumed = match records::read_ticket(&self.home) {
                Ok(ticket) => pool.resume(&kept, &ticket).await,
                Err(error) => Err(Failure::system("cannot read the ticket", &error)),
            };
            match resumed {
                Ok((stream, started, fds)) => {
                    *self.kept() = KeptFds::new(started, fds);
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
            if let Ok(Ok(_)) = tokio::time::timeout(HOLDER_DEATH_TIMEOUT, find::find(&self.home)).await {
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
            if self.requests().flush(stream).is_err() {
                return ended();
            }
            let stuck = self.requests().has_unsent();
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

    fn receive(&self, stream: &UnixStream, frames: &mut Decoder, pace: &mut Pace) -> io::Result<bool> {
        let mut buffer = [0_u8; 8 << 10];
        // Nothing that is asked here is answered with a descriptor. A plain read has the kernel close what comes.
        let n = stream.try_read(&mut buffer)?;
        if n == 0 {
            return Ok(false);
        }
        self.requests().note_heard();
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
        match Event::of(header, payload) {
            Ok(Some(Event::Done { seq, answer })) => return self.answer(seq, Ok(answer)),
            Ok(Some(Event::Refused { seq, failure })) => return self.answer(seq, Err(failure)),
            Err(_) if header.kind == Kind::Error as u8 => {
                let none = Failure::new(Code::Internal, "the holder gave no reason");
                return self.answer(header.seq, Err(none));
            }
            Ok(Some(Event::News(news))) => {
                if news.input_closed
                    && let Some(kept) = self.kept().as_mut()
                {
                    kept.close_input();
                }
                self.status.send_if_modified(|status| {
                    let before = status.clone();
                    update(status, &news);
                    *status != before
                });
            }
            // There is one end, and the first word on it counts.
            Ok(Some(Event::Exit(record))) if self.status.borrow().exit.is_none() => {
                self.status.send_modify(|status| status.exit = Some(record));
            }
            _ => {}
        }
        false
    }

    /// Answers a request. Whether there was one.
    fn answer(&self, seq: u32, reply: Reply) -> bool {
        let waiter = self.requests().take(seq);
        let known = waiter.is_some();
        if let Some(waiter) = waiter {
            let _ = waiter.send(reply);
        }
        known
    }
}

/// What a holder said of itself, for those above.
pub(super) fn update(status: &mut Status, news: &wire::HolderStatus) {
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

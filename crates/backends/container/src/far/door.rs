//! The door of a session on another host: whoever comes to its socket here is carried there.
//!
//! It is a task of the daemon and nothing precious: the session, its output and its record are in the container. With
//! the daemon it goes, and the next one opens another.

use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::net::{UnixListener, UnixStream};
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};
use wharf_holder::linux;
use wharf_model::{Failure, Home, Ticket};

use super::mirror::{Birth, Fate, Mirror};
use super::site::{SOCKET, Site};
use super::tube::{Input, Output};
use super::visit::visit;
use crate::private::Private;
use crate::rooms::Rooms;

/// How many may come at once.
const MAX_GUESTS: usize = 64;
/// How long after a guest the connection for the next one is made.
const NEXT_CONNECTION_DELAY: Duration = Duration::from_millis(200);
/// How long visitors may take to hear the last words.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(5);

/// What only one can have: two who write one log would double it.
pub(crate) struct Key {
    _file: File,
}

impl Key {
    /// The file's name in the session's directory.
    pub(crate) const NAME: &'static str = "door";

    /// The key of a session; none while somebody else has it.
    pub(crate) fn take(home: &Path) -> Result<Option<Self>, Failure> {
        let path = home.join(Self::NAME);
        let failed = |error: io::Error| Failure::system(format!("cannot lock {}", path.display()), &error);
        let file = File::options().create(true).append(true).open(&path).map_err(failed)?;
        match file.try_lock() {
            Ok(()) => Ok(Some(Self { _file: file })),
            Err(std::fs::TryLockError::WouldBlock) => Ok(None),
            Err(std::fs::TryLockError::Error(error)) => Err(failed(error)),
        }
    }
}

/// Nothing is behind the door of a session that is over any more: its key goes.
pub(crate) fn lock_up(ticket: &Ticket) {
    if Private::of(ticket).is_far() && Rooms::of(ticket.dir.as_path()).record(ticket.run).is_some() {
        let _ = std::fs::remove_file(ticket.dir.as_path().join(Key::NAME));
    }
}

/// An open door.
pub(crate) struct Door {
    site: Arc<Site>,
    fate: watch::Receiver<Fate>,
    task: JoinHandle<()>,
}

impl Door {
    /// Opens it. Of a session that is yet to begin, the mirror has the first word with its holder; and there is a stream
    /// for the first guest.
    pub(crate) fn open(
        site: Site,
        key: Key,
        birth: Option<(Birth, (Input, Output))>,
    ) -> Result<Self, Failure> {
        let path = site.home().join(Home::SOCKET);
        let listen = || -> io::Result<UnixListener> {
            match std::fs::remove_file(&path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
            let listener = linux::bind(&path)?;
            listener.set_nonblocking(true)?;
            UnixListener::from_std(listener)
        };
        let failed =
            |error: io::Error| Failure::system(format!("cannot listen at {}", path.display()), &error);
        let listener = listen().map_err(failed)?;
        let site = Arc::new(site);
        let (tell, fate) = watch::channel(Fate::Open);
        let mirror = Mirror::open(Arc::clone(&site), tell)
            .map_err(|error| Failure::system("cannot open the session's log", &error))?;
        let cuts = mirror.cuts();
        let (birth, spare) = birth.unzip();
        let spare = spare.map(|stream| Spare { stream, cuts: 0 });
        let frame = Frame { site: Arc::clone(&site), listener, fate: fate.clone(), cuts, spare };
        let task = tokio::spawn(frame.serve(key, mirror.run(birth)));
        Ok(Self { site, fate, task })
    }

    /// Lets somebody in who has a stream of their own.
    pub(crate) fn admit(&self, guest: UnixStream, stream: (Input, Output)) {
        tokio::spawn(visit(Arc::clone(&self.site), self.fate.clone(), guest, stream));
    }

    /// What becomes of the session, as it is found out.
    pub(crate) fn fate(&self) -> watch::Receiver<Fate> {
        self.fate.clone()
    }

    /// Closes it, where the session has failed to start: nothing is written any more.
    pub(crate) async fn close(self) {
        self.task.abort();
        let _ = self.task.await;
    }
}

/// A connection that waits for the next guest: it need not be made then, and there may be no room for it by then.
struct Spare {
    stream: (Input, Output),
    /// How often the mirror had been cut off when it was made.
    cuts: u64,
}

/// What a door is made of.
struct Frame {
    site: Arc<Site>,
    listener: UnixListener,
    fate: watch::Receiver<Fate>,
    cuts: Arc<AtomicU64>,
    spare: Option<Spare>,
}

impl Frame {
    async fn serve(mut self, key: Key, mirror: impl Future<Output = ()>) {
        let (mut visits, mut making) = (JoinSet::new(), JoinSet::new());
        tokio::pin!(mirror);
        loop {
            tokio::select! {
                () = &mut mirror => break,
                Some(_) = visits.join_next() => {}
                Some(made) = making.join_next() => self.spare = made.ok().flatten(),
                guest = self.listener.accept(), if visits.len() < MAX_GUESTS => {
                    let Ok((guest, _)) = guest else {
                        // Out of descriptors, most likely: that passes.
                        tokio::time::sleep(Duration::from_millis(50)).await;
                        continue;
                    };
                    let cuts = self.cuts.load(Ordering::Relaxed);
                    let spare = self.spare.take().filter(|spare| spare.cuts == cuts);
                    visits.spawn(carry(Arc::clone(&self.site), self.fate.clone(), guest, spare));
                    if making.is_empty() {
                        making.spawn(another(Arc::clone(&self.site), cuts));
                    }
                }
            }
        }
        drop(self.listener);
        // The next one may open a door: this one writes nothing any more.
        drop((key, self.spare));
        let gone = async { while visits.join_next().await.is_some() {} };
        let _ = tokio::time::timeout(CLOSE_TIMEOUT, gone).await;
    }
}

/// Carries a guest. One who cannot be carried there sees the connection close.
async fn carry(site: Arc<Site>, fate: watch::Receiver<Fate>, guest: UnixStream, spare: Option<Spare>) {
    let stream = match spare {
        Some(spare) => Ok(spare.stream),
        None => site.relay(SOCKET, false).await,
    };
    match stream {
        Ok(stream) => visit(site, fate, guest, stream).await,
        Err(failure) => tracing::debug!(session = %site.ticket.id, %failure, "nobody is carried"),
    }
}

/// Makes a connection for the next guest, once this one is on its way.
async fn another(site: Arc<Site>, cuts: u64) -> Option<Spare> {
    tokio::time::sleep(NEXT_CONNECTION_DELAY).await;
    let stream = site.relay(SOCKET, false).await.ok()?;
    Some(Spare { stream, cuts })
}

//! The socket of a session on another host: the proxy accepts clients here and carries them to the holder there.
//!
//! The proxy is a task of the daemon and holds nothing of value: the session, its output and its record are in the
//! container. It ends with the daemon, and the next daemon starts another.

use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::net::{UnixListener, UnixStream};
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};
use wharf_boundary::Dir;
use wharf_holder::linux;
use wharf_model::{Failure, Home, Ticket};

use super::container::{RemoteContainer, SOCKET};
use super::exec_stream::{ExecInput, ExecOutput};
use super::log_mirror::{LogMirror, Outcome, StartRequest};
use super::proxied_client::proxy_client;
use crate::session_dirs::SessionDirs;
use crate::ticket_data::TicketData;

/// How many clients the proxy serves at once.
const MAX_CLIENTS: usize = 64;
/// How long after a client the proxy waits before it opens the spare stream for the next one.
const NEXT_CONNECTION_DELAY: Duration = Duration::from_millis(200);
/// How long clients may take to read the last frames when the proxy closes.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(5);

/// A lock that one process holds at a time: two proxies would write every byte of the log twice.
pub(crate) struct ProxyLock {
    _file: File,
}

impl ProxyLock {
    /// The file's name in the session's directory. The name is older than the type's.
    pub(crate) const NAME: &'static str = "door";

    /// Takes the lock of a session; none while another process holds it.
    pub(crate) fn take(home: &Path) -> Result<Option<Self>, Failure> {
        let path = home.join(Self::NAME);
        let failed = |error: io::Error| Failure::system(format!("cannot lock {}", path.display()), &error);
        let (file, aside) =
            Dir::open(home).and_then(|home| home.open_own(Self::NAME, 0o600)).map_err(failed)?;
        if let Some(aside) = aside {
            tracing::warn!(home = %home.display(), %aside, "a file of ours was none");
        }
        match file.try_lock() {
            Ok(()) => Ok(Some(Self { _file: file })),
            Err(std::fs::TryLockError::WouldBlock) => Ok(None),
            Err(std::fs::TryLockError::Error(error)) => Err(failed(error)),
        }
    }
}

/// Removes the lock's file once the session is over: nobody will start a proxy for it again.
pub(crate) fn remove_lock_if_over(ticket: &Ticket) {
    if TicketData::of(ticket).is_remote()
        && SessionDirs::of(ticket.dir.as_path()).exit_record(ticket.run).is_some()
    {
        let _ = std::fs::remove_file(ticket.dir.as_path().join(ProxyLock::NAME));
    }
}

/// A running proxy.
pub(crate) struct SocketProxy {
    remote: Arc<RemoteContainer>,
    outcome: watch::Receiver<Outcome>,
    task: JoinHandle<()>,
}

impl SocketProxy {
    /// Starts the proxy. For a new session the log mirror also sends the start request, and the first client gets the
    /// stream that was opened for it in advance.
    pub(crate) fn open(
        remote: RemoteContainer,
        lock: ProxyLock,
        request: Option<(StartRequest, (ExecInput, ExecOutput))>,
    ) -> Result<Self, Failure> {
        let path = remote.home().join(Home::SOCKET);
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
        let remote = Arc::new(remote);
        let (publish, outcome) = watch::channel(Outcome::Running);
        let mirror = LogMirror::open(Arc::clone(&remote), publish)
            .map_err(|error| Failure::system("cannot open the session's log", &error))?;
        let disconnects = mirror.disconnects();
        let (request, spare) = request.unzip();
        let spare = spare.map(|stream| SpareStream { stream, disconnects: 0 });
        let server =
            Server { remote: Arc::clone(&remote), listener, outcome: outcome.clone(), disconnects, spare };
        let task = remote.transport().tasks().spawn(server.serve(lock, mirror.run(request)));
        Ok(Self { remote, outcome, task })
    }

    /// Serves a client by a stream that is already open.
    pub(crate) fn add_client(&self, client: UnixStream, stream: (ExecInput, ExecOutput)) {
        let served = proxy_client(Arc::clone(&self.remote), self.outcome.clone(), client, stream);
        self.remote.transport().tasks().spawn(served);
    }

    /// How the session ends, as soon as the mirror knows.
    pub(crate) fn outcome(&self) -> watch::Receiver<Outcome> {
        self.outcome.clone()
    }

    /// Stops the proxy after a failed start: nothing is written any more.
    pub(crate) async fn close(self) {
        self.task.abort();
        let _ = self.task.await;
    }
}

/// A stream opened in advance for the next client, who then need not wait; the container may have no process to spare
/// by then.
struct SpareStream {
    stream: (ExecInput, ExecOutput),
    /// How often the mirror had lost its connection when this stream was opened: a stream from before such a loss is
    /// broken too.
    disconnects: u64,
}

/// The state of the proxy's task.
struct Server {
    remote: Arc<RemoteContainer>,
    listener: UnixListener,
    outcome: watch::Receiver<Outcome>,
    disconnects: Arc<AtomicU64>,
    spare: Option<SpareStream>,
}

impl Server {
    async fn serve(mut self, lock: ProxyLock, mirror: impl Future<Output = ()>) {
        let (mut clients, mut opening) = (JoinSet::new(), JoinSet::new());
        tokio::pin!(mirror);
        loop {
            tokio::select! {
                () = &mut mirror => break,
                Some(_) = clients.join_next() => {}
                Some(opened) = opening.join_next() => self.spare = opened.ok().flatten(),
                client = self.listener.accept(), if clients.len() < MAX_CLIENTS => {
                    let Ok((client, _)) = client else {
                        // Most likely out of descriptors, which passes.
                        tokio::time::sleep(Duration::from_millis(50)).await;
                        continue;
                    };
                    let disconnects = self.disconnects.load(Ordering::Relaxed);
                    let spare = self.spare.take().filter(|spare| spare.disconnects == disconnects);
                    clients.spawn(connect_client(Arc::clone(&self.remote), self.outcome.clone(), client, spare));
                    if opening.is_empty() {
                        opening.spawn(open_spare(Arc::clone(&self.remote), disconnects));
                    }
                }
            }
        }
        drop(self.listener);
        // Release the lock: this proxy writes nothing any more, so the next one may start.
        drop((lock, self.spare));
        let gone = async { while clients.join_next().await.is_some() {} };
        let _ = tokio::time::timeout(CLOSE_TIMEOUT, gone).await;
    }
}

/// Serves a client by the spare stream or a new one. Without a stream the client sees the connection close.
async fn connect_client(
    remote: Arc<RemoteContainer>,
    outcome: watch::Receiver<Outcome>,
    client: UnixStream,
    spare: Option<SpareStream>,
) {
    let stream = match spare {
        Some(spare) => Ok(spare.stream),
        None => remote.relay(SOCKET, false).await,
    };
    match stream {
        Ok(stream) => proxy_client(remote, outcome, client, stream).await,
        Err(failure) => tracing::debug!(session = %remote.ticket.id, %failure, "nobody is carried"),
    }
}

/// Opens a stream for the next client, a moment after the last one got its own.
async fn open_spare(remote: Arc<RemoteContainer>, disconnects: u64) -> Option<SpareStream> {
    tokio::time::sleep(NEXT_CONNECTION_DELAY).await;
    let stream = remote.relay(SOCKET, false).await.ok()?;
    Some(SpareStream { stream, disconnects })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_link_in_the_place_of_the_lock_is_put_aside() {
        let root = tempfile::tempdir().unwrap();
        let (precious, nowhere) = (root.path().join("precious"), root.path().join("nowhere"));
        std::fs::write(&precious, "p").unwrap();
        for target in [&precious, &nowhere] {
            let _ = std::fs::remove_file(root.path().join(ProxyLock::NAME));
            symlink(target, root.path().join(ProxyLock::NAME)).unwrap();
            let held = ProxyLock::take(root.path()).unwrap();
            assert!(held.is_some());
            let meta = std::fs::symlink_metadata(root.path().join(ProxyLock::NAME)).unwrap();
            assert!(meta.is_file(), "{target:?} was locked");
            // It is the lock that the next one finds held.
            assert!(ProxyLock::take(root.path()).unwrap().is_none());
        }
        assert!(!nowhere.exists(), "it was made");
    }
}

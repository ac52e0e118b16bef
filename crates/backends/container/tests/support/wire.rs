//! A wire to an engine that can be cut: a port of the loopback, or a socket of the user's own, that leads to the engine's.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, UnixListener, UnixStream};
use tokio::sync::Notify;
use wharf_container::Endpoint;

/// A wire that is there for as long as somebody has one of these.
#[derive(Clone)]
pub(crate) struct Wire {
    address: String,
    state: Arc<State>,
}

#[derive(Default)]
struct State {
    cut: Notify,
    down: AtomicBool,
    carried: AtomicU64,
}

impl Wire {
    /// Leads to a socket, from a thread of its own: whoever uses it may come and go.
    pub(crate) fn to(socket: &Path) -> Self {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        listener.set_nonblocking(true).expect("it is ours");
        let address = format!("tcp://{}", listener.local_addr().expect("it is bound"));
        Self::led(address, socket, move |socket, state| async move {
            let listener = TcpListener::from_std(listener).expect("a listener");
            while let Ok((near, _)) = listener.accept().await {
                lead(near, &socket, &state);
            }
        })
    }

    /// Leads to a socket from another one, which may be somebody else's: the engine's own stays as it is, for others use it
    /// meanwhile.
    pub(crate) fn beside(socket: &Path, at: &Path) -> Self {
        let listener = std::os::unix::net::UnixListener::bind(at).expect("a socket");
        listener.set_nonblocking(true).expect("it is ours");
        Self::led(format!("unix://{}", at.display()), socket, move |socket, state| async move {
            let listener = UnixListener::from_std(listener).expect("a listener");
            while let Ok((near, _)) = listener.accept().await {
                lead(near, &socket, &state);
            }
        })
    }

    fn led<F: Future<Output = ()>>(
        address: String,
        socket: &Path,
        serve: impl FnOnce(PathBuf, Arc<State>) -> F + Send + 'static,
    ) -> Self {
        let wire = Self { address, state: Arc::default() };
        let (state, socket) = (Arc::clone(&wire.state), socket.to_owned());
        std::thread::spawn(move || {
            let runtime =
                tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
            runtime.block_on(serve(socket, state));
        });
        wire
    }

    /// The engine by this way.
    pub(crate) fn endpoint(&self) -> Endpoint {
        Endpoint::named(self.address.as_str(), "the tests")
    }

    /// Cuts all that is connected now.
    pub(crate) fn cut(&self) {
        self.state.cut.notify_waiters();
    }

    /// Lets nobody connect any more, or again.
    pub(crate) fn set_down(&self, down: bool) {
        self.state.down.store(down, Ordering::SeqCst);
    }

    /// How many connections it carried.
    pub(crate) fn carried(&self) -> u64 {
        self.state.carried.load(Ordering::SeqCst)
    }
}

fn lead<S: AsyncRead + AsyncWrite + Send + Unpin + 'static>(near: S, socket: &Path, state: &Arc<State>) {
    if !state.down.load(Ordering::SeqCst) {
        tokio::spawn(carry(near, socket.to_owned(), Arc::clone(state)));
    }
}

async fn carry<S: AsyncRead + AsyncWrite + Unpin>(mut near: S, socket: PathBuf, state: Arc<State>) {
    let cut = state.cut.notified();
    let Ok(mut engine) = UnixStream::connect(&socket).await else { return };
    state.carried.fetch_add(1, Ordering::SeqCst);
    tokio::select! {
        () = cut => {}
        _ = tokio::io::copy_bidirectional(&mut near, &mut engine) => {}
    }
}

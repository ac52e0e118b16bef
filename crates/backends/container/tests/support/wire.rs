//! A wire to an engine that can be cut: a port of the loopback that leads to the engine's socket.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use tokio::net::{TcpListener, TcpStream, UnixStream};
use tokio::sync::Notify;
use wharf_container::Endpoint;

/// A wire that is there for as long as somebody has one of these.
#[derive(Clone)]
pub(crate) struct Wire {
    address: SocketAddr,
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
        let wire = Self { address: listener.local_addr().expect("it is bound"), state: Arc::default() };
        let (state, socket) = (Arc::clone(&wire.state), socket.to_owned());
        std::thread::spawn(move || {
            let runtime =
                tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
            runtime.block_on(async {
                lead(TcpListener::from_std(listener).expect("a listener"), socket, state).await;
            });
        });
        wire
    }

    /// The engine by this way.
    pub(crate) fn endpoint(&self) -> Endpoint {
        Endpoint::named(format!("tcp://{}", self.address), "the tests")
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

async fn lead(listener: TcpListener, socket: PathBuf, state: Arc<State>) {
    while let Ok((near, _)) = listener.accept().await {
        if !state.down.load(Ordering::SeqCst) {
            tokio::spawn(carry(near, socket.clone(), Arc::clone(&state)));
        }
    }
}

async fn carry(mut near: TcpStream, socket: PathBuf, state: Arc<State>) {
    let cut = state.cut.notified();
    let Ok(mut far) = UnixStream::connect(&socket).await else { return };
    state.carried.fetch_add(1, Ordering::SeqCst);
    tokio::select! {
        () = cut => {}
        _ = tokio::io::copy_bidirectional(&mut near, &mut far) => {}
    }
}

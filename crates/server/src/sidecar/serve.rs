use std::sync::Arc;

use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use wharf_api::linux;
use wharf_engine::Engine;

use super::teller::Teller;
use crate::listener::Listener;
use crate::work::Work;

/// How many may tell at once. Further ones are closed at once.
const MOST: usize = 1024;
/// How many large lines there may be in memory.
const LARGE: usize = 4;

/// Takes events until the daemon ends.
pub(crate) async fn serve(mut listener: Listener, engine: Engine, work: Work) {
    let large = Arc::new(Semaphore::new(LARGE));
    let mut tellers = JoinSet::new();
    loop {
        let stream = tokio::select! {
            () = work.stopping() => return,
            Some(_) = tellers.join_next() => continue,
            accepted = listener.accept() => match accepted {
                Ok(stream) => stream,
                // The daemon's own socket finds the same, and ends it.
                Err(_) => return,
            },
        };
        if tellers.len() >= MOST {
            tracing::warn!("{MOST} processes tell events: one more is refused");
            continue;
        }
        match linux::peer(&stream) {
            Ok(peer) if peer.is_us() => {
                tellers.spawn(Teller::new(engine.clone(), peer, stream, Arc::clone(&large)).run());
            }
            Ok(peer) => tracing::warn!("user {} may not tell events", peer.uid),
            Err(error) => tracing::warn!("a teller without credentials is refused: {error}"),
        }
    }
}

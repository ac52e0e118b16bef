//! Accepts connections on the event socket, and limits how many there are.

use std::sync::Arc;

use tokio::task::JoinSet;
use wharf_api::linux;
use wharf_engine::Engine;

use super::account::Accounts;
use super::teller::Teller;
use crate::listener::Listener;
use crate::rights::Callers;
use crate::work::Work;

/// How many may tell at once. Further ones are closed at once.
const MAX_CONNECTIONS: usize = 1024;
/// With more than so many, whoever comes is asked first which session it belongs to: no session takes all places.
const CROWDED_CONNECTIONS: usize = 256;

/// Takes events until the daemon ends.
pub(crate) async fn serve(mut listener: Listener, engine: Engine, callers: Callers, work: Work) {
    let accounts = Accounts::new();
    let mut tellers = JoinSet::new();
    loop {
        let stream = tokio::select! {
            () = work.stopping() => break,
            Some(_) = tellers.join_next() => continue,
            accepted = listener.accept() => match accepted {
                Ok(stream) => stream,
                // The daemon's own socket finds the same, and ends it.
                Err(_) => break,
            },
        };
        if tellers.len() >= MAX_CONNECTIONS {
            tracing::warn!("{MAX_CONNECTIONS} processes tell events: one more is refused");
            continue;
        }
        match linux::peer(&stream) {
            Ok(peer) if peer.is_us() => {
                let crowded = tellers.len() >= CROWDED_CONNECTIONS;
                let (engine, callers, accounts) = (engine.clone(), callers.clone(), Arc::clone(&accounts));
                let pidfd = linux::Peer::process(&stream);
                tellers.spawn(async move {
                    let found = callers.at(peer, pidfd).await;
                    Teller::new(engine, peer, found, stream, accounts).run(crowded).await;
                });
            }
            Ok(peer) => tracing::warn!("user {} may not tell events", peer.uid),
            Err(error) => tracing::warn!("a teller without credentials is refused: {error}"),
        }
    }
    drop(listener);
    tellers.shutdown().await;
}

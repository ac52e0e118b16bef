//! Accepts HTTP connections within limits, and finishes answers before the daemon ends.

use std::sync::Arc;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::UnixStream;
use tokio::sync::Semaphore;
use wharf_api::linux::{self, Peer};

use crate::gate::Gate;
use crate::listener::Listener;
use crate::rights::{Callers, Rights};
use crate::work::Work;

/// How many connections there may be. Further ones are closed at once: each `wharf wait` holds one.
const MAX_CONNECTIONS: usize = 8192;
/// How long a client may take to send a request's head, and may stay without asking anything.
const HEADER_TIMEOUT: Duration = Duration::from_secs(30);
/// How large a request's head may be.
const MAX_HEADER_LEN: usize = 64 << 10;
/// How long the answers that are under way may take once the daemon is asked to end.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(2);

/// Takes connections until the daemon is asked to end, then gives the answers that are under way some time. Each connection is a task
/// of `work`.
pub(crate) async fn serve(mut listener: Listener, callers: Callers, gate: Gate, work: Work) {
    let room = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    loop {
        let stream = tokio::select! {
            () = work.stopping() => break,
            accepted = listener.accept() => match accepted {
                Ok(stream) => stream,
                Err(replaced) => {
                    tracing::error!("process {} has taken this instance over: ending", replaced.pid);
                    work.stop();
                    break;
                }
            },
        };
        let Ok(place) = Arc::clone(&room).try_acquire_owned() else {
            tracing::warn!("{MAX_CONNECTIONS} connections are open: one more is refused");
            continue;
        };
        match linux::peer(&stream) {
            Ok(peer) => {
                let (callers, gate, ending) = (callers.clone(), gate.clone(), work.clone());
                let pidfd = Peer::process(&stream);
                work.spawn(async move {
                    let _place = place;
                    let rights = callers.rights(peer, pidfd).await;
                    connection(stream, (peer, rights), gate, ending).await;
                });
            }
            Err(error) => tracing::warn!("a connection without credentials is refused: {error}"),
        }
    }
    drop(listener);
    if !work.done(SHUTDOWN_TIMEOUT).await {
        tracing::warn!("{} tasks of requests are unfinished", work.len());
    }
}

async fn connection(stream: UnixStream, (peer, rights): (Peer, Rights), gate: Gate, work: Work) {
    let service = service_fn(move |request| gate.clone().answer(peer, rights.clone(), request));
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADER_TIMEOUT)
        .max_header_size(MAX_HEADER_LEN)
        .max_buf_size(MAX_HEADER_LEN)
        .auto_date_header(false)
        .serve_connection(TokioIo::new(stream), service);
    let mut connection = std::pin::pin!(connection);
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        () = work.stopping() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(pid = peer.pid, "a connection broke: {error}");
    }
}

//! Forwards the frames of one client of a proxied socket both ways.
//!
//! What needs descriptors cannot cross hosts: it is done or refused here. The client hears of an end only once all
//! output is on this side.

use std::collections::HashSet;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::io::Interest;
use tokio::net::UnixStream;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use wharf_holder::frame::{self, Decoder, Header, Kind};
use wharf_holder::pace::{Pace, TOO_MUCH_OUTPUT};
use wharf_holder::{linux, wire};
use wharf_model::Failure;

use super::container::RemoteContainer;
use super::exec::exec;
use super::exec_stream::{ExecInput, ExecOutput};
use super::log_mirror::Outcome;

/// How many batches of frames may be queued for the client.
const MAX_QUEUED_FRAMES: usize = 16;
/// How long a client's last frames may take to reach the holder after the client has gone.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(5);
/// How long the log mirror may take to complete after the session's end.
const END_TIMEOUT: Duration = Duration::from_secs(60);
/// How long it may take to find out whether a stream ended with its session.
const END_CHECK_TIMEOUT: Duration = Duration::from_secs(3);
/// The largest status of a holder, in bytes.
const MAX_STATUS_LEN: usize = 64 << 10;
/// Features of a holder that pass descriptors, which no stream can carry.
const LOCAL_ONLY_FEATURES: &[&str] = &["duplicates", "resume", "daemon", wire::BORROW];

/// A client and what both directions share.
struct ProxiedClient {
    remote: Arc<RemoteContainer>,
    client: UnixStream,
    outcome: watch::Receiver<Outcome>,
    /// Whether the client asked for output, and how many requests it sent in all.
    wants_output: AtomicBool,
    requests: AtomicU32,
    /// The sequence numbers of requests whose answer is an exit record.
    stops: Mutex<HashSet<u32>>,
    /// Bytes for the client; an empty batch closes the queue.
    to_client_queue: mpsc::Sender<Vec<u8>>,
}

/// Forwards frames until either side closes.
pub(crate) async fn proxy_client(
    remote: Arc<RemoteContainer>,
    outcome: watch::Receiver<Outcome>,
    client: UnixStream,
    (input, output): (ExecInput, ExecOutput),
) {
    let (to_client_queue, queued) = mpsc::channel(MAX_QUEUED_FRAMES);
    let (wants_output, requests) = (AtomicBool::new(false), AtomicU32::new(0));
    let proxied = ProxiedClient {
        remote,
        client,
        outcome,
        wants_output,
        requests,
        stops: Mutex::default(),
        to_client_queue,
    };
    let to_client = async {
        let answers = async {
            proxied.holder_to_client(output).await;
            let _ = proxied.to_client_queue.send(Vec::new()).await;
        };
        tokio::join!(answers, proxied.write_to_client(queued));
    };
    let to_holder = async {
        proxied.client_to_holder(input).await;
        tokio::time::sleep(FLUSH_TIMEOUT).await;
    };
    tokio::select! {
        () = to_client => {}
        () = to_holder => {}
    }
}

impl ProxiedClient {
    /// Forwards the client's frames to the holder.
    async fn client_to_holder(&self, mut input: ExecInput) {
        let (mut frames, mut descriptors, mut running) = (Decoder::default(), Vec::new(), JoinSet::new());
        let mut buffer = vec![0; 64 << 10];
        loop {
            let got = self.receive(&mut buffer, &mut descriptors).await;
            let Ok(count @ 1..) = got else { break };
            frames.push(&buffer[..count]);
            let mut out = Vec::new();
            loop {
                match frames.next() {
                    Ok(Some((header, payload))) => {
                        self.route(header, payload, &mut descriptors, &mut out, &mut running);
                    }
                    Ok(None) => break,
                    Err(_) => return,
                }
            }
            frames.rest();
            if !out.is_empty() && input.write(&out).await.is_err() {
                // Leave the holder's last frames to the other direction.
                std::future::pending::<()>().await;
            }
        }
        let _ = input.close().await;
    }

    /// Decides what becomes of a client's frame: run here, refused, or forwarded.
    fn route(
        &self,
        header: Header,
        payload: &[u8],
        descriptors: &mut Vec<OwnedFd>,
        out: &mut Vec<u8>,
        running: &mut JoinSet<()>,
    ) {
        match Kind::known(header.kind) {
            Some(Kind::Exec) => {
                let stdio: Vec<OwnedFd> = std::mem::take(descriptors);
                let frame = frame::encode(Kind::Exec, 1, payload);
                let (remote, to_client_queue, seq) =
                    (Arc::clone(&self.remote), self.to_client_queue.clone(), header.seq);
                running.spawn(async move {
                    let answer = match exec(&remote, frame, stdio).await {
                        Ok(code) => frame::encode(Kind::Ack, seq, &code.to_le_bytes()),
                        Err(failure) => refusal(seq, &failure),
                    };
                    let _ = to_client_queue.send(answer).await;
                });
            }
            Some(Kind::Duplicates | Kind::Daemon | Kind::Resume | Kind::Borrow) => {
                descriptors.clear();
                let failure = Failure::unsupported("passing descriptors", "a session on another host");
                let (to_client_queue, refusal) =
                    (self.to_client_queue.clone(), refusal(header.seq, &failure));
                running.spawn(async move {
                    let _ = to_client_queue.send(refusal).await;
                });
            }
            known => {
                self.requests.fetch_add(1, Ordering::Relaxed);
                if known == Some(Kind::Read) {
                    self.wants_output.store(true, Ordering::Relaxed);
                }
                if known == Some(Kind::Stop) {
                    self.stops.lock().unwrap_or_else(PoisonError::into_inner).insert(header.seq);
                }
                out.extend_from_slice(&header.encode());
                out.extend_from_slice(payload);
            }
        }
    }

    async fn receive(&self, buffer: &mut [u8], descriptors: &mut Vec<OwnedFd>) -> io::Result<usize> {
        loop {
            self.client.readable().await?;
            let got =
                self.client.try_io(Interest::READABLE, || linux::receive(&self.client, buffer, descriptors));
            match got {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                other => return other,
            }
        }
    }

    /// Forwards the holder's frames to the client.
    async fn holder_to_client(&self, mut output: ExecOutput) {
        let mut frames = Decoder::of_answers();
        let (mut outcome, mut answered, mut pace) = (self.outcome.clone(), 0, Pace::new(Instant::now()));
        loop {
            match output.next().await {
                Ok(Some((false, bytes))) => frames.push(&bytes),
                Ok(Some((true, queued))) => {
                    tracing::debug!(queued = %String::from_utf8_lossy(&queued).trim(), "a relay complains");
                }
                Ok(None) | Err(_) => break,
            }
            let mut out = Vec::new();
            loop {
                match frames.next() {
                    Ok(Some((header, payload))) => {
                        let kind = Kind::known(header.kind);
                        let wanted = match kind {
                            Some(Kind::Output | Kind::Gap) => self.wants_output.load(Ordering::Relaxed),
                            Some(Kind::Ack | Kind::Error) => {
                                answered += 1;
                                answered <= self.requests.load(Ordering::Relaxed)
                            }
                            _ => false,
                        };
                        if !wanted {
                            pace.spend(kind, payload.len());
                            if pace.pause(Instant::now).is_some() {
                                // Hang up, as the mirror does.
                                tracing::debug!(session = %self.remote.ticket.id, TOO_MUCH_OUTPUT);
                                return;
                            }
                        }
                        if self.is_end(header) {
                            let decided = outcome.wait_for(|outcome| *outcome != Outcome::Running);
                            let ended =
                                tokio::time::timeout(END_TIMEOUT, decided).await.ok().and_then(Result::ok);
                            if !ended.is_some_and(|outcome| *outcome == Outcome::Complete) {
                                return;
                            }
                        }
                        let Some(payload) = rewrite_status(header, payload) else { return };
                        out.extend_from_slice(&Header { length: payload.len() as u32, ..header }.encode());
                        out.extend_from_slice(&payload);
                    }
                    Ok(None) => break,
                    Err(_) => return,
                }
            }
            frames.rest();
            if !out.is_empty() && self.to_client_queue.send(out).await.is_err() {
                return;
            }
            // Let other tasks run, however much there is to read.
            tokio::task::yield_now().await;
        }
        // If the stream ended with the session, wait for the exit record: the client looks for it next.
        let decided = outcome.wait_for(|outcome| *outcome != Outcome::Running);
        let _ = tokio::time::timeout(END_CHECK_TIMEOUT, decided).await;
    }

    fn is_end(&self, header: Header) -> bool {
        header.kind == Kind::Exit as u8
            || (header.kind == Kind::Ack as u8
                && self.stops.lock().unwrap_or_else(PoisonError::into_inner).contains(&header.seq))
    }

    /// Writes the queued batches to the client.
    async fn write_to_client(&self, mut queued: mpsc::Receiver<Vec<u8>>) {
        while let Some(bytes) = queued.recv().await.filter(|bytes| !bytes.is_empty()) {
            let mut rest = bytes.as_slice();
            while !rest.is_empty() {
                if self.client.writable().await.is_err() {
                    return;
                }
                match self.client.try_write(rest) {
                    Ok(n) => rest = &rest[n..],
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                    Err(_) => return,
                }
            }
        }
    }
}

/// Rewrites a holder's status for this host: without features that pass descriptors, and without a process number,
/// which is another process's here. Other payloads stay as they are. None where the status is longer than any honest
/// one: parsing it would cost the daemon.
fn rewrite_status(header: Header, payload: &[u8]) -> Option<Vec<u8>> {
    let changed = || -> Option<Vec<u8>> {
        let mut queued: serde_json::Value = serde_json::from_slice(payload).ok()?;
        if let Some(features) = queued.get_mut("features").and_then(serde_json::Value::as_array_mut) {
            features
                .retain(|feature| !feature.as_str().is_some_and(|name| LOCAL_ONLY_FEATURES.contains(&name)));
        }
        let pid = if header.kind == Kind::News as u8 { "/pid" } else { "/status/pid" };
        if let Some(pid) = queued.pointer_mut(pid) {
            *pid = 0.into();
        }
        serde_json::to_vec(&queued).ok()
    };
    let own = [Kind::Welcome as u8, Kind::News as u8].contains(&header.kind);
    if !own {
        return Some(payload.to_vec());
    }
    if payload.len() > MAX_STATUS_LEN { None } else { changed() }
}

fn refusal(seq: u32, failure: &Failure) -> Vec<u8> {
    frame::encode(Kind::Error, seq, &serde_json::to_vec(failure).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_holder_claims_only_what_is_so_from_here() {
        let hello =
            br#"{"role":"holder","features":["exec","duplicates","borrow","new"],"more":1,"status":{"pid":7}}"#;
        let header = Header::new(Kind::Welcome, 1, hello.len());
        let changed: serde_json::Value =
            serde_json::from_slice(&rewrite_status(header, hello).unwrap()).unwrap();
        assert_eq!(changed["features"], serde_json::json!(["exec", "new"]));
        assert_eq!((&changed["more"], &changed["status"]["pid"]), (&1.into(), &0.into()));
        let news = rewrite_status(Header::new(Kind::News, 0, 9), br#"{"pid":7,"attached":2}"#);
        assert_eq!(news.unwrap(), br#"{"attached":2,"pid":0}"#);
        let other = Header::new(Kind::Ack, 1, 2);
        assert_eq!(rewrite_status(other, b"xy").unwrap(), b"xy");
        let endless = format!("[{}[]]", "[],".repeat(MAX_STATUS_LEN));
        assert_eq!(rewrite_status(Header::new(Kind::News, 0, endless.len()), endless.as_bytes()), None);
        assert_eq!(rewrite_status(Header::new(Kind::News, 0, 1), b"x"), None, "it has no meaning");
    }
}

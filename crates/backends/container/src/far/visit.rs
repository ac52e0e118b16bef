//! One who came to the door: frames are carried both ways. What cannot cross is done here, and an end is not told before
//! all output is on this side.

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
use wharf_holder::client::TALKS;
use wharf_holder::frame::{self, Decoder, Header, Kind};
use wharf_holder::pace::Pace;
use wharf_holder::{linux, wire};
use wharf_model::Failure;

use super::lending::lend;
use super::mirror::Fate;
use super::site::Site;
use super::tube::{Input, Output};

/// Frames on their way to the guest at most.
const MAX_QUEUED_FRAMES: usize = 16;
/// How long what a guest said last may take to arrive once it has gone.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(5);
/// How long an end may take to be whole on this side.
const END_TIMEOUT: Duration = Duration::from_secs(60);
/// How long it may take to find out that a stream ended with its session.
const END_CHECK_TIMEOUT: Duration = Duration::from_secs(3);
/// The most that a holder has to say of itself.
const MAX_WORDS: usize = 64 << 10;
/// What a holder can do and no stream can carry: it needs descriptors.
const NEARBY: &[&str] = &["duplicates", "resume", "daemon", wire::BORROW];

/// What both directions know of.
struct Visit {
    site: Arc<Site>,
    guest: UnixStream,
    fate: watch::Receiver<Fate>,
    /// Whether the guest asked for output, and how much it asked for in all.
    reads: AtomicBool,
    asked: AtomicU32,
    /// Requests whose answer is an end.
    stops: Mutex<HashSet<u32>>,
    /// Bytes for the guest; none at all is the last word.
    say: mpsc::Sender<Vec<u8>>,
}

/// Carries a guest until either side has no more to say.
pub(crate) async fn visit(
    site: Arc<Site>,
    fate: watch::Receiver<Fate>,
    guest: UnixStream,
    (input, output): (Input, Output),
) {
    let (say, said) = mpsc::channel(MAX_QUEUED_FRAMES);
    let (reads, asked) = (AtomicBool::new(false), AtomicU32::new(0));
    let visit = Visit { site, guest, fate, reads, asked, stops: Mutex::default(), say };
    let there = async {
        let down = async {
            visit.down(output).await;
            let _ = visit.say.send(Vec::new()).await;
        };
        tokio::join!(down, visit.tell(said));
    };
    let here = async {
        visit.up(input).await;
        tokio::time::sleep(FLUSH_TIMEOUT).await;
    };
    tokio::select! {
        () = there => {}
        () = here => {}
    }
}

impl Visit {
    /// From the guest to the holder.
    async fn up(&self, mut input: Input) {
        let (mut frames, mut passed, mut lent) = (Decoder::default(), Vec::new(), JoinSet::new());
        let mut buffer = vec![0; 64 << 10];
        loop {
            let got = self.receive(&mut buffer, &mut passed).await;
            let Ok(count @ 1..) = got else { break };
            frames.push(&buffer[..count]);
            let mut out = Vec::new();
            loop {
                match frames.next() {
                    Ok(Some((header, payload))) => {
                        self.pass(header, payload, &mut passed, &mut out, &mut lent);
                    }
                    Ok(None) => break,
                    Err(_) => return,
                }
            }
            frames.rest();
            if !out.is_empty() && input.write(&out).await.is_err() {
                // What the holder had to say comes by the other direction.
                std::future::pending::<()>().await;
            }
        }
        let _ = input.close().await;
    }

    /// What becomes of a guest's frame.
    fn pass(
        &self,
        header: Header,
        payload: &[u8],
        passed: &mut Vec<OwnedFd>,
        out: &mut Vec<u8>,
        lent: &mut JoinSet<()>,
    ) {
        match Kind::known(header.kind) {
            Some(Kind::Exec) => {
                let stdio: Vec<OwnedFd> = std::mem::take(passed);
                let frame = frame::encode(Kind::Exec, 1, payload);
                let (site, say, seq) = (Arc::clone(&self.site), self.say.clone(), header.seq);
                lent.spawn(async move {
                    let answer = match lend(&site, frame, stdio).await {
                        Ok(code) => frame::encode(Kind::Ack, seq, &code.to_le_bytes()),
                        Err(failure) => refusal(seq, &failure),
                    };
                    let _ = say.send(answer).await;
                });
            }
            Some(Kind::Duplicates | Kind::Daemon | Kind::Resume | Kind::Borrow) => {
                passed.clear();
                let failure = Failure::unsupported("passing descriptors", "a session on another host");
                let (say, refusal) = (self.say.clone(), refusal(header.seq, &failure));
                lent.spawn(async move {
                    let _ = say.send(refusal).await;
                });
            }
            known => {
                self.asked.fetch_add(1, Ordering::Relaxed);
                if known == Some(Kind::Read) {
                    self.reads.store(true, Ordering::Relaxed);
                }
                if known == Some(Kind::Stop) {
                    self.stops.lock().unwrap_or_else(PoisonError::into_inner).insert(header.seq);
                }
                out.extend_from_slice(&header.encode());
                out.extend_from_slice(payload);
            }
        }
    }

    async fn receive(&self, buffer: &mut [u8], passed: &mut Vec<OwnedFd>) -> io::Result<usize> {
        loop {
            self.guest.readable().await?;
            let got = self.guest.try_io(Interest::READABLE, || linux::receive(&self.guest, buffer, passed));
            match got {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                other => return other,
            }
        }
    }

    /// From the holder to the guest.
    async fn down(&self, mut output: Output) {
        let mut frames = Decoder::of_answers();
        let (mut fate, mut answered, mut pace) = (self.fate.clone(), 0, Pace::new(Instant::now()));
        loop {
            match output.next().await {
                Ok(Some((false, bytes))) => frames.push(&bytes),
                Ok(Some((true, said))) => {
                    tracing::debug!(said = %String::from_utf8_lossy(&said).trim(), "a relay complains");
                }
                Ok(None) | Err(_) => break,
            }
            let mut out = Vec::new();
            loop {
                match frames.next() {
                    Ok(Some((header, payload))) => {
                        let kind = Kind::known(header.kind);
                        let wanted = match kind {
                            Some(Kind::Output | Kind::Gap) => self.reads.load(Ordering::Relaxed),
                            Some(Kind::Ack | Kind::Error) => {
                                answered += 1;
                                answered <= self.asked.load(Ordering::Relaxed)
                            }
                            _ => false,
                        };
                        if !wanted {
                            pace.spend(kind, payload.len());
                            if pace.pause(Instant::now).is_some() {
                                // As the mirror: hung up on.
                                tracing::debug!(session = %self.site.ticket.id, TALKS);
                                return;
                            }
                        }
                        if self.is_end(header) {
                            let whole = fate.wait_for(|fate| *fate != Fate::Open);
                            if !matches!(tokio::time::timeout(END_TIMEOUT, whole).await, Ok(Ok(fate)) if *fate == Fate::Whole)
                            {
                                return;
                            }
                        }
                        let Some(payload) = translated(header, payload) else { return };
                        out.extend_from_slice(&Header { length: payload.len() as u32, ..header }.encode());
                        out.extend_from_slice(&payload);
                    }
                    Ok(None) => break,
                    Err(_) => return,
                }
            }
            frames.rest();
            if !out.is_empty() && self.say.send(out).await.is_err() {
                return;
            }
            // Others are served meanwhile, however much there is to be read at once.
            tokio::task::yield_now().await;
        }
        // If it ended with the session, its record will be here in a moment, and the guest looks for it.
        let sure = fate.wait_for(|fate| *fate != Fate::Open);
        let _ = tokio::time::timeout(END_CHECK_TIMEOUT, sure).await;
    }

    fn is_end(&self, header: Header) -> bool {
        header.kind == Kind::Exit as u8
            || (header.kind == Kind::Ack as u8
                && self.stops.lock().unwrap_or_else(PoisonError::into_inner).contains(&header.seq))
    }

    /// Writes what is for the guest.
    async fn tell(&self, mut said: mpsc::Receiver<Vec<u8>>) {
        while let Some(bytes) = said.recv().await.filter(|bytes| !bytes.is_empty()) {
            let mut rest = bytes.as_slice();
            while !rest.is_empty() {
                if self.guest.writable().await.is_err() {
                    return;
                }
                match self.guest.try_write(rest) {
                    Ok(n) => rest = &rest[n..],
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                    Err(_) => return,
                }
            }
        }
    }
}

/// What a holder says of itself without what is not so from here: descriptors that cannot be passed, and the number of a
/// process that is another's on this host. Any other payload as it is; none where one says more of itself than there is to
/// say, and would have us take it all apart.
fn translated(header: Header, payload: &[u8]) -> Option<Vec<u8>> {
    let changed = || -> Option<Vec<u8>> {
        let mut said: serde_json::Value = serde_json::from_slice(payload).ok()?;
        if let Some(features) = said.get_mut("features").and_then(serde_json::Value::as_array_mut) {
            features.retain(|feature| !feature.as_str().is_some_and(|name| NEARBY.contains(&name)));
        }
        let pid = if header.kind == Kind::News as u8 { "/pid" } else { "/status/pid" };
        if let Some(pid) = said.pointer_mut(pid) {
            *pid = 0.into();
        }
        serde_json::to_vec(&said).ok()
    };
    let own = [Kind::Welcome as u8, Kind::News as u8].contains(&header.kind);
    if !own {
        return Some(payload.to_vec());
    }
    if payload.len() > MAX_WORDS { None } else { changed() }
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
        let changed: serde_json::Value = serde_json::from_slice(&translated(header, hello).unwrap()).unwrap();
        assert_eq!(changed["features"], serde_json::json!(["exec", "new"]));
        assert_eq!((&changed["more"], &changed["status"]["pid"]), (&1.into(), &0.into()));
        let news = translated(Header::new(Kind::News, 0, 9), br#"{"pid":7,"attached":2}"#);
        assert_eq!(news.unwrap(), br#"{"attached":2,"pid":0}"#);
        let other = Header::new(Kind::Ack, 1, 2);
        assert_eq!(translated(other, b"xy").unwrap(), b"xy");
        let endless = format!("[{}[]]", "[],".repeat(MAX_WORDS));
        assert_eq!(translated(Header::new(Kind::News, 0, endless.len()), endless.as_bytes()), None);
        assert_eq!(translated(Header::new(Kind::News, 0, 1), b"x"), None, "it has no meaning");
    }
}

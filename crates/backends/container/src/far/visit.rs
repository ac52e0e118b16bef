//! One who came to the door: frames are carried both ways. What cannot cross is done here, and an end is not told before
//! all output is on this side.

use std::collections::HashSet;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::io::Interest;
use tokio::net::UnixStream;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use wharf_holder::frame::{self, Decoder, Header, Kind};
use wharf_holder::{linux, wire};
use wharf_model::Failure;

use super::lending::lend;
use super::mirror::Fate;
use super::site::Site;
use super::tube::{Input, Output};

/// Frames on their way to the guest at most.
const AHEAD: usize = 16;
/// How long what a guest said last may take to arrive once it has gone.
const LAST: Duration = Duration::from_secs(5);
/// How long an end may take to be whole on this side.
const WHOLE: Duration = Duration::from_secs(60);
/// How long it may take to find out that a stream ended with its session.
const SURE: Duration = Duration::from_secs(3);
/// What a holder can do and no stream can carry: it needs descriptors.
const NEARBY: &[&str] = &["duplicates", "resume", "daemon", wire::BORROW];

/// What both directions know of.
struct Visit {
    site: Arc<Site>,
    guest: UnixStream,
    fate: watch::Receiver<Fate>,
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
    let (say, said) = mpsc::channel(AHEAD);
    let visit = Visit { site, guest, fate, stops: Mutex::default(), say };
    let there = async {
        let down = async {
            visit.down(output).await;
            let _ = visit.say.send(Vec::new()).await;
        };
        tokio::join!(down, visit.tell(said));
    };
    let here = async {
        visit.up(input).await;
        tokio::time::sleep(LAST).await;
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
        let mut frames = Decoder::default();
        let mut fate = self.fate.clone();
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
                        if self.is_end(header) {
                            let whole = fate.wait_for(|fate| *fate != Fate::Open);
                            if !matches!(tokio::time::timeout(WHOLE, whole).await, Ok(Ok(fate)) if *fate == Fate::Whole)
                            {
                                return;
                            }
                        }
                        let payload = translated(header, payload);
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
        }
        // If it ended with the session, its record will be here in a moment, and the guest looks for it.
        let sure = fate.wait_for(|fate| *fate != Fate::Open);
        let _ = tokio::time::timeout(SURE, sure).await;
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
/// process that is another's on this host. Any other payload as it is.
fn translated(header: Header, payload: &[u8]) -> Vec<u8> {
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
    own.then(changed).flatten().unwrap_or_else(|| payload.to_vec())
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
        let changed: serde_json::Value = serde_json::from_slice(&translated(header, hello)).unwrap();
        assert_eq!(changed["features"], serde_json::json!(["exec", "new"]));
        assert_eq!((&changed["more"], &changed["status"]["pid"]), (&1.into(), &0.into()));
        let news = translated(Header::new(Kind::News, 0, 9), br#"{"pid":7,"attached":2}"#);
        assert_eq!(news, br#"{"attached":2,"pid":0}"#);
        let other = Header::new(Kind::Ack, 1, 2);
        assert_eq!(translated(other, b"xy"), b"xy");
    }
}

//! Where holders come from, and the first words with a fresh one.

use std::io::{self, IoSlice};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use tokio::io::Interest;
use tokio::net::UnixStream;
use wharf_backend::Result;
use wharf_holder::frame::{self, Decoder, Kind};
use wharf_holder::linux;
use wharf_holder::wire::Started;
use wharf_model::{Code, Failure, Ticket};

use crate::keep::Keep;
use crate::nursery::Nursery;

/// How long a holder may take to start a command: a start waits for a loaded machine, not for ever.
const START_TIMEOUT: Duration = Duration::from_secs(30);
/// How long after a start its spare holder is replaced: forking at once would only delay the command.
const REFILL_DELAY: Duration = Duration::from_millis(5);

/// The most descriptors that come with an answer: a session has eight kinds of them.
const MAX_PASSED: usize = 8;
/// How much news may come before an answer.
const MAX_NEWS_BEFORE_ANSWER: u32 = 64;

/// What starts and replaces holders.
pub(crate) struct Place {
    pub(crate) nursery: Nursery,
    /// The soft limit of descriptors that commands get.
    pub(crate) descriptors: Option<u64>,
}

impl Place {
    /// Has a fresh holder do the first request that a holder gets: what it started, and its duplicates.
    pub(crate) async fn begin(
        &self,
        frame: &[u8],
        descriptors: &[BorrowedFd<'_>],
    ) -> Result<(UnixStream, Started, Vec<OwnedFd>)> {
        let gone = |error: io::Error| {
            self.nursery.distrust();
            // One that hangs up without having read what it was asked for has not begun with it.
            if matches!(error.kind(), io::ErrorKind::UnexpectedEof | io::ErrorKind::ConnectionReset) {
                return Failure::system("the holder went away before the command was started", &error);
            }
            // It may have started it, and be sure that we know.
            Failure::new(Code::Timeout, format!("the holder's answer to the start was lost: {error}"))
        };
        let talk = async {
            let stream = self.reach(frame, descriptors).await.map_err(|error| {
                self.nursery.distrust();
                Failure::system("the holder went away before the command was started", &error)
            })?;
            let answer = first_answer(&stream).await.map_err(gone)?;
            Ok::<_, Failure>((stream, answer))
        };
        let (stream, (kind, payload, fds)) = tokio::time::timeout(START_TIMEOUT, talk)
            .await
            .map_err(|_| Failure::new(Code::Timeout, "the holder did not start the command in time"))??;
        if kind == Kind::Error as u8 {
            return Err(parse(&payload)?);
        }
        Ok((stream, parse(&payload)?, fds))
    }

    /// Sends to a fresh holder. A spare that died while it waited has done nothing yet, so the next one is asked.
    async fn reach(&self, frame: &[u8], descriptors: &[BorrowedFd<'_>]) -> io::Result<UnixStream> {
        if let Ok(stream) = hand(self.nursery.holder()?, frame, descriptors).await {
            return Ok(stream);
        }
        self.nursery.distrust();
        hand(self.nursery.holder()?, frame, descriptors).await
    }

    /// Makes up for a holder that was given away, when whoever asked for it has had its answer.
    pub(crate) async fn replenish(self: Arc<Self>) {
        tokio::time::sleep(REFILL_DELAY).await;
        self.nursery.replenish();
    }

    /// A fresh holder in the place of one that died.
    pub(crate) async fn resume(
        &self,
        keep: &Keep,
        ticket: &Ticket,
    ) -> Result<(UnixStream, Started, Vec<OwnedFd>)> {
        let failed = |error: io::Error| Failure::system("cannot replace a holder", &error);
        let (frame, descriptors) = keep.resume(ticket, self.descriptors).map_err(failed)?;
        self.begin(&frame, &descriptors).await
    }
}

/// Sends to a connection that nobody watches yet: most often all of it goes at once, and need not be waited for.
async fn hand(
    stream: std::os::unix::net::UnixStream,
    frame: &[u8],
    descriptors: &[BorrowedFd<'_>],
) -> io::Result<UnixStream> {
    let sent = match linux::send(stream.as_fd(), &[IoSlice::new(frame)], descriptors) {
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => 0,
        sent => sent?,
    };
    let stream = UnixStream::from_std(stream)?;
    // The descriptors went with the first bytes.
    let descriptors = if sent == 0 { descriptors } else { &[] };
    send(&stream, &frame[sent..], descriptors).await?;
    Ok(stream)
}

pub(crate) async fn send(
    stream: &UnixStream,
    frame: &[u8],
    descriptors: &[BorrowedFd<'_>],
) -> io::Result<()> {
    let mut sent = 0;
    while sent < frame.len() {
        stream.writable().await?;
        // The descriptors go with the first bytes.
        let passed = if sent == 0 { descriptors } else { &[] };
        let rest = IoSlice::new(&frame[sent..]);
        match stream.try_io(Interest::WRITABLE, || linux::send(stream.as_fd(), &[rest], passed)) {
            Ok(n) => sent += n,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Reads one frame with the descriptors that came along.
pub(crate) async fn first_answer(stream: &UnixStream) -> io::Result<(u8, Vec<u8>, Vec<OwnedFd>)> {
    let (mut frames, mut passed) = (Decoder::of_answers(), Vec::new());
    let mut buffer = [0_u8; 4 << 10];
    loop {
        stream.readable().await?;
        // Not a byte beyond the frame: what follows belongs to whoever reads on.
        let wanted = frames.missing().min(buffer.len());
        let got =
            stream.try_io(Interest::READABLE, || linux::receive(stream, &mut buffer[..wanted], &mut passed));
        match got {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(n) => {
                passed.truncate(MAX_PASSED);
                frames.push(&buffer[..n]);
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => continue,
            Err(error) => return Err(error),
        }
        if let Some((header, payload)) = frames.next()? {
            return Ok((header.kind, payload.to_vec(), passed));
        }
    }
}

/// Asks a holder that has nothing else to say, but perhaps news.
pub(crate) async fn exchange(
    stream: &UnixStream,
    kind: Kind,
    payload: &[u8],
) -> io::Result<(u8, Vec<u8>, Vec<OwnedFd>)> {
    send(stream, &frame::encode(kind, 1, payload), &[]).await?;
    for _ in 0..MAX_NEWS_BEFORE_ANSWER {
        let answer = first_answer(stream).await?;
        if answer.0 != Kind::News as u8 {
            return Ok(answer);
        }
        // One who always has more to say does not keep this thread from others.
        tokio::task::yield_now().await;
    }
    Err(io::Error::new(io::ErrorKind::InvalidData, "the holder has news, and no answer"))
}

pub(crate) fn parse<T: serde::de::DeserializeOwned>(bytes: &[u8]) -> Result<T> {
    serde_json::from_slice(bytes)
        .map_err(|e| Failure::new(Code::Internal, format!("the holder's answer is odd: {e}")))
}

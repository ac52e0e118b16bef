//! One frame to a holder and one back, before its connection is served: with descriptors, which come with first answers alone.

use std::io::{self, IoSlice};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use tokio::io::Interest;
use tokio::net::UnixStream;
use wharf_backend::Result;
use wharf_holder::frame::{self, Decoder, Kind};
use wharf_holder::linux;
use wharf_holder::wire::StartedReply;
use wharf_model::{Code, Failure};

/// The most descriptors that come with an answer: a session has eight kinds of them.
const MAX_PASSED: usize = 8;
/// How much news may come before an answer.
const MAX_NEWS_BEFORE_ANSWER: u32 = 64;

/// Has a fresh holder start its session: what it says of it, and its duplicates. The caller sets the deadline.
pub async fn begin(stream: &UnixStream, frame: &[u8]) -> Result<(StartedReply, Vec<OwnedFd>)> {
    begin_with(stream, frame, &[]).await
}

/// The same for a holder that needs descriptors for it.
pub async fn begin_with(
    stream: &UnixStream,
    frame: &[u8],
    passed: &[BorrowedFd<'_>],
) -> Result<(StartedReply, Vec<OwnedFd>)> {
    let gone =
        |error: io::Error| Failure::system("the holder went away before the command was started", &error);
    send(stream, frame, passed).await.map_err(gone)?;
    let (kind, payload, descriptors) = first_answer(stream).await.map_err(gone)?;
    if kind == Kind::Error as u8 {
        return Err(parse(&payload)?);
    }
    Ok((parse(&payload)?, descriptors))
}

/// Sends to a connection that nobody watches yet: most often all of it goes at once, and need not be waited for.
pub(super) async fn hand(
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

pub(super) async fn send(
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
pub(super) async fn first_answer(stream: &UnixStream) -> io::Result<(u8, Vec<u8>, Vec<OwnedFd>)> {
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
pub(super) async fn exchange(
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

pub(super) fn parse<T: serde::de::DeserializeOwned>(bytes: &[u8]) -> Result<T> {
    serde_json::from_slice(bytes)
        .map_err(|e| Failure::new(Code::Internal, format!("the holder's answer is odd: {e}")))
}

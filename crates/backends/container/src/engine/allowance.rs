//! Limits how much an engine may say before somebody has taken it.
//!
//! The engine's client gathers an answer, or a line of a stream, for as long as there is more of it. Whoever may start a
//! session may also name the engine, so the limit stands below the client, at the connection.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// The most that an engine may answer to one question about one thing, in bytes.
pub(crate) const MAX_ANSWER_LEN: usize = 1 << 20;
/// The most that an engine may answer where it lists things, in bytes.
pub(crate) const MAX_LIST_LEN: usize = 16 << 20;
/// The most of a stream that may come between two items of it, in bytes. More than the client reads ahead.
pub(crate) const MAX_ITEM_LEN: usize = 512 << 10;

/// How much may still come over a connection.
#[derive(Debug, Clone)]
pub(crate) struct Allowance {
    limit: Arc<AtomicUsize>,
    left: Arc<AtomicUsize>,
    total: u64,
    /// How much came in all.
    came: Arc<AtomicU64>,
}

impl Allowance {
    /// So many bytes at once, for as long as what came is taken.
    pub(crate) fn of(limit: usize) -> Self {
        let (left, limit) = (Arc::new(AtomicUsize::new(limit)), Arc::new(AtomicUsize::new(limit)));
        Self { limit, left, total: u64::MAX, came: Arc::default() }
    }

    /// The same, and so many bytes in all.
    pub(crate) fn in_total(self, total: u64) -> Self {
        Self { total, ..self }
    }

    /// Begins anew: what came so far has been taken.
    pub(crate) fn renew(&self) {
        self.left.store(self.limit.load(Ordering::Relaxed), Ordering::Relaxed);
    }

    /// Begins anew with another limit, for another question.
    pub(crate) fn renew_to(&self, limit: usize) {
        self.limit.store(limit, Ordering::Relaxed);
        self.renew();
    }

    /// Whether more came than may come in all.
    pub(crate) fn is_used_up(&self) -> bool {
        self.came.load(Ordering::Relaxed) > self.total
    }

    fn spend(&self, bytes: usize) -> io::Result<()> {
        let odd = |limit: u64, when: &str| {
            let message = format!("the engine says more than {} KiB {when}", limit >> 10);
            io::Error::new(io::ErrorKind::InvalidData, message)
        };
        self.came.fetch_add(bytes as u64, Ordering::Relaxed);
        if self.is_used_up() {
            return Err(odd(self.total, "in all"));
        }
        let spent =
            self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(bytes));
        spent.map(drop).map_err(|_| odd(self.limit.load(Ordering::Relaxed) as u64, "at once"))
    }
}

/// A connection that is given up when the other side says more than it may.
pub(crate) struct Limited<S> {
    stream: S,
    allowance: Allowance,
}

impl<S> Limited<S> {
    pub(crate) fn new(stream: S, allowance: Allowance) -> Self {
        Self { stream, allowance }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Limited<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        std::task::ready!(Pin::new(&mut self.stream).poll_read(cx, buf))?;
        Poll::Ready(self.allowance.spend(buf.filled().len() - before))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Limited<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncReadExt;

    use super::*;

    #[tokio::test]
    async fn what_may_come_in_all_is_not_renewed() {
        let allowance = Allowance::of(8).in_total(12);
        let mut stream = Limited::new(&b"12345678abcdefgh"[..], allowance.clone());
        let mut bytes = [0; 8];
        stream.read_exact(&mut bytes).await.unwrap();
        allowance.renew();
        assert!(!allowance.is_used_up());
        stream.read_exact(&mut bytes).await.unwrap_err();
        assert!(allowance.is_used_up());
    }

    #[tokio::test]
    async fn what_was_taken_may_come_again_and_one_byte_more_may_not() {
        let allowance = Allowance::of(8);
        let mut stream = Limited::new(&b"12345678abcdefgh!"[..], allowance.clone());
        let mut bytes = [0; 8];
        stream.read_exact(&mut bytes).await.unwrap();
        allowance.renew();
        stream.read_exact(&mut bytes).await.unwrap();
        assert_eq!(&bytes, b"abcdefgh");
        let error = stream.read_exact(&mut bytes).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidData, "{error}");
    }
}

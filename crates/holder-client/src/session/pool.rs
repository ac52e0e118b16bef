//! Where holders come from, and the first words with a fresh one.

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use tokio::net::UnixStream;
use wharf_backend::Result;
use wharf_holder::frame::Kind;
use wharf_holder::wire::StartedReply;
use wharf_model::{Code, Failure, Ticket};

use super::exchange::{first_answer, hand, parse};
use super::kept_fds::KeptFds;
use super::nursery::Nursery;

/// How long a holder may take to start a command: a start waits for a loaded machine, not for ever.
const START_TIMEOUT: Duration = Duration::from_secs(30);
/// How long after a start its spare holder is replaced: forking at once would only delay the command.
const REFILL_DELAY: Duration = Duration::from_millis(5);

/// What starts and replaces holders.
pub(super) struct HolderPool {
    pub(super) nursery: Nursery,
    /// The soft limit of descriptors that commands get.
    pub(super) descriptors: Option<u64>,
}

impl HolderPool {
    /// Has a fresh holder do the first request that a holder gets: what it started, and its duplicates.
    pub(super) async fn begin(
        &self,
        frame: &[u8],
        descriptors: &[BorrowedFd<'_>],
    ) -> Result<(UnixStream, StartedReply, Vec<OwnedFd>)> {
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
    pub(super) async fn replenish(self: Arc<Self>) {
        tokio::time::sleep(REFILL_DELAY).await;
        self.nursery.replenish();
    }

    /// A fresh holder in the place of one that died.
    pub(super) async fn resume(
        &self,
        kept: &KeptFds,
        ticket: &Ticket,
    ) -> Result<(UnixStream, StartedReply, Vec<OwnedFd>)> {
        let failed = |error: io::Error| Failure::system("cannot replace a holder", &error);
        let (frame, descriptors) = kept.resume(ticket, self.descriptors).map_err(failed)?;
        self.begin(&frame, &descriptors).await
    }
}

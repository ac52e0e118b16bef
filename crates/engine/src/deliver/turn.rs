//! Gives the turn to type into a session: one who types at a time.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use wharf_model::{Code, Failure};

use crate::Result;

/// The turns to type into one session, in the order in which they were asked for.
pub(crate) struct InputTurns(Arc<Semaphore>);

/// The turn to type. Whoever has it holds it across awaits, on purpose: a message, an answer or an interrupt is several keys
/// and looks, and nobody else's may come between them. It guards this order and no data, so nobody who only looks waits for it.
pub(crate) struct InputTurn(#[expect(dead_code, reason = "held until it is dropped")] OwnedSemaphorePermit);

impl InputTurns {
    pub(crate) fn new() -> Self {
        Self(Arc::new(Semaphore::new(1)))
    }

    /// Waits for the turn.
    pub(crate) async fn take(&self) -> Result<InputTurn> {
        let turn = Arc::clone(&self.0).acquire_owned().await;
        turn.map(InputTurn).map_err(|error| Failure::new(Code::Internal, error.to_string()))
    }

    /// Waits for the turn, or fails when somebody else has it for too long.
    pub(crate) async fn take_within(&self, within: Duration) -> Result<InputTurn> {
        tokio::time::timeout(within, self.take()).await.unwrap_or_else(|_| {
            Err(Failure::new(Code::Busy, format!("a message is being typed there, and was for {within:?}"))
                .hint("`wharf messages` shows which; `wharf capture` shows the screen"))
        })
    }
}

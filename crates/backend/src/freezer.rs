//! Declares the `Freezer` trait: pauses a whole session and lets it go on.

use async_trait::async_trait;
use tokio::sync::broadcast;
use wharf_model::{SessionId, Ticket};

use crate::Result;

/// Makes sessions stand still. Nothing of a session runs then, and nothing of it is lost.
#[async_trait]
pub trait Freezer: Send + Sync {
    /// Makes a session stand still, or go on. One that does so already stays as it is.
    async fn freeze(&self, ticket: &Ticket, still: bool) -> Result<()>;

    /// Whether a session stands still, whoever made it.
    async fn is_frozen(&self, ticket: &Ticket) -> Result<bool>;

    /// Tells of sessions that somebody else made stand still or go on; none where only asking tells.
    fn news(&self) -> Option<broadcast::Receiver<Frozen>>;
}

/// A session that stands still now, or goes on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frozen {
    /// The session.
    pub session: SessionId,
    /// Whether it stands still.
    pub still: bool,
}

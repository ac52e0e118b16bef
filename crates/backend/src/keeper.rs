//! What stays in a place after sessions have ended.

use async_trait::async_trait;
use wharf_model::Ticket;

use crate::Result;

/// Knows what is left in a place: on purpose, or by accident.
#[async_trait]
pub trait Keeper: Send + Sync {
    /// Takes away what was kept on purpose for a session, which is being removed.
    async fn forget(&self, ticket: &Ticket) -> Result<()>;

    /// Finds what was left by accident, and takes it away unless it is only asked what there is.
    async fn leftovers(&self, dry_run: bool) -> Result<Vec<Leftover>>;
}

/// Something that was left in a place by accident.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Leftover {
    /// What it is, in words.
    pub thing: String,
    /// Why it is of no more use, or why it is kept all the same.
    pub why: String,
    /// Whether it is kept, because it is in doubt or could not be taken away.
    pub kept: bool,
}

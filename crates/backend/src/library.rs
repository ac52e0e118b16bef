//! Declares the traits for a backend's images and for the ports that it publishes.

use async_trait::async_trait;
use wharf_model::{EngineVariables, ImageSummary, Published, Ticket};

use crate::Result;

/// The images of a place, in the engine that a caller means or that is meant there. They are fetched and built by an environment, ahead of a start or at one.
#[async_trait]
pub trait Library: Send + Sync {
    /// All that there are.
    async fn images(&self, caller: Option<&EngineVariables>) -> Result<Vec<ImageSummary>>;

    /// Removes those that this install built and that no container needs: only those whose name a newer one has
    /// taken, or all. Returns what was removed, or would be.
    async fn prune(
        &self,
        caller: Option<&EngineVariables>,
        all: bool,
        dry_run: bool,
    ) -> Result<Vec<ImageSummary>>;

    /// Removes an image by name or id, unless a container needs it.
    async fn remove(&self, caller: Option<&EngineVariables>, name: &str) -> Result<()>;
}

/// Says where a session's ports are reached from the host.
#[async_trait]
pub trait Publisher: Send + Sync {
    /// The ports of a session that lives, those that were reserved for it included.
    async fn published(&self, ticket: &Ticket) -> Result<Vec<Published>>;
}

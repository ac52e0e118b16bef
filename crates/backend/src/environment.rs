//! Declares the `Environment` trait, which rewrites a launch: dev shells, sandboxes, images.

use async_trait::async_trait;
use tokio::sync::mpsc;
use wharf_model::{Capabilities, SessionId, Spec};

use crate::{Launch, Probe, Result};

/// What rewrites a launch before a backend runs it: a dev shell, a sandbox. It composes with places.
#[async_trait]
pub trait Environment: Send + Sync + 'static {
    /// The word by which users know it.
    fn name(&self) -> &'static str;

    /// Whether a spec asks for it.
    fn concerns(&self, spec: &Spec) -> bool;

    /// Whether it can be used now, and if not, why and what to do.
    async fn probe(&self) -> Probe;

    /// Makes ready whatever takes long, so that [`Environment::apply`] need not; says what is ready. Dropping the
    /// future ends whatever it had begun.
    async fn prepare(
        &self,
        launch: &Launch,
        place: &Capabilities,
        progress: &Progress,
    ) -> Result<Vec<String>>;

    /// The launch as it is in this environment, in a place of these capabilities. What is in force then stands in
    /// `spec.in_force`, in words. What was asked for and cannot be is a failure, never left out.
    async fn apply(&self, launch: Launch, place: &Capabilities) -> Result<Launch>;

    /// Lets go of what [`Environment::apply`] kept for a session, which is being removed or did not come to be. May touch
    /// files, and nothing that takes longer.
    fn release(&self, id: &SessionId, spec: &Spec);
}

/// Whom the steps of something long are told. What nobody takes in time is dropped: it is for people.
#[derive(Debug, Clone, Default)]
pub struct Progress(Option<mpsc::Sender<String>>);

impl Progress {
    /// For a listener.
    pub fn to(listener: mpsc::Sender<String>) -> Self {
        Self(Some(listener))
    }

    /// Tells one step.
    pub fn tell(&self, step: impl Into<String>) {
        if let Some(listener) = &self.0 {
            // A full queue is a slow reader, a closed one is nobody.
            let _ = listener.try_send(step.into());
        }
    }
}

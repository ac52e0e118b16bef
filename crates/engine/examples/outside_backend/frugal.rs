//! Wraps the local backend with a default limit on processes, as a backend from outside would.

use std::sync::Arc;

use async_trait::async_trait;
use wharf_backend::{Adoption, Backend, Connection, Files, Freezer, Launch, Probe, Result};
use wharf_local::{LocalBackend, Options};
use wharf_model::{Capabilities, Home, Ticket};

/// The most processes of a session that names no limit of its own.
const DEFAULT_MAX_PROCESSES: u64 = 4_096;

/// Commands on this host that cannot fork without end, where the host lets us see to that.
pub(crate) struct Frugal(LocalBackend);

impl Frugal {
    /// The sessions of one instance.
    pub(crate) fn new(home: &Home) -> Self {
        Self(LocalBackend::new(Options { name: "frugal", ..Options::new(home) }))
    }
}

#[async_trait]
impl Backend for Frugal {
    fn name(&self) -> &'static str {
        self.0.name()
    }

    fn capabilities(&self) -> Capabilities {
        self.0.capabilities()
    }

    async fn probe(&self) -> Probe {
        self.0.probe().await
    }

    async fn start(&self, mut launch: Launch) -> Result<(Ticket, Arc<dyn Connection>)> {
        if self.capabilities().limits {
            launch.spec.limits.pids.get_or_insert(DEFAULT_MAX_PROCESSES);
        }
        self.0.start(launch).await
    }

    async fn adopt(&self, ticket: &Ticket) -> Result<Adoption> {
        self.0.adopt(ticket).await
    }

    async fn list(&self) -> Result<Vec<Ticket>> {
        self.0.list().await
    }

    async fn sweep(&self, ticket: &Ticket) -> Result<u32> {
        self.0.sweep(ticket).await
    }

    fn files(&self) -> Option<&dyn Files> {
        self.0.files()
    }

    fn freezer(&self) -> Option<&dyn Freezer> {
        self.0.freezer()
    }

    /// Ends what the backend below ends: nothing is spawned here.
    async fn close(&self) {
        self.0.close().await;
    }
}

//! Wraps a backend so that a test can make any of its operations fail.

use std::sync::Arc;

use async_trait::async_trait;
use wharf_model::{Capabilities, Spec, Ticket};

use super::connection::FaultyConnection;
use super::{FaultHandle, Op};
use crate::{Adoption, Backend, Connection, Launch, Probe, Result};

/// A backend with faults in front of every operation, also of its connections and their outputs.
pub struct FaultyBackend {
    inner: Arc<dyn Backend>,
    faults: FaultHandle,
}

impl FaultyBackend {
    /// Wraps a backend. Until a fault is injected nothing changes.
    #[expect(clippy::new_ret_no_self, reason = "a backend is used as a trait object")]
    pub fn new(inner: Arc<dyn Backend>) -> (Arc<dyn Backend>, FaultHandle) {
        let faults = FaultHandle::new();
        (Arc::new(Self { inner, faults: faults.clone() }), faults)
    }

    fn wrap(&self, connection: Arc<dyn Connection>) -> Arc<dyn Connection> {
        Arc::new(FaultyConnection { inner: connection, faults: self.faults.clone() })
    }
}

#[async_trait]
impl Backend for FaultyBackend {
    fn name(&self) -> &'static str {
        self.inner.name()
    }

    fn capabilities(&self) -> Capabilities {
        self.inner.capabilities()
    }

    async fn probe(&self) -> Probe {
        let probe = async { Ok(self.inner.probe().await) };
        self.faults.through(Op::Probe, probe).await.unwrap_or_else(|failure| Probe {
            available: false,
            version: None,
            detail: failure.message,
            hint: failure.hint,
        })
    }

    async fn probe_for(&self, spec: &Spec) -> Probe {
        let probe = async { Ok(self.inner.probe_for(spec).await) };
        self.faults.through(Op::Probe, probe).await.unwrap_or_else(|failure| Probe {
            available: false,
            version: None,
            detail: failure.message,
            hint: failure.hint,
        })
    }

    async fn start(&self, launch: Launch) -> Result<(Ticket, Arc<dyn Connection>)> {
        let (ticket, connection) = self.faults.through(Op::Start, self.inner.start(launch)).await?;
        Ok((ticket, self.wrap(connection)))
    }

    async fn adopt(&self, ticket: &Ticket) -> Result<Adoption> {
        Ok(match self.faults.through(Op::Adopt, self.inner.adopt(ticket)).await? {
            Adoption::Alive(connection) => Adoption::Alive(self.wrap(connection)),
            over => over,
        })
    }

    fn seen_running(&self, ticket: &Ticket) -> bool {
        self.inner.seen_running(ticket)
    }

    async fn list(&self) -> Result<Vec<Ticket>> {
        self.faults.through(Op::List, self.inner.list()).await
    }

    async fn sweep(&self, ticket: &Ticket) -> Result<u32> {
        self.faults.through(Op::Sweep, self.inner.sweep(ticket)).await
    }

    async fn strays(&self, ticket: &Ticket) -> Result<Vec<i32>> {
        self.faults.through(Op::Sweep, self.inner.strays(ticket)).await
    }

    async fn finds_all(&self, ticket: &Ticket) -> bool {
        self.inner.finds_all(ticket).await
    }

    async fn kill(&self, ticket: &Ticket) -> Result<()> {
        self.faults.through(Op::Kill, self.inner.kill(ticket)).await
    }

    fn files(&self) -> Option<&dyn crate::Files> {
        self.inner.files()
    }

    fn freezer(&self) -> Option<&dyn crate::Freezer> {
        self.inner.freezer()
    }

    fn library(&self) -> Option<&dyn crate::Library> {
        self.inner.library()
    }

    fn keeper(&self) -> Option<&dyn crate::Keeper> {
        self.inner.keeper()
    }

    fn publisher(&self) -> Option<&dyn crate::Publisher> {
        self.inner.publisher()
    }

    /// Ends what the wrapped backend ends: the faults spawn nothing.
    async fn close(&self) {
        self.inner.close().await;
    }
}

//! Wraps a backend so that the conformance suite runs every launch through an environment.

use std::sync::Arc;

use async_trait::async_trait;
use wharf_model::{Capabilities, Failure, Text, Ticket};

use crate::{Adoption, Backend, Connection, Environment, Launch, Probe};

/// A backend whose every launch goes through an environment first, as the engine has it.
#[derive(Clone)]
pub struct Dressed {
    backend: Arc<dyn Backend>,
    environment: Arc<dyn Environment>,
    settings: Vec<(Text, Text)>,
}

impl Dressed {
    /// A backend in an environment.
    pub fn new(backend: Arc<dyn Backend>, environment: Arc<dyn Environment>) -> Self {
        Self { backend, environment, settings: Vec::new() }
    }

    /// Variables that the environment finds in the launch, and that the command does not get.
    #[must_use]
    pub fn told(mut self, settings: Vec<(Text, Text)>) -> Self {
        self.settings = settings;
        self
    }
}

#[async_trait]
impl Backend for Dressed {
    fn name(&self) -> &'static str {
        self.backend.name()
    }

    fn capabilities(&self) -> Capabilities {
        self.backend.capabilities()
    }

    async fn probe(&self) -> Probe {
        self.backend.probe().await
    }

    async fn start(&self, mut launch: Launch) -> Result<(Ticket, Arc<dyn Connection>), Failure> {
        launch.env.extend(self.settings.iter().cloned());
        let mut launch = self.environment.apply(launch, &self.capabilities()).await?;
        launch.env.retain(|variable| !self.settings.contains(variable));
        self.backend.start(launch).await
    }

    async fn adopt(&self, ticket: &Ticket) -> Result<Adoption, Failure> {
        self.backend.adopt(ticket).await
    }

    async fn list(&self) -> Result<Vec<Ticket>, Failure> {
        self.backend.list().await
    }

    async fn sweep(&self, ticket: &Ticket) -> Result<u32, Failure> {
        self.backend.sweep(ticket).await
    }

    async fn kill(&self, ticket: &Ticket) -> Result<(), Failure> {
        self.backend.kill(ticket).await
    }

    fn files(&self) -> Option<&dyn crate::Files> {
        self.backend.files()
    }

    fn freezer(&self) -> Option<&dyn crate::Freezer> {
        self.backend.freezer()
    }

    fn library(&self) -> Option<&dyn crate::Library> {
        self.backend.library()
    }

    fn publisher(&self) -> Option<&dyn crate::Publisher> {
        self.backend.publisher()
    }

    /// Ends what the wrapped backend ends.
    async fn close(&self) {
        self.backend.close().await;
    }
}

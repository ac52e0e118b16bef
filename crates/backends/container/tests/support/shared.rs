//! Sessions that share a container, as a backend of their own: it cannot pause one of them alone.

use std::sync::Arc;

use async_trait::async_trait;
use wharf_backend::conformance::{Subject, Tools};
use wharf_backend::{Adoption, Backend, Connection, Files, Launch, Library, Probe, Publisher, Result};
use wharf_container::{ContainerBackend, Flavour, Options};
use wharf_model::{Capabilities, Container, Home, Ticket};

use super::TestEngine;

struct Sharing(ContainerBackend);

#[async_trait]
impl Backend for Sharing {
    fn name(&self) -> &'static str {
        self.0.name()
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities { pause: false, ..self.0.capabilities() }
    }

    async fn probe(&self) -> Probe {
        self.0.probe().await
    }

    async fn start(&self, mut launch: Launch) -> Result<(Ticket, Arc<dyn Connection>)> {
        if let Some(container) = &mut launch.spec.container {
            container.reuse = true;
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

    fn library(&self) -> Option<&dyn Library> {
        self.0.library()
    }

    fn publisher(&self) -> Option<&dyn Publisher> {
        self.0.publisher()
    }

    async fn close(&self) {
        self.0.close().await;
    }
}

/// A backend to be tried whose sessions share a container.
pub(crate) async fn shared(flavour: Flavour) -> Subject {
    let engine = TestEngine::get(flavour).await;
    let dir = tempfile::tempdir().expect("a directory");
    let root = dir.path().to_owned();
    let options = Options { endpoint: Some(engine.endpoint()), ..Options::new(flavour, &Home::below(&root)) };
    let mut tools = Tools::host("/bin/sh");
    tools.starts = 10;
    let container = Container { reuse: true, ..super::container(&root) };
    Subject::new(&root, tools, move || Arc::new(Sharing(ContainerBackend::new(options.clone()))))
        .shaped(move |spec| spec.container = Some(Box::new(container.clone())))
        .keep((dir, engine))
}

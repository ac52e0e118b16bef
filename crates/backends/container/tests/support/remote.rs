//! A bench whose engine is reached over a connection that tests can cut.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bollard::Docker;
use bollard::query_parameters::{KillContainerOptionsBuilder, ListContainersOptionsBuilder};
use wharf_backend::conformance::until;
use wharf_backend::{Backend, Connection, Launch};
use wharf_container::{ContainerBackend, Flavour, Options};
use wharf_model::{Container, Ticket};

use super::{Bench, IMAGE, Wire};

/// An engine, a wire to it, and an instance of its own.
pub(crate) struct RemoteBench {
    pub(crate) bench: Bench,
    pub(crate) wire: Wire,
    ssh: Option<std::path::PathBuf>,
    address: Option<String>,
}

impl RemoteBench {
    pub(crate) async fn new(flavour: Flavour) -> Self {
        Self::with(Bench::new(flavour).await)
    }

    /// With a bench that is there.
    pub(crate) fn with(bench: Bench) -> Self {
        let wire = Wire::to(bench.engine.endpoint().socket().expect("a socket"));
        Self { bench, wire, ssh: None, address: None }
    }

    /// The same by way of `ssh`.
    pub(crate) async fn by_ssh(flavour: Flavour, ssh: &Path, address: String) -> Self {
        Self { ssh: Some(ssh.to_owned()), address: Some(address), ..Self::new(flavour).await }
    }

    pub(crate) fn root(&self) -> &Path {
        self.bench.root()
    }

    /// The engine's own socket, for what somebody does over there.
    pub(crate) fn socket(&self) -> std::path::PathBuf {
        self.bench.engine.endpoint().socket().expect("a socket").to_owned()
    }

    pub(crate) fn options(&self) -> Options {
        let mut options = Options { endpoint: Some(self.wire.endpoint()), ..self.bench.options() };
        if let Some(address) = &self.address {
            options.endpoint = Some(wharf_container::Endpoint::named(address, "the tests"));
        }
        if let Some(ssh) = &self.ssh {
            options.ssh.clone_from(ssh);
        }
        options
    }

    /// The backend, as after a restart.
    pub(crate) fn open(&self) -> ContainerBackend {
        ContainerBackend::new(self.options())
    }

    /// The start of a shell script in pipes, in a container that sees nothing of this host.
    pub(crate) fn shell(&self, script: &str) -> Launch {
        let mut launch = self.bench.shell(script);
        launch.spec.dir = "/".into();
        let container = Container { network: Some("none".into()), ..Container::of(IMAGE) };
        launch.spec.container = Some(container.into());
        launch
    }

    /// Starts what must start.
    pub(crate) async fn start(&self, launch: Launch) -> (Ticket, Arc<dyn Connection>) {
        match self.open().start(launch).await {
            Ok(started) => started,
            Err(failure) => panic!("cannot start: {failure:?}"),
        }
    }

    async fn client(&self) -> Docker {
        self.bench.engine.client().expect("it answers").negotiate_version().await.expect("a version")
    }

    /// Kills the container over there.
    pub(crate) async fn kill(&self, ticket: &Ticket) {
        let options = KillContainerOptionsBuilder::default().signal("KILL").build();
        self.client().await.kill_container(&name(ticket), Some(options)).await.expect("a kill");
    }

    /// All that the engine tells of it.
    pub(crate) async fn inspect(&self, ticket: &Ticket) -> String {
        let shown = self.client().await.inspect_container(&name(ticket), None).await.expect("it is there");
        serde_json::to_string(&shown).expect("JSON")
    }

    /// How many containers this instance has.
    pub(crate) async fn containers(&self) -> usize {
        let install = std::fs::read_to_string(self.options().state.join("install")).expect("a mark");
        let label = std::collections::HashMap::from([("label", vec![format!("wharf.install={install}")])]);
        let options = ListContainersOptionsBuilder::default().all(true).filters(&label).build();
        self.client().await.list_containers(Some(options)).await.expect("a list").len()
    }

    /// Waits until the container does not run.
    pub(crate) async fn ends(&self, ticket: &Ticket) {
        let client = self.client().await;
        until("its container has ended", async || {
            let shown = client.inspect_container(&name(ticket), None).await.expect("it is there");
            shown.state.and_then(|state| state.running) == Some(false)
        })
        .await;
    }

    /// Takes away what is left of a session that is over, and sees that nothing is.
    pub(crate) async fn clear(&self, ticket: &Ticket) {
        self.open().sweep(ticket).await.expect("it is over");
        self.gone(ticket).await;
    }

    /// Waits until the container of a session that is over has been taken away.
    pub(crate) async fn gone(&self, ticket: &Ticket) {
        let client = self.client().await;
        until("its container is gone", async || client.inspect_container(&name(ticket), None).await.is_err())
            .await;
    }

    /// What a thread gives, which may take a while.
    pub(crate) async fn joined<T: Send + 'static>(&self, thread: std::thread::JoinHandle<T>) -> T {
        let joined = tokio::task::spawn_blocking(move || thread.join());
        let joined = tokio::time::timeout(Duration::from_secs(60), joined).await.expect("in time");
        joined.expect("no panic").expect("no panic")
    }
}

fn name(ticket: &Ticket) -> String {
    format!("wharf-{}", ticket.id)
}

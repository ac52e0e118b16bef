//! What the tests of containers share.

#![allow(dead_code, reason = "each test uses its own part of it")]

mod engine;
mod remote;
mod shared;
mod ssh;
mod wire;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use wharf_backend::conformance::{Subject, Tools, within};
use wharf_backend::{Backend, Connection, Launch};
use wharf_container::{ContainerBackend, Flavour, Options};
use wharf_model::{Container, Home, Millis, SessionId, Spec, Text, Ticket, Volume};

#[allow(unused_imports, reason = "each test uses its own part of it")]
pub(crate) use remote::RemoteBench;
#[allow(unused_imports, reason = "each test uses its own part of it")]
pub(crate) use ssh::Server;
#[allow(unused_imports, reason = "each test uses its own part of it")]
pub(crate) use wire::Wire;

#[allow(unused_imports, reason = "each test uses its own part of it")]
pub(crate) use engine::{BUSYBOX, IMAGE, TestEngine};
#[allow(unused_imports, reason = "each test uses its own part of it")]
pub(crate) use shared::shared;

/// A backend to be tried. Its containers see the case's directory at its own path, and their processes are seen from here,
/// so nothing of the suite is left out.
pub(crate) async fn subject(flavour: Flavour) -> Subject {
    let engine = TestEngine::get(flavour).await;
    let dir = tempfile::tempdir().expect("a directory");
    let root = dir.path().to_owned();
    let options = Options { endpoint: Some(engine.endpoint()), ..Options::new(flavour, &Home::below(&root)) };
    let mut tools = Tools::host("/bin/sh");
    tools.starts = 10;
    let container = container(&root);
    Subject::new(&root, tools, move || Arc::new(ContainerBackend::new(options.clone())))
        .shaped(move |spec| spec.container = Some(Box::new(container.clone())))
        .keep((dir, engine))
}

/// A backend whose engine is by a wire, as one of another host: nothing of this one is seen there.
pub(crate) async fn remote_subject(flavour: Flavour) -> Subject {
    let engine = TestEngine::get(flavour).await;
    let dir = tempfile::tempdir().expect("a directory");
    let root = dir.path().to_owned();
    let wire = Wire::to(engine.endpoint().socket().expect("a socket"));
    let options = Options { endpoint: Some(wire.endpoint()), ..Options::new(flavour, &Home::below(&root)) };
    let mut tools = Tools::image("/bin/sh");
    tools.starts = 5;
    let container = Container { network: Some("none".into()), ..Container::of(IMAGE) };
    Subject::new(&root, tools, move || Arc::new(ContainerBackend::new(options.clone())))
        .shaped(move |spec| spec.container = Some(Box::new(container.clone())))
        .keep((dir, engine))
}

/// Makes a test of each case on each engine.
#[allow(unused_macros, reason = "each test uses its own part of it")]
macro_rules! on_both {
    ($($case:ident)*) => {
        mod docker { $( #[test] fn $case() { crate::support::run_case(wharf_container::Flavour::Docker, crate::$case); } )* }
        mod podman { $( #[test] fn $case() { crate::support::run_case(wharf_container::Flavour::Podman, crate::$case); } )* }
    };
}
#[allow(unused_imports, reason = "each test uses its own part of it")]
pub(crate) use on_both;

/// Runs a case with an engine and an instance of its own, and not for ever.
pub(crate) fn run_case(flavour: Flavour, case: impl AsyncFnOnce(Bench)) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let bench = Bench::new(flavour).await;
        within(Duration::from_secs(100), "the case", case(bench)).await;
    });
}

/// A container without a network that sees one directory of the host.
pub(crate) fn container(dir: &Path) -> Container {
    let volume = Volume { source: dir.into(), target: dir.into(), read_only: false };
    Container { network: Some("none".into()), volumes: vec![volume], ..Container::of(IMAGE) }
}

/// An engine and an instance of its own, for tests that are not of the suite.
pub(crate) struct Bench {
    pub(crate) engine: TestEngine,
    dir: tempfile::TempDir,
    flavour: Flavour,
}

impl Bench {
    pub(crate) async fn new(flavour: Flavour) -> Self {
        Self::with(TestEngine::get(flavour).await, flavour)
    }

    /// With an engine of the caller's own.
    pub(crate) fn with(engine: TestEngine, flavour: Flavour) -> Self {
        Self { engine, dir: tempfile::tempdir().expect("a directory"), flavour }
    }

    /// A directory that containers see too.
    pub(crate) fn root(&self) -> &Path {
        self.dir.path()
    }

    pub(crate) fn options(&self) -> Options {
        let home = Home::below(self.root());
        Options { endpoint: Some(self.engine.endpoint()), ..Options::new(self.flavour, &home) }
    }

    /// The backend, as after a restart.
    pub(crate) fn open(&self) -> ContainerBackend {
        ContainerBackend::new(self.options())
    }

    /// The start of a shell script in pipes.
    pub(crate) fn shell(&self, script: &str) -> Launch {
        self.launch(vec!["/bin/sh".into(), "-c".into(), script.into(), "sh".into()])
    }

    pub(crate) fn launch(&self, argv: Vec<Text>) -> Launch {
        static COUNT: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(0);
        let created = Millis::from(std::time::SystemTime::now());
        let count = COUNT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let id = SessionId::new(created, (u64::from(std::process::id()) << 12) | count);
        let mut spec = Spec::new(argv.clone(), self.root());
        spec.tty = false;
        spec.container = Some(Box::new(container(self.root())));
        let token = format!("by-hand-{}-{count}", std::process::id());
        let home = Home::below(self.root());
        std::fs::create_dir_all(home.sessions()).expect("a directory");
        Launch {
            home: home.session(&id),
            id,
            name: "by-hand".parse().expect("a name"),
            run: 1,
            env: vec![("PATH".into(), "/bin".into()), ("WHARF_TOKEN".into(), token.as_str().into())],
            token,
            created,
            argv,
            spec,
        }
    }

    /// Starts what must start.
    pub(crate) async fn start(&self, launch: Launch) -> (Ticket, Arc<dyn Connection>) {
        match self.open().start(launch).await {
            Ok(started) => started,
            Err(failure) => panic!("cannot start: {failure:?}"),
        }
    }

    /// Takes away what is left of a session that is over.
    pub(crate) async fn clear(&self, ticket: &Ticket) {
        self.open().sweep(ticket).await.expect("it is over");
    }
}

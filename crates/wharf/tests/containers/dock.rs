//! An instance beside an engine.

use std::process::{Command, Stdio};

use wharf_container::Flavour;

use crate::engine::{IMAGE, TestEngine};
use crate::registry::Registry;
use crate::support::{Ran, Wharf, until};
use crate::wire::Wire;

/// An instance whose containers are on an engine of the tests' own.
pub(crate) struct Dock {
    pub(crate) wharf: Wharf,
    engine: TestEngine,
    flavour: Flavour,
    /// What leads to the engine, where it is one of another host to us.
    wire: Option<Wire>,
}

impl Dock {
    pub(crate) fn new(flavour: Flavour) -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        // First, because a test that has no engine ends there, and would leave the instance's directory.
        let engine = runtime.block_on(TestEngine::get(flavour));
        Self { wharf: Wharf::new(), engine, flavour, wire: None }
    }

    /// One whose engine is reached by a port, and shares no file with it.
    pub(crate) fn far(flavour: Flavour) -> Self {
        let dock = Self::new(flavour);
        let wire = Wire::to(dock.engine.endpoint().socket().expect("a socket"));
        Self { wire: Some(wire), ..dock }
    }

    /// What the engine is called.
    pub(crate) fn engine_name(&self) -> &'static str {
        self.flavour.name()
    }

    /// A command with the engine in its variables, as a user would have it.
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = self.wharf.command(args);
        let variable = match self.flavour {
            Flavour::Docker => "DOCKER_HOST",
            Flavour::Podman => "CONTAINER_HOST",
        };
        let endpoint = self.wire.as_ref().map_or_else(|| self.engine.endpoint(), Wire::endpoint);
        command.env(variable, endpoint.address);
        command
    }

    pub(crate) fn run(&self, args: &[&str]) -> Ran {
        self.command(args).output().expect("wharf runs").into()
    }

    #[track_caller]
    pub(crate) fn ok(&self, args: &[&str]) -> String {
        let ran = self.run(args);
        assert_eq!(ran.code, 0, "wharf {args:?} failed: {ran:#?}");
        ran.out
    }

    /// Starts a session in a container.
    #[track_caller]
    pub(crate) fn start(&self, name: &str, options: &[&str], argv: &[&str]) {
        let place =
            ["run", "-d", "--name", name, "-b", self.flavour.name(), "--image", IMAGE, "--network", "none"];
        assert_eq!(self.ok(&[&place, options, &["--"], argv].concat()), format!("{name}\n"));
    }

    /// How many containers the engine has that are this instance's.
    pub(crate) fn containers(&self) -> usize {
        let install = std::fs::read_to_string(self.wharf.state().join("install")).unwrap_or_default();
        if install.is_empty() {
            // It has never asked for one, and an empty label is anybody's.
            return 0;
        }
        let filter = format!("label=wharf.install={install}");
        self.engine(&["ps", "-a", "-q", "--filter", &filter]).lines().count()
    }

    /// A registry that the engine reaches.
    pub(crate) fn registry(&self) -> Registry {
        Registry::beside(self.engine.endpoint().socket().expect("a socket"))
    }

    /// What the backend of the engine is called.
    pub(crate) fn backend(&self) -> &'static str {
        self.flavour.name()
    }

    /// What the engine's own command line says, as somebody would ask it by hand.
    #[track_caller]
    pub(crate) fn engine(&self, args: &[&str]) -> String {
        let (program, host) = match self.flavour {
            Flavour::Docker => ("docker", "-H"),
            Flavour::Podman => ("podman", "--url"),
        };
        let mut command = Command::new(program);
        if self.flavour == Flavour::Podman {
            command.arg("--remote");
        }
        command.args([host, &self.engine.endpoint().address]).args(args);
        let answered = command.stderr(Stdio::inherit()).output().expect("the engine's own command line");
        assert!(answered.status.success(), "{program} {args:?}");
        String::from_utf8_lossy(&answered.stdout).trim_end().to_owned()
    }

    /// A container as somebody else would start it, which goes with this.
    #[track_caller]
    pub(crate) fn foreign(&self, options: &[&str], script: &str) -> Foreign<'_> {
        static COUNT: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
        let count = COUNT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let name = format!("theirs-{}-{count}", std::process::id());
        let run = ["run", "-d", "--network", "none", "--name", &name];
        self.engine(&[&run, options, &[IMAGE, "sh", "-c", script]].concat());
        Foreign { place: format!("{}:{name}", self.flavour.name()), name, dock: self }
    }

    /// Nothing of ours is left in the engine.
    #[track_caller]
    pub(crate) fn must_be_empty(&self) {
        assert!(until(|| self.containers() == 0), "{} containers are left", self.containers());
    }
}

/// A container of somebody else.
pub(crate) struct Foreign<'a> {
    /// What the engine calls it.
    pub(crate) name: String,
    /// What `adopt` calls it.
    pub(crate) place: String,
    dock: &'a Dock,
}

impl Foreign<'_> {
    pub(crate) fn runs(&self) -> bool {
        self.dock.engine(&["inspect", "-f", "{{.State.Running}}", &self.name]) == "true"
    }
}

impl Drop for Foreign<'_> {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            self.dock.engine(&["rm", "-f", "-v", &self.name]);
        }
    }
}

/// Makes a test of each case for each engine.
macro_rules! on_both {
    ($($case:ident)*) => {
        mod docker { $( #[test] fn $case() { super::$case(&crate::dock::Dock::new(wharf_container::Flavour::Docker)); } )* }
        mod podman { $( #[test] fn $case() { super::$case(&crate::dock::Dock::new(wharf_container::Flavour::Podman)); } )* }
    };
}

pub(crate) use on_both;

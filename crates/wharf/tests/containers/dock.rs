//! An instance beside an engine.

use std::process::{Command, Stdio};

use wharf_container::Flavour;

use crate::engine::{IMAGE, TestEngine};
use crate::support::{Ran, Wharf, until};

/// An instance whose containers are on an engine of the tests' own.
pub(crate) struct Dock {
    pub(crate) wharf: Wharf,
    engine: TestEngine,
    flavour: Flavour,
}

impl Dock {
    pub(crate) fn new(flavour: Flavour) -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        Self { wharf: Wharf::new(), engine: runtime.block_on(TestEngine::get(flavour)), flavour }
    }

    /// A command with the engine in its variables, as a user would have it.
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = self.wharf.command(args);
        let variable = match self.flavour {
            Flavour::Docker => "DOCKER_HOST",
            Flavour::Podman => "CONTAINER_HOST",
        };
        command.env(variable, self.engine.endpoint().address);
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
        let filter = format!("label=wharf.install={install}");
        let (program, host) = match self.flavour {
            Flavour::Docker => ("docker", "-H"),
            Flavour::Podman => ("podman", "--url"),
        };
        let mut list = Command::new(program);
        if self.flavour == Flavour::Podman {
            list.arg("--remote");
        }
        list.args([host, &self.engine.endpoint().address, "ps", "-a", "-q", "--filter", &filter]);
        let listed = list.stderr(Stdio::inherit()).output().expect("the engine's own command line");
        assert!(listed.status.success());
        String::from_utf8_lossy(&listed.stdout).lines().count()
    }

    /// Nothing of ours is left in the engine.
    #[track_caller]
    pub(crate) fn must_be_empty(&self) {
        assert!(until(|| self.containers() == 0), "{} containers are left", self.containers());
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

//! The same tests on another backend: what is promised does not depend on the place.

use std::path::Path;
use std::process::Command;
use std::sync::OnceLock;

use wharf_container::Flavour;

use self::engine::{IMAGE, TestEngine};

#[path = "../../../backends/container/tests/support/engine.rs"]
pub(crate) mod engine;

/// The backend that `WHARF_TEST_BACKEND` names, with its engine where it has one.
pub(super) struct Ground {
    backend: String,
    engine: Option<(Flavour, TestEngine)>,
}

impl Ground {
    /// The one of this test program, if another than the default is asked for.
    pub(super) fn get() -> Option<&'static Self> {
        static GROUND: OnceLock<Option<Ground>> = OnceLock::new();
        GROUND.get_or_init(|| std::env::var("WHARF_TEST_BACKEND").ok().map(Self::new)).as_ref()
    }

    fn new(backend: String) -> Self {
        let flavour = match backend.as_str() {
            "docker" => Some(Flavour::Docker),
            "podman" => Some(Flavour::Podman),
            _ => None,
        };
        let engine = flavour.map(|flavour| {
            let start = move || {
                let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
                runtime.expect("a runtime").block_on(TestEngine::get(flavour))
            };
            (flavour, std::thread::spawn(start).join().expect("an engine"))
        });
        Self { backend, engine }
    }

    pub(super) fn is_tmux(&self) -> bool {
        self.backend == "tmux"
    }

    /// A command's words and variables here. A container sees the test's home and the host's programs at their own paths.
    pub(super) fn shape(&self, command: &mut Command, args: &[&str], home: &Path) {
        // A pane is a terminal: sessions without one are refused there, which has a test of its own, and run on this host.
        let pipes = self.is_tmux() && args.contains(&"--no-tty");
        command.env("WHARF_BACKEND", if pipes { "local" } else { &self.backend });
        let Some((flavour, engine)) = self.engine.as_ref() else {
            command.args(args);
            return;
        };
        let variable = match flavour {
            Flavour::Docker => "DOCKER_HOST",
            Flavour::Podman => "CONTAINER_HOST",
        };
        command.env(variable, engine.endpoint().address);
        match args {
            ["run", rest @ ..] => {
                command.args(["run", "--image", IMAGE, "--network", "none", "-v"]).arg(home);
                let program = format!("{}:ro", env!("CARGO_BIN_EXE_wharf"));
                command.args(["-v", "/usr:ro", "-v", &program]).args(rest);
            }
            _ => {
                command.args(args);
            }
        }
    }
}

//! A directory with an inside, an outside, and commands that run in the first.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use tempfile::TempDir;
use wharf_backend::{Environment, Launch};
use wharf_model::{Capabilities, Failure, Home, Millis, Sandbox, SessionId, Spec, Text};
use wharf_sandbox::{Guarded, SandboxEnvironment};

pub(crate) struct Ground {
    dir: TempDir,
    home: PathBuf,
    guarded: Guarded,
    pub(crate) sandbox: Sandbox,
}

impl Ground {
    pub(crate) fn new() -> Self {
        wharf_backend::conformance::needs_namespaces();
        let dir = tempfile::tempdir().expect("a directory");
        let home = dir.path().canonicalize().expect("it is there").join("home");
        let guarded = Guarded { hidden: vec![home.clone()], fixed: Vec::new() };
        let ground = Self { dir, home, guarded, sandbox: Sandbox::default() };
        for name in ["inside", "outside", "home"] {
            std::fs::create_dir(ground.path(name)).expect("a directory");
        }
        std::fs::write(ground.path("outside/file"), "secret").expect("a file");
        ground
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().canonicalize().expect("it is there").join(name)
    }

    /// The same with a state directory elsewhere, and the session's own directory in it.
    pub(crate) fn with_state(mut self, state: &Path) -> Self {
        self.home = state.join("sessions/own");
        self.guarded.hidden = vec![state.to_owned()];
        self
    }

    /// The same with a configuration, which may not be there.
    pub(crate) fn with_config(mut self, config: &Path) -> Self {
        self.guarded.fixed = vec![config.to_owned()];
        self
    }

    pub(crate) fn environment(&self) -> SandboxEnvironment {
        SandboxEnvironment::new(Self::holder(), self.guarded.clone())
    }

    pub(crate) fn holder() -> PathBuf {
        wharf_local::holder_program()
    }

    pub(crate) fn launch(&self, argv: &[&str]) -> Launch {
        let argv: Vec<Text> = argv.iter().map(|word| Text::from(*word)).collect();
        let mut spec = Spec::new(argv.clone(), self.path("inside"));
        spec.sandbox = Some(Box::new(self.sandbox.clone()));
        let path = std::env::var_os("PATH").expect("there is a PATH");
        Launch {
            id: SessionId::new(Millis(1), 1),
            name: "test".parse().expect("a name"),
            run: 1,
            home: self.home.clone(),
            token: "token".to_owned(),
            created: Millis(1),
            argv,
            env: vec![("PATH".into(), path.into()), ("OUT".into(), self.path("outside").into())],
            spec,
        }
    }

    pub(crate) async fn apply(&self, argv: &[&str]) -> Result<Launch, Failure> {
        let _ = std::fs::create_dir_all(&self.home);
        self.environment().apply(self.launch(argv), &Capabilities::default()).await
    }

    /// Runs a script of bash in the sandbox, as a backend would.
    pub(crate) async fn script(&self, script: &str) -> Output {
        run(&self.apply(&["bash", "-c", script]).await.expect("a sandbox can be had"))
    }

    /// The same, which must end well. Answers with what it printed.
    pub(crate) async fn prints(&self, script: &str) -> String {
        let ran = self.script(script).await;
        assert!(ran.status.success(), "{script}: {}", String::from_utf8_lossy(&ran.stderr));
        String::from_utf8_lossy(&ran.stdout).into_owned()
    }

    /// The same, which must be refused. Answers with what it said.
    pub(crate) async fn refused(&self, script: &str) -> String {
        let ran = self.script(script).await;
        assert!(!ran.status.success(), "{script} was not refused: {}", String::from_utf8_lossy(&ran.stdout));
        String::from_utf8_lossy(&ran.stderr).into_owned()
    }
}

pub(crate) fn run(launch: &Launch) -> Output {
    let mut command = Command::new(launch.argv[0].as_os_str());
    command.args(launch.argv[1..].iter().map(Text::as_os_str)).current_dir(launch.spec.dir.as_path());
    command.env_clear().envs(launch.env.iter().map(|(name, value)| (name.as_os_str(), value.as_os_str())));
    command.output().expect("the step can be run")
}

/// The home of an instance that no test here has.
pub(crate) fn prompt() -> &'static str {
    Home::PROMPT
}

//! A nix of the test's own: settings, store and flakes below one directory, and no network.

#![allow(dead_code, reason = "each test uses what it needs")]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tempfile::TempDir;
use tokio::sync::mpsc;
use wharf_backend::conformance::left_out;
use wharf_backend::{Environment, Launch, Progress};
use wharf_model::{Capabilities, Failure, Home, Millis, SessionId, Spec, Text};
use wharf_nix::NixEnvironment;

/// The variables that the plain flake's shell has.
pub(crate) const ADDS: [&str; 8] = [
    "FOO",
    "IN_NIX_SHELL",
    "NIX_BUILD_CORES",
    "NIX_STORE",
    "builder",
    "dontAddDisableDepTrack",
    "name",
    "outputs",
];

/// Where one test's nix keeps everything.
pub(crate) struct Ground {
    dir: TempDir,
}

impl Ground {
    pub(crate) fn new() -> Self {
        let there = Command::new("nix").arg("--version").output().is_ok_and(|ran| ran.status.success());
        if !there {
            left_out("nix is not here: `cargo xtask setup` installs it");
        }
        let dir = tempfile::tempdir().expect("a directory");
        let ground = Self { dir };
        let registry = ground.write("conf/registry.json", r#"{"flakes":[],"version":2}"#);
        let settings = format!(
            "experimental-features = nix-command flakes\nsandbox = false\nbuild-users-group =\n\
             substituters =\nwarn-dirty = false\nflake-registry = {}\n",
            registry.display()
        );
        ground.write("conf/nix.conf", &settings);
        fs::create_dir(ground.path("home")).expect("a directory");
        ground
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().canonicalize().expect("it is there").join(name)
    }

    pub(crate) fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path(name);
        fs::create_dir_all(path.parent().expect("it is below the ground")).expect("a directory");
        fs::write(&path, text).expect("a file");
        path
    }

    /// The variables by which nix uses this ground and nothing else.
    pub(crate) fn settings(&self) -> Vec<(Text, Text)> {
        let places = [
            ("NIX_CONF_DIR", "conf"),
            ("NIX_STORE_DIR", "store"),
            ("NIX_STATE_DIR", "var"),
            ("NIX_LOG_DIR", "log"),
        ];
        places.into_iter().map(|(name, below)| (name.into(), self.path(below).into())).collect()
    }

    /// A flake with one shell, whose attributes are these.
    pub(crate) fn flake(&self, name: &str, attributes: &str) -> PathBuf {
        self.write(&format!("{name}/flake.nix"), &flake(attributes));
        self.path(name)
    }

    pub(crate) fn home(&self) -> Home {
        Home::below(&self.path("instance"))
    }

    pub(crate) fn environment(&self) -> Arc<NixEnvironment> {
        Arc::new(NixEnvironment::new(&self.home()))
    }

    /// A launch of a shell script in the shell of a flake.
    pub(crate) fn launch(&self, flake: &Path, script: &str) -> Launch {
        static COUNT: AtomicU64 = AtomicU64::new(1);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let id = SessionId::new(Millis(number), number);
        let argv: Vec<Text> = ["/bin/sh", "-c", script].into_iter().map(Text::from).collect();
        let mut spec = Spec::new(argv.clone(), flake);
        spec.nix = Some(Box::default());
        let mut env = self.settings();
        env.extend([
            ("PATH".into(), "/usr/local/bin:/usr/bin:/bin".into()),
            ("HOME".into(), self.path("home").into()),
            // A builder that is killed leaves its directory behind.
            ("TMPDIR".into(), self.path("home").into()),
            ("WHARF_TOKEN".into(), "token".into()),
        ]);
        Launch {
            home: self.home().session(&id),
            id,
            name: "test".parse().expect("a name"),
            run: 1,
            token: "token".to_owned(),
            created: Millis(0),
            argv,
            env,
            spec,
        }
    }

    /// Runs a program of nix by hand.
    pub(crate) fn run(&self, program: &str, args: &[&str]) -> String {
        let mut command = Command::new(program);
        command.args(args).env("HOME", self.path("home"));
        command.envs(self.settings().iter().map(|(name, value)| (name.as_os_str(), value.as_os_str())));
        let ran = command.output().expect("it can be run");
        assert!(ran.status.success(), "{program}: {}", String::from_utf8_lossy(&ran.stderr));
        String::from_utf8_lossy(&ran.stdout).into_owned()
    }
}

impl Drop for Ground {
    fn drop(&mut self) {
        // Nix takes the right to write from whatever it stores, which would keep us from clearing up.
        let mut dirs = vec![self.path("store")];
        while let Some(dir) = dirs.pop() {
            let _ = fs::set_permissions(&dir, fs::Permissions::from_mode(0o700));
            let entries = fs::read_dir(&dir).into_iter().flatten().filter_map(Result::ok);
            dirs.extend(entries.filter(|e| e.file_type().is_ok_and(|kind| kind.is_dir())).map(|e| e.path()));
        }
    }
}

/// The text of a flake without inputs.
pub(crate) fn flake(attributes: &str) -> String {
    let system = format!("{}-linux", std::env::consts::ARCH);
    format!(
        "{{ outputs = {{ self }}: let system = \"{system}\"; in {{ devShells.${{system}}.default = derivation {{\n\
         name = \"dev\"; inherit system; builder = \"/bin/bash\"; args = [ \"-c\" \"echo > $out\" ];\n\
         outputs = [ \"out\" ]; {attributes} }}; }}; }}\n"
    )
}

/// A place on this host.
pub(crate) fn host() -> Capabilities {
    Capabilities::default()
}

/// Makes a launch's shell ready; what was told meanwhile.
pub(crate) async fn prepared(environment: &NixEnvironment, launch: &Launch) -> Result<Vec<String>, Failure> {
    let (listener, mut steps) = mpsc::channel(1000);
    environment.prepare(launch, &host(), &Progress::to(listener)).await?;
    let mut told = Vec::new();
    while let Some(step) = steps.recv().await {
        told.push(step);
    }
    Ok(told)
}

/// Whether what was told says that a shell was captured.
pub(crate) fn captured(told: &[String]) -> bool {
    told.iter().any(|step| step.starts_with("capturing"))
}

/// Runs a launch as a backend would: exactly its words, variables and directory. Answers with what it printed.
pub(crate) fn run(launch: &Launch) -> String {
    let mut command = Command::new(launch.argv[0].as_os_str());
    command.args(launch.argv[1..].iter().map(Text::as_os_str)).current_dir(launch.spec.dir.as_path());
    command.env_clear().envs(launch.env.iter().map(|(name, value)| (name.as_os_str(), value.as_os_str())));
    let ran = command.output().expect("it can be run");
    assert!(ran.status.success(), "{:?}: {}", launch.argv, String::from_utf8_lossy(&ran.stderr));
    String::from_utf8_lossy(&ran.stdout).into_owned()
}

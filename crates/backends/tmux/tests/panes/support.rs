//! An instance with a private tmux server, and what tests do to both.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use wharf_backend::conformance::{CASE_TIMEOUT, Transcript, within};
use wharf_backend::{Backend, Connection, Launch, Stop};
use wharf_model::{ExitRecord, Home, Millis, Offset, Reason, SessionId, Spec, Text, Ticket};
use wharf_tmux::{Options, TmuxBackend};

/// One instance.
pub(crate) struct Instance {
    root: PathBuf,
    home: Home,
    pub(crate) backend: TmuxBackend,
    _kept: tempfile::TempDir,
}

/// Where a test fails, nothing is left of it either.
impl Drop for Instance {
    fn drop(&mut self) {
        if self.server_dir().exists() {
            self.tmux(&["kill-server"]);
        }
    }
}

/// A session of it.
pub(crate) struct Session {
    pub(crate) ticket: Ticket,
    pub(crate) connection: Arc<dyn Connection>,
}

impl Instance {
    pub(crate) fn new() -> Self {
        Self::below(Path::new(""))
    }

    /// One whose path goes on with this.
    pub(crate) fn below(path: &Path) -> Self {
        let kept = tempfile::tempdir().expect("a directory");
        let root = kept.path().join(path);
        std::fs::create_dir_all(&root).expect("a directory");
        let home = Home::below(&root);
        std::fs::create_dir_all(home.sessions()).expect("a directory");
        let backend = TmuxBackend::new(Options::new(&home));
        Self { root, home, backend, _kept: kept }
    }

    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// The directory of the private server.
    pub(crate) fn server_dir(&self) -> PathBuf {
        self.home.state().join("tmux")
    }

    /// A start of a shell script.
    pub(crate) fn launch(&self, script: &str) -> Launch {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let created = Millis::from(SystemTime::now());
        let id = SessionId::new(created, COUNT.fetch_add(1, Ordering::Relaxed));
        let argv: Vec<Text> = ["/bin/sh", "-c", script].map(Text::from).to_vec();
        let token = format!("panes-{id}");
        Launch {
            home: self.home.session(&id),
            name: "one".parse().expect("a legal name"),
            id,
            run: 1,
            env: vec![
                ("PATH".into(), "/usr/bin:/bin".into()),
                ("TERM".into(), "screen-256color".into()),
                ("WHARF_TOKEN".into(), token.as_str().into()),
            ],
            token,
            created,
            spec: Spec::new(argv.clone(), self.root.as_path()),
            argv,
        }
    }

    pub(crate) async fn start(&self, launch: Launch) -> Session {
        let (ticket, connection) =
            within(CASE_TIMEOUT, "a start", self.backend.start(launch)).await.expect("it starts");
        Session { ticket, connection }
    }

    pub(crate) async fn run(&self, script: &str) -> Session {
        self.start(self.launch(script)).await
    }

    /// Asks the private server; what it prints.
    pub(crate) fn tmux(&self, args: &[&str]) -> String {
        let output = Command::new("tmux")
            .args(["-S", "sock"])
            .args(args)
            .current_dir(self.server_dir())
            .env_remove("TMUX")
            .output()
            .expect("tmux runs");
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    }

    /// The server's process.
    pub(crate) fn server(&self) -> Process {
        let pid = self.tmux(&["display-message", "-p", "#{pid}"]);
        Process(pid.parse().expect("a server runs"))
    }
}

/// A process that a test may signal, since the test had it started.
#[derive(Clone, Copy)]
pub(crate) struct Process(pub(crate) i32);

impl Process {
    pub(crate) fn signal(self, signal: &str) {
        let sent = Command::new("kill").args(["-s", signal, &self.0.to_string()]).status();
        assert!(sent.expect("kill runs").success(), "cannot send {signal} to {}", self.0);
    }

    pub(crate) fn lives(self) -> bool {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.0)).unwrap_or_default();
        stat.rsplit(") ").next().is_some_and(|rest| !rest.is_empty() && !rest.starts_with('Z'))
    }
}

impl Session {
    /// What it is called in tmux.
    pub(crate) fn target(&self) -> String {
        format!("={}-{}:", self.ticket.id, self.ticket.run)
    }

    pub(crate) async fn transcript(&self) -> Transcript {
        Transcript::of(&*self.connection, Offset(0)).await
    }

    pub(crate) async fn type_in(&self, text: &str) {
        self.connection.write(text.as_bytes(), CASE_TIMEOUT).await.expect("input goes in");
    }

    pub(crate) async fn ended(&self) -> ExitRecord {
        within(CASE_TIMEOUT, "the end", self.connection.wait()).await.expect("the end is known")
    }

    pub(crate) async fn kill(&self) -> ExitRecord {
        let stop = Stop { grace: Duration::ZERO, reason: Reason::Killed, by: "the test".to_owned() };
        within(CASE_TIMEOUT, "a kill", self.connection.stop(stop)).await.expect("it is killed")
    }
}

//! Gives one conformance case its backend and directories, and ends all that the case started.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use wharf_model::{Capabilities, Millis, SessionId, Spec, Text, Ticket};

use super::{CASE_TIMEOUT, Running, Subject, Tools, within};
use crate::{Adoption, Backend, Connection, Failure, Launch};

/// The kind of session that a case is tried with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// With a terminal.
    Tty,
    /// With three pipes.
    Pipes,
}

/// Where a case runs: a subject, one kind of session, and all that the case has started.
pub struct Place {
    subject: Subject,
    mode: Mode,
    backend: Arc<dyn Backend>,
    started: Mutex<Vec<Started>>,
}

/// A session that must be ended after the case. The connection is kept only where there is no other way back,
/// because cases drop theirs on purpose.
struct Started {
    ticket: Ticket,
    connection: Option<Arc<dyn Connection>>,
}

/// Carried by the unwinding of a case that cannot be tried here.
pub(super) struct NotHere(pub(super) String);

impl Place {
    pub(super) fn new(subject: Subject, mode: Mode) -> Self {
        let backend = (subject.open)();
        std::fs::create_dir_all(subject.home.sessions()).expect("the home can be made");
        Self { subject, mode, backend, started: Mutex::default() }
    }

    /// The backend as it was opened first.
    pub fn backend(&self) -> &dyn Backend {
        &*self.backend
    }

    /// The backend opened once more, as after a restart.
    pub fn reopen(&self) -> Arc<dyn Backend> {
        (self.subject.open)()
    }

    /// What the backend claims.
    pub fn can(&self) -> Capabilities {
        self.backend.capabilities()
    }

    /// Whether sessions have a terminal here.
    pub fn tty(&self) -> bool {
        self.mode == Mode::Tty
    }

    /// What the place has.
    pub fn tools(&self) -> &Tools {
        &self.subject.tools
    }

    /// Gives the case up where the place lacks what it needs; this is not a failure, and it is said.
    pub fn need(&self, there: bool, what: &str) {
        if !there {
            std::panic::resume_unwind(Box::new(NotHere(what.to_owned())));
        }
    }

    /// Gives the case up where commands do not share the suite's files and processes.
    pub fn need_host(&self) {
        self.need(self.tools().host, "files and processes shared with the suite");
    }

    /// A directory for commands to run in and to leave files in.
    pub fn dir(&self) -> &Path {
        &self.subject.root
    }

    /// A new directory below [`Place::dir`].
    pub fn make_dir(&self, name: impl Into<Text>) -> PathBuf {
        let path = self.dir().join(name.into().as_path());
        std::fs::create_dir(&path).expect("a directory can be made");
        path
    }

    /// The start of a command with few variables, decided as the engine would decide it.
    pub fn launch(&self, argv: Vec<Text>) -> Launch {
        // Two cases must never see each other's mark, in one process or in two.
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let created = Millis::from(SystemTime::now());
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let token = format!("conformance-{}-{}-{count}", std::process::id(), created.0);
        let id = SessionId::new(created, (u64::from(std::process::id()) << 12) | count);
        let root: Text = self.dir().into();
        let root = if self.tools().host || self.tools().shell.is_none() { root } else { "/".into() };
        let mut spec = Spec::new(argv.clone(), root);
        spec.tty = self.tty();
        (self.subject.shape)(&mut spec);
        Launch {
            home: self.subject.home.session(&id),
            id,
            name: format!("case-{count}").parse().expect("a legal name"),
            run: 1,
            env: vec![
                ("PATH".into(), "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin".into()),
                ("LC_ALL".into(), "C".into()),
                ("WHARF_TOKEN".into(), token.as_str().into()),
            ],
            token,
            created,
            argv,
            spec,
        }
    }

    /// The start of a shell script; `args` are its `$1` and so on.
    pub fn script<T: Into<Text>>(&self, script: &str, args: impl IntoIterator<Item = T>) -> Launch {
        let Some(shell) = self.tools().shell.clone() else {
            std::panic::resume_unwind(Box::new(NotHere("a shell".to_owned())))
        };
        let mut argv = vec![shell, "-c".into(), script.into(), "sh".into()];
        argv.extend(args.into_iter().map(Into::into));
        self.launch(argv)
    }

    /// The start of a shell script without arguments.
    pub fn shell(&self, script: &str) -> Launch {
        self.script(script, Vec::<Text>::new())
    }

    /// The start of a shell script whose output and input are not changed by the terminal.
    pub fn raw(&self, script: &str) -> Launch {
        if !self.tty() {
            return self.shell(script);
        }
        self.need(self.tools().stty, "stty");
        self.shell(&format!("stty raw -echo; {script}"))
    }

    /// Starts a command that must start.
    pub async fn start(&self, launch: Launch) -> Running {
        let (argv, token) = (launch.argv.clone(), launch.token.clone());
        let started = within(CASE_TIMEOUT, "start", self.backend.start(launch)).await;
        let (ticket, connection) =
            started.unwrap_or_else(|failure| panic!("cannot start {argv:?}: {failure:?}"));
        self.remember(&ticket, &connection);
        Running { ticket, connection, token }
    }

    /// Starts one of the simple commands that even a place without a shell may have.
    pub async fn start_simple(&self, argv: Option<Vec<Text>>) -> Running {
        let Some(argv) = argv else {
            std::panic::resume_unwind(Box::new(NotHere("a shell with stty".to_owned())))
        };
        self.start(self.launch(argv)).await
    }

    /// Starts a command that runs until it is ended and reads nothing.
    pub async fn sleeper(&self) -> Running {
        self.start_simple(self.tools().sleeper()).await
    }

    /// Starts a command that prints exactly what is typed, and waits until it does. Returns what it printed before.
    pub async fn echo(&self) -> (Running, Vec<u8>) {
        let running = self.start_simple(self.tools().echo(self.tty())).await;
        let ready = self.tools().ready();
        running.transcript(0).await.until(ready).await;
        (running, ready.to_vec())
    }

    /// Starts a command that must not start, and checks that nothing is left of it.
    pub async fn refuse(&self, launch: Launch) -> Failure {
        let (home, id, token) = (launch.home.clone(), launch.id.clone(), launch.token.clone());
        let argv: Vec<Text> = launch.argv.iter().take(2).cloned().collect();
        let failure = match within(CASE_TIMEOUT, "a refusal", self.backend.start(launch)).await {
            Err(failure) => failure,
            Ok((ticket, connection)) => {
                self.remember(&ticket, &connection);
                panic!("{argv:?} was started, and should have been refused")
            }
        };
        assert!(!home.exists(), "a refused start left {}", home.display());
        if self.can().list {
            let listed = self.backend.list().await.expect("a list");
            assert!(listed.iter().all(|ticket| ticket.id != id), "a refused start is listed");
        }
        if self.tools().host {
            super::none_carry(&token);
        }
        failure
    }

    fn remember(&self, ticket: &Ticket, connection: &Arc<dyn Connection>) {
        let connection = (!self.can().adopt).then(|| Arc::clone(connection));
        let started = Started { ticket: ticket.clone(), connection };
        self.started.lock().unwrap_or_else(PoisonError::into_inner).push(started);
    }

    /// Ends all that the case started, and asserts that nothing is left of it.
    pub(super) async fn clear(&self) -> Result<(), String> {
        let started = std::mem::take(&mut *self.started.lock().unwrap_or_else(PoisonError::into_inner));
        let backend = self.reopen();
        for Started { ticket, connection } in &started {
            let stop = super::running::stop(std::time::Duration::ZERO);
            let found = match connection {
                Some(connection) => Some(Arc::clone(connection)),
                None => match backend.adopt(ticket).await {
                    Ok(Adoption::Alive(connection)) => Some(connection),
                    Ok(Adoption::Ended(_) | Adoption::Lost) => None,
                    Err(failure) => return Err(format!("cannot find session {}: {failure:?}", ticket.id)),
                },
            };
            if let Some(connection) = found {
                connection.stop(stop).await.map_err(|failure| format!("cannot clear up: {failure:?}"))?;
            }
            backend.sweep(ticket).await.map_err(|failure| format!("cannot sweep: {failure:?}"))?;
            let left = super::carrying(&ticket.token);
            if self.tools().host && !left.is_empty() {
                return Err(format!("session {} left the processes {left:?}", ticket.id));
            }
        }
        Ok(())
    }
}

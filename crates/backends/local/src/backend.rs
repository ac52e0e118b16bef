//! The backend: starts, finds again, lists, sweeps.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use async_trait::async_trait;
use wharf_backend::{Adoption, Backend, Connection, Launch, Probe, Result};
use wharf_holder::linux;
use wharf_holder_client::session::{HostHolders, holder_program, read_ticket};
use wharf_model::{Capabilities, Code, Failure, Home, Ticket};

use crate::files::HostFiles;
use crate::freezer::CgroupFreezer;
use crate::unlisted;

/// What the backend is called where nothing is built on top of it.
const LOCAL: &str = "local";

/// Where this host's sessions are, and what holds them.
#[derive(Debug, Clone)]
pub struct Options {
    /// What the backend is called: another name for one that is built on top of it.
    pub name: &'static str,
    /// The program `wharf-holder`.
    pub holder: PathBuf,
    /// The directory that has one directory a session.
    pub sessions: PathBuf,
    /// The soft limit of descriptors that commands get, where this process has raised its own.
    pub descriptors: Option<u64>,
}

impl Options {
    /// The holder beside this program, and an instance's own sessions.
    pub fn new(home: &Home) -> Self {
        Self { name: LOCAL, holder: holder_program(), sessions: home.sessions(), descriptors: None }
    }
}

/// Sessions on this host.
pub struct LocalBackend {
    name: &'static str,
    holders: HostHolders,
    limits: bool,
    /// Whether sessions can be made to stand still; found out when somebody asks.
    freezes: OnceLock<bool>,
}

impl LocalBackend {
    /// The backend. Nothing is started before a session is.
    pub fn new(options: Options) -> Self {
        let Options { name, holder, sessions, descriptors } = options;
        Self {
            name,
            holders: HostHolders::new(name, holder, sessions, descriptors),
            limits: linux::can_limit(),
            freezes: OnceLock::new(),
        }
    }

    /// Starts what the first session needs, so that it need not wait for it.
    pub fn warm_up(&self) {
        self.holders.warm_up();
    }

    /// What holds the sessions, for a backend that is built on top of this one.
    pub fn holders(&self) -> &HostHolders {
        &self.holders
    }
}

#[async_trait]
impl Backend for LocalBackend {
    fn name(&self) -> &'static str {
        self.name
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            tty: true,
            pipes: true,
            input_ack: true,
            pending_input: true,
            resize: true,
            signal: true,
            tree_kill: true,
            adopt: true,
            list: true,
            offsets: true,
            exec: true,
            stats: true,
            limits: self.limits,
            copy: true,
            pause: *self.freezes.get_or_init(linux::can_freeze),
            images: false,
            guests: false,
            answers: false,
            isolation: false,
        }
    }

    async fn probe(&self) -> Probe {
        let program = self.holders.program().to_owned();
        let output = tokio::process::Command::new(&program).arg("version").output().await;
        match output {
            Ok(output) if output.status.success() => Probe {
                available: true,
                version: Some(env!("CARGO_PKG_VERSION").to_owned()),
                detail: format!("holder {}", program.display()),
                hint: None,
            },
            Ok(_) => unavailable(&program, "it does not run"),
            Err(error) => unavailable(&program, &error.to_string()),
        }
    }

    async fn start(&self, launch: Launch) -> Result<(Ticket, Arc<dyn Connection>)> {
        self.holders.start(launch, None).await
    }

    async fn adopt(&self, ticket: &Ticket) -> Result<Adoption> {
        self.holders.adopt(ticket).await
    }

    fn seen_running(&self, ticket: &Ticket) -> bool {
        self.holders.seen_running(ticket)
    }

    async fn list(&self) -> Result<Vec<Ticket>> {
        let (sessions, name) = (self.holders.sessions().to_owned(), self.name);
        let read = move || -> io::Result<Vec<Ticket>> {
            let entries = match std::fs::read_dir(&sessions) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
                entries => entries?,
            };
            let tickets = entries.filter_map(|entry| read_ticket(&entry.ok()?.path()).ok());
            let mut tickets: Vec<Ticket> = tickets.collect();
            let known = tickets.iter().map(|ticket| ticket.id.clone()).collect();
            tickets.retain(|ticket| ticket.backend == name);
            // Reality beats records.
            if name == LOCAL {
                tickets.extend(unlisted::find(&sessions, &known)?);
            }
            Ok(tickets)
        };
        let tickets = tokio::task::spawn_blocking(read).await;
        let tickets = tickets.map_err(|error| Failure::new(Code::Internal, error.to_string()))?;
        tickets.map_err(|error| Failure::system("cannot list sessions", &error))
    }

    async fn sweep(&self, ticket: &Ticket) -> Result<u32> {
        self.holders.sweep(ticket).await
    }

    async fn strays(&self, ticket: &Ticket) -> Result<Vec<i32>> {
        self.holders.strays(ticket).await
    }

    async fn finds_all(&self, ticket: &Ticket) -> bool {
        self.holders.finds_all(ticket).await
    }

    async fn kill(&self, ticket: &Ticket) -> Result<()> {
        self.holders.kill(ticket).await
    }

    fn files(&self) -> Option<&dyn wharf_backend::Files> {
        Some(&HostFiles)
    }

    fn freezer(&self) -> Option<&dyn wharf_backend::Freezer> {
        self.capabilities().pause.then_some(&CgroupFreezer)
    }

    /// Ends the connections to holders. The holders and their sessions run on.
    async fn close(&self) {
        self.holders.close().await;
    }
}

fn unavailable(program: &Path, why: &str) -> Probe {
    Probe {
        available: false,
        version: None,
        detail: format!("the holder {} cannot be used: {why}", program.display()),
        hint: Some("install wharf-holder beside wharf, or name it by WHARF_HOLDER".to_owned()),
    }
}

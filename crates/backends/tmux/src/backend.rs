//! The backend: starts in a pane, and finds again by the holder that sits in it.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use tokio::net::UnixStream;
use wharf_backend::{Adoption, Backend, Connection, Launch, Probe, Result};
use wharf_holder::linux::proc;
use wharf_holder::wire::{Duplicate, StartedReply};
use wharf_holder_client::session::{self, holder_program};
use wharf_local::LocalBackend;
use wharf_model::{Capabilities, Code, Failure, Home, Millis, Scope, Size, Text, Ticket};

use crate::geometry;
use crate::guest::Foreign;
use crate::pane_socket::PaneSocket;
use crate::server::{self, Server};
use crate::target::Target;

/// How long a holder may take to start a command.
const START_TIMEOUT: Duration = Duration::from_secs(30);
/// How often a pane is asked for, each time after a longer pause: a server that has just lost its last session is
/// about to go, and the next one that answers is a new one.
const MAX_PANE_TRIES: u32 = 8;
/// The first pause.
const FIRST_RETRY_PAUSE: Duration = Duration::from_millis(5);

/// Where the server is, and what sits in its panes.
#[derive(Debug, Clone)]
pub struct Options {
    /// The program `tmux`.
    pub tmux: PathBuf,
    /// The program `wharf-holder`.
    pub holder: PathBuf,
    /// The directory of the private server.
    pub server: PathBuf,
    /// The directory that has one directory a session.
    pub sessions: PathBuf,
    /// The soft limit of descriptors that commands get, where this process has raised its own.
    pub descriptors: Option<u64>,
}

impl Options {
    /// The tmux of the PATH, the holder beside this program, and an instance's own sessions.
    pub fn new(home: &Home) -> Self {
        Self {
            tmux: "tmux".into(),
            holder: holder_program(),
            server: home.state().join("tmux"),
            sessions: home.sessions(),
            descriptors: None,
        }
    }
}

/// Sessions in panes of a private tmux server.
pub struct TmuxBackend {
    server: Server,
    holder: PathBuf,
    descriptors: Option<u64>,
    /// Finds, lists and sweeps: what a holder holds is the same wherever it sits.
    held: LocalBackend,
}

impl TmuxBackend {
    /// The backend. Nothing is started before a session is.
    pub fn new(options: Options) -> Self {
        let held = LocalBackend::new(wharf_local::Options {
            name: NAME,
            holder: options.holder.clone(),
            sessions: options.sessions,
            descriptors: options.descriptors,
        });
        let server = Server::new(options.tmux, options.server);
        Self { server, holder: options.holder, descriptors: options.descriptors, held }
    }

    /// A pane of its own with a holder in it that waits to be told what to start.
    async fn pane(&self, session: &str, size: Size) -> Result<(UnixStream, OwnedFd)> {
        let mut attempt = 1;
        loop {
            let name = format!("door-{session}-{attempt}");
            let door = PaneSocket::open(self.server.dir(), &name)?;
            let came = match self.order(session, size, &name).await {
                Ok(()) => door.both().await,
                Err(failure) => Err(failure),
            };
            let failure = match came {
                Ok(both) => return Ok(both),
                Err(failure) => self.explained(failure).await,
            };
            if failure.code != Code::Unreachable || attempt == MAX_PANE_TRIES {
                return Err(failure);
            }
            tokio::time::sleep(FIRST_RETRY_PAUSE * (1 << attempt)).await;
            attempt += 1;
        }
    }

    /// What is really missing where tmux makes no pane: it says only that it could not, or nothing at all.
    async fn explained(&self, failure: Failure) -> Failure {
        let (what, hint) = match failure.code {
            Code::Unreachable if server::out_of_terminals() => {
                ("cannot open a terminal", "the system is out of terminals: raise kernel.pty.max")
            }
            Code::Unreachable | Code::Timeout if self.server.is_out_of_descriptors().await => (
                "the tmux server has no descriptor left for another pane",
                "end some of its sessions; a server that starts after `ulimit -n` was raised holds more",
            ),
            _ => return failure,
        };
        Failure::new(Code::Exhausted, format!("{what}: {failure}")).hint(hint)
    }

    /// Asks tmux for a pane. Only names that we made reach it.
    async fn order(&self, session: &str, size: Size, door: &str) -> Result<()> {
        let size = size.sane();
        let (cols, rows) = (size.cols.to_string(), size.rows.to_string());
        let (holder, target) = (self.server.holder(), format!("={session}:"));
        let tap = format!("exec \"$WHARF_DOORS/wharf-holder\" tap {door}");
        let new = [
            "new-session",
            "-d",
            "-P",
            "-s",
            session,
            "-n",
            session,
            "-c",
            "/",
            "-x",
            &cols,
            "-y",
            &rows,
            "--",
        ];
        let run = [holder.as_os_str(), "pane".as_ref(), door.as_ref()];
        let pipe = [";", "pipe-pane", "-I", "-O", "-t", &target, &tap];
        let args = new.into_iter().map(AsRef::as_ref).chain(run).chain(pipe.into_iter().map(AsRef::as_ref));
        // A server on its way out lets go of those who ask, and may call that no fault.
        if self.server.ask(args).await?.is_empty() {
            return Err(Failure::new(Code::Unreachable, "the tmux server ended before it made a pane"));
        }
        Ok(())
    }

    /// Takes in a pane of the user's own server.
    async fn take_in(&self, launch: Launch, what: &Text) -> Result<(Ticket, Arc<dyn Connection>)> {
        let target: Target = what.lossy().parse()?;
        let foreign = Foreign::of(self.server.program().to_owned(), &launch.env)?;
        let pane = foreign.find(&target).await?;
        let mut ticket = launch.ticket(NAME);
        ticket.spec.size = pane.size;
        ticket.spec.motd = Some(foreign.screen(&pane).await?);
        ticket.private = Some(serde_json::json!({ "join": foreign.join_command(&pane) }).to_string());
        let system = |error: io::Error| Failure::system(format!("cannot take in {target}"), &error);
        let command = proc::boot().and_then(|boot| proc::identity(pane.pid, &boot)).map_err(system)?;
        let gone = || Failure::new(Code::Ended, format!("the command in pane {target} has ended"));
        let pidfd = proc::open(&command).map_err(system)?.ok_or_else(gone)?;
        self.server.prepare(&self.holder)?;
        let door = PaneSocket::open(self.server.dir(), &format!("door-{}", session_name(&ticket)))?;
        let seat = pane.terminal()?;
        let link = foreign.tap(&pane, &self.server.holder(), &door).await?;
        let descriptors = vec![Duplicate::Link, Duplicate::PaneTerminal, Duplicate::Command];
        let started = StartedReply {
            // The one that takes it over puts itself here.
            holder: command.clone(),
            command,
            scope: Scope::default(),
            started: Millis::from(std::time::SystemTime::now()),
            descriptors,
        };
        let frame = session::resume_frame(&ticket, self.descriptors, started).map_err(system)?;
        let made = !launch.home.exists();
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&launch.home).map_err(system)?;
        let passed = [link.as_fd(), seat.as_fd(), pidfd.as_fd()];
        match self.held.holders().take_over(&frame, &passed).await {
            Ok((stream, started)) => {
                let connection = self.connect(&mut ticket, stream, started);
                Ok((ticket, connection))
            }
            Err(failure) => {
                if made {
                    let _ = std::fs::remove_dir_all(&launch.home);
                }
                Err(failure)
            }
        }
    }

    /// Has tmux follow the session's size from here on.
    fn follow(&self, ticket: &Ticket, connection: &Arc<dyn Connection>) {
        let session = session_name(ticket);
        let follow = geometry::follow(self.server.clone(), session, connection.status());
        self.held.holders().tasks().spawn(follow);
    }

    /// The connection to a holder that has just signed the ticket.
    fn connect(&self, ticket: &mut Ticket, stream: UnixStream, started: StartedReply) -> Arc<dyn Connection> {
        let first = session::first_status(started.command.pid, ticket.spec.size, None);
        ticket.holder = Some(started.holder);
        ticket.command = Some(started.command);
        ticket.scope = started.scope;
        ticket.started = started.started;
        let tasks = self.held.holders().tasks();
        session::connect(tasks, ticket.dir.as_path().to_owned(), stream, first)
    }
}

/// What the backend is called.
const NAME: &str = "tmux";

/// What a run of a session is called in tmux. An id is 16 letters and digits, and no other begins with all of it.
fn session_name(ticket: &Ticket) -> String {
    format!("{}-{}", ticket.id, ticket.run)
}

#[async_trait]
impl Backend for TmuxBackend {
    fn name(&self) -> &'static str {
        NAME
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities { pipes: false, guests: true, answers: true, ..self.held.capabilities() }
    }

    async fn probe(&self) -> Probe {
        let holder = self.held.probe().await;
        if !holder.available {
            return holder;
        }
        match self.server.version().await {
            Ok(version) => Probe {
                available: true,
                version: Some(version),
                detail: format!("a private server in {}", self.server.dir().display()),
                hint: None,
            },
            Err(failure) => {
                Probe { available: false, version: None, detail: failure.message, hint: failure.hint }
            }
        }
    }

    async fn start(&self, launch: Launch) -> Result<(Ticket, Arc<dyn Connection>)> {
        if let Some(what) = launch.spec.adopt.clone() {
            return self.take_in(launch, &what).await;
        }
        if !launch.spec.tty {
            return Err(Failure::unsupported("a session without a terminal", "tmux")
                .hint("`--backend local` has both kinds"));
        }
        let mut ticket = launch.ticket(NAME);
        let name = session_name(&ticket);
        let invalid = |error: std::io::Error| Failure::new(Code::Invalid, error.to_string());
        let join: Vec<Text> = self.server.join_command(&name).into_iter().map(Text::from).collect();
        ticket.private = Some(serde_json::json!({ "join": join }).to_string());
        let given = session::given(&ticket).map_err(invalid)?;
        let start = session::start_of(&ticket, self.descriptors);
        let frame = session::start_frame(&start, &given, &launch.argv, &launch.env)?;
        self.server.prepare(&self.holder)?;
        let (stream, link) = self.pane(&name, ticket.spec.size).await?;
        let passed = [link.as_fd()];
        let begun = tokio::time::timeout(START_TIMEOUT, session::begin_with(&stream, &frame, &passed)).await;
        let (started, descriptors) = begun
            .map_err(|_| Failure::new(Code::Timeout, "the holder did not start the command in time"))??;
        // The holder's own copy alone keeps it open from here on.
        drop(link);
        let connection = self.connect(&mut ticket, stream, started.clone());
        self.held.holders().hear_first(&started, &descriptors, &ticket, &*connection);
        self.follow(&ticket, &connection);
        Ok((ticket, connection))
    }

    async fn adopt(&self, ticket: &Ticket) -> Result<Adoption> {
        let adoption = self.held.adopt(ticket).await?;
        if let Adoption::Alive(connection) = &adoption
            && ticket.spec.adopt.is_none()
        {
            self.follow(ticket, connection);
        }
        Ok(adoption)
    }

    async fn list(&self) -> Result<Vec<Ticket>> {
        // Where there never was a server there is nothing of ours, however many sessions other places have.
        if !self.server.dir().exists() {
            return Ok(Vec::new());
        }
        self.held.list().await
    }

    fn seen_running(&self, ticket: &Ticket) -> bool {
        self.held.seen_running(ticket)
    }

    async fn sweep(&self, ticket: &Ticket) -> Result<u32> {
        self.held.sweep(ticket).await
    }

    async fn strays(&self, ticket: &Ticket) -> Result<Vec<i32>> {
        self.held.strays(ticket).await
    }

    async fn finds_all(&self, ticket: &Ticket) -> bool {
        self.held.finds_all(ticket).await
    }

    async fn kill(&self, ticket: &Ticket) -> Result<()> {
        self.held.kill(ticket).await
    }

    fn files(&self) -> Option<&dyn wharf_backend::Files> {
        self.held.files()
    }

    fn freezer(&self) -> Option<&dyn wharf_backend::Freezer> {
        self.held.freezer()
    }

    /// Ends the connections to holders, and what follows their sizes. The panes and their sessions stay.
    async fn close(&self) {
        self.held.close().await;
    }
}

//! The backend: starts, finds again, lists, sweeps.

use std::io;
use std::os::fd::BorrowedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use async_trait::async_trait;
use tokio::net::UnixStream;
use tokio::time::Instant;
use wharf_backend::{Adoption, Backend, Connection, Launch, Probe, Result};
use wharf_holder::frame::Kind;
use wharf_holder::linux;
use wharf_holder::wire::Started;
use wharf_model::{Capabilities, Code, Failure, Home, Millis, Scope, Text, Ticket};

use crate::carrier::Carrier;
use crate::files::HostFiles;
use crate::freezer::CgroupFreezer;
use crate::held;
use crate::keep::{self, Keep};
use crate::link::Link;
use crate::nursery::Nursery;
use crate::place::{Place, exchange};

/// How long a holder may take to say who it is.
const GREETING: Duration = Duration::from_secs(5);

/// How long a holder may take from its last connection to its exit record.
const LEAVING: Duration = Duration::from_millis(300);
/// How long a holder may take to leave once it has written its exit record.
const FAREWELL: Duration = Duration::from_secs(4);

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
        Self { name: "local", holder: holder_program(), sessions: home.sessions(), descriptors: None }
    }
}

/// `WHARF_HOLDER`, or the program beside this one, or the one in the directory above it, where tests run.
pub fn holder_program() -> PathBuf {
    if let Some(named) = std::env::var_os("WHARF_HOLDER") {
        return named.into();
    }
    let own = std::env::current_exe().unwrap_or_default();
    let beside = own.with_file_name("wharf-holder");
    let above = own.parent().and_then(Path::parent).map(|dir| dir.join("wharf-holder"));
    match above {
        Some(above) if !beside.exists() && above.exists() => above,
        _ => beside,
    }
}

/// Sessions on this host.
pub struct LocalBackend {
    name: &'static str,
    place: Arc<Place>,
    sessions: PathBuf,
    limits: bool,
    /// Whether sessions can be made to stand still; found out when somebody asks.
    freezes: OnceLock<bool>,
}

impl LocalBackend {
    /// The backend. Nothing is started before a session is.
    pub fn new(options: Options) -> Self {
        let place = Place { nursery: Nursery::new(options.holder), descriptors: options.descriptors };
        Self {
            name: options.name,
            place: Arc::new(place),
            sessions: options.sessions,
            limits: linux::can_limit(),
            freezes: OnceLock::new(),
        }
    }

    /// Has a fresh holder take a session over from whoever had it, with these descriptors of it: the connection to that
    /// holder, and what it says.
    pub async fn take_over(&self, frame: &[u8], passed: &[BorrowedFd<'_>]) -> Result<(UnixStream, Started)> {
        let (stream, started, _) = self.place.begin(frame, passed).await?;
        Ok((stream, started))
    }

    /// Starts a command, with words of the backend above about it.
    pub async fn start_with(
        &self,
        launch: Launch,
        private: Option<String>,
    ) -> Result<(Ticket, Arc<dyn Connection>)> {
        let mut ticket = Ticket {
            id: launch.id,
            name: launch.name,
            run: launch.run,
            backend: self.name().to_owned(),
            dir: Text::from(launch.home.as_path()),
            token: launch.token,
            created: launch.created,
            started: Millis(0),
            holder: None,
            command: None,
            scope: Scope::default(),
            spec: launch.spec,
            private,
        };
        let given = keep::given(&ticket).map_err(|error| Failure::new(Code::Invalid, error.to_string()))?;
        let start = keep::start_of(&ticket, self.place.descriptors);
        let frame = held::start_frame(&start, &given, &launch.argv, &launch.env)?;
        let begun = self.place.begin(&frame, &[]).await;
        tokio::spawn(Arc::clone(&self.place).replenish());
        let (stream, started, fds) = begun?;
        ticket.holder = Some(started.holder.clone());
        ticket.command = Some(started.command.clone());
        ticket.scope = started.scope.clone();
        ticket.started = started.started;
        let first = held::first_status(started.command.pid, ticket.spec.size, None);
        let keep = Keep::new(started, fds);
        let carrier = Carrier::open(launch.home, Some(Arc::clone(&self.place)), stream, keep, first);
        Ok((ticket, Arc::new(Link::new(carrier))))
    }

    /// Starts what the first session needs, so that it need not wait for it.
    pub fn warm_up(&self) {
        self.place.nursery.replenish();
    }
}

/// The ticket as it is on disk now: a holder that was replaced has signed it anew.
fn newest(ticket: &Ticket) -> Ticket {
    let found = keep::read_ticket(ticket.dir.as_path()).ok();
    found.filter(|found| found.id == ticket.id && found.run >= ticket.run).unwrap_or_else(|| ticket.clone())
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
        let program = self.place.nursery.program().to_owned();
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
        self.start_with(launch, None).await
    }

    async fn adopt(&self, ticket: &Ticket) -> Result<Adoption> {
        let ticket = &newest(ticket);
        let home = ticket.dir.as_path();
        if let Some(record) = held::read_exit(home, ticket.run) {
            return Ok(Adoption::Ended(record));
        }
        let Some(holder) = &ticket.holder else { return Ok(Adoption::Lost) };
        let reach = async {
            let (stream, welcome) = held::find(home).await?;
            let mut keep = None;
            // An older holder that cannot do it is a holder all the same; only its own death would be a loss.
            if welcome.features.iter().any(|feature| feature == "duplicates") {
                let (kind, started, fds) = exchange(&stream, Kind::Duplicates, &[]).await?;
                if kind == Kind::Ack as u8 {
                    keep = Keep::new(serde_json::from_slice(&started)?, fds);
                }
            }
            Ok::<_, io::Error>((stream, welcome, keep))
        };
        let reached = tokio::time::timeout(GREETING, reach).await;
        let why = match reached {
            Ok(Ok((stream, welcome, keep))) => {
                let first = held::first_status(0, ticket.spec.size, Some(&welcome));
                let place = Some(Arc::clone(&self.place));
                let carrier = Carrier::open(home.to_owned(), place, stream, keep, first);
                return Ok(Adoption::Alive(Arc::new(Link::new(carrier))));
            }
            Ok(Err(error)) => error.to_string(),
            Err(_) => "it does not answer".to_owned(),
        };
        let unknown =
            |why: String| Failure::new(Code::Unreachable, format!("cannot reach the holder: {why}"));
        // A holder that is about to go takes no connection any more and has not written its record yet.
        let until = Instant::now() + LEAVING;
        loop {
            let alive = match linux::proc::open(holder) {
                // One that is dead and waits to be reaped, where nobody does that, holds nothing any more.
                Ok(found) => found.is_some_and(|pidfd| !linux::proc::ends(&pidfd, Duration::ZERO)),
                Err(error) => return Err(unknown(error.to_string())),
            };
            // Looked for after that: what is gone now has written all that it will.
            match held::read_exit(home, ticket.run) {
                Some(record) => return Ok(Adoption::Ended(record)),
                None if !alive => return Ok(Adoption::Lost),
                None if Instant::now() >= until => {
                    return Err(unknown(format!("process {} lives, but: {why}", holder.pid)));
                }
                None => tokio::time::sleep(Duration::from_millis(5)).await,
            }
        }
    }

    async fn list(&self) -> Result<Vec<Ticket>> {
        let (sessions, name) = (self.sessions.clone(), self.name);
        let read = move || -> io::Result<Vec<Ticket>> {
            let entries = match std::fs::read_dir(&sessions) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
                entries => entries?,
            };
            let tickets = entries.filter_map(|entry| keep::read_ticket(&entry.ok()?.path()).ok());
            Ok(tickets.filter(|ticket| ticket.backend == name).collect())
        };
        let tickets = tokio::task::spawn_blocking(read).await;
        let tickets = tickets.map_err(|error| Failure::new(Code::Internal, error.to_string()))?;
        tickets.map_err(|error| Failure::system("cannot list sessions", &error))
    }

    async fn sweep(&self, ticket: &Ticket) -> Result<u32> {
        let ticket = &newest(ticket);
        let (Some(holder), Some(command)) = (ticket.holder.clone(), ticket.command.clone()) else {
            return Ok(0);
        };
        // A cgroup is named by its session; one of another session is not ours to sweep, whatever a ticket says.
        let (mut scope, token) = (ticket.scope.clone(), ticket.token.clone());
        let own = format!("wharf-{}-", ticket.id);
        scope.dirs.retain(|dir| {
            dir.as_path().file_name().is_some_and(|name| name.as_bytes().starts_with(own.as_bytes()))
        });
        let over = ticket.dir.as_path().join(Home::EXIT).exists();
        let sweep = move || -> io::Result<Option<u32>> {
            // A holder that has written its record is about to go.
            let patience = if over { FAREWELL } else { Duration::ZERO };
            if linux::proc::open(&holder)?.is_some_and(|pidfd| !linux::proc::ends(pidfd, patience)) {
                return Ok(None);
            }
            linux::sweep(&scope, &command, &token).map(Some)
        };
        let swept = tokio::task::spawn_blocking(sweep).await;
        let swept = swept.map_err(|error| Failure::new(Code::Internal, error.to_string()))?;
        match swept {
            Ok(Some(count)) => Ok(count),
            Ok(None) => Err(Failure::new(Code::Running, "the session's holder still lives")),
            Err(error) if error.kind() == io::ErrorKind::TimedOut => {
                Err(Failure::new(Code::Survivors, error.to_string()))
            }
            Err(error) => Err(Failure::system("cannot sweep", &error)),
        }
    }

    fn files(&self) -> Option<&dyn wharf_backend::Files> {
        Some(&HostFiles)
    }

    fn freezer(&self) -> Option<&dyn wharf_backend::Freezer> {
        self.capabilities().pause.then_some(&CgroupFreezer)
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

//! The backend: starts, finds again, lists, sweeps.

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use async_trait::async_trait;
use tokio::net::UnixStream;
use tokio::sync::watch;
use tokio::time::Instant;
use wharf_backend::{Adoption, Backend, Connection, Launch, Probe, Result, Status};
use wharf_boundary::SessionDir;
use wharf_holder::frame::Kind;
use wharf_holder::linux;
use wharf_holder::wire::Started;
use wharf_model::{Capabilities, Code, Failure, Home, Millis, Scope, Text, Ticket};

use crate::carrier::Carrier;
use crate::channel;
use crate::files::HostFiles;
use crate::freezer::CgroupFreezer;
use crate::held;
use crate::keep::{self, Keep};
use crate::link::Link;
use crate::nursery::Nursery;
use crate::place::{Place, exchange};
use crate::unlisted;

/// What the backend is called where nothing is built on top of it.
const LOCAL: &str = "local";

/// How long a holder may take to say who it is.
const GREETING_TIMEOUT: Duration = Duration::from_secs(5);

/// How long a holder may take from its last connection to its exit record.
const EXIT_RECORD_TIMEOUT: Duration = Duration::from_millis(300);
/// How many that took a holder's place are killed after it, where a session is killed by its place.
const MAX_HEIRS: u32 = 5;
/// How long a holder may take to leave once it has written its exit record.
const HOLDER_EXIT_TIMEOUT: Duration = Duration::from_secs(4);

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
    pub(crate) place: Arc<Place>,
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
        let channel = keep::channel(&started, &fds);
        let keep = Keep::new(started, fds);
        let carrier = Carrier::open(launch.home, Some(Arc::clone(&self.place)), stream, keep, first);
        self.hear(channel, &ticket, carrier.status.subscribe());
        Ok((ticket, Arc::new(Link::new(carrier))))
    }

    /// Answers on the channel that the holder of a session of the backend above sent with its first answer, if it did.
    pub fn hear_first(
        &self,
        started: &Started,
        descriptors: &[OwnedFd],
        ticket: &Ticket,
        connection: &dyn Connection,
    ) {
        self.hear(keep::channel(started, descriptors), ticket, connection.status());
    }

    /// Answers on the channel of a session that has one.
    fn hear(&self, channel: Option<OwnedFd>, ticket: &Ticket, status: watch::Receiver<Status>) {
        if let (Some(channel), Some(state)) = (channel, self.sessions.parent()) {
            tokio::spawn(channel::serve(channel, ticket.clone(), state.to_owned(), status));
        }
    }

    /// Starts what the first session needs, so that it need not wait for it.
    pub fn warm_up(&self) {
        self.place.nursery.replenish();
    }
}

/// The ticket as it is on disk now: a holder that was replaced has signed it anew.
pub(crate) fn newest(ticket: &Ticket) -> Ticket {
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
        let before = held::read_exit(home, ticket.run);
        if let Some(record) = before.clone().filter(|_| !self.seen_running(ticket)) {
            return Ok(Adoption::Ended(record));
        }
        let Some(holder) = &ticket.holder else { return Ok(Adoption::Lost) };
        let reach = async {
            let (stream, welcome) = held::find(home).await?;
            let (mut keep, mut channel) = (None, None);
            // An older holder that cannot do it is a holder all the same; only its own death would be a loss.
            if welcome.features.iter().any(|feature| feature == "duplicates") {
                let (kind, started, fds) = exchange(&stream, Kind::Duplicates, &[]).await?;
                if kind == Kind::Ack as u8 {
                    let started = serde_json::from_slice(&started)?;
                    channel = keep::channel(&started, &fds);
                    keep = Keep::new(started, fds);
                }
            }
            Ok::<_, io::Error>((stream, welcome, keep, channel))
        };
        let reached = tokio::time::timeout(GREETING_TIMEOUT, reach).await;
        let why = match reached {
            Ok(Ok((stream, welcome, keep, channel))) => {
                // A holder that answers has written none; one that ends meanwhile writes another.
                if before.is_some() && held::read_exit(home, ticket.run) == before {
                    held::put_forged_exit_aside(home);
                }
                let first = held::first_status(0, ticket.spec.size, Some(&welcome));
                let place = Some(Arc::clone(&self.place));
                let carrier = Carrier::open(home.to_owned(), place, stream, keep, first);
                self.hear(channel, ticket, carrier.status.subscribe());
                return Ok(Adoption::Alive(Arc::new(Link::new(carrier))));
            }
            Ok(Err(error)) => error.to_string(),
            Err(_) => "it does not answer".to_owned(),
        };
        let unknown =
            |why: String| Failure::new(Code::Unreachable, format!("cannot reach the holder: {why}"));
        // A holder that is about to go takes no connection any more and has not written its record yet.
        let until = Instant::now() + EXIT_RECORD_TIMEOUT;
        loop {
            let alive = match linux::proc::open(holder) {
                // One that is dead and waits to be reaped, where nobody does that, holds nothing any more.
                Ok(found) => found.is_some_and(|pidfd| !linux::proc::ends(&pidfd, Duration::ZERO)),
                Err(error) => return Err(unknown(error.to_string())),
            };
            // Looked for after that: what is gone now has written all that it will. A record beside a command that runs is
            // not its holder's.
            match held::read_exit(home, ticket.run).filter(|_| !self.seen_running(ticket)) {
                Some(record) => return Ok(Adoption::Ended(record)),
                None if !alive => return Ok(Adoption::Lost),
                // One who has written his record has a little to do before he goes.
                None if Instant::now()
                    >= until + if held::has_exit(home) { HOLDER_EXIT_TIMEOUT } else { Duration::ZERO } =>
                {
                    return Err(unknown(format!("process {} lives, but: {why}", holder.pid)));
                }
                None => tokio::time::sleep(Duration::from_millis(5)).await,
            }
        }
    }

    fn seen_running(&self, ticket: &Ticket) -> bool {
        let ticket = &newest(ticket);
        // What was somebody else's before lives on when its holder has let it go.
        let command = ticket.command.as_ref().filter(|_| ticket.spec.adopt.is_none());
        [ticket.holder.as_ref(), command].into_iter().flatten().any(|process| {
            match linux::proc::open(process) {
                Ok(found) => found.is_some_and(|pidfd| !linux::proc::ends(&pidfd, Duration::ZERO)),
                // It cannot be seen from here; whether somebody listens can.
                Err(_) => SessionDir::open(ticket.dir.as_path()).is_ok_and(|dir| dir.connect_now().is_ok()),
            }
        })
    }

    async fn list(&self) -> Result<Vec<Ticket>> {
        let (sessions, name) = (self.sessions.clone(), self.name);
        let read = move || -> io::Result<Vec<Ticket>> {
            let entries = match std::fs::read_dir(&sessions) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
                entries => entries?,
            };
            let tickets = entries.filter_map(|entry| keep::read_ticket(&entry.ok()?.path()).ok());
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
        let over = SessionDir::open(ticket.dir.as_path()).is_ok_and(|dir| dir.has_exit());
        // A holder that has written its record is about to go.
        let patience = if over { HOLDER_EXIT_TIMEOUT } else { Duration::ZERO };
        self.leavings(ticket, patience, linux::sweep).await.map(Option::unwrap_or_default)
    }

    async fn strays(&self, ticket: &Ticket) -> Result<Vec<i32>> {
        self.leavings(ticket, Duration::ZERO, linux::strays).await.map(Option::unwrap_or_default)
    }

    async fn finds_all(&self, ticket: &Ticket) -> bool {
        let (Some(holder), Some(door)) = (newest(ticket).holder, self.place.nursery.door()) else {
            return ticket.spec.adopt.is_some();
        };
        let ask = move || linux::Orphans::new(door, &holder, &holder).are_all_known();
        ticket.spec.adopt.is_some() || tokio::task::spawn_blocking(ask).await.unwrap_or_default()
    }

    async fn kill(&self, ticket: &Ticket) -> Result<()> {
        let mut swept = self.kill_holder(ticket).await;
        for _ in 0..MAX_HEIRS {
            match swept {
                // Whoever was to take the holder's place may have done so meanwhile.
                Err(failure) if failure.code == Code::Running => swept = self.kill_holder(ticket).await,
                _ => break,
            }
        }
        swept
    }

    fn files(&self) -> Option<&dyn wharf_backend::Files> {
        Some(&HostFiles)
    }

    fn freezer(&self) -> Option<&dyn wharf_backend::Freezer> {
        self.capabilities().pause.then_some(&CgroupFreezer)
    }
}

impl LocalBackend {
    /// Ends the holder of a session and what is left of its tree.
    async fn kill_holder(&self, ticket: &Ticket) -> Result<()> {
        let Some(holder) = newest(ticket).holder else {
            return Err(Failure::unsupported(
                "ending a session that has no holder of this host",
                self.name(),
            ));
        };
        // The holder first: it is the process of the ticket beyond doubt, and what is left of its tree is swept.
        let end = move || -> io::Result<bool> {
            let Some(pidfd) = linux::proc::open(&holder)? else { return Ok(true) };
            linux::proc::signal(&pidfd, rustix::process::Signal::KILL.as_raw())?;
            Ok(linux::proc::ends(pidfd, HOLDER_EXIT_TIMEOUT))
        };
        let ended = tokio::task::spawn_blocking(end).await;
        match ended.map_err(|error| Failure::new(Code::Internal, error.to_string()))? {
            Ok(true) => self.sweep(ticket).await.map(drop),
            Ok(false) => Err(Failure::new(Code::Survivors, "the session's holder cannot be ended")),
            Err(error) => Err(Failure::system("cannot end the holder", &error)),
        }
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

//! The holders of this host: starts sessions by them, finds them again, and ends them.

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::net::UnixStream;
use tokio::sync::watch;
use tokio::time::Instant;
use wharf_backend::{Adoption, BackendTasks, Connection, Launch, Result, Status};
use wharf_boundary::SessionDir;
use wharf_holder::frame::Kind;
use wharf_holder::linux;
use wharf_holder::wire::StartedReply;
use wharf_model::{Code, Failure, Ticket};

use super::channel;
use super::connection::HolderConnection;
use super::exchange::exchange;
use super::find;
use super::holder_client::HolderClient;
use super::kept_fds::{self, KeptFds};
use super::nursery::Nursery;
use super::pool::HolderPool;
use super::{records, start_frame};
use crate::greeting::GREETING_TIMEOUT;

/// How long a holder may take from its last connection to its exit record.
const EXIT_RECORD_TIMEOUT: Duration = Duration::from_millis(300);
/// How many that took a holder's place are killed after it, where a session is killed by its place.
const MAX_HEIRS: u32 = 5;
/// How long a holder may take to leave once it has written its exit record.
const HOLDER_EXIT_TIMEOUT: Duration = Duration::from_secs(4);

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

/// Sessions whose holders are processes of this host, whatever they hold.
pub struct HostHolders {
    backend: &'static str,
    pub(super) pool: Arc<HolderPool>,
    sessions: PathBuf,
    /// Owns what serves connections and channels, and what the backend above spawns.
    tasks: BackendTasks,
}

impl HostHolders {
    /// Holders of the program `holder`, for a backend whose sessions are in the directory `sessions`. `descriptors` is the
    /// soft limit of descriptors that commands get, where this process has raised its own. Nothing is started before a
    /// session is.
    pub fn new(backend: &'static str, holder: PathBuf, sessions: PathBuf, descriptors: Option<u64>) -> Self {
        let pool = HolderPool { nursery: Nursery::new(holder), descriptors };
        Self { backend, pool: Arc::new(pool), sessions, tasks: BackendTasks::default() }
    }

    /// Owns the tasks: the backend above spawns here too.
    pub fn tasks(&self) -> &BackendTasks {
        &self.tasks
    }

    /// Ends the connections to holders, and whatever else was spawned here. The holders run on.
    pub async fn close(&self) {
        self.tasks.close().await;
    }

    /// The holder's program.
    pub fn program(&self) -> &Path {
        self.pool.nursery.program()
    }

    /// The directory that has one directory a session.
    pub fn sessions(&self) -> &Path {
        &self.sessions
    }

    /// Starts what the first session needs, so that it need not wait for it.
    pub fn warm_up(&self) {
        self.pool.nursery.replenish();
    }

    /// Has a fresh holder take a session over from whoever had it, with these descriptors of it: the connection to that
    /// holder, and what it says.
    pub async fn take_over(
        &self,
        frame: &[u8],
        passed: &[BorrowedFd<'_>],
    ) -> Result<(UnixStream, StartedReply)> {
        let (stream, started, _) = self.pool.begin(frame, passed).await?;
        Ok((stream, started))
    }

    /// Starts a command, with words of the backend above about it.
    pub async fn start(
        &self,
        launch: Launch,
        private: Option<String>,
    ) -> Result<(Ticket, Arc<dyn Connection>)> {
        let mut ticket = Ticket { private, ..launch.ticket(self.backend) };
        let given =
            start_frame::given(&ticket).map_err(|error| Failure::new(Code::Invalid, error.to_string()))?;
        let start = start_frame::start_of(&ticket, self.pool.descriptors);
        let frame = start_frame::start_frame(&start, &given, &launch.argv, &launch.env)?;
        let begun = self.pool.begin(&frame, &[]).await;
        self.tasks.spawn(Arc::clone(&self.pool).replenish());
        let (stream, started, fds) = begun?;
        ticket.holder = Some(started.holder.clone());
        ticket.command = Some(started.command.clone());
        ticket.scope = started.scope.clone();
        ticket.started = started.started;
        let first = find::first_status(started.command.pid, ticket.spec.size, None);
        let channel = kept_fds::channel(&started, &fds);
        let kept = KeptFds::new(started, fds);
        let client =
            HolderClient::open(&self.tasks, launch.home, Some(Arc::clone(&self.pool)), stream, kept, first);
        self.hear(channel, &ticket, client.status.subscribe());
        Ok((ticket, Arc::new(HolderConnection::new(client))))
    }

    /// Answers on the channel that the holder of a session of the backend above sent with its first answer, if it did.
    pub fn hear_first(
        &self,
        started: &StartedReply,
        descriptors: &[OwnedFd],
        ticket: &Ticket,
        connection: &dyn Connection,
    ) {
        self.hear(kept_fds::channel(started, descriptors), ticket, connection.status());
    }

    /// Answers on the channel of a session that has one.
    fn hear(&self, channel: Option<OwnedFd>, ticket: &Ticket, status: watch::Receiver<Status>) {
        if let (Some(channel), Some(state)) = (channel, self.sessions.parent()) {
            self.tasks.spawn(channel::serve(channel, ticket.clone(), state.to_owned(), status));
        }
    }

    /// Finds the holder of a session again.
    pub async fn adopt(&self, ticket: &Ticket) -> Result<Adoption> {
        let ticket = &newest(ticket);
        let home = ticket.dir.as_path();
        let before = records::read_exit(home, ticket.run);
        if let Some(record) = before.clone().filter(|_| !self.seen_running(ticket)) {
            return Ok(Adoption::Ended(record));
        }
        let Some(holder) = &ticket.holder else { return Ok(Adoption::Lost) };
        let reach = async {
            let (stream, welcome) = find::find(home).await?;
            let (mut kept, mut channel) = (None, None);
            // An older holder that cannot do it is a holder all the same; only its own death would be a loss.
            if welcome.features.iter().any(|feature| feature == "duplicates") {
                let (kind, started, fds) = exchange(&stream, Kind::Duplicates, &[]).await?;
                if kind == Kind::Ack as u8 {
                    let started = serde_json::from_slice(&started)?;
                    channel = kept_fds::channel(&started, &fds);
                    kept = KeptFds::new(started, fds);
                }
            }
            Ok::<_, io::Error>((stream, welcome, kept, channel))
        };
        let reached = tokio::time::timeout(GREETING_TIMEOUT, reach).await;
        let why = match reached {
            Ok(Ok((stream, welcome, kept, channel))) => {
                // A holder that answers has written none; one that ends meanwhile writes another.
                if before.is_some() && records::read_exit(home, ticket.run) == before {
                    records::put_forged_exit_aside(home);
                }
                let first = find::first_status(0, ticket.spec.size, Some(&welcome));
                let pool = Some(Arc::clone(&self.pool));
                let client = HolderClient::open(&self.tasks, home.to_owned(), pool, stream, kept, first);
                self.hear(channel, ticket, client.status.subscribe());
                return Ok(Adoption::Alive(Arc::new(HolderConnection::new(client))));
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
            match records::read_exit(home, ticket.run).filter(|_| !self.seen_running(ticket)) {
                Some(record) => return Ok(Adoption::Ended(record)),
                None if !alive => return Ok(Adoption::Lost),
                // One who has written his record has a little to do before he goes.
                None if Instant::now()
                    >= until + if records::has_exit(home) { HOLDER_EXIT_TIMEOUT } else { Duration::ZERO } =>
                {
                    return Err(unknown(format!("process {} lives, but: {why}", holder.pid)));
                }
                None => tokio::time::sleep(Duration::from_millis(5)).await,
            }
        }
    }

    /// Whether the holder or the command of a session is seen to run.
    pub fn seen_running(&self, ticket: &Ticket) -> bool {
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

    /// Ends what is left of a session whose holder is gone: how many processes.
    pub async fn sweep(&self, ticket: &Ticket) -> Result<u32> {
        let over = SessionDir::open(ticket.dir.as_path()).is_ok_and(|dir| dir.has_exit());
        // A holder that has written its record is about to go.
        let patience = if over { HOLDER_EXIT_TIMEOUT } else { Duration::ZERO };
        self.leavings(ticket, patience, linux::sweep).await.map(Option::unwrap_or_default)
    }

    /// Which processes are left of a session whose holder is gone.
    pub async fn strays(&self, ticket: &Ticket) -> Result<Vec<i32>> {
        self.leavings(ticket, Duration::ZERO, linux::strays).await.map(Option::unwrap_or_default)
    }

    /// Whether every process that a session has left would be found.
    pub async fn finds_all(&self, ticket: &Ticket) -> bool {
        let (Some(holder), Some(door)) = (newest(ticket).holder, self.pool.nursery.door()) else {
            return ticket.spec.adopt.is_some();
        };
        let ask = move || linux::Orphans::new(door, &holder, &holder).are_all_known();
        ticket.spec.adopt.is_some() || tokio::task::spawn_blocking(ask).await.unwrap_or_default()
    }

    /// Ends the holder of a session and all that it holds, without asking it.
    pub async fn kill(&self, ticket: &Ticket) -> Result<()> {
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

    /// Ends the holder of a session and what is left of its tree.
    async fn kill_holder(&self, ticket: &Ticket) -> Result<()> {
        let Some(holder) = newest(ticket).holder else {
            return Err(Failure::unsupported(
                "ending a session that has no holder of this host",
                self.backend,
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

/// The ticket as it is on disk now: a holder that was replaced has signed it anew.
pub(super) fn newest(ticket: &Ticket) -> Ticket {
    let found = records::read_ticket(ticket.dir.as_path()).ok();
    found.filter(|found| found.id == ticket.id && found.run >= ticket.run).unwrap_or_else(|| ticket.clone())
}

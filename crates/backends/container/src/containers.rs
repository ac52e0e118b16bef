//! Finds the engine and the container of a session, and what the engine knows of a session whose holder is silent.

use std::collections::{HashMap, HashSet};
use std::mem;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;
use wharf_backend::{Adoption, BackendTasks, Beside, Connection, Result};
use wharf_model::{Code, EngineVariables, ExitRecord, Failure, Home, Millis, Reason, SessionId, Ticket};

use crate::backend::Options;
use crate::create_body::worktree;
use crate::engine::Engine;
use crate::engine::caller::CallerVariables;
use crate::engine::endpoint::Endpoint;
use crate::engine::inspect::{Found, FoundState};
use crate::engine::pause_events::PauseEvents;
use crate::events_listener::EventsListener;
use crate::owner::orphaned_containers;
use crate::owner::{Owner, container_name, is_run};
use crate::remote;
use crate::session_dirs::SessionDirs;
use crate::session_start::off_thread;
use crate::shared_container::{SharedContainer, membership};
use crate::ticket_data::{TicketData, is_kept};

/// How long a holder may take to exit after its exit record or its last connection.
const HOLDER_EXIT_TIMEOUT: Duration = Duration::from_secs(4);
/// How long a holder that accepts no connections may take to write its exit record.
const EXIT_RECORD_TIMEOUT: Duration = Duration::from_secs(1);
/// How often a container that is about to stop is inspected.
const CONTAINER_POLL_INTERVAL: Duration = Duration::from_millis(50);

/// How many connected engines are remembered.
const MAX_ENGINES: usize = 16;

/// The containers of an instance in the engines of one flavour.
pub(crate) struct Containers {
    pub(crate) options: Options,
    /// Owns what the backend spawns.
    pub(crate) tasks: BackendTasks,
    /// Checks paths with a limit: a file system that never answers delays only the session that named the path.
    pub(crate) path_checks: Beside,
    owner: OnceLock<Owner>,
    /// The engines that answered, the latest last.
    pub(crate) engines: Mutex<Vec<Engine>>,
    /// Reports containers that somebody pauses or lets go on.
    pub(crate) pause_events: PauseEvents,
    /// Held while a task joins or leaves a container that several sessions share.
    pub(crate) sharing_turn: Arc<tokio::sync::Mutex<()>>,
    /// The run and the outcome of each session on another host that was found again by a proxy of ours.
    pub(crate) proxies: Mutex<HashMap<SessionId, (u32, watch::Receiver<remote::Outcome>)>>,
    /// The sessions whose failed start may have left a container.
    pub(crate) failed_starts: Mutex<HashSet<SessionId>>,
    /// The engines that were searched for containers that nobody needs any more.
    cleared_engines: Mutex<HashSet<String>>,
    /// Whether the containers of sessions that ended while no daemon ran were removed.
    pub(crate) removed_ended: AtomicBool,
}

impl Containers {
    pub(crate) fn new(options: Options) -> Self {
        Self {
            options,
            tasks: BackendTasks::default(),
            path_checks: Beside::default(),
            owner: OnceLock::new(),
            engines: Mutex::default(),
            pause_events: PauseEvents::new(),
            sharing_turn: Arc::default(),
            proxies: Mutex::default(),
            failed_starts: Mutex::default(),
            cleared_engines: Mutex::default(),
            removed_ended: AtomicBool::new(false),
        }
    }

    /// Ends all that was spawned, and waits for it. The containers and their sessions run on.
    pub(crate) async fn close(&self) {
        let engines = mem::take(&mut *self.engines.lock().unwrap_or_else(PoisonError::into_inner));
        for engine in engines {
            engine.transport().hang_up();
        }
        self.tasks.close().await;
        // What the first ones leave when they are dropped: a command whose caller is gone is still ended.
        self.tasks.close().await;
    }

    /// Who we are to an engine.
    pub(crate) fn owner(&self) -> Result<&Owner> {
        if let Some(owner) = self.owner.get() {
            return Ok(owner);
        }
        let owner = Owner::of_this_install(&self.options.state)?;
        Ok(self.owner.get_or_init(|| owner))
    }

    pub(crate) async fn endpoint(&self, caller: Option<&EngineVariables>) -> Result<Endpoint> {
        match &self.options.endpoint {
            Some(endpoint) => Ok(endpoint.clone()),
            None => CallerVariables::of(caller).endpoint(self.options.flavour).await,
        }
    }

    /// The engine that a caller means, or this process's own choice. It has just answered.
    pub(crate) async fn engine_of(&self, caller: Option<&EngineVariables>) -> Result<Engine> {
        self.engine_at(&self.endpoint(caller).await?).await
    }

    /// The engine that a ticket names. It has just answered.
    pub(crate) async fn engine_named(&self, address: Option<&str>) -> Result<Engine> {
        match address {
            Some(address) => self.engine_at(&Endpoint::named(address, "the session's ticket")).await,
            None => self.engine_of(None).await,
        }
    }

    /// The engine at an endpoint. It has just answered. On first use, containers there that no session needs are
    /// removed.
    pub(crate) async fn engine_at(&self, endpoint: &Endpoint) -> Result<Engine> {
        let engine = self.connect(endpoint).await?;
        let first = {
            let mut cleared_engines = self.cleared_engines.lock().unwrap_or_else(PoisonError::into_inner);
            !cleared_engines.contains(&endpoint.address) && cleared_engines.insert(endpoint.address.clone())
        };
        if let (Ok(owner), true) = (self.owner(), first) {
            // Once for each engine, in the background.
            let (engine, owner, sessions) = (engine.clone(), owner.clone(), self.options.sessions.clone());
            let (state, turn) = (self.options.state.clone(), Arc::clone(&self.sharing_turn));
            self.tasks.spawn(async move {
                orphaned_containers::remove_all(&engine, &owner, &sessions).await;
                membership::remove_unused_or_log(&engine, &owner, [&state, &sessions], &turn).await;
            });
        }
        Ok(engine)
    }

    /// The engine at an endpoint, and nothing is removed there. It has just answered.
    pub(crate) async fn connect(&self, endpoint: &Endpoint) -> Result<Engine> {
        let is_it = |engine: &Engine| engine.endpoint().address == endpoint.address;
        let known = {
            let engines = self.engines.lock().unwrap_or_else(PoisonError::into_inner);
            engines.iter().find(|engine| is_it(engine)).cloned()
        };
        if let Some(engine) = known
            && engine.ping().await.is_ok()
        {
            return Ok(engine);
        }
        let engine = Engine::reach(endpoint, self.options.flavour, &self.options.ssh, &self.tasks).await?;
        let mut engines = self.engines.lock().unwrap_or_else(PoisonError::into_inner);
        engines.retain(|engine| !is_it(engine));
        if engines.len() == MAX_ENGINES {
            engines.remove(0);
        }
        engines.push(engine.clone());
        Ok(engine)
    }

    /// The engine and the container of a session; none where the engine has no such container, or it is not ours.
    pub(crate) async fn find(&self, ticket: &Ticket) -> Result<(Engine, Option<Found>)> {
        let data = TicketData::of(ticket);
        let engine = self.engine_named(data.endpoint.as_deref()).await?;
        // By id: somebody may have renamed it.
        let mut found = match &data.container {
            Some(id) => engine.container(id).await?,
            None => None,
        };
        if found.is_none() {
            found = engine.container(&container_name(&ticket.id)).await?;
        }
        let owner = self.owner()?;
        let ours = |container: &Found| match &data.shared {
            Some(fingerprint) => owner.owns_shared(container, fingerprint),
            // A kept container serves every run.
            None => owner.owns(container, &ticket.id) && (is_run(container, ticket.run) || is_kept(ticket)),
        };
        Ok((engine, found.filter(ours)))
    }

    /// The engine and the running container of a session, whoever started it.
    pub(crate) async fn running(&self, ticket: &Ticket) -> Result<(Engine, Found)> {
        let (engine, found) = if ticket.spec.adopt.is_some() {
            let data = TicketData::of(ticket);
            let engine = self.engine_named(data.endpoint.as_deref()).await?;
            let found = engine.container(data.container.as_deref().unwrap_or_default()).await?;
            (engine, found)
        } else {
            self.find(ticket).await?
        };
        let gone = || {
            Failure::new(Code::Ended, format!("the container of session {} does not run", ticket.name))
                .hint(format!("`wharf logs {}` shows its last output", ticket.name))
        };
        found
            .filter(|found| found.state.running || found.state.paused)
            .map(|found| (engine, found))
            .ok_or_else(gone)
    }

    /// Relays events from a session's room until it is over.
    pub(crate) fn listen(&self, listener: EventsListener, ticket: &Ticket, connection: &Arc<dyn Connection>) {
        self.tasks.spawn(listener.run(ticket.clone(), self.options.state.clone(), connection.status()));
    }

    /// Asks the engine what became of a session whose holder does not answer.
    pub(crate) async fn ask_engine(&self, ticket: &Ticket, why: &str) -> Result<Adoption> {
        let (home, name) = (ticket.dir.as_path(), container_name(&ticket.id));
        let unknown = |why: &str| Failure::new(Code::Unreachable, format!("cannot reach the holder: {why}"));
        let (until, data) = (Instant::now() + EXIT_RECORD_TIMEOUT, TicketData::of(ticket));
        loop {
            let (_, found) = self.find(ticket).await.map_err(|failure| unknown(&failure.message))?;
            // Read the record after the inspection: a container that is gone then has written all that it will.
            if let Some(record) = SessionDirs::of(home).exit_record(ticket.run) {
                return Ok(Adoption::Ended(record));
            }
            let state = match found.map(|container| container.state) {
                Some(state) if state.running => state,
                ended => {
                    // Our own removal of a shared container says nothing about a session that was over before.
                    let shared = data
                        .shared
                        .as_ref()
                        .map(|fingerprint| SharedContainer::of(&self.options.state, fingerprint));
                    let ours = shared.is_some_and(|shared| shared.is_removed());
                    return Ok(end_seen_by_engine(ticket, ended.as_ref().filter(|_| !ours)));
                }
            };
            // In a shared container others run on: ask whether this session's own holder does.
            if data.shared.is_some() && !state.paused && !membership::holder_may_live(ticket) {
                return Ok(end_seen_by_engine(ticket, None));
            }
            if state.paused {
                let engine = self.options.flavour.name();
                return Err(unknown(&format!("container {name} is paused"))
                    .hint(format!("`{engine} unpause {name}` lets it go on")));
            }
            if Instant::now() >= until {
                return Err(unknown(&format!("container {name} runs, but: {why}")));
            }
            tokio::time::sleep(CONTAINER_POLL_INTERVAL).await;
        }
    }

    /// Undoes a start that nobody waited for: the caller may try again.
    pub(crate) async fn discard(self: &Arc<Self>, ticket: &Ticket) {
        if TicketData::of(ticket).shared.is_some() {
            return self.discard_shared(ticket).await;
        }
        let removed = async {
            let (engine, found) = self.find(ticket).await?;
            match found {
                Some(container) => engine.remove(&container.id).await,
                None => Ok(()),
            }
        };
        if let Err(failure) = removed.await {
            tracing::warn!(session = %ticket.id, %failure, "a start that took too long left its container");
            if let Some(address) = TicketData::of(ticket).endpoint {
                self.remove_when_reachable(&Endpoint::named(address, "the session's ticket"), &ticket.id);
            }
        }
        let (dirs, run) = (SessionDirs::of(ticket.dir.as_path()), ticket.run);
        let _ = off_thread(move || dirs.remove_after_failed_start(run)).await;
    }

    /// Removes the container of a session that is over.
    pub(crate) async fn remove(&self, ticket: &Ticket) -> Result<()> {
        if TicketData::of(ticket).shared.is_some() {
            return self.leave_shared(ticket).await;
        }
        let (engine, found) = self.find(ticket).await?;
        let Some(container) = found else {
            remote::remove_lock_if_over(ticket);
            return close_gaps(ticket).await;
        };
        let id = container.id;
        if container.state.running {
            if SessionDirs::of(ticket.dir.as_path()).exit_record(ticket.run).is_none() {
                return Err(Failure::new(Code::Running, "the session's container still runs"));
            }
            // A holder that has written its record is about to exit.
            let _ = tokio::time::timeout(HOLDER_EXIT_TIMEOUT, engine.ended(&id)).await;
        }
        engine.remove(&id).await?;
        remote::remove_lock_if_over(ticket);
        close_gaps(ticket).await
    }
}

/// Takes away what was made for a session's container in the repositories of its work trees.
async fn close_gaps(ticket: &Ticket) -> Result<()> {
    let (home, run) = (ticket.dir.as_path().to_owned(), ticket.run);
    off_thread(move || worktree::close_gaps(&home, Some(run))).await
}

/// The end of a container that is gone or stopped, whose holder left no record: lost, unless the engine saw it
/// killed.
pub(crate) fn end_seen_by_engine(ticket: &Ticket, state: Option<&FoundState>) -> Adoption {
    let dirs = SessionDirs::of(ticket.dir.as_path());
    let code = state.map(|state| state.exit_code).filter(|code| (129..=192).contains(code));
    let Some(code) = code else {
        dirs.remove_exit_link();
        return Adoption::Lost;
    };
    let oom = state.is_some_and(|state| state.oom_killed);
    let by = if oom { "the kernel, for want of memory" } else { "somebody who killed the container" };
    let log = wharf_log::Reader::bounds(&ticket.dir.as_path().join(Home::LOG));
    let record = ExitRecord {
        signal: Some((code - 128) as i32),
        oom,
        reason: if oom { Reason::Exited } else { Reason::Killed },
        by: Some(by.to_owned()),
        started: ticket.started,
        ended: Millis::from(std::time::SystemTime::now()),
        log_end: log.map(|(_, end)| end).unwrap_or_default(),
        ..ExitRecord::default()
    };
    dirs.write_exit(&record);
    Adoption::Ended(record)
}

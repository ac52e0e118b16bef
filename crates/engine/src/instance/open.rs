//! Opens an instance: takes the lock, reads the directories, and looks for live sessions.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};

use tokio::sync::{Semaphore, broadcast};
use wharf_model::{Code, ExitRecord, Failure, Home, Reason, Restart, SessionId, State, Ticket};
use wharf_store::{Opened, SessionRow, Store, StoreError};

use crate::Result;
use crate::instance::config::Config;
use crate::instance::disk;
use crate::instance::engine::Owner;
use crate::instance::lock::Lock;
use crate::instance::lookup::past;
use crate::instance::registry::{MAX_ENDED_IN_MEMORY, Registry};
use crate::instance::shared::{Shared, row, without_start_data};
use crate::instance::tasks::Tasks;
use crate::launch::secrets;
use crate::lifecycle::start_run::record;
use crate::output::copy_to_file::OutputCopy;
use crate::session::handle::{Handle, Stage};
use crate::session::task::{self, Phase};

/// How many sessions of one backend are looked for at once.
const MAX_LOOKUPS: usize = 64;
/// How many changes a slow reader may be behind.
const MAX_QUEUED_CHANGES: usize = 256;

/// Takes the instance, reads what is known, and looks for what lives.
pub(crate) async fn open(config: Config) -> Result<Owner> {
    let home = config.home.clone();
    // There are no tasks of an engine yet. The lock goes again with the result where nobody takes it.
    let claimed = tokio::task::spawn_blocking(move || claim(&home)).await;
    let (lock, store, opened) = claimed.map_err(|error| opening_failed(&error))??;
    let shared = Arc::new(Shared {
        adopting: config
            .backends
            .iter()
            .map(|backend| (backend.name(), Semaphore::new(MAX_LOOKUPS)))
            .collect(),
        home: config.home,
        backends: config.backends,
        default_backend: config.default_backend,
        auto: config.auto,
        naming: config.naming,
        environments: config.environments,
        timeouts: config.timeouts,
        registry: Registry::default(),
        store,
        ids: crate::instance::ids::Ids::default(),
        output_watch: crate::observe::output_watch::OutputWatch::new(),
        profile_cache: crate::observe::profiles::ProfileCache::default(),
        hook_command: config.hook_command,
        inner_hook_command: config.inner_hook_command,
        events_served: AtomicBool::new(config.serves_events),
        ports: crate::launch::ports::Ports::default(),
        beside: wharf_backend::Beside::default(),
        login: crate::launch::login_shell::Login::default(),
        changes: broadcast::Sender::new(MAX_QUEUED_CHANGES),
        tasks: Tasks::default(),
        lock: Mutex::new(Some(lock)),
    });
    // From here on a failure, or a caller that goes away, ends what was spawned and lets the instance go.
    let owner = Owner(Arc::clone(&shared));
    shared.backend(&shared.default_backend)?;
    let listen = crate::observe::output_watch::OutputWatch::listen(Arc::clone(&shared));
    shared.tasks.spawn_helper(listen);
    for backend in &shared.backends {
        crate::lifecycle::pause::follow_freezer_news(&shared, backend);
    }
    let scanned = {
        let scanned = Arc::clone(&shared);
        let scan = move || scan(&scanned, opened == Opened::Ready);
        shared.tasks.spawn_blocking(scan).await.map_err(|error| opening_failed(&error))??
    };
    let found: Vec<Arc<Handle>> = scanned.open.into_iter().map(|open| resume(&shared, open)).collect();
    let (over, missing) = (scanned.over, scanned.missing);
    let settled = async {
        take_in_unknown(&shared, &over, missing).await;
        for handle in &found {
            // The sender is in the handle, which is here.
            let _ = handle.watch().wait_for(|_| handle.stage() != Stage::Searching).await;
        }
    };
    if tokio::time::timeout(shared.timeouts.settle, settled).await.is_err() {
        tracing::warn!("some sessions are not found yet; they are unknown until then");
    }
    Ok(owner)
}

fn claim(home: &Home) -> Result<(Lock, Store, Opened)> {
    let ours = || {
        wharf_boundary::check_ours(home.state())
            .map_err(|distrust| Failure::new(Code::Forbidden, distrust.message).hint(distrust.hint))
    };
    // Check before anything is made there, and again after: the directory may be another user's either time.
    ours()?;
    disk::create_instance_dirs(home)?;
    ours()?;
    let lock = Lock::take(home)?;
    let path = home.store();
    let (store, opened) = Store::open(&path).map_err(|error| {
        let unusable = |error| Failure::system(format!("cannot use {}", path.display()), &error);
        let failure = match error {
            full if full.is_full() => unusable(std::io::ErrorKind::StorageFull.into()),
            StoreError::File { error, .. } => unusable(error),
            other => Failure::new(Code::Internal, other.to_string()),
        };
        match failure.hint {
            Some(_) => failure,
            None => failure.hint("`wharf doctor` looks whether the state directory is yours"),
        }
    })?;
    if let Opened::Replaced { aside, why } = &opened {
        tracing::warn!(?aside, why, "the store could not be read; it was put aside and is built anew");
    }
    Ok((lock, store, opened))
}

/// What the directories and the store say.
struct Scanned {
    /// Sessions that may live.
    open: Vec<Found>,
    /// Sessions that are over.
    over: HashSet<SessionId>,
    /// Sessions that the store believes to live and that have no directory.
    missing: Vec<SessionRow>,
}

struct Found {
    ticket: Ticket,
    attempts: u32,
}

/// Reads the session directories. `known` says whether the store remembers; without it, ends are final.
fn scan(shared: &Arc<Shared>, known: bool) -> Result<Scanned> {
    let broken = |error: StoreError| Failure::new(Code::Internal, error.to_string());
    let over: HashSet<SessionId> = shared.store.over().map_err(broken)?.into_iter().collect();
    let mut live: HashMap<SessionId, SessionRow> =
        shared.store.live().map_err(broken)?.into_iter().map(|row| (row.id.clone(), row)).collect();
    let mut scanned = Scanned { open: Vec::new(), over, missing: Vec::new() };
    let sessions = shared.home.sessions();
    let entries = fs::read_dir(&sessions)
        .map_err(|error| Failure::system(format!("cannot read {}", sessions.display()), &error))?;
    for entry in entries.filter_map(std::result::Result::ok) {
        let Some(id) = entry.file_name().to_str().and_then(|name| name.parse::<SessionId>().ok()) else {
            continue;
        };
        if scanned.over.contains(&id) {
            continue;
        }
        let dir = entry.path();
        let ticket = match disk::ticket(&dir) {
            Ok(Some(ticket)) if ticket.id == id => ticket,
            // Left alone: `gc` and `doctor` speak of it. But a start that was broken off needs no secrets.
            Ok(none) => {
                if none.is_none() {
                    secrets::remove_secrets(&dir);
                }
                continue;
            }
            Err(failure) => {
                tracing::warn!(%failure, "a session's ticket cannot be read; its directory is left alone");
                live.remove(&id);
                continue;
            }
        };
        let attempts = live.remove(&id).map_or(0, |row| row.attempts);
        match disk::exit(&dir) {
            Ok(Some(exit))
                if is_final(&ticket, &exit, known)
                    && !OutputCopy::is_due(&dir)
                    && !shared
                        .backend(&ticket.backend)
                        .is_ok_and(|backend| backend.seen_running(&ticket)) =>
            {
                let state = if exit.reason == Reason::Lost { State::Lost } else { State::Exited };
                let mut session = shared.describe(&ticket, state);
                session.exit = Some(exit);
                // It ended while nobody was there to take them.
                if !ticket.spec.secrets.is_empty() {
                    secrets::remove_secrets(&dir);
                }
                shared.store.put(row(&session, attempts));
                scanned.over.insert(id);
            }
            _ => scanned.open.push(Found { ticket, attempts }),
        }
    }
    scanned.missing = live.into_values().collect();
    let newest = shared.store.newest_over(MAX_ENDED_IN_MEMORY as u32).map_err(broken)?;
    // The oldest first, as they ended.
    for row in newest.into_iter().rev() {
        let id = row.id.clone();
        match past(shared, row) {
            Ok(handle) => shared.registry.enter(&handle),
            Err(failure) if failure.code == Code::NotFound => shared.store.remove(&id),
            Err(failure) => tracing::warn!(%failure, "an ended session cannot be shown"),
        }
    }
    Ok(scanned)
}

/// Whether a run's end is the session's.
fn is_final(ticket: &Ticket, exit: &ExitRecord, known: bool) -> bool {
    !known || ticket.spec.restart == Restart::No || !matches!(exit.reason, Reason::Exited | Reason::Lost)
}

/// Enters a session that may live, and lets its task look for it.
fn resume(shared: &Arc<Shared>, found: Found) -> Arc<Handle> {
    let Found { ticket, attempts } = found;
    let never_ran = ticket.started.0 == 0 && ticket.holder.is_none() && ticket.command.is_none();
    let waits =
        never_ran && !ticket.spec.after.is_empty() && !disk::has_exit(&shared.home.session(&ticket.id));
    let mut session = shared.describe(&ticket, if waits { State::Starting } else { State::Unknown });
    if !waits {
        session.detail = Some("it is being looked for".to_owned());
    }
    shared.ports.hold(&ticket.id, &ticket.spec.ports);
    let pids: Vec<i32> =
        [&ticket.holder, &ticket.command].into_iter().flatten().map(|process| process.pid).collect();
    let stage = if waits { Stage::Exists } else { Stage::Searching };
    let handle = Handle::new(session, without_start_data(ticket), stage);
    shared.registry.enter(&handle);
    // Note its processes now: a request from inside the session is attributed before adoption ends.
    shared.registry.processes(&handle.id, pids);
    let name = handle.session().name.clone();
    let owns = shared.registry.by_name(name.as_str()).is_some_and(|owner| owner.id == handle.id);
    if owns
        && disk::linked(&shared.home, &name).as_ref() != Some(&handle.id)
        && let Err(failure) = disk::point_link(&shared.home, &name, &handle.id)
    {
        tracing::warn!(%failure, "a name's link is missing");
    }
    task::spawn(shared, &handle, if waits { Phase::WaitForOthers } else { Phase::Adopt }, attempts);
    handle
}

/// Takes in sessions that a backend lists and that have no directory, then marks those lost that nobody knows.
async fn take_in_unknown(shared: &Arc<Shared>, over: &HashSet<SessionId>, missing: Vec<SessionRow>) {
    let mut lists = tokio::task::JoinSet::new();
    for backend in shared.backends.iter().filter(|backend| backend.capabilities().list) {
        let (backend, within) = (Arc::clone(backend), shared.timeouts.adopt);
        let list = async move { (backend.name(), tokio::time::timeout(within, backend.list()).await) };
        lists.spawn(shared.tasks.track(list));
    }
    let mut answered = HashSet::new();
    while let Some(list) = lists.join_next().await {
        let Ok((name, Ok(Ok(tickets)))) = list else { continue };
        answered.insert(name.to_owned());
        for ticket in tickets {
            if over.contains(&ticket.id) || shared.registry.by_id(&ticket.id).is_some() {
                continue;
            }
            let dir = shared.home.session(&ticket.id);
            if dir.exists() || ticket.dir.as_path() != dir {
                // A directory without a readable ticket is left alone, and so is another instance's session.
                continue;
            }
            let written =
                disk::session_dir(&dir).and_then(|()| disk::write_json(&dir.join(Home::TICKET), &ticket));
            if let Err(failure) = written {
                tracing::warn!(%failure, "a session without a directory was found and not taken in");
                continue;
            }
            resume(shared, Found { ticket, attempts: 0 });
        }
    }
    for mut row in missing {
        // A backend that could not be asked may know it yet.
        if answered.contains(&row.backend) && shared.registry.by_id(&row.id).is_none() {
            row.state = State::Lost;
            row.exit = Some(record(Reason::Lost, None));
            shared.store.put(row);
        }
    }
}

fn opening_failed(error: &tokio::task::JoinError) -> Failure {
    Failure::new(Code::Internal, format!("opening failed: {error}"))
}

/// Whether a path is the user's alone: no right of the group or of others is set.
pub(crate) fn is_private(path: &std::path::Path) -> bool {
    fs::metadata(path).is_ok_and(|meta| meta.permissions().mode().trailing_zeros() >= 6)
}

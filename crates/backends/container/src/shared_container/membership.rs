//! Joins and leaves containers that several sessions share.
//!
//! The first process of such a container keeps it alive and holds no session. Each session has a holder of its own in
//! it, which the engine starts by `exec`. The container is removed with its last session. Only one task joins or
//! leaves at a time, so that none joins a container that another is about to remove.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bollard::exec::{CreateExecOptions, StartExecOptions};
use wharf_backend::{Connection, Result, Stop};
use wharf_holder::linux::proc;
use wharf_holder_client::reach;
use wharf_holder_client::session as held;
use wharf_model::{Code, Failure, MadeContainer, Reason, ScopeKind, SessionId, Ticket};

use crate::containers::Containers;
use crate::create_body::CreatePlan;
use crate::create_body::mounts;
use crate::engine::{Engine, QUERY_TIMEOUT};
use crate::events_listener::EventsListener;
use crate::holder_handshake::{self, ExpectedCaller, HolderHandshake};
use crate::owner::Owner;
use crate::session_dirs::SessionDirs;
use crate::session_start::{HOLDER_START_TIMEOUT, SessionStart, off_thread};
use crate::shared_container::SharedContainer;
use crate::shared_container::configuration::{SharedConfiguration, is_fingerprint};
use crate::ticket_data::TicketData;

/// A shared container has one run.
const SHARED_RUN: u32 = 0;
/// How often a wait checks that a started holder still runs.
const HOLDER_POLL_INTERVAL: Duration = Duration::from_millis(200);
/// How long to wait before asking the engine again which process it started.
const EXEC_POLL_INTERVAL: Duration = Duration::from_millis(10);

impl SessionStart {
    /// Starts the session in a container that exists already, or in a new one that others may join.
    pub(crate) async fn start_shared(&mut self) -> Result<Arc<dyn Connection>> {
        if self.engine.is_remote() {
            return Err(Failure::unsupported("a shared container", "an engine on another host"));
        }
        if !self.ticket.spec.ports.is_empty() {
            let message = "a session in a shared container cannot have ports of its own";
            return Err(Failure::new(Code::Invalid, message)
                .hint("publish them with --publish, for all sessions in it, or leave --reuse out"));
        }
        let (user, other_user) = self.user().await?;
        let containers = Arc::clone(&self.containers);
        self.warn_of_root(&user).await?;
        let shared = self.shared_container(&user)?;
        let _turn = containers.sharing_turn.lock().await;
        let home = self.ticket.dir.as_path().to_owned();
        let failed =
            |error: std::io::Error| Failure::system(format!("cannot furnish {}", home.display()), &error);
        let furnish = {
            let (shared, home, id, run) =
                (shared.clone(), home.clone(), self.ticket.id.clone(), self.ticket.run);
            move || {
                shared.create_dirs(other_user)?;
                shared.move_room_out(&home, &id)?;
                SharedContainer::create_room(&home, run, other_user)
            }
        };
        off_thread(furnish).await?.map_err(failed)?;
        // Write into the room while no neighbour can reach it: later a neighbour could redirect every write.
        let handshake = HolderHandshake::listen(&home, other_user)?;
        let listener = EventsListener::open(&home).map_err(failed)?;
        self.record_container(&shared, None)?;
        let enter = {
            let (shared, home, id) = (shared.clone(), home.clone(), self.ticket.id.clone());
            move || shared.move_room_in(&home, &id)
        };
        off_thread(enter).await?.map_err(failed)?;
        let container = self.running_container(&shared, user, other_user).await?;
        self.record_container(&shared, Some(container.clone()))?;
        let room = format!("{}/{}", mounts::SHARED_ROOMS, self.ticket.id);
        let mut command =
            vec![mounts::HOLDER.to_owned(), "one".to_owned(), format!("{room}/{}", holder_handshake::SOCKET)];
        command.extend(other_user.then(|| "shared".to_owned()));
        let exec = exec_detached(&self.engine, &container, command).await?;
        let expected = wait_for_exec(&self.engine, &exec).await?;
        let late = || Failure::new(Code::Timeout, "the holder in the container did not call in time");
        let called = tokio::time::timeout(HOLDER_START_TIMEOUT, async {
            tokio::select! {
                biased;
                called = handshake.accept_holder(expected) => called.map_err(|error| Failure::system("cannot hear the holder", &error)),
                failure = wait_for_exec_end(&self.engine, &exec) => Err(failure),
            }
        });
        let (stream, holder) = called.await.map_err(|_| late())??;
        let frame = self.start_request_in(&room, shared.dir()).await?;
        let connection = self.start_command(stream, holder, &frame, ScopeKind::Walk).await?;
        self.containers.listen(listener, &self.ticket, &connection);
        Ok(connection)
    }

    fn shared_container(&self, user: &str) -> Result<SharedContainer> {
        let options = &self.containers.options;
        let configuration = SharedConfiguration {
            install: self.containers.owner()?.install(),
            endpoint: &self.engine.endpoint().address,
            image: &self.image.id,
            container: &self.container,
            user,
            limits: &self.ticket.spec.limits,
            holder: &options.holder,
            mounted: &self.paths.expected,
        };
        Ok(SharedContainer::of(&options.state, &configuration.fingerprint()))
    }

    fn record_container(&mut self, shared: &SharedContainer, container: Option<String>) -> Result<()> {
        let data = TicketData {
            shared: Some(shared.fingerprint().to_owned()),
            ..TicketData::at(self.engine.endpoint(), container)
        };
        self.ticket.private = Some(data.text());
        self.ticket.spec.made = data.container.map(|id| {
            let engine = self.engine.endpoint().address.clone();
            Box::new(MadeContainer { id, name: shared.name(), engine, kept: false })
        });
        self.dirs.write_ticket(&self.ticket)
    }

    /// The id of the shared container: the one that runs, or a new one.
    async fn running_container(
        &mut self,
        shared: &SharedContainer,
        user: String,
        other_user: bool,
    ) -> Result<String> {
        let (owner, name) = (self.containers.owner()?.clone(), shared.name());
        let options = self.containers.options.clone();
        let holder = options.holder.canonicalize().map_err(|error| {
            Failure::system(format!("cannot find the holder {}", options.holder.display()), &error)
        })?;
        let parts = self.repository_parts(shared.dir()).await?;
        let mounts = mounts::of_shared(&holder, shared, &self.container, &self.paths, parts, &options.state)?;
        self.ticket.spec.mounts = mounts::shown(&mounts, &self.image.volumes);
        if let Some(found) = self.engine.container(&name).await? {
            if !owner.owns_shared(&found, shared.fingerprint()) {
                return Err(Failure::new(Code::NameTaken, format!("somebody else has a container {name}")));
            }
            if found.state.paused {
                let engine = self.containers.options.flavour.name();
                return Err(Failure::new(Code::Busy, format!("container {name} is paused"))
                    .hint(format!("`{engine} unpause {name}` lets it go on")));
            }
            if found.state.running {
                return Ok(found.id);
            }
            self.engine.remove(&found.id).await?;
        }
        self.paths.create_dirs(shared.dir(), SHARED_RUN).await?;
        let parts = self.repository_parts(shared.dir()).await?;
        let mounts = mounts::of_shared(&holder, shared, &self.container, &self.paths, parts, &options.state)?;
        let plan = CreatePlan {
            ticket: &self.ticket,
            container: &self.container,
            image: self.image.id.clone(),
            labels: owner.shared_labels(shared.fingerprint()),
            mounts: mounts.into_iter().map(|made| made.mount).collect(),
            user,
            other_user,
            remote: false,
            handshake_socket: holder_handshake::SOCKET,
        };
        let mut body = plan.create_body()?;
        body.cmd = Some(vec!["keep".to_owned()]);
        body.hostname = Some(format!("berth-{}", &shared.fingerprint()[..8]));
        let id = Box::pin(self.create_within_limits(&name, body)).await?;
        self.engine.start(&id).await?;
        Ok(id)
    }

    pub(crate) async fn undo_shared(&self) {
        let data = TicketData::of(&self.ticket);
        let Some(fingerprint) = data.shared else { return };
        let containers = &self.containers;
        let _turn = containers.sharing_turn.lock().await;
        let shared = SharedContainer::of(&containers.options.state, &fingerprint);
        let forget = {
            let (shared, ticket) = (shared.clone(), self.ticket.clone());
            move || shared.undo_room(ticket.dir.as_path(), &ticket.id, ticket.run)
        };
        let _ = off_thread(forget).await;
        let left = async {
            remove_if_unused(&self.engine, containers.owner()?, &containers.options.sessions, &shared).await
        };
        if let Err(failure) = left.await {
            tracing::warn!(container = shared.name(), %failure, "a failed start may have left its container");
        }
    }
}

impl Containers {
    /// Takes a session that is over out of its shared container, and removes the container with its last session.
    pub(crate) async fn leave_shared(&self, ticket: &Ticket) -> Result<()> {
        let (home, data) = (ticket.dir.as_path(), TicketData::of(ticket));
        let Some(fingerprint) = data.shared else { return Ok(()) };
        let over = || SessionDirs::of(home).exit_record(ticket.run).is_some() || !holder_may_live(ticket);
        if !over() {
            return Err(Failure::new(Code::Running, "the session's holder still lives"));
        }
        let _turn = self.sharing_turn.lock().await;
        let shared = SharedContainer::of(&self.options.state, &fingerprint);
        // The session may have been started again meanwhile: then leave it alone.
        if !over() {
            return Ok(());
        }
        let leave = {
            let (shared, ticket) = (shared.clone(), ticket.clone());
            move || shared.move_room_out(ticket.dir.as_path(), &ticket.id)
        };
        off_thread(leave).await?.map_err(|error| {
            Failure::system(format!("cannot take the room of {} back", ticket.name), &error)
        })?;
        let (engine, _) = self.find(ticket).await?;
        remove_if_unused(&engine, self.owner()?, &self.options.sessions, &shared).await
    }

    /// Undoes a start in a shared container that nobody waited for.
    pub(crate) async fn discard_shared(&self, ticket: &Ticket) {
        let home = ticket.dir.as_path();
        let end = async {
            if let Ok(Ok((stream, welcome))) =
                tokio::time::timeout(HOLDER_START_TIMEOUT, held::find(home)).await
            {
                let first = held::first_status(0, ticket.spec.size, Some(&welcome));
                let stop =
                    Stop { grace: Duration::ZERO, reason: Reason::Killed, by: "nobody waited".to_owned() };
                held::connect(&self.tasks, home.to_owned(), stream, first).stop(stop).await?;
            }
            self.leave_shared(ticket).await
        };
        if let Err(failure) = end.await {
            tracing::warn!(session = %ticket.id, %failure, "a start that took too long left its room");
        }
        let fingerprint = TicketData::of(ticket).shared.unwrap_or_default();
        let (shared, ticket) = (SharedContainer::of(&self.options.state, &fingerprint), ticket.clone());
        let _turn = self.sharing_turn.lock().await;
        let forget = move || shared.undo_room(ticket.dir.as_path(), &ticket.id, ticket.run);
        let _ = off_thread(forget).await;
    }
}

/// Starts a further program in a container. Returns the engine's id of it.
async fn exec_detached(engine: &Engine, container: &str, command: Vec<String>) -> Result<String> {
    let options = CreateExecOptions {
        cmd: Some(command),
        working_dir: Some("/".to_owned()),
        ..CreateExecOptions::default()
    };
    let made =
        engine.within(HOLDER_START_TIMEOUT, "exec", engine.docker.create_exec(container, options)).await?;
    let detached = StartExecOptions { detach: true, ..StartExecOptions::default() };
    engine.within(HOLDER_START_TIMEOUT, "exec", engine.docker.start_exec(&made.id, Some(detached))).await?;
    Ok(made.id)
}

/// Waits until the engine names the process of a further program on this host. Neighbours in the same container could
/// pose as it.
async fn wait_for_exec(engine: &Engine, id: &str) -> Result<ExpectedCaller> {
    let until = tokio::time::Instant::now() + HOLDER_START_TIMEOUT;
    loop {
        let found =
            engine.within(QUERY_TIMEOUT, "inspect of an exec", engine.docker.inspect_exec(id)).await?;
        let pid = found.pid.and_then(|pid| i32::try_from(pid).ok()).filter(|pid| *pid > 0);
        match (pid, found.running) {
            (Some(pid), _) => return Ok(ExpectedCaller::Beside(pid)),
            // It runs, but the engine does not know its number yet.
            (None, Some(true)) if tokio::time::Instant::now() < until => {
                tokio::time::sleep(EXEC_POLL_INTERVAL).await;
            }
            (None, _) => {
                let message = match found.exit_code {
                    Some(code) => {
                        format!("the holder in the container ended with code {code} before it was heard of")
                    }
                    None => "the engine does not say which process it started".to_owned(),
                };
                return Err(Failure::new(Code::Internal, message));
            }
        }
    }
}

/// Waits until a further program has ended, which it should not.
async fn wait_for_exec_end(engine: &Engine, id: &str) -> Failure {
    loop {
        tokio::time::sleep(HOLDER_POLL_INTERVAL).await;
        let asked = engine.within(QUERY_TIMEOUT, "inspect of an exec", engine.docker.inspect_exec(id)).await;
        if let Ok(found) = asked
            && found.running == Some(false)
            && let Some(code) = found.exit_code
        {
            let message =
                format!("the holder in the container ended with code {code} before it was heard of");
            return Failure::new(Code::Internal, message);
        }
    }
}

/// Removes a shared container that no session uses. The caller holds the turn.
async fn remove_if_unused(
    engine: &Engine,
    owner: &Owner,
    sessions: &Path,
    shared: &SharedContainer,
) -> Result<()> {
    let take = |all: bool| {
        let (sessions, shared) = (sessions.to_owned(), shared.clone());
        move || {
            return_rooms(&sessions, &shared, all)?;
            Ok::<_, Failure>(is_used(&sessions, shared.fingerprint()))
        }
    };
    if off_thread(take(false)).await?? {
        return Ok(());
    }
    let found = engine.container(&shared.name()).await?;
    if let Some(container) = found.filter(|container| owner.owns_shared(container, shared.fingerprint())) {
        let note = {
            let shared = shared.clone();
            move || shared.note_removal()
        };
        off_thread(note).await?.map_err(|error| {
            Failure::system(format!("cannot note the removal of {}", shared.name()), &error)
        })?;
        engine.remove(&container.id).await?;
    }
    off_thread(take(true)).await??;
    let shared = shared.clone();
    off_thread(move || shared.remove_dirs()).await
}

/// Moves the rooms of sessions that ended unseen back to their directories: the logs are theirs. The sessions' own
/// directories say which these are, not the rooms, where anybody in the container can create names.
fn return_rooms(sessions: &Path, shared: &SharedContainer, all: bool) -> Result<()> {
    for entry in std::fs::read_dir(sessions).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let Some(id) = name.to_str().and_then(|name| name.parse::<SessionId>().ok()) else { continue };
        let home = entry.path();
        if all || SessionDirs::of(&home).has_exit_record() {
            shared
                .move_room_out(&home, &id)
                .map_err(|error| Failure::system("cannot take a room back", &error))?;
        }
    }
    Ok(())
}

/// Whether any session uses a shared container. Where the directory of sessions cannot be read, one may.
fn is_used(sessions: &Path, fingerprint: &str) -> bool {
    let Ok(entries) = std::fs::read_dir(sessions) else { return true };
    entries.flatten().any(|entry| {
        let is_session = entry.file_name().to_str().is_some_and(|name| name.parse::<SessionId>().is_ok());
        let Some(ticket) = held::read_ticket(&entry.path()).ok().filter(|_| is_session) else { return false };
        TicketData::of(&ticket).shared.as_deref() == Some(fingerprint)
            && held::read_exit(&entry.path(), ticket.run).is_none()
            && holder_may_live(&ticket)
    })
}

/// Whether a session's holder may still run. It does if it accepts connections, and does not if its process is gone.
/// A neighbour that listens in its place does not count.
pub(crate) fn holder_may_live(ticket: &Ticket) -> bool {
    match reach::connect_now(ticket.dir.as_path()) {
        Ok(_) => return true,
        // A full backlog proves nothing about who listens.
        Err(error) if error.kind() == std::io::ErrorKind::WouldBlock && ticket.holder.is_none() => {
            return true;
        }
        Err(_) => {}
    }
    let Some(holder) = &ticket.holder else { return false };
    proc::open(holder).map_or(true, |found| found.is_some_and(|pidfd| !proc::ends(&pidfd, Duration::ZERO)))
}

/// Removes shared containers that no session uses, and logs what it cannot do: nobody waits for it.
pub(crate) async fn remove_unused_or_log(
    engine: &Engine,
    owner: &Owner,
    places: [&Path; 2],
    turn: &tokio::sync::Mutex<()>,
) {
    if let Err(failure) = remove_unused(engine, owner, places, turn, false).await {
        tracing::debug!(%failure, "shared containers without a session cannot be looked for");
    }
}

/// Finds the shared containers that no session uses, and removes them unless this is a dry run. Returns their names.
pub(crate) async fn remove_unused(
    engine: &Engine,
    owner: &Owner,
    [state, sessions]: [&Path; 2],
    turn: &tokio::sync::Mutex<()>,
    dry_run: bool,
) -> Result<Vec<String>> {
    let listed = engine.containers(&owner.selector()).await?;
    // Anybody may set a label: check that it is a fingerprint before it becomes a path.
    let fingerprints = listed.iter().filter_map(|container| owner.shared_fingerprint(container.labels()));
    let mut names = Vec::new();
    for fingerprint in fingerprints.filter(|fingerprint| is_fingerprint(fingerprint)) {
        let _turn = turn.lock().await;
        let shared = SharedContainer::of(state, &fingerprint);
        let used = {
            let (sessions, fingerprint) = (sessions.to_owned(), fingerprint.clone());
            off_thread(move || is_used(&sessions, &fingerprint)).await?
        };
        if dry_run {
            names.extend((!used).then(|| shared.name()));
            continue;
        }
        match remove_if_unused(engine, owner, sessions, &shared).await {
            Ok(()) => names.extend((!used).then(|| shared.name())),
            Err(failure) => {
                tracing::debug!(container = shared.name(), %failure, "a shared container without a session is left");
            }
        }
    }
    Ok(names)
}

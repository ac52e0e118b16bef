//! Joining and leaving containers that several sessions share.
//!
//! Such a container's first process keeps it and holds nobody; each session has a holder of its own in it, started by the
//! engine beside the others. The container goes with the last of them. One at a time joins or leaves, so that none
//! joins what another is about to take away.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bollard::exec::{CreateExecOptions, StartExecOptions};
use wharf_backend::{Connection, Result, Stop};
use wharf_holder::linux::proc;
use wharf_holder::reach;
use wharf_local::held;
use wharf_model::{Code, Failure, MadeContainer, Reason, ScopeKind, SessionId, Ticket};

use crate::berth::Berth;
use crate::berth::make::{Make, is_mark};
use crate::birth::{self, Birth, Expected};
use crate::body::Plan;
use crate::body::mounts;
use crate::ear::Ear;
use crate::engine::{Engine, QUERY_TIMEOUT};
use crate::owner::Owner;
use crate::place::Place;
use crate::private::Private;
use crate::rooms::Rooms;
use crate::starting::{HOLDER_START_TIMEOUT, Starting, off_thread};

/// How often it is looked whether a holder that was started still runs.
const HOLDER_POLL_INTERVAL: Duration = Duration::from_millis(200);
/// How soon it is asked again which process was started.
const EXEC_POLL_INTERVAL: Duration = Duration::from_millis(10);

impl Starting {
    /// Starts the session in a container that is there already, or in one that others may join.
    pub(crate) async fn begin_berth(&mut self) -> Result<Arc<dyn Connection>> {
        if self.engine.is_remote() {
            return Err(Failure::unsupported("a shared container", "an engine on another host"));
        }
        if !self.ticket.spec.ports.is_empty() {
            let message = "a session in a shared container cannot have ports of its own";
            return Err(Failure::new(Code::Invalid, message)
                .hint("publish them with --publish, for all sessions in it, or leave --reuse out"));
        }
        let (user, shared) = self.user().await?;
        let place = Arc::clone(&self.place);
        self.note_root(&user).await?;
        let berth = self.berth(&user)?;
        let _turn = place.berths.lock().await;
        let home = self.ticket.dir.as_path().to_owned();
        let failed =
            |error: std::io::Error| Failure::system(format!("cannot furnish {}", home.display()), &error);
        let furnish = {
            let (berth, home, id, run) =
                (berth.clone(), home.clone(), self.ticket.id.clone(), self.ticket.run);
            move || {
                berth.furnish(shared)?;
                berth.leave(&home, &id)?;
                Berth::furnish_room(&home, run, shared)
            }
        };
        off_thread(furnish).await?.map_err(failed)?;
        // All of it while no neighbour sees the room: what is written there then is written where it is meant to be.
        let birth = Birth::expect(&home, shared)?;
        let ear = Ear::open(&home).map_err(failed)?;
        self.note(&berth, None)?;
        let enter = {
            let (berth, home, id) = (berth.clone(), home.clone(), self.ticket.id.clone());
            move || berth.enter(&home, &id)
        };
        off_thread(enter).await?.map_err(failed)?;
        let container = self.moored(&berth, user, shared).await?;
        self.note(&berth, Some(container.clone()))?;
        let room = format!("{}/{}", mounts::BERTH, self.ticket.id);
        let mut command =
            vec![mounts::HOLDER.to_owned(), "one".to_owned(), format!("{room}/{}", birth::SOCKET)];
        command.extend(shared.then(|| "shared".to_owned()));
        let beside = beside(&self.engine, &container, command).await?;
        let expected = started_beside(&self.engine, &beside).await?;
        let late = || Failure::new(Code::Timeout, "the holder in the container did not call in time");
        let called = tokio::time::timeout(HOLDER_START_TIMEOUT, async {
            tokio::select! {
                biased;
                called = birth.call(expected) => called.map_err(|error| Failure::system("cannot hear the holder", &error)),
                failure = failed_beside(&self.engine, &beside) => Err(failure),
            }
        });
        let (stream, holder) = called.await.map_err(|_| late())??;
        let frame = self.frame_in(&room, berth.dir())?;
        let connection = self.speak(stream, holder, &frame, ScopeKind::Walk).await?;
        self.place.listen(ear, &self.ticket, &connection);
        Ok(connection)
    }

    fn berth(&self, user: &str) -> Result<Berth> {
        let options = &self.place.options;
        let make = Make {
            install: self.place.owner()?.install(),
            endpoint: &self.engine.endpoint().address,
            image: &self.image.id,
            container: &self.container,
            user,
            limits: &self.ticket.spec.limits,
            holder: &options.holder,
            mounted: &self.settled.expected,
        };
        Ok(Berth::of(&options.state, &make.mark()))
    }

    fn note(&mut self, berth: &Berth, container: Option<String>) -> Result<()> {
        let private = Private {
            berth: Some(berth.mark().to_owned()),
            ..Private::at(self.engine.endpoint(), container)
        };
        self.ticket.private = Some(private.text());
        self.ticket.spec.made = private.container.map(|id| {
            let engine = self.engine.endpoint().address.clone();
            Box::new(MadeContainer { id, name: berth.name(), engine, kept: false })
        });
        self.rooms.write_ticket(&self.ticket)
    }

    /// The container of a berth: the one that runs, or a new one.
    async fn moored(&mut self, berth: &Berth, user: String, shared: bool) -> Result<String> {
        let (owner, name) = (self.place.owner()?.clone(), berth.name());
        let options = self.place.options.clone();
        let holder = options.holder.canonicalize().map_err(|error| {
            Failure::system(format!("cannot find the holder {}", options.holder.display()), &error)
        })?;
        let mounts = mounts::berth(&holder, berth, &self.container, &self.settled, &options.state)?;
        self.ticket.spec.mounts = mounts::shown(&mounts, &self.image.volumes);
        if let Some(found) = self.engine.container(&name).await? {
            if !owner.owns_berth(&found, berth.mark()) {
                return Err(Failure::new(Code::NameTaken, format!("somebody else has a container {name}")));
            }
            if found.state.paused {
                let engine = self.place.options.flavour.name();
                return Err(Failure::new(Code::Busy, format!("container {name} is paused"))
                    .hint(format!("`{engine} unpause {name}` lets it go on")));
            }
            if found.state.running {
                return Ok(found.id);
            }
            self.engine.remove(&found.id).await?;
        }
        self.settled.furnish(berth.dir()).await?;
        let mounts = mounts::berth(&holder, berth, &self.container, &self.settled, &options.state)?;
        let plan = Plan {
            ticket: &self.ticket,
            container: &self.container,
            image: self.image.id.clone(),
            labels: owner.berth_labels(berth.mark()),
            mounts: mounts.into_iter().map(|made| made.mount).collect(),
            user,
            shared,
            remote: false,
            birth: birth::SOCKET,
        };
        let mut body = plan.body()?;
        body.cmd = Some(vec!["keep".to_owned()]);
        body.hostname = Some(format!("berth-{}", &berth.mark()[..8]));
        let id = Box::pin(self.create(&name, body)).await?;
        self.engine.start(&id).await?;
        Ok(id)
    }

    pub(crate) async fn undo_berth(&self) {
        let private = Private::of(&self.ticket);
        let Some(mark) = private.berth else { return };
        let place = &self.place;
        let _turn = place.berths.lock().await;
        let berth = Berth::of(&place.options.state, &mark);
        let forget = {
            let (berth, ticket) = (berth.clone(), self.ticket.clone());
            move || berth.forget(ticket.dir.as_path(), &ticket.id, ticket.run)
        };
        let _ = off_thread(forget).await;
        let left = async { unmoor(&self.engine, place.owner()?, &place.options.sessions, &berth).await };
        if let Err(failure) = left.await {
            tracing::warn!(container = berth.name(), %failure, "a failed start may have left its container");
        }
    }
}

impl Place {
    /// Takes a session that is over out of its shared container, which goes with the last one.
    pub(crate) async fn leave_berth(&self, ticket: &Ticket) -> Result<()> {
        let (home, private) = (ticket.dir.as_path(), Private::of(ticket));
        let Some(mark) = private.berth else { return Ok(()) };
        let over = || Rooms::of(home).record(ticket.run).is_some() || !may_live(ticket);
        if !over() {
            return Err(Failure::new(Code::Running, "the session's holder still lives"));
        }
        let _turn = self.berths.lock().await;
        let berth = Berth::of(&self.options.state, &mark);
        // It may have been started again meanwhile: then it is not ours to take out.
        if !over() {
            return Ok(());
        }
        let leave = {
            let (berth, ticket) = (berth.clone(), ticket.clone());
            move || berth.leave(ticket.dir.as_path(), &ticket.id)
        };
        off_thread(leave).await?.map_err(|error| {
            Failure::system(format!("cannot take the room of {} back", ticket.name), &error)
        })?;
        let (engine, _) = self.find(ticket).await?;
        unmoor(&engine, self.owner()?, &self.options.sessions, &berth).await
    }

    /// Takes back a start in a shared container that nobody waited for.
    pub(crate) async fn discard_berth(&self, ticket: &Ticket) {
        let home = ticket.dir.as_path();
        let end = async {
            if let Ok(Ok((stream, welcome))) =
                tokio::time::timeout(HOLDER_START_TIMEOUT, held::find(home)).await
            {
                let first = held::first_status(0, ticket.spec.size, Some(&welcome));
                let stop =
                    Stop { grace: Duration::ZERO, reason: Reason::Killed, by: "nobody waited".to_owned() };
                held::connect(home.to_owned(), stream, first).stop(stop).await?;
            }
            self.leave_berth(ticket).await
        };
        if let Err(failure) = end.await {
            tracing::warn!(session = %ticket.id, %failure, "a start that took too long left its room");
        }
        let mark = Private::of(ticket).berth.unwrap_or_default();
        let (berth, ticket) = (Berth::of(&self.options.state, &mark), ticket.clone());
        let forget = move || berth.forget(ticket.dir.as_path(), &ticket.id, ticket.run);
        let _ = off_thread(forget).await;
    }
}

/// Starts a program beside those that a container has.
async fn beside(engine: &Engine, container: &str, command: Vec<String>) -> Result<String> {
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

/// Who such a program is on this host: in the same container there are others who would be taken for it.
async fn started_beside(engine: &Engine, id: &str) -> Result<Expected> {
    let until = tokio::time::Instant::now() + HOLDER_START_TIMEOUT;
    loop {
        let found =
            engine.within(QUERY_TIMEOUT, "inspect of an exec", engine.docker.inspect_exec(id)).await?;
        let pid = found.pid.and_then(|pid| i32::try_from(pid).ok()).filter(|pid| *pid > 0);
        match (pid, found.running) {
            (Some(pid), _) => return Ok(Expected::Beside(pid)),
            // It has begun, and its engine has no number for it yet.
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

/// Waits until such a program has ended, which it should not.
async fn failed_beside(engine: &Engine, id: &str) -> Failure {
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

/// Takes a shared container away that no session is in. The caller has the turn.
async fn unmoor(engine: &Engine, owner: &Owner, sessions: &Path, berth: &Berth) -> Result<()> {
    let take = |all: bool| {
        let (sessions, berth) = (sessions.to_owned(), berth.clone());
        move || {
            take_back(&sessions, &berth, all)?;
            Ok::<_, Failure>(is_used(&sessions, berth.mark()))
        }
    };
    if off_thread(take(false)).await?? {
        return Ok(());
    }
    let found = engine.container(&berth.name()).await?;
    if let Some(container) = found.filter(|container| owner.owns_berth(container, berth.mark())) {
        let note = {
            let berth = berth.clone();
            move || berth.note_removal()
        };
        off_thread(note).await?.map_err(|error| {
            Failure::system(format!("cannot note the removal of {}", berth.name()), &error)
        })?;
        engine.remove(&container.id).await?;
    }
    off_thread(take(true)).await??;
    let berth = berth.clone();
    off_thread(move || berth.strike()).await
}

/// Gives sessions their rooms back that are over, and whose end nobody saw: their logs are theirs. Which sessions these are is
/// said by their own directories, and not by what is found among the rooms, where anybody in the container puts names.
fn take_back(sessions: &Path, berth: &Berth, all: bool) -> Result<()> {
    for entry in std::fs::read_dir(sessions).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let Some(id) = name.to_str().and_then(|name| name.parse::<SessionId>().ok()) else { continue };
        let home = entry.path();
        if all || Rooms::of(&home).has_record() {
            berth.leave(&home, &id).map_err(|error| Failure::system("cannot take a room back", &error))?;
        }
    }
    Ok(())
}

/// Whether a session is in a shared container. What cannot be read may be one.
fn is_used(sessions: &Path, mark: &str) -> bool {
    let Ok(entries) = std::fs::read_dir(sessions) else { return true };
    entries.flatten().any(|entry| {
        let is_session = entry.file_name().to_str().is_some_and(|name| name.parse::<SessionId>().is_ok());
        let Some(ticket) = held::read_ticket(&entry.path()).ok().filter(|_| is_session) else { return false };
        Private::of(&ticket).berth.as_deref() == Some(mark)
            && held::read_exit(&entry.path(), ticket.run).is_none()
            && may_live(&ticket)
    })
}

/// Whether a session's holder may be there. One that takes connections is; one whose process is gone is not. A neighbour
/// that listens in its place is nobody.
pub(crate) fn may_live(ticket: &Ticket) -> bool {
    match reach::connect_now(ticket.dir.as_path()) {
        Ok(_) => return true,
        // Who has so much to do is not known.
        Err(error) if error.kind() == std::io::ErrorKind::WouldBlock && ticket.holder.is_none() => {
            return true;
        }
        Err(_) => {}
    }
    let Some(holder) = &ticket.holder else { return false };
    proc::open(holder).map_or(true, |found| found.is_some_and(|pidfd| !proc::ends(&pidfd, Duration::ZERO)))
}

/// Takes shared containers away that no session is in: nobody was there to do so.
pub(crate) async fn clear(engine: &Engine, owner: &Owner, places: [&Path; 2], turn: &tokio::sync::Mutex<()>) {
    if let Err(failure) = left(engine, owner, places, turn, false).await {
        tracing::debug!(%failure, "shared containers without a session cannot be looked for");
    }
}

/// Finds the shared containers that no session is in, and takes them away unless it is only asked which they are. Returns
/// their names.
pub(crate) async fn left(
    engine: &Engine,
    owner: &Owner,
    [state, sessions]: [&Path; 2],
    turn: &tokio::sync::Mutex<()>,
    dry_run: bool,
) -> Result<Vec<String>> {
    let listed = engine.containers(&owner.selector()).await?;
    // A label is a word that anybody may give a container: it must be one of ours before it becomes a path.
    let marks = listed.iter().filter_map(|container| owner.berth(&container.labels));
    let mut names = Vec::new();
    for mark in marks.filter(|mark| is_mark(mark)) {
        let _turn = turn.lock().await;
        let berth = Berth::of(state, &mark);
        let used = {
            let (sessions, mark) = (sessions.to_owned(), mark.clone());
            off_thread(move || is_used(&sessions, &mark)).await?
        };
        if dry_run {
            names.extend((!used).then(|| berth.name()));
            continue;
        }
        match unmoor(engine, owner, sessions, &berth).await {
            Ok(()) => names.extend((!used).then(|| berth.name())),
            Err(failure) => {
                tracing::debug!(container = berth.name(), %failure, "a shared container without a session is left");
            }
        }
    }
    Ok(names)
}

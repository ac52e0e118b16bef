//! Starts a session: creates its directories and its container, and hands its holder the start request. A failure
//! undoes all of it.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use bollard::models::ContainerCreateBody;
use tokio::net::UnixStream;
use wharf_backend::{Connection, Launch, Pins, Progress, Result};
use wharf_boundary::take_descriptors;
use wharf_holder::wire::Start;
use wharf_holder_client::session as held;
use wharf_model::{
    Change, Code, Container, Failure, Limits, MadeContainer, Millis, ProcessIdentity, Scope, ScopeKind, Text,
    Ticket,
};

use crate::command_line;
use crate::containers::Containers;
use crate::create_body::CreatePlan;
use crate::create_body::checked_paths::{CheckedPaths, Withheld};
use crate::create_body::mounts;
use crate::create_body::worktree::Part;
use crate::engine::Engine;
use crate::engine::caller::CallerVariables;
use crate::engine::inspect::Found;
use crate::events_listener::{self, EventsListener};
use crate::holder_handshake::{self, ExpectedCaller, HolderHandshake};
use crate::image::{self, Image};
use crate::kept_container;
use crate::owner::container_name;
use crate::session_dirs::SessionDirs;
use crate::shared_container;
use crate::ticket_data::TicketData;

/// How long a holder may take to connect, and to start a command: a loaded machine is slow.
pub(crate) const HOLDER_START_TIMEOUT: Duration = Duration::from_secs(30);

/// The PATH that engines assume where an image names none.
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// A start that is under way.
pub(crate) struct SessionStart {
    pub(crate) containers: Arc<Containers>,
    pub(crate) engine: Engine,
    pub(crate) container: Box<Container>,
    pub(crate) image: Image,
    pub(crate) dirs: SessionDirs,
    pub(crate) ticket: Ticket,
    /// The checked paths of the host that the container is given.
    pub(crate) paths: CheckedPaths,
    /// The kept container of an earlier run, where this one continues in it.
    pub(crate) kept: Option<Found>,
    argv: Vec<Text>,
    env: Vec<(Text, Text)>,
    /// Variables that the engine's own client would give a container; the command's own override them.
    client_variables: Vec<(Text, Text)>,
}

impl SessionStart {
    /// Checks the spec, and that the engine answers and has the image. Creates nothing.
    pub(crate) async fn new(containers: Arc<Containers>, launch: Launch) -> Result<Self> {
        let name = containers.options.flavour.name();
        let Some(container) = launch.spec.container.clone() else {
            return Err(
                Failure::new(Code::Invalid, format!("{name} needs an image")).hint("name one with --image")
            );
        };
        let engine = match earlier_engine(&launch) {
            Some(address) => containers.engine_named(Some(&address)).await?,
            None => containers.engine_of(container.engine.as_ref()).await?,
        };
        let labels = containers.owner()?.build_labels();
        let earlier = kept_container::find_earlier(&containers, &engine, &container, &launch).await?;
        let known = match &earlier {
            Some(found) => image::known(&engine, &found.image).await?,
            None => None,
        };
        let image = if let Some(image) = known {
            image
        } else {
            let looks = &containers.path_checks;
            image::ensure(&engine, &container, &labels, &Progress::default(), looks).await?
        };
        let caller = CallerVariables::of(container.engine.as_ref());
        let client_variables = caller.client_variables(engine.endpoint(), containers.options.flavour).await?;
        let mut spec = launch.spec;
        let argv = command_line::command_line(&container, &image, launch.argv);
        if container.image_command {
            spec.argv.clone_from(&argv);
        } else if let Some(entrypoint) = &container.entrypoint {
            spec.in_force.push(format!("{} before its command", entrypoint.lossy()));
        }
        if let Some(platform) = &container.platform {
            spec.in_force.push(format!("the platform {platform}"));
        }
        spec.inside = container.image_dir.then(|| image.dir.clone());
        if engine.is_remote() {
            spec.in_force.push(format!("the engine of another host, {}", engine.endpoint().address));
        }
        let remote = engine.is_remote();
        let (asked, name_of, mut pins) = (container.clone(), launch.name.clone(), spec.pins.clone());
        let (sockets, state) = (known_sockets(&engine, &container), containers.options.state.clone());
        let secrets = launch.home.join(wharf_model::Home::SECRETS);
        let check = move || {
            let withheld = Withheld { sockets: &sockets, state: &state, secrets: &secrets };
            let paths = CheckedPaths::of(&asked, &mut Pins::new(&name_of, &mut pins), &withheld, remote)?;
            Ok::<_, Failure>((paths, pins))
        };
        let paths;
        (paths, spec.pins) = containers.path_checks.look("what the container is given", check).await??;
        let ticket = Ticket {
            id: launch.id,
            name: launch.name,
            run: launch.run,
            backend: name.to_owned(),
            dir: Text::from(launch.home.as_path()),
            token: launch.token,
            created: launch.created,
            started: Millis(0),
            holder: None,
            command: None,
            scope: Scope::default(),
            spec,
            private: Some(TicketData::at(engine.endpoint(), None).text()),
        };
        let dirs = SessionDirs::of(&launch.home);
        Ok(Self {
            containers,
            engine,
            container,
            image,
            dirs,
            ticket,
            paths,
            kept: earlier,
            argv,
            env: launch.env,
            client_variables,
        })
    }

    /// Starts the session. After a failure nothing is left.
    pub(crate) async fn run(mut self) -> Result<(Ticket, Arc<dyn Connection>)> {
        if !self.ticket.spec.limits.is_none() && !self.engine.traits().await?.limits {
            let message = "an engine that runs as a user cannot enforce limits with cgroups of version 1";
            return Err(Failure::new(Code::LimitRefused, message)
                .hint("run without limits, or use an engine that runs as root"));
        }
        self.remove_earlier_container().await?;
        match self.create_and_start().await {
            Ok(connection) => Ok((self.ticket, connection)),
            Err(failure) => {
                let failure = self.with_cause(failure).await;
                self.undo().await;
                Err(failure)
            }
        }
    }

    async fn create_and_start(&mut self) -> Result<Arc<dyn Connection>> {
        if self.container.reuse {
            return Box::pin(self.start_shared()).await;
        }
        if self.engine.is_remote() {
            return Box::pin(self.start_remote()).await;
        }
        let (user, other_user) = self.user().await?;
        self.warn_of_root(&user).await?;
        let (dirs, run) = (self.dirs.clone(), self.ticket.run);
        // Removing what an earlier run left may take long.
        off_thread(move || dirs.create(run, other_user)).await??;
        let handshake = HolderHandshake::listen(self.ticket.dir.as_path(), other_user)?;
        let listener = EventsListener::open(self.ticket.dir.as_path());
        let listener =
            listener.map_err(|error| Failure::system("cannot listen in the session's room", &error))?;
        self.dirs.write_ticket(&self.ticket)?;
        let id = self.create_container(user, other_user).await?;
        self.record_made(&id)?;
        self.engine.start(&id).await?;
        let died = |code: Option<i64>| {
            let how = code.map_or_else(|| "is gone".to_owned(), |code| format!("ended with code {code}"));
            Failure::new(Code::Internal, format!("the container {how} before its holder was heard of"))
        };
        let late = || Failure::new(Code::Timeout, "the holder in the container did not call in time");
        let called = tokio::time::timeout(HOLDER_START_TIMEOUT, async {
            tokio::select! {
                biased;
                called = handshake.accept_holder(ExpectedCaller::First) => called.map_err(|error| Failure::system("cannot hear the holder", &error)),
                code = self.engine.ended(&id) => Err(died(code)),
            }
        });
        let (stream, holder) = called.await.map_err(|_| late())??;
        let frame = self.start_request().await?;
        let connection = self.start_command(stream, holder, &frame, ScopeKind::Namespace).await?;
        self.containers.listen(listener, &self.ticket, &connection);
        Ok(connection)
    }

    /// Hands the holder its start request, and writes the answer into the ticket.
    pub(crate) async fn start_command(
        &mut self,
        stream: UnixStream,
        holder: Option<ProcessIdentity>,
        frame: &[u8],
        kind: ScopeKind,
    ) -> Result<Arc<dyn Connection>> {
        let begun = tokio::time::timeout(HOLDER_START_TIMEOUT, held::begin(&stream, frame)).await;
        let (started, descriptors) = begun
            .map_err(|_| Failure::new(Code::Timeout, "the holder did not start the command in time"))??;
        // From now on the command could take the holder over: accept no more descriptors.
        take_descriptors(&stream, false);
        self.ticket.holder = holder;
        self.ticket.command = holder_handshake::command_identity(&started, &descriptors);
        self.ticket.started = started.started;
        self.ticket.scope = Scope { kind, dirs: Vec::new() };
        self.dirs.write_ticket(&self.ticket)?;
        let pid = self.ticket.command.as_ref().map_or(started.command.pid, |command| command.pid);
        let first = held::first_status(pid, self.ticket.spec.size, None);
        Ok(held::connect(&self.containers.tasks, self.ticket.dir.as_path().to_owned(), stream, first))
    }

    /// The command's user, and whether that is another user than we are.
    pub(crate) async fn user(&self) -> Result<(String, bool)> {
        let own = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
        let own = if self.engine.traits().await?.rootless {
            "0:0".to_owned()
        } else {
            format!("{}:{}", own.0, own.1)
        };
        match &self.container.user {
            Some(user) => Ok((user.clone(), *user != own)),
            None => Ok((own, false)),
        }
    }

    /// Notes in the ticket where the command is root only because the caller is.
    pub(crate) async fn warn_of_root(&mut self, user: &str) -> Result<()> {
        let unasked = self.container.user.is_none() && user.starts_with("0:");
        if unasked && !self.engine.traits().await?.rootless {
            self.ticket.spec.weakened.push("root inside, because the caller is root".to_owned());
        }
        Ok(())
    }

    /// Removes the container of an earlier run; refuses if a first run finds one running.
    async fn remove_earlier_container(&self) -> Result<()> {
        self.containers.forget_failed_start(&self.ticket.id);
        let name = container_name(&self.ticket.id);
        let Some(left) = self.engine.container(&name).await? else { return Ok(()) };
        if !self.containers.owner()?.owns(&left, &self.ticket.id) {
            return Err(Failure::new(Code::NameTaken, format!("somebody else has a container {name}")));
        }
        if self.kept.is_some() {
            return kept_container::ensure_stopped(&self.engine, &left).await;
        }
        if left.state.running && self.ticket.run <= 1 {
            return Err(Failure::new(Code::Running, format!("container {name} runs already")));
        }
        self.engine.remove(&name).await
    }

    /// Creates the container, or reuses a kept one. Returns its id.
    pub(crate) async fn create_container(&mut self, user: String, other_user: bool) -> Result<String> {
        let options = &self.containers.options;
        let holder = options.holder.canonicalize().map_err(|error| {
            Failure::system(format!("cannot find the holder {}", options.holder.display()), &error)
        })?;
        let remote = self.engine.is_remote();
        let mounts = if remote {
            mounts::remote(&self.container)?
        } else {
            self.paths.create_dirs(self.dirs.home(), self.ticket.run).await?;
            let parts = self.repository_parts(self.dirs.home()).await?;
            mounts::all(&holder, &self.dirs, &self.container, &self.paths, parts, &options.state)?
        };
        self.ticket.spec.mounts = mounts::shown(&mounts, &self.image.volumes);
        if let Some(kept) = &self.kept {
            return Ok(kept.id.clone());
        }
        let plan = CreatePlan {
            ticket: &self.ticket,
            container: &self.container,
            image: self.image.id.clone(),
            labels: self.containers.owner()?.labels(&self.ticket),
            mounts: mounts.into_iter().map(|made| made.mount).collect(),
            user,
            other_user,
            remote,
            handshake_socket: holder_handshake::SOCKET,
        };
        Box::pin(self.create_within_limits(&container_name(&self.ticket.id), plan.create_body()?)).await
    }

    /// Has the engine create a container. If the engine cannot enforce a requested limit, the start fails.
    pub(crate) async fn create_within_limits(&self, name: &str, body: ContainerCreateBody) -> Result<String> {
        let made = self.engine.create(name, self.container.platform.as_deref(), body).await?;
        match made.limit_left_out.filter(|_| !self.ticket.spec.limits.is_none()) {
            Some(warning) => Err(Failure::new(Code::LimitRefused, format!("the engine says: {warning}"))
                .hint("run without it, or give the engine's host cgroups with that controller")),
            None => Ok(made.id),
        }
    }

    pub(crate) async fn start_request(&self) -> Result<Vec<u8>> {
        self.start_request_in(mounts::ROOM, self.dirs.home()).await
    }

    /// The mounts of work trees. Their repositories are looked at beside the daemon's thread.
    pub(crate) async fn repository_parts(&self, home: &Path) -> Result<Vec<Part>> {
        let (paths, home) = (self.paths.clone(), home.to_owned());
        let looks = &self.containers.path_checks;
        looks.look("the repository of a work tree", move || paths.repository_parts(&home)).await?
    }

    /// The start request for the holder in a room. `home` has what was made for the container's mounts.
    pub(crate) async fn start_request_in(&self, room: &str, home: &Path) -> Result<Vec<u8>> {
        let dir =
            if self.container.image_dir { self.image.dir.clone() } else { self.ticket.spec.dir.clone() };
        // A path may have changed between its check and its mount.
        let expected = if self.engine.is_remote() {
            Vec::new()
        } else {
            self.paths.all_expected(&self.repository_parts(home).await?)
        };
        let start = Start {
            home: room.into(),
            dir,
            // The engine enforces them.
            limits: Limits::default(),
            place_home: self.container.image_variables && !self.is_unset("HOME"),
            // A log that shares no file with the holder's is sent from its end on.
            follow: self.engine.is_remote().then(|| self.log_end()).transpose()?,
            expected,
            ..held::start_of(&self.ticket, None)
        };
        let start = if start.follow.is_some() { self.keep_unseen_output(start) } else { start };
        // The ticket stays on this side. The holder's copy has the id alone, for people who look into the room.
        let given = format!(r#"{{"id":"{}"}}"#, self.ticket.id);
        held::start_frame(&start, given.as_bytes(), &self.argv, &self.variables(room))
    }

    /// The command's variables: those of the spec, over the image's and the client's where these are wanted too.
    fn variables(&self, room: &str) -> Vec<(Text, Text)> {
        let mut env = self.env.clone();
        events_listener::set_events_path(&mut env, Some(room).filter(|_| !self.engine.is_remote()));
        if self.container.reuse {
            shared_container::rewrite_prompt_path(&mut env, room);
        }
        if self.container.image_variables {
            let usual = [(Text::from("PATH"), Text::from(PATH))];
            for (name, value) in self.client_variables.iter().chain(&self.image.env).chain(&usual) {
                if !env.iter().any(|(asked, _)| asked == name) && !self.is_unset(&name.lossy()) {
                    env.push((name.clone(), value.clone()));
                }
            }
        }
        env
    }

    fn is_unset(&self, name: &str) -> bool {
        self.ticket.spec.env.changes.contains(&Change::Unset(name.into()))
    }

    /// Writes into the ticket which container was made.
    pub(crate) fn record_made(&mut self, id: &str) -> Result<()> {
        let endpoint = self.engine.endpoint();
        self.ticket.private = Some(TicketData::at(endpoint, Some(id.to_owned())).text());
        self.ticket.spec.made = Some(Box::new(MadeContainer {
            id: id.to_owned(),
            name: container_name(&self.ticket.id),
            engine: endpoint.address.clone(),
            kept: self.container.keep,
        }));
        self.dirs.write_ticket(&self.ticket)
    }

    /// Adds the cause that only image and engine together reveal: another architecture.
    async fn with_cause(&self, failure: Failure) -> Failure {
        if !image::may_be_foreign(&failure) {
            return failure;
        }
        let Ok(engine) = self.engine.platform().await else { return failure };
        match image::foreign(&self.image.platform, &engine) {
            Some(hint) => failure.hint(hint),
            None => failure,
        }
    }

    async fn undo(&self) {
        if self.container.reuse {
            return self.undo_shared().await;
        }
        let undone = match &self.kept {
            // It existed before: leave it stopped, as it was found.
            Some(kept) => self.engine.kill(&kept.id).await,
            None => self.containers.take_back(&self.engine, &self.ticket.id).await.map(drop),
        };
        if let Err(failure) = undone {
            tracing::warn!(session = %self.ticket.id, %failure, "a failed start may have left its container");
            if self.kept.is_none() {
                self.containers.remove_when_reachable(self.engine.endpoint(), &self.ticket.id);
            }
        }
        let (dirs, run) = (self.dirs.clone(), self.ticket.run);
        let _ = off_thread(move || dirs.remove_after_failed_start(run)).await;
    }
}

/// The sockets of this engine, and of those that the caller's variables name: no container gets one.
fn known_sockets(engine: &Engine, container: &Container) -> Vec<PathBuf> {
    let said = |name: &str| {
        let text = container.engine.as_ref()?.get(name)?.into_string().ok()?;
        text.strip_prefix("unix://").map(PathBuf::from)
    };
    let own = engine.endpoint().socket().map(Path::to_owned);
    own.into_iter().chain(said("DOCKER_HOST")).chain(said("CONTAINER_HOST")).collect()
}

/// The engine of the session's earlier run: the next run uses the same one, whatever the default is now.
fn earlier_engine(launch: &Launch) -> Option<String> {
    if launch.run <= 1 {
        return None;
    }
    let ticket = held::read_ticket(&launch.home).ok().filter(|ticket| ticket.id == launch.id)?;
    TicketData::of(&ticket).endpoint
}

/// Runs work on a blocking thread that may take as long as a container makes it.
pub(crate) async fn off_thread<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T> {
    let broken = |error: tokio::task::JoinError| Failure::new(Code::Internal, error.to_string());
    tokio::task::spawn_blocking(work).await.map_err(broken)
}

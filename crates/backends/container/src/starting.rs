//! A start: rooms, container, the first word with its holder. What fails takes all of it back.

use std::sync::Arc;
use std::time::Duration;

use bollard::models::ContainerCreateBody;
use tokio::net::UnixStream;
use wharf_backend::{Connection, Launch, Progress, Result};
use wharf_holder::wire::Start;
use wharf_local::held;
use wharf_model::{
    Change, Code, Container, Failure, Limits, Millis, ProcessIdentity, Scope, ScopeKind, Text, Ticket,
};

use crate::berth;
use crate::birth::{self, Birth};
use crate::body::Plan;
use crate::body::mounts::{self, Kept};
use crate::ear::{self, Ear};
use crate::engine::Engine;
use crate::image::{self, Image};
use crate::owner::container_name;
use crate::place::Place;
use crate::private::Private;
use crate::rooms::Rooms;

/// How long a holder may take to call, and to start a command: a loaded machine is waited for, but not for ever.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// Where programs are in an image that does not say so: what engines assume.
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// One start under way.
pub(crate) struct Starting {
    pub(crate) place: Arc<Place>,
    pub(crate) engine: Engine,
    pub(crate) container: Box<Container>,
    pub(crate) image: Image,
    pub(crate) rooms: Rooms,
    pub(crate) ticket: Ticket,
    argv: Vec<Text>,
    env: Vec<(Text, Text)>,
}

impl Starting {
    /// Sees that the engine answers and has the image. Nothing is made yet.
    pub(crate) async fn new(place: Arc<Place>, launch: Launch) -> Result<Self> {
        let name = place.options.flavour.name();
        let Some(container) = launch.spec.container.clone() else {
            return Err(
                Failure::new(Code::Invalid, format!("{name} needs an image")).hint("name one with --image")
            );
        };
        let engine = place.engine().await?;
        let labels = place.owner()?.build_labels();
        let image = image::ensure(&engine, &container, &labels, &Progress::default()).await?;
        let mut spec = launch.spec;
        spec.inside = container.image_dir.then(|| image.dir.clone());
        if engine.line().is_some() {
            spec.in_force.push(format!("the engine of another host, {}", engine.endpoint().address));
        }
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
            private: Some(Private::at(engine.endpoint(), None).text()),
        };
        let rooms = Rooms::of(&launch.home);
        Ok(Self { place, engine, container, image, rooms, ticket, argv: launch.argv, env: launch.env })
    }

    /// Starts it. After a failure nothing is left.
    pub(crate) async fn run(mut self) -> Result<(Ticket, Arc<dyn Connection>)> {
        if !self.ticket.spec.limits.is_none() && !self.engine.nature().await?.limits {
            let message = "an engine that runs as a user cannot enforce limits with cgroups of version 1";
            return Err(Failure::new(Code::LimitRefused, message)
                .hint("run without limits, or use an engine that runs as root"));
        }
        self.make_way().await?;
        match self.begin().await {
            Ok(connection) => Ok((self.ticket, connection)),
            Err(failure) => {
                self.undo().await;
                Err(failure)
            }
        }
    }

    async fn begin(&mut self) -> Result<Arc<dyn Connection>> {
        if self.container.reuse {
            return Box::pin(self.begin_berth()).await;
        }
        if self.engine.line().is_some() {
            return Box::pin(self.begin_far()).await;
        }
        let (user, shared) = self.user().await?;
        self.rooms.furnish(self.ticket.run, shared)?;
        let birth = Birth::expect(&self.rooms.room(), shared)?;
        let ear = Ear::open(self.ticket.dir.as_path(), &self.rooms.room());
        let ear = ear.map_err(|error| Failure::system("cannot listen in the session's room", &error))?;
        self.rooms.write_ticket(&self.ticket)?;
        let id = self.make(user, shared).await?;
        self.ticket.private = Some(Private::at(self.engine.endpoint(), Some(id.clone())).text());
        self.rooms.write_ticket(&self.ticket)?;
        self.engine.start(&id).await?;
        let died = |code: Option<i64>| {
            let how = code.map_or_else(|| "is gone".to_owned(), |code| format!("ended with code {code}"));
            Failure::new(Code::Internal, format!("the container {how} before its holder was heard of"))
        };
        let late = || Failure::new(Code::Timeout, "the holder in the container did not call in time");
        let called = tokio::time::timeout(PATIENCE, async {
            tokio::select! {
                biased;
                called = birth.call() => called.map_err(|error| Failure::system("cannot hear the holder", &error)),
                code = self.engine.ended(&id) => Err(died(code)),
            }
        });
        let (stream, holder) = called.await.map_err(|_| late())??;
        let frame = self.frame()?;
        let connection = self.speak(stream, holder, &frame, ScopeKind::Namespace).await?;
        self.place.listen(ear, &self.ticket, &connection);
        Ok(connection)
    }

    /// The first word with a holder: it starts the command, and the ticket is signed.
    pub(crate) async fn speak(
        &mut self,
        stream: UnixStream,
        holder: Option<ProcessIdentity>,
        frame: &[u8],
        kind: ScopeKind,
    ) -> Result<Arc<dyn Connection>> {
        let begun = tokio::time::timeout(PATIENCE, held::begin(&stream, frame)).await;
        let (started, descriptors) = begun
            .map_err(|_| Failure::new(Code::Timeout, "the holder did not start the command in time"))??;
        self.ticket.holder = holder;
        self.ticket.command = birth::command(&started, &descriptors);
        self.ticket.started = started.started;
        self.ticket.scope = Scope { kind, dirs: Vec::new() };
        self.rooms.write_ticket(&self.ticket)?;
        let pid = self.ticket.command.as_ref().map_or(started.command.pid, |command| command.pid);
        let first = held::first_status(pid, self.ticket.spec.size, None);
        Ok(held::connect(self.ticket.dir.as_path().to_owned(), stream, first))
    }

    /// Who the command is, and whether that is somebody else than we are.
    pub(crate) async fn user(&self) -> Result<(String, bool)> {
        let own = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
        let own = if self.engine.nature().await?.rootless {
            "0:0".to_owned()
        } else {
            format!("{}:{}", own.0, own.1)
        };
        match &self.container.user {
            Some(user) => Ok((user.clone(), *user != own)),
            None => Ok((own, false)),
        }
    }

    /// Takes away what an earlier run of the session left; one that still runs is not ours to end here.
    async fn make_way(&self) -> Result<()> {
        let name = container_name(&self.ticket.id);
        let Some(left) = self.engine.container(&name).await? else { return Ok(()) };
        if !self.place.owner()?.owns(&left, &self.ticket.id) {
            return Err(Failure::new(Code::NameTaken, format!("somebody else has a container {name}")));
        }
        if left.state.running && self.ticket.run <= 1 {
            return Err(Failure::new(Code::Running, format!("container {name} runs already")));
        }
        self.engine.remove(&name).await
    }

    /// Makes the container.
    pub(crate) async fn make(&self, user: String, shared: bool) -> Result<String> {
        let options = &self.place.options;
        let holder = options.holder.canonicalize().map_err(|error| {
            Failure::system(format!("cannot find the holder {}", options.holder.display()), &error)
        })?;
        let kept = Kept { socket: self.engine.endpoint().socket(), state: &options.state };
        let far = self.engine.line().is_some();
        let mounts = if far {
            mounts::far(&self.container)?
        } else {
            mounts::all(&holder, &self.rooms, &self.container, &kept)?
        };
        let plan = Plan {
            ticket: &self.ticket,
            container: &self.container,
            image: self.image.id.clone(),
            labels: self.place.owner()?.labels(&self.ticket),
            mounts,
            user,
            shared,
            far,
            birth: birth::SOCKET,
        };
        Box::pin(self.create(&container_name(&self.ticket.id), plan.body()?)).await
    }

    /// Has the engine make a container. A limit that is not in force is a limit refused.
    pub(crate) async fn create(&self, name: &str, body: ContainerCreateBody) -> Result<String> {
        let (id, warnings) = self.engine.create(name, body).await?;
        let limit = warnings.iter().find(|warning| warning.contains("limit"));
        match limit.filter(|_| !self.ticket.spec.limits.is_none()) {
            Some(warning) => {
                Err(Failure::new(Code::LimitRefused, format!("the engine says: {}", warning.trim()))
                    .hint("run without it, or give the engine's host cgroups with that controller"))
            }
            None => Ok(id),
        }
    }

    pub(crate) fn frame(&self) -> Result<Vec<u8>> {
        self.frame_in(mounts::ROOM)
    }

    /// What the holder in a room is told to start.
    pub(crate) fn frame_in(&self, room: &str) -> Result<Vec<u8>> {
        let dir =
            if self.container.image_dir { self.image.dir.clone() } else { self.ticket.spec.dir.clone() };
        let start = Start {
            home: room.into(),
            dir,
            // The engine sees to them.
            limits: Limits::default(),
            // Whoever has no file of it is told from the first byte on.
            follow: self.engine.line().map(|_| self.log_end()).transpose()?,
            ..held::start_of(&self.ticket, None)
        };
        let start = if start.follow.is_some() { self.apart(start) } else { start };
        // The ticket stays on this side. The holder keeps a name, for whoever looks into the room.
        let given = format!(r#"{{"id":"{}"}}"#, self.ticket.id);
        held::start_frame(&start, given.as_bytes(), &self.argv, &self.variables(room))
    }

    /// The command's variables: exactly those that were asked for, over the image's where these were asked for too.
    fn variables(&self, room: &str) -> Vec<(Text, Text)> {
        let mut env = self.env.clone();
        ear::aim(&mut env, Some(room).filter(|_| self.engine.line().is_none()));
        if self.container.reuse {
            berth::aim(&mut env, room);
        }
        if self.container.image_variables {
            let unset = |name| {
                self.ticket.spec.env.changes.iter().any(|change| *change == Change::Unset(Text::clone(name)))
            };
            let usual = [(Text::from("PATH"), Text::from(PATH)), ("HOME".into(), "/".into())];
            for (name, value) in self.image.env.iter().chain(&usual) {
                if !env.iter().any(|(asked, _)| asked == name) && !unset(name) {
                    env.push((name.clone(), value.clone()));
                }
            }
        }
        env
    }

    async fn undo(&self) {
        if self.container.reuse {
            return self.undo_berth().await;
        }
        let name = container_name(&self.ticket.id);
        let ours = match self.engine.container(&name).await {
            Ok(Some(found)) => {
                let owner = self.place.owner();
                owner.is_ok_and(|owner| owner.owns(&found, &self.ticket.id))
            }
            Ok(None) => false,
            Err(failure) => {
                tracing::warn!(container = name, %failure, "a failed start may have left its container");
                false
            }
        };
        if ours && let Err(failure) = self.engine.remove(&name).await {
            tracing::warn!(container = name, %failure, "a failed start left its container");
        }
        self.rooms.clear(self.ticket.run);
    }
}

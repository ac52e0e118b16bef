//! The backend of Docker or Podman: starts, adopts, lists and sweeps sessions in containers.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::{oneshot, watch};
use wharf_backend::{
    Adoption, Backend, Connection, Files, Freezer, Keeper, Launch, Library, Probe, Publisher, Result, Status,
};
use wharf_holder_client::session as held;
use wharf_model::{Capabilities, Code, EngineVariables, Failure, Home, Spec, Ticket};

use crate::containers::Containers;
use crate::engine::endpoint::{Endpoint, Flavour};
use crate::events_listener::EventsListener;
use crate::guest::Guests;
use crate::remote::ProxyLock;
use crate::session_dirs::SessionDirs;
use crate::session_start::SessionStart;
use crate::ticket_data::{TicketData, is_kept};

/// How long a holder may take to greet.
const GREETING_TIMEOUT: Duration = Duration::from_secs(2);

/// Which engine, where, and with which holder.
#[derive(Debug, Clone)]
pub struct Options {
    /// Which engine.
    pub flavour: Flavour,
    /// Where it listens; what its own command line would use when absent.
    pub endpoint: Option<Endpoint>,
    /// The program `wharf-holder`: static, since it runs in any image.
    pub holder: PathBuf,
    /// The instance's directory.
    pub state: PathBuf,
    /// The directory that has one directory a session.
    pub sessions: PathBuf,
    /// The program that leads to engines on other hosts.
    pub ssh: PathBuf,
}

impl Options {
    /// An engine as its own command line would find it, and an instance's own sessions.
    pub fn new(flavour: Flavour, home: &Home) -> Self {
        Self {
            flavour,
            endpoint: None,
            holder: held::holder_program(),
            state: home.state().to_owned(),
            sessions: home.sessions(),
            ssh: "ssh".into(),
        }
    }
}

/// Sessions in containers.
pub struct ContainerBackend {
    containers: Arc<Containers>,
    guests: Guests,
}

impl ContainerBackend {
    /// The backend. No engine is asked before a session needs it.
    pub fn new(options: Options) -> Self {
        let containers = Arc::new(Containers::new(options));
        Self { guests: Guests::new(Arc::clone(&containers)), containers }
    }

    /// Removes the container once its session is over, whoever ended it. Until then the engine is only watched for
    /// pauses.
    fn remove_when_over(&self, ticket: &Ticket, mut status: watch::Receiver<Status>) {
        let (containers, ticket) = (Arc::clone(&self.containers), ticket.clone());
        let endpoint = TicketData::of(&ticket).endpoint;
        let subscription = endpoint.map(|address| {
            containers.pause_events.watch(&containers, Endpoint::named(address, "the session's ticket"))
        });
        let tasks = self.containers.tasks.clone();
        self.containers.tasks.spawn(async move {
            let over = status.wait_for(|status| status.exit.is_some() || status.broken).await;
            drop(subscription);
            if !over.is_ok_and(|status| status.exit.is_some()) {
                return;
            }
            // Read the record that the container wrote now, once.
            let _ = SessionDirs::of(ticket.dir.as_path()).exit_record(ticket.run);
            if !is_kept(&ticket) {
                tasks.spawn_work(async move { containers.remove_with_retries(&ticket).await });
            }
        });
    }

    /// What became of a session whose holder is silent. Removes the container if it is over.
    async fn end_of_silent(&self, ticket: &Ticket, why: &str) -> Result<Adoption> {
        let found = self.containers.ask_engine(ticket, why).await?;
        if matches!(found, Adoption::Ended(_) | Adoption::Lost) {
            self.containers.remove_in_background(ticket);
        }
        Ok(found)
    }
}

impl ContainerBackend {
    /// Removes the container of a session on another host that ended while nobody was connected. Afterwards the
    /// proxy's lock is gone, and that engine is not asked again.
    fn remove_ended_remote(&self, ticket: &Ticket) {
        if TicketData::of(ticket).is_remote() && ticket.dir.as_path().join(ProxyLock::NAME).exists() {
            let (containers, ticket) = (Arc::clone(&self.containers), ticket.clone());
            let removed = async move { containers.remove_with_retries(&ticket).await };
            self.containers.tasks.spawn_work(removed);
        }
    }
}

impl ContainerBackend {
    /// Whether the engine that a caller means can be used.
    async fn probe_engine(&self, caller: Option<&EngineVariables>) -> Probe {
        let unavailable = |failure: Failure| Probe {
            available: false,
            version: None,
            detail: failure.message,
            hint: failure.hint,
        };
        let holder = &self.containers.options.holder;
        if !holder.is_file() {
            let message = format!("the holder {} is not there", holder.display());
            let hint = "install wharf-holder beside wharf, or name it by WHARF_HOLDER";
            return unavailable(Failure::new(Code::Unavailable, message).hint(hint));
        }
        let asked = async {
            let engine = self.containers.engine_of(caller).await?;
            let version = engine.version().await?;
            Ok::<_, Failure>((engine, version))
        };
        match asked.await {
            Ok((engine, (version, api))) => Probe {
                available: true,
                version: Some(version),
                detail: format!("API {api} at {}", engine.endpoint()),
                hint: None,
            },
            Err(failure) => unavailable(failure),
        }
    }
}

#[async_trait]
impl Backend for ContainerBackend {
    fn name(&self) -> &'static str {
        self.containers.options.flavour.name()
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
            limits: true,
            copy: true,
            pause: true,
            images: true,
            guests: true,
            answers: false,
            isolation: true,
        }
    }

    async fn probe(&self) -> Probe {
        self.probe_engine(None).await
    }

    async fn probe_for(&self, spec: &Spec) -> Probe {
        self.probe_engine(spec.container.as_ref().and_then(|container| container.engine.as_ref())).await
    }

    async fn start(&self, launch: Launch) -> Result<(Ticket, Arc<dyn Connection>)> {
        if let Some(what) = launch.spec.adopt.clone() {
            return self.guests.take_in(launch, &what).await;
        }
        let (mut tell, told) = oneshot::channel();
        let containers = Arc::clone(&self.containers);
        // In a task of its own, so that a caller that gives up leaves nothing half made.
        self.containers.tasks.spawn_work(async move {
            let start = Box::pin(SessionStart::new(Arc::clone(&containers), launch));
            let start = tokio::select! {
                biased;
                // Nothing is made yet: this ends the pull or the build of its image.
                () = tell.closed() => return,
                start = start => start,
            };
            let started = match start {
                Ok(start) => Box::pin(start.run()).await,
                Err(failure) => Err(failure),
            };
            if let Err(Ok((ticket, _))) = tell.send(started) {
                containers.discard(&ticket).await;
            }
        });
        let gone = |_| Failure::new(Code::Internal, "the start was broken off");
        let (ticket, connection) = told.await.map_err(gone)??;
        self.remove_when_over(&ticket, connection.status());
        Ok((ticket, connection))
    }

    async fn adopt(&self, ticket: &Ticket) -> Result<Adoption> {
        if ticket.spec.adopt.is_some() {
            return self.guests.adopt(ticket).await;
        }
        let home = ticket.dir.as_path();
        let found = held::read_ticket(home).ok();
        let ticket = &found
            .filter(|found| found.id == ticket.id && found.run >= ticket.run)
            .unwrap_or_else(|| ticket.clone());
        if let Some(record) = SessionDirs::of(home).exit_record(ticket.run) {
            if TicketData::of(ticket).shared.is_some() {
                // Its room is still in the shared container, where nobody saw its end.
                let (containers, ticket) = (Arc::clone(&self.containers), ticket.clone());
                let left = async move {
                    if let Err(failure) = containers.leave_shared(&ticket).await {
                        tracing::debug!(session = %ticket.id, %failure, "its room is left for now");
                    }
                };
                self.containers.tasks.spawn_work(left);
            }
            self.remove_ended_remote(ticket);
            return Ok(Adoption::Ended(record));
        }
        if TicketData::of(ticket).is_remote() {
            let found = self.containers.adopt_remote(ticket).await?;
            match &found {
                Adoption::Alive(connection) => self.remove_when_over(ticket, connection.status()),
                _ => self.remove_ended_remote(ticket),
            }
            return Ok(found);
        }
        // Ask the holder before the engine: an engine that hangs or is gone ends no session.
        match self.containers.wait_for_greeting(ticket, held::find(home), GREETING_TIMEOUT).await {
            Ok(Ok((stream, welcome))) => {
                let pid = ticket.command.as_ref().map_or(0, |command| command.pid);
                let first = held::first_status(pid, ticket.spec.size, Some(&welcome));
                let connection = held::connect(&self.containers.tasks, home.to_owned(), stream, first);
                self.remove_when_over(ticket, connection.status());
                match EventsListener::open(home) {
                    Ok(listener) => self.containers.listen(listener, ticket, &connection),
                    Err(error) => tracing::warn!(session = %ticket.id, %error, "its container is not heard"),
                }
                Ok(Adoption::Alive(connection))
            }
            Ok(Err(error)) => self.end_of_silent(ticket, &error.to_string()).await,
            Err(_) => self.end_of_silent(ticket, "it does not answer").await,
        }
    }

    async fn list(&self) -> Result<Vec<Ticket>> {
        let (sessions, name) = (self.containers.options.sessions.clone(), self.name());
        let read = move || -> io::Result<Vec<Ticket>> {
            let entries = match std::fs::read_dir(&sessions) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
                entries => entries?,
            };
            let tickets = entries.filter_map(|entry| held::read_ticket(&entry.ok()?.path()).ok());
            Ok(tickets.filter(|ticket| ticket.backend == name).collect())
        };
        let tickets = tokio::task::spawn_blocking(read).await;
        let tickets = tickets.map_err(|error| Failure::new(Code::Internal, error.to_string()))?;
        let tickets = tickets.map_err(|error| Failure::system("cannot list sessions", &error))?;
        self.containers.remove_ended_once(&tickets);
        let lost = self.containers.lost_tickets().await?;
        Ok(tickets.into_iter().chain(lost).collect())
    }

    async fn sweep(&self, ticket: &Ticket) -> Result<u32> {
        if ticket.spec.adopt.is_some() {
            return self.guests.sweep(ticket).await;
        }
        if TicketData::of(ticket).shared.is_some() {
            // Other sessions run in the same container: end this one's processes one by one.
            let ended = self.guests.sweep(ticket).await?;
            return self.containers.remove(ticket).await.map(|()| ended);
        }
        if is_kept(ticket) {
            return self.containers.stop_kept_container(ticket).await.map(|()| 0);
        }
        // Nothing outlives its container, so there is nothing to end one by one.
        self.containers.remove(ticket).await.map(|()| 0)
    }

    async fn strays(&self, ticket: &Ticket) -> Result<Vec<i32>> {
        if ticket.spec.adopt.is_some() || TicketData::of(ticket).shared.is_some() {
            return self.guests.strays(ticket).await;
        }
        // Nothing of it outlives its container, which is told of by itself.
        Ok(Vec::new())
    }

    async fn kill(&self, ticket: &Ticket) -> Result<()> {
        if ticket.spec.adopt.is_some() || TicketData::of(ticket).shared.is_some() {
            return self.guests.kill(ticket).await;
        }
        let (engine, found) = self.containers.find(ticket).await?;
        match found {
            Some(container) if container.state.running => engine.kill(&container.id).await,
            _ => Ok(()),
        }
    }

    fn files(&self) -> Option<&dyn Files> {
        Some(&*self.containers)
    }

    fn freezer(&self) -> Option<&dyn Freezer> {
        Some(&*self.containers)
    }

    fn library(&self) -> Option<&dyn Library> {
        Some(&*self.containers)
    }

    fn keeper(&self) -> Option<&dyn Keeper> {
        Some(&*self.containers)
    }

    fn publisher(&self) -> Option<&dyn Publisher> {
        Some(&*self.containers)
    }

    /// Ends the connections to holders, of containers and of guests. The containers and their sessions run on.
    async fn close(&self) {
        tokio::join!(self.containers.close(), self.guests.close());
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use tokio::runtime::Handle;
    use tokio::sync::Notify;
    use tokio::time::Instant;
    use wharf_model::Container;

    use super::*;
    use crate::engine::fake::{Answer, FakeEngine};
    use crate::ticket_data::test_ticket;

    fn backend(served: &FakeEngine, dir: &Path) -> ContainerBackend {
        ContainerBackend::new(Options {
            flavour: Flavour::Docker,
            endpoint: Some(served.endpoint.clone()),
            holder: "/none".into(),
            state: dir.join("state"),
            sessions: dir.join("sessions"),
            ssh: "ssh".into(),
        })
    }

    #[tokio::test]
    async fn a_start_whose_caller_leaves_ends_the_fetch_of_its_image() {
        let (dir, asked) = (tempfile::tempdir().unwrap(), Arc::new(Notify::new()));
        let fetched = Arc::clone(&asked);
        let served = FakeEngine::serve(dir.path(), move |path| {
            if path.contains("/images/create") {
                fetched.notify_one();
                return Answer::Stalls(String::new());
            }
            match path {
                path if path.contains("/images/") => Answer::Whole(404, "{}".to_owned()),
                path if path.contains("/containers/") => Answer::Whole(200, "[]".to_owned()),
                _ => Answer::Usual,
            }
        });
        let backend = backend(&served, dir.path());
        let alive = || Handle::current().metrics().num_alive_tasks();
        let (before, ticket) = (alive(), test_ticket(&dir.path().join("sessions/one")));
        let mut spec = ticket.spec;
        spec.container = Some(Box::new(Container::of("any")));
        let launch = Launch {
            id: ticket.id,
            name: ticket.name,
            run: 1,
            home: ticket.dir.as_path().to_owned(),
            token: ticket.token,
            created: ticket.created,
            argv: spec.argv.clone(),
            env: Vec::new(),
            spec,
        };
        tokio::select! {
            started = backend.start(launch) => panic!("{:?}", started.err()),
            () = asked.notified() => {}
        }
        let deadline = Instant::now() + Duration::from_secs(20);
        while alive() > before {
            assert!(Instant::now() < deadline, "{} tasks are left", alive() - before);
            tokio::task::yield_now().await;
        }
    }

    #[tokio::test]
    async fn closing_leaves_no_task() {
        let dir = tempfile::tempdir().unwrap();
        // Silent about everything but itself: whatever is begun stays under way.
        let served = FakeEngine::serve(dir.path(), |path| match path {
            path if ["/json", "/events"].iter().any(|part| path.contains(part)) => {
                Answer::Stalls(String::new())
            }
            _ => Answer::Usual,
        });
        let (endpoint, backend) = (served.endpoint.clone(), backend(&served, dir.path()));
        let alive = || Handle::current().metrics().num_alive_tasks();
        let before = alive();
        let ticket = Ticket {
            private: Some(TicketData::at(&endpoint, None).text()),
            ..test_ticket(&dir.path().join("sessions/one"))
        };
        let containers = &backend.containers;
        containers.engine_at(&endpoint).await.unwrap();
        let (_status, receiver) = watch::channel(Status::default());
        backend.remove_when_over(&ticket, receiver);
        containers.remove_when_reachable(&endpoint, &ticket.id);
        containers.remove_in_background(&ticket);
        containers.remove_ended_once(std::slice::from_ref(&ticket));
        let deadline = Instant::now() + Duration::from_secs(20);
        while alive() < before + 7 {
            assert!(Instant::now() < deadline, "{} tasks", alive() - before);
            tokio::task::yield_now().await;
        }
        tokio::time::timeout(Duration::from_secs(20), backend.close()).await.expect("it closes");
        // The engine's own ends of the connections.
        while alive() > before {
            assert!(Instant::now() < deadline, "{} tasks are left", alive() - before);
            tokio::task::yield_now().await;
        }
    }
}

//! Holds what the engine's handles and tasks share: backends, store, registry, timeouts.

use std::collections::HashMap;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};
use std::time::SystemTime;

use tokio::sync::{Semaphore, broadcast};
use tokio::task::JoinSet;
use wharf_backend::{Backend, Beside, Environment};
use wharf_model::{Code, Failure, Home, Millis, Offset, Project, Session, Source, State, Ticket};
use wharf_store::{SessionRow, Store};

use crate::Result;
use crate::instance::config::{Naming, Order, Timeouts};
use crate::instance::engine::Change;
use crate::instance::ids::Ids;
use crate::instance::lock::Lock;
use crate::instance::registry::Registry;
use crate::instance::tasks::Tasks;
use crate::launch::login_shell::Login;
use crate::launch::ports::Ports;
use crate::observe::observed::Observed;
use crate::observe::output_watch::OutputWatch;
use crate::observe::profiles::{ProfileCache, profile_of};
use crate::output::read::log_end;
use crate::session::handle::Handle;

/// What the engine's handles and tasks share.
pub(crate) struct Shared {
    pub(crate) home: Home,
    pub(crate) backends: Vec<Arc<dyn Backend>>,
    pub(crate) default_backend: String,
    pub(crate) auto: Order,
    pub(crate) naming: Naming,
    pub(crate) environments: Vec<Arc<dyn Environment>>,
    pub(crate) timeouts: Timeouts,
    pub(crate) registry: Registry,
    pub(crate) store: Store,
    pub(crate) ids: Ids,
    pub(crate) output_watch: OutputWatch,
    pub(crate) profile_cache: ProfileCache,
    /// What an agent's hooks call, and its first arguments.
    pub(crate) hook_command: Option<Vec<String>>,
    /// The same in a container.
    pub(crate) inner_hook_command: Option<Vec<String>>,
    /// Whether somebody serves the events socket now.
    pub(crate) events_served: AtomicBool,
    pub(crate) ports: Ports,
    /// Reads files that may be on a disk that never answers.
    pub(crate) beside: Beside,
    pub(crate) login: Login,
    /// How many sessions each backend is asked for at once.
    pub(crate) adopting: HashMap<&'static str, Semaphore>,
    pub(crate) changes: broadcast::Sender<Change>,
    /// Every task of the engine. Whoever spawns spawns here.
    pub(crate) tasks: Tasks,
    pub(crate) lock: Mutex<Option<Lock>>,
}

impl Shared {
    pub(crate) fn backend(&self, name: &str) -> Result<&Arc<dyn Backend>> {
        self.backends.iter().find(|backend| backend.name() == name).ok_or_else(|| {
            let known: Vec<&str> = self.backends.iter().map(|backend| backend.name()).collect();
            Failure::new(Code::Invalid, format!("there is no backend {name:?}"))
                .hint(format!("there is: {}", known.join(", ")))
        })
    }

    /// Has every backend end its tasks. Each has the same time, all at once.
    pub(crate) async fn close_backends(&self) {
        let mut closing = JoinSet::new();
        for backend in &self.backends {
            let (backend, within) = (Arc::clone(backend), self.timeouts.call);
            closing.spawn(async move {
                if tokio::time::timeout(within, backend.close()).await.is_err() {
                    tracing::warn!(backend = backend.name(), "a backend's tasks did not end in time");
                }
            });
        }
        closing.join_all().await;
    }

    /// Changes what is known of a session, and tells those who follow.
    pub(crate) fn update(&self, handle: &Handle, change: impl FnOnce(&mut Session)) {
        if let Some(session) = handle.update(change) {
            // Nobody may be listening.
            let _ = self.changes.send(Change::Session(session));
        }
    }

    /// Queues what the store shall know of a session.
    pub(crate) fn remember(&self, handle: &Handle, attempts: u32) {
        let session = handle.session();
        self.store.put(row(&session, attempts));
    }

    /// A session as it is shown, from its ticket.
    pub(crate) fn describe(&self, ticket: &Ticket, state: State) -> Session {
        let spec = &ticket.spec;
        Session {
            id: ticket.id.clone(),
            name: ticket.name.clone(),
            group: spec.group.clone(),
            backend: ticket.backend.clone(),
            state,
            pid: None,
            dir: spec.runs_in().clone(),
            created: ticket.created,
            attached: 0,
            exit: None,
            argv: spec.argv.clone(),
            labels: spec.labels.clone(),
            tty: spec.tty,
            run: ticket.run,
            detail: None,
            since: now(),
            source: Source::Life,
            evidence: None,
            agent: spec.agent.as_ref().map(|agent| agent.name.clone()),
            conversation: spec.agent.as_ref().and_then(|agent| agent.id.clone()),
            path: self.home.session(&ticket.id).into(),
            ports: spec.ports.clone(),
            restart: spec.restart,
            limits: spec.limits,
            scope: ticket.scope.clone(),
            holder: ticket.holder.clone(),
            size: spec.size.sane(),
            isolation: self.isolation(ticket),
            copy_to: spec.copy_to.clone(),
            environment: spec.in_force.clone(),
            chosen: spec.chosen.clone(),
            guest: spec.adopt.as_ref().map(|what| format!("{}:{}", ticket.backend, what.lossy())),
            paused: false,
            suspended: false,
            mounts: spec.mounts.clone(),
            container: spec.made.clone(),
            pins: spec.pins.clone(),
            // What it changes is in the ticket; who looks at the session wants to know what counts.
            project: spec
                .project
                .as_ref()
                .map(|project| Box::new(Project { changes: String::new(), ..(**project).clone() })),
        }
    }

    /// What keeps a session from the host.
    pub(crate) fn isolation(&self, ticket: &Ticket) -> String {
        let isolated = self.backend(&ticket.backend).is_ok_and(|backend| backend.capabilities().isolation);
        isolation(ticket, isolated)
    }

    /// What observing a session and delivering to it needs, made where it is missing: output before now counts as processed.
    pub(crate) fn observed(&self, handle: &Handle) -> Arc<Observed> {
        let end = || log_end(&self.home.session(&handle.id).join(Home::LOG)).unwrap_or_default();
        Arc::clone(handle.observed_or(|| self.new_observed(handle, end())))
    }

    /// The same, for a session whose output was processed up to an offset.
    pub(crate) fn observed_from(&self, handle: &Handle, processed: Offset) -> Arc<Observed> {
        Arc::clone(handle.observed_or(|| self.new_observed(handle, processed)))
    }

    fn new_observed(&self, handle: &Handle, processed: Offset) -> Observed {
        let profile = profile_of(&self.home, &handle.ticket());
        Observed::new(self, handle, profile, processed)
    }

    /// Whether the engine is closing.
    pub(crate) fn is_closing(&self) -> bool {
        self.tasks.is_closing()
    }

    /// Resolves when the engine is closing.
    pub(crate) async fn closed(&self) {
        self.tasks.closing().await;
    }
}

/// What the store knows of a session.
pub(crate) fn row(session: &Session, attempts: u32) -> SessionRow {
    SessionRow {
        id: session.id.clone(),
        name: session.name.clone(),
        group: session.group.clone(),
        labels: session.labels.clone(),
        backend: session.backend.clone(),
        state: session.state,
        created: session.created,
        run: session.run,
        attempts,
        exit: session.exit.clone(),
    }
}

/// The ticket without what only a start needs. Those parts are on disk, and are read there when they are needed.
pub(crate) fn without_start_data(mut ticket: Ticket) -> Ticket {
    ticket.spec.env = wharf_model::Environment::default();
    ticket.spec.prompt = None;
    ticket.spec.motd = None;
    for secret in &mut ticket.spec.secrets {
        secret.value = None;
    }
    ticket
}

pub(crate) fn now() -> Millis {
    SystemTime::now().into()
}

/// Random bits, for ids, tokens and jitter.
pub(crate) fn random() -> Result<u64> {
    getrandom::u64().map_err(|error| Failure::new(Code::Internal, format!("no random numbers: {error}")))
}

/// What keeps a session from the host, and what of that was given up.
fn isolation(ticket: &Ticket, isolated: bool) -> String {
    if !isolated {
        return if ticket.spec.sandbox.is_some() { "sandbox" } else { "none" }.to_owned();
    }
    if ticket.spec.adopt.is_some() {
        return format!("{}, as somebody else started it", ticket.backend);
    }
    let mut weakened =
        ticket.spec.container.as_ref().map(|container| container.weakened()).unwrap_or_default();
    weakened.extend(ticket.spec.weakened.iter().cloned());
    match weakened.as_slice() {
        [] => ticket.backend.clone(),
        weakened => format!("{}, weakened by {}", ticket.backend, weakened.join(", ")),
    }
}

//! Defines what an engine is opened with: backends, environments and timeouts.

use std::sync::Arc;
use std::time::Duration;

use wharf_backend::{Backend, Environment};
use wharf_model::{Home, NameScope};

use crate::Result;

/// Says in which order backends are tried.
pub type Order = Arc<dyn Fn() -> Result<Vec<String>> + Send + Sync>;

/// Says what names are unique in.
pub type Naming = Arc<dyn Fn() -> Result<NameScope> + Send + Sync>;

/// What an engine is opened with. [`Config::new`] makes one, and its fields may be set after that.
#[derive(Clone)]
#[non_exhaustive]
pub struct Config {
    /// Where the instance lives.
    pub home: Home,
    /// The places that sessions can run in.
    pub backends: Vec<Arc<dyn Backend>>,
    /// The backend of a spec that names none.
    pub default_backend: String,
    /// Where a spec whose backend is `auto` may run, as it is at each start: the first of these that can be used. The
    /// default one when empty.
    pub auto: Order,
    /// What names are unique in, as it is when one is given. The instance, unless told otherwise.
    pub naming: Naming,
    /// What may rewrite a launch, in this order.
    pub environments: Vec<Arc<dyn Environment>>,
    /// How long things may take.
    pub timeouts: Timeouts,
    /// What an agent's hooks call, with its first arguments: `wharf hook`. Without it sessions get no hooks.
    pub hook_command: Option<Vec<String>>,
    /// The same for agents in a container, where it must be a program that every container has.
    pub inner_hook_command: Option<Vec<String>>,
    /// Whether somebody serves the events socket from the start: sessions have it as `WHARF_EVENTS` only where it is served.
    pub serves_events: bool,
}

impl Config {
    /// An engine with these backends, the first of which is the default.
    pub fn new(home: Home, backends: Vec<Arc<dyn Backend>>) -> Self {
        let default_backend = backends.first().map(|backend| backend.name().to_owned()).unwrap_or_default();
        Self {
            home,
            backends,
            default_backend,
            auto: Arc::new(|| Ok(Vec::new())),
            naming: Arc::new(|| Ok(NameScope::default())),
            environments: Vec::new(),
            timeouts: Timeouts::default(),
            hook_command: None,
            inner_hook_command: None,
            serves_events: false,
        }
    }

    /// With this order of backends for specs that leave the choice open.
    #[must_use]
    pub fn with_auto(mut self, auto: Order) -> Self {
        self.auto = auto;
        self
    }

    /// With names that are unique in what this says.
    #[must_use]
    pub fn with_naming(mut self, naming: Naming) -> Self {
        self.naming = naming;
        self
    }

    /// With what may rewrite a launch.
    #[must_use]
    pub fn with_environments(mut self, environments: Vec<Arc<dyn Environment>>) -> Self {
        self.environments = environments;
        self
    }

    /// With these limits of time.
    #[must_use]
    pub fn with_timeouts(mut self, timeouts: Timeouts) -> Self {
        self.timeouts = timeouts;
        self
    }
}

/// How long each outside wait may take. Its fields may be set one by one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Timeouts {
    /// A backend's start.
    pub start: Duration,
    /// Fetching or building an image, before that.
    pub image: Duration,
    /// What an environment makes of a launch, such as building a dev shell.
    pub environment: Duration,
    /// One attempt to find a session again.
    pub adopt: Duration,
    /// How long opening waits for all sessions to be found; later ones are *unknown* until then.
    pub settle: Duration,
    /// A question to a session or backend: resize, signal, stats, probe, sweep.
    pub call: Duration,
    /// The grace of a stop that names none, in a spec that names none.
    pub grace: Duration,
    /// How much longer than its grace a stop may take.
    pub stop_margin: Duration,
    /// The login shell.
    pub login: Duration,
    /// How long an ended session's ports may take to be free again.
    pub port_release: Duration,
    /// How long a copy of the output may go on after the end.
    pub pipe_drain: Duration,
    /// The first and the longest wait before an unknown session is looked for again.
    pub retry: (Duration, Duration),
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            start: Duration::from_secs(30),
            image: Duration::from_secs(900),
            environment: Duration::from_secs(1800),
            adopt: Duration::from_secs(5),
            settle: Duration::from_secs(2),
            call: Duration::from_secs(10),
            grace: Duration::from_secs(5),
            stop_margin: Duration::from_secs(10),
            login: Duration::from_secs(5),
            port_release: Duration::from_secs(1),
            pipe_drain: Duration::from_secs(10),
            retry: (Duration::from_millis(200), Duration::from_secs(30)),
        }
    }
}

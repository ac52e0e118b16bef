//! Runs the daemon: opens the engine, listens, serves, and ends on signals.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tokio::runtime::{Builder, Runtime};
use tokio::signal::unix::{SignalKind, signal};
use wharf_api::private_directory;
use wharf_backend::Backend;
use wharf_engine::{Config, Engine};
use wharf_holder::linux::origin;
use wharf_local::LocalBackend;
use wharf_model::{Code, Failure, Home};

use crate::app::App;
use crate::gate::Gate;
use crate::listener::Listener;
use crate::own_log::OwnLog;
use crate::ready::Ready;
use crate::rights::Callers;
use crate::work::Work;
use crate::{backends, linux, notify, routes, serve, settings, sidecar};

/// How long what still looks at files may take after everything else has ended.
const LAST_LOOKS_TIMEOUT: Duration = Duration::from_secs(2);
/// How long requests may take to tell their askers that the engine has closed.
const LAST_ANSWERS_TIMEOUT: Duration = Duration::from_millis(500);

/// What a daemon's backends may need to know of the process that they are in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Process {
    /// The soft limit of descriptors for its sessions: what the daemon was started with, or an ordinary number where
    /// that is lower; none where there is no limit.
    pub descriptor_limit: Option<u64>,
}

/// Runs the daemon of an instance in the foreground until it is asked to end. Sessions go on after it.
/// Returns the process's exit code.
///
/// Its sessions run on this host, by themselves or in panes of tmux, or in containers, as far as this
/// build has them. [`run_with`] takes other places.
pub fn run(home: &Home) -> u8 {
    let local = OnceLock::new();
    let backends = |process: Process| {
        let options =
            wharf_local::Options { descriptors: process.descriptor_limit, ..wharf_local::Options::new(home) };
        let local = Arc::clone(local.get_or_init(|| Arc::new(LocalBackend::new(options))));
        let mut all = vec![local as Arc<dyn Backend>];
        all.extend(backends::backends(home, process.descriptor_limit));
        Ok(all)
    };
    // Only once the instance is ours: a daemon that loses the race for it must leave nothing.
    finish(start(home, backends, || {
        if let Some(local) = local.get() {
            local.warm_up();
        }
    }))
}

/// The same with places of the caller's choice; the first is the default.
pub fn run_with(home: &Home, backends: impl FnOnce(Process) -> Result<Vec<Arc<dyn Backend>>, Failure>) -> u8 {
    finish(start(home, backends, || ()))
}

fn finish(ended: Result<(), Failure>) -> u8 {
    match ended {
        Ok(()) => 0,
        Err(failure) => {
            tracing::error!(code = %failure.code, hint = failure.hint, "{failure}");
            failure.code.exit_code()
        }
    }
}

fn start(
    home: &Home,
    backends: impl FnOnce(Process) -> Result<Vec<Arc<dyn Backend>>, Failure>,
    once_ready: impl FnOnce(),
) -> Result<(), Failure> {
    let ready = Ready::from_env();
    log_to_stderr();
    match open(home, backends) {
        Ok((runtime, daemon)) => {
            let ended = runtime.block_on(async {
                end_on_signals(&daemon.work)?;
                ready.ready();
                once_ready();
                daemon.run().await;
                Ok(())
            });
            // All is written. What still waits for a file system that does not answer must not keep a daemon here.
            runtime.shutdown_timeout(LAST_LOOKS_TIMEOUT);
            ended
        }
        Err(failure) => {
            ready.failed(&failure);
            Err(failure)
        }
    }
}

fn open(
    home: &Home,
    backends: impl FnOnce(Process) -> Result<Vec<Arc<dyn Backend>>, Failure>,
) -> Result<(Runtime, Daemon), Failure> {
    let descriptor_limit =
        linux::settle().map_err(|error| Failure::system("cannot set up signals", &error))?;
    linux::check_limits(&wharf_boundary::limits::lowered(), wharf_api::inherits_limits())?;
    let process = Process { descriptor_limit };
    // One thread: what the daemon does is short, sessions' output does not pass through it, and a second
    // thread would only add wake-ups and memory.
    let runtime = Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::system("cannot start the runtime", &error))?;
    let daemon = runtime.block_on(async { Daemon::open(home, backends(process)?).await })?;
    Ok((runtime, daemon))
}

/// A daemon that has its instance and listens.
pub struct Daemon {
    engine: Engine,
    listener: Listener,
    /// Where agents tell events.
    events: Listener,
    gate: Gate,
    work: Work,
}

/// Asks a daemon to end.
#[derive(Clone)]
pub struct Stopper(Work);

impl Stopper {
    /// Asks it. It answers what is under way first.
    pub fn stop(&self) {
        self.0.stop();
    }
}

impl Daemon {
    /// Takes the instance, finds its sessions again, and listens.
    pub async fn open(home: &Home, backends: Vec<Arc<dyn Backend>>) -> Result<Self, Failure> {
        private_directory(home.state())?;
        let mut config = Config::new(home.clone(), backends);
        config.serves_events = true;
        config.hook_command = own_program().map(|program| vec![program, "hook".to_owned()]);
        #[cfg(feature = "docker")]
        {
            config.inner_hook_command = Some(wharf_container::hook_command());
        }
        config.auto = settings::order(home);
        config.naming = settings::naming(home);
        config.environments = backends::environments(home);
        let engine = Engine::open(config)
            .await
            .map_err(|failure| if failure.code == Code::Locked { locked(&failure) } else { failure })?;
        let bound = Listener::bind(&home.events_socket(), engine.clone())
            .and_then(|events| Ok((Listener::bind(&home.socket(), engine.clone())?, events)));
        let (listener, events) = match bound {
            Ok(bound) => bound,
            Err(failure) => {
                engine.close().await;
                return Err(failure);
            }
        };
        let work = Work::new();
        let app = Arc::new(App::new(engine.clone(), home.clone(), work.clone()));
        tracing::info!(pid = std::process::id(), socket = %home.socket().display(), "the daemon is ready");
        Ok(Self { engine, listener, events, gate: Gate::new(routes::all(app)), work })
    }

    /// What asks it to end.
    pub fn stopper(&self) -> Stopper {
        Stopper(self.work.clone())
    }

    /// Serves until it is asked to end.
    pub async fn run(self) {
        let rules = notify::Rules::of(self.engine.home());
        self.work.spawn(notify::witness(self.engine.clone(), rules, self.work.clone()));
        origin::keep_reserve();
        let callers = Callers::new(self.engine.clone());
        let events = sidecar::serve(self.events, self.engine.clone(), callers.clone(), self.work.clone());
        self.work.spawn(events);
        serve::serve(self.listener, callers, self.gate, self.work.clone()).await;
        self.engine.close().await;
        // What still waited for the engine has its answer now.
        if !self.work.done(LAST_ANSWERS_TIMEOUT).await {
            tracing::warn!("{} tasks are dropped unfinished", self.work.len());
        }
        self.work.abandon().await;
        tracing::info!("the daemon has ended; its sessions go on");
    }
}

fn locked(failure: &Failure) -> Failure {
    Failure::new(Code::Locked, format!("a daemon runs already: {failure}"))
        .hint("`wharf daemon status` shows it, `wharf daemon stop` ends it and leaves its sessions running")
}

fn end_on_signals(work: &Work) -> Result<(), Failure> {
    let listen = |kind| signal(kind).map_err(|error| Failure::system("cannot listen for signals", &error));
    let (mut term, mut int, mut hup) =
        (listen(SignalKind::terminate())?, listen(SignalKind::interrupt())?, listen(SignalKind::hangup())?);
    let asked = work.clone();
    work.spawn(async move {
        let name = tokio::select! {
            _ = term.recv() => "TERM",
            _ = int.recv() => "INT",
            _ = hup.recv() => "HUP",
            () = asked.stopping() => return,
        };
        tracing::info!("signal {name}: ending");
        asked.stop();
    });
    Ok(())
}

/// What the daemon says goes to standard error, which is its log; `WHARF_LOG` sets how much.
fn log_to_stderr() {
    use tracing_subscriber::EnvFilter;
    let filter = EnvFilter::builder()
        .with_default_directive(tracing_subscriber::filter::LevelFilter::INFO.into())
        .with_env_var("WHARF_LOG")
        .from_env_lossy();
    // Somebody who embeds the daemon may have set another up.
    let _ =
        tracing_subscriber::fmt().with_env_filter(filter).with_ansi(false).with_writer(|| OwnLog).try_init();
}

/// This program, for agents to call; nothing where its path is not one that a settings file can hold.
fn own_program() -> Option<String> {
    std::env::current_exe().ok()?.into_os_string().into_string().ok()
}

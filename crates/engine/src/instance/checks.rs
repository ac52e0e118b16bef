//! Probes the backends and checks what sessions need: state directory, space, limits, clock.

use std::collections::HashSet;
use std::fs;
use std::sync::Arc;
use std::time::Duration;

use rustix::process::{Resource, getrlimit};
use tokio_util::task::AbortOnDropHandle;
use wharf_backend::Probe;
pub use wharf_model::Check;
use wharf_model::{Capabilities, Home, SessionId};

use crate::instance::engine::Engine;
use crate::instance::{disk, open};
use crate::launch::login_shell;

/// The longest path that a Unix socket may have everywhere.
const MAX_SOCKET_PATH_LEN: usize = 103;
/// How few descriptors are few.
const MIN_DESCRIPTORS: u64 = 1_024;
/// How little free space is little.
const MIN_FREE_BYTES: u64 = 256 * 1024 * 1024;
/// Before this, a clock was never set: the first day of 2024.
const MIN_CLOCK_MILLIS: u64 = 1_704_067_200_000;

/// Whether a backend can be used.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct BackendStatus {
    /// Its name.
    pub name: String,
    /// Whether it is used when none is named.
    pub default: bool,
    /// What its probe said.
    pub probe: Probe,
    /// What it can do.
    pub capabilities: Capabilities,
}

impl Engine {
    /// Asks every backend whether it can be used, all at once. One that hangs is said to, and delays no other.
    pub async fn backends(&self) -> Vec<BackendStatus> {
        let within = self.shared.timeouts.call.min(Duration::from_secs(5));
        let probes: Vec<_> = self
            .shared
            .backends
            .iter()
            .map(|backend| {
                let backend = Arc::clone(backend);
                let probe = async move { tokio::time::timeout(within, backend.probe()).await };
                // A caller that goes away ends the probes with it.
                AbortOnDropHandle::new(self.shared.tasks.spawn_helper(probe))
            })
            .collect();
        let mut statuses = Vec::new();
        for (backend, probe) in self.shared.backends.iter().zip(probes) {
            let silent = |detail: String| Probe { available: false, version: None, detail, hint: None };
            let probe = match probe.await {
                Ok(Some(Ok(probe))) => probe,
                Ok(Some(Err(_))) => silent(format!("it did not answer within {within:?}")),
                Ok(None) => silent("the engine is closing".to_owned()),
                Err(error) => silent(format!("its probe failed: {error}")),
            };
            statuses.push(BackendStatus {
                name: backend.name().to_owned(),
                default: backend.name() == self.shared.default_backend,
                probe,
                capabilities: backend.capabilities(),
            });
        }
        statuses
    }

    /// Looks at everything that sessions need.
    pub async fn checks(&self) -> Vec<Check> {
        let mut checks = vec![
            self.state_dir(),
            self.socket_path(),
            descriptors(),
            processes(),
            limits(),
            self.space(),
            clock(),
        ];
        checks.push(self.tickets().await);
        for status in self.backends().await {
            // A place that nobody has to use may be missing.
            let (there, default) = (status.probe.available, status.default);
            let detail = match (there || default, status.probe.version) {
                (false, _) => format!("not available: {}", status.probe.detail),
                (true, Some(version)) => format!("{version}, {}", status.probe.detail),
                (true, None) => status.probe.detail,
            };
            let mut check = Check::new(&format!("backend {}", status.name), there || !default, detail, "");
            check.hint = status.probe.hint;
            checks.push(check);
        }
        checks.extend(self.environments().await);
        checks.push(self.login_shell().await);
        checks
    }

    /// What environments there are. One that is not here is no fault: whoever asks for it is told.
    async fn environments(&self) -> Vec<Check> {
        let within = self.shared.timeouts.call.min(Duration::from_secs(5));
        let mut checks = Vec::new();
        for environment in &self.shared.environments {
            let detail = match tokio::time::timeout(within, environment.probe()).await {
                Ok(probe) if probe.available => probe
                    .version
                    .map_or(probe.detail.clone(), |version| format!("{version}, {}", probe.detail)),
                Ok(probe) => format!("not here: {}", probe.detail),
                Err(_) => format!("not here: it did not answer within {within:?}"),
            };
            checks.push(Check::new(&format!("environment {}", environment.name()), true, detail, ""));
        }
        checks
    }

    fn state_dir(&self) -> Check {
        let home = &self.shared.home;
        let state = home.state();
        let probe = state.join(".doctor");
        let writable = disk::replace(&probe, b"").map(|()| drop(fs::remove_file(&probe)));
        let open =
            [state.to_owned(), home.sessions(), home.names()].into_iter().find(|dir| !open::is_private(dir));
        let shown = state.display();
        match (writable, open) {
            (Err(failure), _) => {
                Check::new("state directory", false, failure.message, "make it yours and writable")
            }
            (_, Some(dir)) => {
                let detail = format!("{} can be read by others", dir.display());
                Check::new("state directory", false, detail, "chmod 700 it")
            }
            _ => Check::new("state directory", true, format!("{shown} is writable and yours alone"), ""),
        }
    }

    fn socket_path(&self) -> Check {
        let longest = self.shared.home.sessions().join("0".repeat(16)).join(Home::SOCKET);
        let longest = longest.as_os_str().len().max(self.shared.home.socket().as_os_str().len());
        let detail = format!("the longest socket path has {longest} bytes");
        let detour = if longest <= MAX_SOCKET_PATH_LEN { "" } else { " and is reached by a detour" };
        Check::new("socket path", true, detail + detour, "")
    }

    fn space(&self) -> Check {
        let state = self.shared.home.state();
        match rustix::fs::statvfs(state) {
            Err(error) => {
                Check::new("disk space", false, format!("{}: {error}", state.display()), "is it mounted?")
            }
            Ok(stat) => {
                let free = stat.f_bavail.saturating_mul(stat.f_frsize);
                let files = stat.f_files == 0 || stat.f_favail > 1_000;
                let detail = format!("{} MiB are free below {}", free / (1024 * 1024), state.display());
                Check::new(
                    "disk space",
                    free >= MIN_FREE_BYTES && files,
                    detail,
                    "`wharf gc`, or free some space or inodes",
                )
            }
        }
    }

    async fn tickets(&self) -> Check {
        let sessions = self.shared.home.sessions();
        // Those that are over were in order once, and there may be very many of them.
        let over = self.query(wharf_store::Store::over).await.unwrap_or_default();
        let over: HashSet<SessionId> = over.into_iter().collect();
        let Ok(entries) = fs::read_dir(&sessions) else {
            return Check::new(
                "sessions",
                false,
                format!("cannot read {}", sessions.display()),
                "restart the daemon",
            );
        };
        let odd = entries.filter_map(Result::ok).filter(|entry| {
            let id = entry.file_name().to_str().and_then(|name| name.parse::<SessionId>().ok());
            // Those in memory are in order; asking for the others is one call each.
            id.is_none_or(|id| {
                self.shared.registry.by_id(&id).is_none()
                    && !over.contains(&id)
                    && !matches!(disk::ticket(&entry.path()), Ok(Some(_)))
            })
        });
        let odd: Vec<String> =
            odd.take(10).map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
        let all = self.list(&crate::Filter::default());
        let unknown = all.iter().filter(|session| session.state == wharf_model::State::Unknown).count();
        let begun = all
            .iter()
            .filter(|session| !session.state.is_over() && session.state != wharf_model::State::Starting);
        // What is in memory does not say what is on the disk: somebody may have removed that, or put a backup in its place.
        let bare = begun.filter(|session| !self.shared.home.session(&session.id).join(Home::TICKET).exists());
        let bare: Vec<String> = bare.take(10).map(|session| session.name.to_string()).collect();
        if !odd.is_empty() {
            let detail = format!("directories without a ticket that can be read: {}", odd.join(", "));
            return Check::new(
                "sessions",
                false,
                detail,
                "`wharf gc` says why, and removes those without any once they are an hour old",
            );
        }
        if !bare.is_empty() {
            let detail = format!("run without their files: {}", bare.join(", "));
            let hint = "`wharf daemon restart` finds them and makes the files again; those in containers can only \
                        be killed then";
            return Check::new("sessions", false, detail, hint);
        }
        let detail = format!("{} are not over, {unknown} of them cannot be reached", self.live());
        Check::new("sessions", unknown == 0, detail, "`wharf ls` shows which, `wharf show NAME` why")
    }

    async fn login_shell(&self) -> Check {
        let shell = login_shell::shell(&[]);
        match self.shared.login.variables(&shell, self.shared.timeouts.login).await {
            Ok(vars) => Check::new(
                "login shell",
                true,
                format!("{} exports {} variables", shell.lossy(), vars.len()),
                "",
            ),
            Err(failure) => {
                Check { hint: failure.hint, ..Check::new("login shell", false, failure.message, "") }
            }
        }
    }
}

fn descriptors() -> Check {
    let limit = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    let detail = format!("a process may open {limit} files");
    Check::new("descriptors", limit >= MIN_DESCRIPTORS, detail, "raise `ulimit -n`")
}

fn processes() -> Check {
    let limit = getrlimit(Resource::Nproc).current.unwrap_or(u64::MAX);
    let shown = if limit == u64::MAX { "any number of".to_owned() } else { limit.to_string() };
    Check::new("processes", limit >= 512, format!("the user may have {shown} processes"), "raise `ulimit -u`")
}

/// Hard limits that every session on this host inherits.
fn limits() -> Check {
    let lowered: Vec<String> = wharf_boundary::limits::lowered().iter().map(ToString::to_string).collect();
    if lowered.is_empty() {
        return Check::new("limits", true, "sessions have none but the usual".to_owned(), "");
    }
    let detail = format!("all sessions are under {}", lowered.join(" and "));
    Check::new("limits", false, detail, "`wharf daemon restart` from a shell without them lifts them")
}

fn clock() -> Check {
    let now = crate::instance::shared::now();
    Check::new("clock", now.0 >= MIN_CLOCK_MILLIS, format!("it is {}", now.utc()), "set the clock")
}

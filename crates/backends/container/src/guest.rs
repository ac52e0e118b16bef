//! Takes in containers that somebody else started, called *guests*: they are watched and typed at, never owned.
//!
//! The session of a guest is one of this host, whose command passes the container's streams through. So its log,
//! socket, exit record and the replacement of a killed holder are what every session of this host has.

pub(crate) mod connection;

use std::path::Path;
use std::sync::Arc;

use wharf_backend::{Adoption, Connection, Launch, Result};
use wharf_errand::guest::{Guest, Past};
use wharf_holder::wire::Through;
use wharf_holder_client::session::{self as held, HostHolders};
use wharf_model::{Code, EngineVariables, Failure, MadeContainer, Size, Text, Ticket};

use crate::containers::Containers;
use crate::engine::Engine;
use crate::engine::endpoint::Flavour;
use crate::engine::inspect::Found;
use crate::guest::connection::GuestConnection;
use crate::owner;
use crate::ticket_data::TicketData;

/// How many digits of an id engines show.
const SHORT_ID_LEN: usize = 12;

/// Starts and finds sessions of guests.
pub(crate) struct Guests {
    containers: Arc<Containers>,
    held: HostHolders,
}

impl Guests {
    pub(crate) fn new(containers: Arc<Containers>) -> Self {
        let options = &containers.options;
        let (holder, sessions) = (options.holder.clone(), options.sessions.clone());
        let held = HostHolders::new(options.flavour.name(), holder, sessions, None);
        Self { containers, held }
    }

    /// Ends the connections to the holders of guests.
    pub(crate) async fn close(&self) {
        self.held.close().await;
    }

    /// Takes in a running container, by its exact name or its id.
    pub(crate) async fn take_in(&self, launch: Launch, what: &Text) -> Result<(Ticket, Arc<dyn Connection>)> {
        let what = what.lossy().into_owned();
        let engine = self.engine(&launch.env).await?;
        let found = engine.container(&what).await?.filter(|found| is_named(found, &what));
        let flavour = self.containers.options.flavour;
        let found = found.ok_or_else(|| {
            let flavour = flavour.name();
            Failure::new(Code::NotFound, format!("{flavour} has no container {what}")).hint(format!(
                "`{flavour} ps` shows what runs; a name is the whole name, and an id at least {SHORT_ID_LEN} digits"
            ))
        })?;
        refuse_unsuitable(&found, &what, flavour.name())?;
        let socket = engine
            .endpoint()
            .socket()
            .ok_or_else(|| Failure::unsupported("a container of an engine on another host", "adopt"))?;
        let unheard = why_no_input(&found, &what, flavour);
        let guest = Guest {
            socket: socket.into(),
            container: found.id.clone(),
            tty: found.config.tty,
            input: unheard.is_none(),
            by_log: loses_input(&found, flavour),
            past: past_output(&launch),
        };
        let data = TicketData {
            through: Some(Through { unheard }),
            ..TicketData::at(engine.endpoint(), Some(found.id.clone()))
        };
        let (ticket, connection) =
            self.held.start(self.holder_launch(launch, &guest, &found)?, Some(data.text())).await?;
        let link = GuestConnection::follow(Arc::clone(&self.containers), &ticket, connection);
        Ok((ticket, link))
    }

    /// The engine that the caller's variables name.
    async fn engine(&self, env: &[(Text, Text)]) -> Result<Engine> {
        let var = |wanted: &str| {
            let found = env.iter().find(|(name, _)| name.as_bytes() == wanted.as_bytes());
            found.map(|(_, value)| value.as_os_str().to_owned())
        };
        self.containers.engine_of(Some(&EngineVariables::places(Path::new("/"), var))).await
    }

    /// The launch of the command that passes the container through.
    fn holder_launch(&self, mut launch: Launch, guest: &Guest, found: &Found) -> Result<Launch> {
        let words = guest.words().map_err(|error| Failure::new(Code::Internal, error.to_string()))?;
        launch.argv =
            [Text::from(self.containers.options.holder.as_path())].into_iter().chain(words).collect();
        // It needs no variables but the session's token, by which its processes are found if its holder is gone.
        launch.env = vec![("WHARF_TOKEN".into(), launch.token.as_str().into())];
        launch.spec.dir = "/".into();
        launch.spec.made = Some(Box::new(MadeContainer {
            id: found.id.clone(),
            name: found.name.trim_start_matches('/').to_owned(),
            engine: format!("unix://{}", guest.socket.lossy()),
            kept: false,
        }));
        launch.spec.tty = found.config.tty;
        if let Some([rows, cols]) = found.host_config.console_size.filter(|size| !size.contains(&0)) {
            launch.spec.size = Size { cols, rows }.sane();
        }
        Ok(launch)
    }

    /// Finds one again.
    pub(crate) async fn adopt(&self, ticket: &Ticket) -> Result<Adoption> {
        Ok(match self.held.adopt(ticket).await? {
            Adoption::Alive(connection) => {
                Adoption::Alive(GuestConnection::follow(Arc::clone(&self.containers), ticket, connection))
            }
            other => other,
        })
    }

    /// Ends our own processes. The container is not ours.
    pub(crate) async fn sweep(&self, ticket: &Ticket) -> Result<u32> {
        self.held.sweep(ticket).await
    }

    /// Which processes of ours are left.
    pub(crate) async fn strays(&self, ticket: &Ticket) -> Result<Vec<i32>> {
        self.held.strays(ticket).await
    }

    /// Ends the holder and every process with the session's token. A container that others use, or that is not ours,
    /// goes on.
    pub(crate) async fn kill(&self, ticket: &Ticket) -> Result<()> {
        self.held.kill(ticket).await
    }
}

/// Whether a container has the given name, or an id that begins so. Engines accept shorter prefixes of an id.
fn is_named(found: &Found, what: &str) -> bool {
    let id = found.id.as_str();
    found.name.trim_start_matches('/') == what
        || id == what
        || what.len() >= SHORT_ID_LEN && id.starts_with(what)
}

/// Refuses containers that are ours already, stopped or paused.
fn refuse_unsuitable(found: &Found, what: &str, flavour: &str) -> Result<()> {
    if owner::is_any(found) {
        return Err(Failure::new(
            Code::Invalid,
            format!("container {what} is the place of a session of wharf"),
        )
        .hint("`wharf attach` reaches it as it is"));
    }
    if !found.state.running {
        return Err(Failure::new(Code::Ended, format!("container {what} does not run"))
            .hint(format!("`{flavour} start {what}` starts it")));
    }
    if found.state.paused {
        return Err(Failure::new(Code::Busy, format!("container {what} is paused"))
            .hint(format!("`{flavour} unpause {what}` lets it go on")));
    }
    Ok(())
}

/// Why a container takes no input; none where it does.
fn why_no_input(found: &Found, what: &str, flavour: Flavour) -> Option<String> {
    if !found.config.open_stdin {
        return Some(format!(
            "container {what} was started without -i, so it reads nothing; it can be watched"
        ));
    }
    if found.config.stdin_once && !found.config.tty || loses_input(found, flavour) {
        return Some(format!("the input of container {what} would end when it is let go; it can be watched"));
    }
    None
}

/// Whether a container's input ends when its first client disconnects: Podman does that unless there is a terminal.
fn loses_input(found: &Found, flavour: Flavour) -> bool {
    flavour == Flavour::Podman && found.config.open_stdin && !found.config.tty
}

/// Which earlier output is wanted: all of it on the first run, and what is new on later ones.
fn past_output(launch: &Launch) -> Past {
    if launch.run <= 1 {
        return Past::All;
    }
    held::read_exit(&launch.home, launch.run - 1).map_or(Past::None, |record| {
        Past::Since(format!("{}.{:03}", record.ended.0 / 1000, record.ended.0 % 1000))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(json: &serde_json::Value) -> Found {
        serde_json::from_value(json.clone()).unwrap()
    }

    #[test]
    fn a_container_is_meant_by_all_of_its_name_or_enough_of_its_id() {
        let id = "0123456789abcdef".repeat(4);
        let container = found(&serde_json::json!({ "Id": id, "Name": "/web" }));
        assert!(is_named(&container, "web") && is_named(&container, &id) && is_named(&container, &id[..12]));
        assert!(
            !is_named(&container, "we") && !is_named(&container, &id[..11]) && !is_named(&container, "webs")
        );
        assert!(!is_named(&container, ""));
    }

    #[test]
    fn what_reads_nothing_is_told_apart() {
        let config = |tty: bool, open: bool, once: bool| {
            let config = serde_json::json!({ "Tty": tty, "OpenStdin": open, "StdinOnce": once });
            why_no_input(&found(&serde_json::json!({ "Config": config })), "x", Flavour::Docker).is_none()
        };
        let podman = |tty: bool| {
            let config = serde_json::json!({ "Tty": tty, "OpenStdin": true });
            why_no_input(&found(&serde_json::json!({ "Config": config })), "x", Flavour::Podman).is_none()
        };
        assert!(podman(true) && !podman(false));
        assert!(config(true, true, true) && config(false, true, false) && config(true, true, false));
        assert!(!config(true, false, false) && !config(false, true, true));
    }

    #[test]
    fn ours_and_what_does_not_run_is_refused() {
        let code = |json: serde_json::Value| {
            refuse_unsuitable(&found(&json), "x", "docker").map_err(|failure| failure.code)
        };
        assert_eq!(code(serde_json::json!({ "State": { "Running": true } })), Ok(()));
        assert_eq!(code(serde_json::json!({})), Err(Code::Ended));
        assert_eq!(
            code(serde_json::json!({ "State": { "Running": true, "Paused": true } })),
            Err(Code::Busy)
        );
        let ours = serde_json::json!({ "State": { "Running": true }, "Config": { "Labels": { "wharf.session": "s" } } });
        assert_eq!(code(ours), Err(Code::Invalid));
    }
}

//! Asks an engine about containers and about itself.
//!
//! It does so without the client that everything else uses: that one treats a state which it does not know, such as Podman's
//! `stopped`, as a broken answer.

use std::collections::HashMap;
use std::io;
use std::time::Duration;

use serde::Deserialize;
use wharf_model::Published;

use crate::engine::transport::Transport;

/// What is asked of a container. Whatever else there is, is ignored.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub(crate) struct Found {
    /// The engine's own id of it.
    pub(crate) id: String,
    /// What it is called, behind a slash.
    pub(crate) name: String,
    /// The image that it was made of, by the engine's own id.
    pub(crate) image: String,
    /// How it is.
    pub(crate) state: FoundState,
    pub(crate) config: Config,
    network_settings: Networking,
    pub(crate) host_config: FoundHost,
}

/// What its maker asked the engine for.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub(crate) struct FoundHost {
    /// The first size of its terminal, rows before columns.
    pub(crate) console_size: Option<[u16; 2]>,
}

/// How a container is.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub(crate) struct FoundState {
    /// Whether its first process lives.
    pub(crate) running: bool,
    /// Whether it is frozen.
    pub(crate) paused: bool,
    /// Whether the kernel killed in it for want of memory.
    #[serde(rename = "OOMKilled")]
    pub(crate) oom_killed: bool,
    /// The code of its first process.
    pub(crate) exit_code: i64,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub(crate) struct Config {
    labels: Option<HashMap<String, String>>,
    /// Whether it has a terminal.
    pub(crate) tty: bool,
    /// Who its command is: a number or a name, and a group.
    pub(crate) user: String,
    /// Where its command runs.
    pub(crate) working_dir: String,
    /// Whether it reads what is typed.
    pub(crate) open_stdin: bool,
    /// Whether its input ends when the first who types lets go.
    pub(crate) stdin_once: bool,
}

/// How it is reached.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
struct Networking {
    ports: Option<HashMap<String, Option<Vec<Binding>>>>,
}

/// Where on the host a port is.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
struct Binding {
    host_ip: String,
    host_port: String,
}

impl Found {
    /// Its ports that are reached from the host.
    pub(crate) fn published(&self) -> Vec<Published> {
        let mut all = Vec::new();
        for (key, bindings) in self.network_settings.ports.iter().flatten() {
            let (inside, protocol) = key.split_once('/').unwrap_or((key, "tcp"));
            for binding in bindings.iter().flatten() {
                let (Ok(inside), Ok(port)) = (inside.parse(), binding.host_port.parse()) else { continue };
                let address = if binding.host_ip.is_empty() { "0.0.0.0" } else { &binding.host_ip };
                let (protocol, address) = (protocol.to_owned(), address.to_owned());
                all.push(Published { inside, protocol, address, port, variable: None });
            }
        }
        all.sort();
        all
    }

    /// Its labels.
    pub(crate) fn label(&self, key: &str) -> Option<&str> {
        self.config.labels.as_ref()?.get(key).map(String::as_str)
    }
}

/// How soon an engine that is just hearing of an end is asked again.
const EXIT_POLL_INTERVAL: Duration = Duration::from_millis(20);

/// A container in a list.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub(crate) struct Listed {
    /// The engine's own id of it.
    pub(crate) id: String,
    /// How it is, in the engine's own word.
    pub(crate) state: String,
    /// Its labels.
    pub(crate) labels: HashMap<String, String>,
    /// What it is called, each behind a slash.
    names: Option<Vec<String>>,
}

impl Listed {
    /// Whether it has that name.
    pub(crate) fn is_called(&self, name: &str) -> bool {
        self.names.iter().flatten().any(|own| own.strip_prefix('/').unwrap_or(own) == name)
    }
}

/// Asks for a container; none where there is no such one. The caller sets the deadline.
pub(crate) async fn container(engine: &Transport, id: &str) -> io::Result<Option<Found>> {
    if id.is_empty() || !id.bytes().all(|b| b.is_ascii_alphanumeric() || b"_.-".contains(&b)) {
        return Err(odd("that is no container's name"));
    }
    loop {
        return match engine.get(&format!("/containers/{id}/json")).await? {
            (200, body) => Ok(Some(serde_json::from_slice(&body)?)),
            (404, _) => Ok(None),
            // Podman has a field for the cause alone: of one that went while it looked at it, and of one whose first
            // process did, which it knows better in a moment.
            (500, body) if cause(&body).as_deref() == Some("no such container") => Ok(None),
            (500, body) if cause(&body).as_deref() == Some("no such process") => {
                tokio::time::sleep(EXIT_POLL_INTERVAL).await;
                continue;
            }
            (status, body) => Err(refused(status, &body)),
        };
    }
}

/// What Podman gives as the cause of an error.
fn cause(body: &[u8]) -> Option<String> {
    let answer: serde_json::Value = serde_json::from_slice(body).ok()?;
    Some(answer.get("cause")?.as_str()?.to_owned())
}

/// Asks for all containers with a label, whether they run or not. The caller sets the deadline.
pub(crate) async fn containers(engine: &Transport, label: &str) -> io::Result<Vec<Listed>> {
    let filters = serde_json::json!({ "label": [label] }).to_string();
    let filters: String = filters.bytes().map(|byte| format!("%{byte:02X}")).collect::<Vec<_>>().concat();
    match engine.get(&format!("/containers/json?all=true&filters={filters}")).await? {
        (200, body) => Ok(serde_json::from_slice(&body)?),
        (status, body) => Err(refused(status, &body)),
    }
}

/// Asks which images containers need, by their ids without the name of a hash, once for each container. The caller sets the
/// deadline.
pub(crate) async fn images_in_use(engine: &Transport) -> io::Result<Vec<String>> {
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Using {
        #[serde(rename = "ImageID")]
        image: String,
    }
    let all: Vec<Using> = match engine.get("/containers/json?all=true").await? {
        (200, body) => serde_json::from_slice(&body)?,
        (status, body) => return Err(refused(status, &body)),
    };
    let plain = |image: String| image.strip_prefix("sha256:").map(str::to_owned).unwrap_or(image);
    Ok(all.into_iter().map(|using| plain(using.image)).collect())
}

/// How an engine runs, so far as it matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct EngineTraits {
    /// Whether it runs as a user: then root in a container is that user.
    pub(crate) rootless: bool,
    /// Whether it can enforce limits: a user has no cgroups of the first version.
    pub(crate) limits: bool,
}

/// How the engine runs. Either engine has its own way to say so. The caller sets the deadline.
pub(crate) async fn traits(engine: &Transport) -> io::Result<EngineTraits> {
    #[derive(Default, Deserialize)]
    #[serde(rename_all = "PascalCase", default)]
    struct Info {
        rootless: bool,
        security_options: Option<Vec<String>>,
        cgroup_version: String,
    }
    let info: Info = match engine.get("/info").await? {
        (200, body) => serde_json::from_slice(&body)?,
        (status, body) => return Err(refused(status, &body)),
    };
    let options = info.security_options.unwrap_or_default();
    let rootless = info.rootless || options.iter().any(|option| option.contains("rootless"));
    Ok(EngineTraits { rootless, limits: !rootless || info.cgroup_version != "1" })
}

fn odd(why: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why.to_owned())
}

fn refused(status: u16, body: &[u8]) -> io::Error {
    io::Error::other(format!("status {status}: {}", String::from_utf8_lossy(body).trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_are_read_in_order_and_those_that_are_closed_are_left_out() {
        let json = r#"{"NetworkSettings":{"Ports":{"80/tcp":[{"HostIp":"127.0.0.1","HostPort":"4000"},
            {"HostIp":"","HostPort":"4001"}],"53/udp":[{"HostIp":"::1","HostPort":"5353"}],"22/tcp":null,"x":[]}}}"#;
        let found: Found = serde_json::from_str(json).unwrap();
        let shown: Vec<String> = found
            .published()
            .iter()
            .map(|port| format!("{}/{} {} {}", port.inside, port.protocol, port.address, port.port))
            .collect();
        assert_eq!(shown, ["53/udp ::1 5353", "80/tcp 0.0.0.0 4001", "80/tcp 127.0.0.1 4000"]);
        let none: Found = serde_json::from_str(r#"{"NetworkSettings":{"Ports":null}}"#).unwrap();
        assert_eq!(none.published(), []);
    }

    #[test]
    fn a_container_that_went_meanwhile_is_told_by_its_cause() {
        let body =
            br#"{"cause":"no such container","message":"error getting graph driver info","response":500}"#;
        assert_eq!(cause(body).as_deref(), Some("no such container"));
        assert_eq!(cause(b"{}"), None);
        assert_eq!(cause(b"not json"), None);
    }

    #[test]
    fn states_of_other_engines_and_versions_are_read() {
        let json = r#"{"Id":"a1","State":{"Status":"stopped","Running":false,"ExitCode":137,"OOMKilled":true,"New":1},
            "Config":{"Labels":{"k":"v"}},"More":[]}"#;
        let found: Found = serde_json::from_str(json).unwrap();
        assert_eq!((found.id.as_str(), found.state.exit_code, found.state.oom_killed), ("a1", 137, true));
        assert_eq!((found.label("k"), found.label("x")), (Some("v"), None));
        let bare: Found = serde_json::from_str(r#"{"Config":{"Labels":null}}"#).unwrap();
        assert_eq!(bare, Found::default());
    }
}

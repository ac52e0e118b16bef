//! Asks an engine about containers and about itself.
//!
//! It does so without the client that everything else uses: that one treats a state which it does not know, such as Podman's
//! `stopped`, as a broken answer.

use std::collections::HashMap;
use std::io;
use std::time::Duration;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use wharf_model::Published;

use crate::engine::allowance::MAX_LIST_LEN;
use crate::engine::bounded::{List, OwnLabels, Table};
use crate::engine::transport::{Refusal, Transport};

/// The most that an engine may answer about one container, in bytes.
const MAX_INSPECT_LEN: usize = 4 << 20;
/// How many containers or images an engine may list.
const MAX_LISTED: usize = 16 << 10;
/// How many names one of them may have.
const MAX_NAMES: usize = 256;
/// How many ports a container may have, of each protocol all that there are.
const MAX_PORTS: usize = 3 << 16;
/// In how many places on the host one port may be.
const MAX_BINDINGS: usize = 64;
/// How an engine calls an image that has no name.
const NAMELESS: &str = "<none>:<none>";

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
    labels: OwnLabels,
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
    ports: Table<List<Binding, MAX_BINDINGS>, MAX_PORTS>,
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
        for (key, bindings) in &self.network_settings.ports.0 {
            let (inside, protocol) = key.split_once('/').unwrap_or((key, "tcp"));
            for binding in &bindings.0 {
                let (Ok(inside), Ok(port)) = (inside.parse(), binding.host_port.parse()) else { continue };
                let address = if binding.host_ip.is_empty() { "0.0.0.0" } else { &binding.host_ip };
                let (protocol, address) = (protocol.to_owned(), address.to_owned());
                all.push(Published { inside, protocol, address, port, variable: None });
            }
        }
        all.sort();
        all
    }

    /// A label of ours.
    pub(crate) fn label(&self, key: &str) -> Option<&str> {
        self.config.labels.0.get(key).map(String::as_str)
    }
}

/// How soon an engine that is just hearing of an end is asked again.
const EXIT_POLL_INTERVAL: Duration = Duration::from_millis(20);

/// How a container in a list is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(from = "String")]
pub(crate) enum ListedState {
    /// It is frozen.
    Paused,
    /// Nothing of it runs.
    Over,
    /// Something of it may run.
    #[default]
    Other,
}

impl From<String> for ListedState {
    /// By the word of either engine.
    fn from(word: String) -> Self {
        match word.as_str() {
            "paused" => Self::Paused,
            "created" | "configured" | "exited" | "stopped" | "dead" => Self::Over,
            _ => Self::Other,
        }
    }
}

/// A container in a list.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub(crate) struct Listed {
    /// The engine's own id of it.
    pub(crate) id: String,
    /// How it is.
    pub(crate) state: ListedState,
    labels: OwnLabels,
    /// What it is called, each behind a slash.
    names: List<String, MAX_NAMES>,
}

impl Listed {
    /// Its labels of ours.
    pub(crate) fn labels(&self) -> &HashMap<String, String> {
        &self.labels.0
    }

    /// Whether it has that name.
    pub(crate) fn is_called(&self, name: &str) -> bool {
        self.names.0.iter().any(|own| own.strip_prefix('/').unwrap_or(own) == name)
    }
}

/// Asks for a container; none where there is no such one. The caller sets the deadline.
pub(crate) async fn container(engine: &Transport, id: &str) -> io::Result<Option<Found>> {
    if id.is_empty() || !id.bytes().all(|b| b.is_ascii_alphanumeric() || b"_.-".contains(&b)) {
        return Err(odd("that is no container's name"));
    }
    loop {
        match engine.get(&format!("/containers/{id}/json"), MAX_INSPECT_LEN).await? {
            Ok(found) => return Ok(Some(found)),
            Err(refusal) if refusal.status == 404 => return Ok(None),
            Err(refusal) => match PodmanCause::of(&refusal) {
                Some(PodmanCause::NoSuchContainer) => return Ok(None),
                Some(PodmanCause::NoSuchProcess) => tokio::time::sleep(EXIT_POLL_INTERVAL).await,
                None => return Err(refusal.into()),
            },
        }
    }
}

/// Why Podman, which has one status for all of it, could not tell of a container.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PodmanCause {
    /// It went while Podman looked at it.
    NoSuchContainer,
    /// Its first process went. Podman knows better in a moment.
    NoSuchProcess,
}

impl PodmanCause {
    fn of(refusal: &Refusal) -> Option<Self> {
        #[derive(Deserialize)]
        struct Told {
            cause: String,
        }
        if refusal.status != 500 {
            return None;
        }
        match serde_json::from_slice::<Told>(&refusal.body).ok()?.cause.as_str() {
            "no such container" => Some(Self::NoSuchContainer),
            "no such process" => Some(Self::NoSuchProcess),
            _ => None,
        }
    }
}

/// Asks for all containers with a label, whether they run or not. The caller sets the deadline.
pub(crate) async fn containers(engine: &Transport, label: &str) -> io::Result<Vec<Listed>> {
    let filters = serde_json::json!({ "label": [label] }).to_string();
    let filters: String = filters.bytes().map(|byte| format!("%{byte:02X}")).collect::<Vec<_>>().concat();
    list(engine, &format!("/containers/json?all=true&filters={filters}")).await
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
    let all: Vec<Using> = list(engine, "/containers/json?all=true").await?;
    let plain = |image: String| image.strip_prefix("sha256:").map(str::to_owned).unwrap_or(image);
    Ok(all.into_iter().map(|using| plain(using.image)).collect())
}

/// An image in a list.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub(crate) struct ListedImage {
    /// The engine's own id of it.
    pub(crate) id: String,
    repo_tags: List<String, MAX_NAMES>,
    /// When it was made, in seconds since the epoch.
    pub(crate) created: i64,
    /// How large it is, in bytes.
    pub(crate) size: i64,
    labels: OwnLabels,
}

impl ListedImage {
    /// Its labels of ours.
    pub(crate) fn labels(&self) -> &HashMap<String, String> {
        &self.labels.0
    }

    /// What it is called.
    pub(crate) fn names(&self) -> Vec<String> {
        self.repo_tags.0.iter().filter(|name| *name != NAMELESS).cloned().collect()
    }
}

/// Asks for all images. The caller sets the deadline.
pub(crate) async fn images(engine: &Transport) -> io::Result<Vec<ListedImage>> {
    list(engine, "/images/json").await
}

async fn list<T: DeserializeOwned + Send + 'static>(engine: &Transport, path: &str) -> io::Result<Vec<T>> {
    let listed: List<T, MAX_LISTED> = engine.get(path, MAX_LIST_LEN).await??;
    Ok(listed.0)
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
        security_options: List<String, MAX_NAMES>,
        cgroup_version: String,
    }
    let info: Info = engine.get("/info", MAX_INSPECT_LEN).await??;
    let rootless = info.rootless || info.security_options.0.iter().any(|option| option.contains("rootless"));
    Ok(EngineTraits { rootless, limits: !rootless || info.cgroup_version != "1" })
}

fn odd(why: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::fake::{Answer, FakeEngine};

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
        let of = |status, body: &str| PodmanCause::of(&Refusal { status, body: body.into() });
        let body =
            r#"{"cause":"no such container","message":"error getting graph driver info","response":500}"#;
        assert_eq!(of(500, body), Some(PodmanCause::NoSuchContainer));
        assert_eq!(of(500, r#"{"cause":"no such process"}"#), Some(PodmanCause::NoSuchProcess));
        assert_eq!((of(409, body), of(500, "{}"), of(500, "not json")), (None, None, None));
    }

    /// How an engine fares that gives this answer to everything that is not about itself.
    async fn told(answer: fn() -> Answer) -> [io::Error; 4] {
        let dir = tempfile::tempdir().unwrap();
        let asked = |path: &str| ["/json", "/info"].iter().any(|part| path.contains(part));
        let served =
            FakeEngine::serve(dir.path(), move |path| if asked(path) { answer() } else { Answer::Usual });
        let engine = served.reach().await.unwrap();
        let transport = engine.transport();
        [
            containers(transport, "wharf").await.unwrap_err(),
            images_in_use(transport).await.unwrap_err(),
            images(transport).await.unwrap_err(),
            container(transport, "c").await.unwrap_err(),
        ]
    }

    #[tokio::test]
    async fn a_short_answer_with_millions_of_items_is_refused() {
        let many = || Answer::Whole(200, format!("[{}{{}}]", "{},".repeat(MAX_LISTED)));
        for error in &told(many).await[..3] {
            assert!(error.to_string().contains("lists more than"), "{error}");
        }
    }

    #[tokio::test]
    async fn what_an_engine_says_to_refuse_is_cut() {
        let many = || Answer::Whole(500, "[{}]".repeat(1 << 20));
        for error in told(many).await {
            assert!(error.to_string().starts_with("status 500: [{}]"), "{error}");
            assert!(error.to_string().len() < 8 << 10, "{}", error.to_string().len());
        }
    }

    #[test]
    fn states_of_other_engines_and_versions_are_read() {
        let json = r#"{"Id":"a1","State":{"Status":"stopped","Running":false,"ExitCode":137,"OOMKilled":true,"New":1},
            "Config":{"Labels":{"wharf.run":"v","wharf.x":"v","x":"v"}},"More":[]}"#;
        let found: Found = serde_json::from_str(json).unwrap();
        assert_eq!((found.id.as_str(), found.state.exit_code, found.state.oom_killed), ("a1", 137, true));
        assert_eq!((found.label("wharf.run"), found.label("wharf.x")), (Some("v"), None));
        let bare: Found = serde_json::from_str(r#"{"Config":{"Labels":null}}"#).unwrap();
        assert_eq!(bare, Found::default());
    }
}

//! Defines what a spec says about a container: image, mounts, ports, user and privileges.

use serde::{Deserialize, Serialize};

use crate::{EngineVariables, Text};

/// The container that a session runs in. What is absent is as hardened as it can be.
#[expect(clippy::struct_excessive_bools, reason = "each is asked for by itself, or not at all")]
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Container {
    /// The image, as the engine knows it.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub image: String,
    /// When it is fetched.
    pub pull: Pull,
    /// A directory to build the image from, or a Dockerfile in one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub build: Option<Text>,
    /// The platform that the image is for, such as `linux/arm64`; the engine's own when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub platform: Option<String>,
    /// What stands before the command, in place of the image's own entry point and command.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub entrypoint: Option<Text>,
    /// Whether no command was named, so that the image says at each start what is run; filled in at the first.
    #[serde(skip_serializing_if = "is_false")]
    pub image_command: bool,
    /// Whether the command also gets the image's variables, beneath its own.
    #[serde(skip_serializing_if = "is_false")]
    pub image_variables: bool,
    /// Whether the command runs in the image's own directory in place of the session's.
    #[serde(skip_serializing_if = "is_false")]
    pub image_dir: bool,
    /// Files, directories and named volumes of the host.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub volumes: Vec<Volume>,
    /// Directories in memory.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tmpfs: Vec<Text>,
    /// Files of the host that are readable below `/run/secrets`, and stand nowhere else.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub secrets: Vec<Secret>,
    /// Ports that are reached from the host.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub publish: Vec<Publish>,
    /// The network by the engine's name for it; the engine's default when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network: Option<String>,
    /// Whether `host.docker.internal` is the host.
    #[serde(skip_serializing_if = "is_false")]
    pub host_gateway: bool,
    /// Who the command is, `UID[:GID]` or a name of the image; the caller when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// Further groups.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub group_add: Vec<String>,
    /// Whether the image's own files cannot be changed.
    #[serde(skip_serializing_if = "is_false")]
    pub read_only: bool,
    /// Capabilities that are given back; none is there by default.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub cap_add: Vec<String>,
    /// Capabilities that are taken away, for the record: all are.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub cap_drop: Vec<String>,
    /// Devices of the host, `HOST[:CONTAINER[:rwm]]`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub devices: Vec<String>,
    /// Whether a container of the same make that runs already is used, and this one is left to others that ask for it.
    #[serde(skip_serializing_if = "is_false")]
    pub reuse: bool,
    /// Whether it stays after its end, for the next start of the session and for whoever looks inside.
    #[serde(skip_serializing_if = "is_false")]
    pub keep: bool,
    /// The caller's variables that say which engine is meant; those of whoever starts the session when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub engine: Option<EngineVariables>,
}

/// The container that a session has, as its engine calls it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct MadeContainer {
    /// The engine's own id of it.
    pub id: String,
    /// Its name.
    pub name: String,
    /// The engine's address.
    pub engine: String,
    /// Whether it stays after its end.
    #[serde(skip_serializing_if = "is_false")]
    pub kept: bool,
}

/// When an image is fetched.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Pull {
    /// At each start.
    Always,
    /// When it is not there.
    #[default]
    Missing,
    /// Never.
    Never,
}

/// Something of the host that a container sees.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Volume {
    /// An absolute path of the host, or the name of a volume.
    pub source: Text,
    /// Where it is in the container.
    pub target: Text,
    /// Whether it cannot be changed from inside.
    #[serde(default)]
    pub read_only: bool,
}

/// A file that only the session reads.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Secret {
    /// Its name below `/run/secrets`.
    pub name: String,
    /// The file of the host.
    pub source: Text,
}

/// A secret that was looked up where it was asked for: only its bytes come along, and they stay in a private place.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GivenSecret {
    /// The name of its file.
    pub name: String,
    /// Where it came from, in words; never what it is.
    #[serde(default)]
    pub from: String,
    /// What it is. Absent as soon as it stands in its place: no ticket has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<Text>,
}

impl std::fmt::Debug for GivenSecret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("GivenSecret")
            .field("name", &self.name)
            .field("from", &self.from)
            .finish_non_exhaustive()
    }
}

/// A port of the container that the host can reach.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Publish {
    /// The address of the host; the loopback when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
    /// The port of the host; one that is free when zero.
    #[serde(default)]
    pub host: u16,
    /// The port in the container.
    pub container: u16,
    /// Whether it is UDP.
    #[serde(default)]
    pub udp: bool,
}

impl Container {
    /// A container of an image with everything else at its default.
    pub fn of(image: impl Into<String>) -> Self {
        Self { image: image.into(), ..Self::default() }
    }

    /// What keeps it from being as closed as it could be, in words for people.
    pub fn weakened(&self) -> Vec<String> {
        let mut found = Vec::new();
        let mut list = |what: &str, items: &[String]| {
            if !items.is_empty() {
                found.push(format!("{what} {}", items.join(", ")));
            }
        };
        list("capabilities", &self.cap_add);
        list("devices", &self.devices);
        list("groups", &self.group_add);
        if let Some(network) = self.network.as_deref().filter(|network| shares_network(network)) {
            found
                .push(format!("the network of {}", network.strip_prefix("container:").unwrap_or("the host")));
        }
        if self.reuse {
            found.push("other sessions in its container".to_owned());
        }
        if self.host_gateway {
            found.push("the host by host.docker.internal".to_owned());
        }
        if self.user.as_deref().is_some_and(is_root) {
            found.push("root".to_owned());
        }
        let open = self.volumes.iter().filter(|volume| !volume.read_only);
        found.extend(open.map(|volume| format!("writable {}", volume.source.lossy())));
        let wide =
            self.publish.iter().filter(|port| port.address.as_deref().is_some_and(|a| !is_loopback(a)));
        found.extend(wide.map(|port| format!("port {} open to the network", port.container)));
        found
    }

    /// Whether others use the same network: the host, another container, or sessions in the same one.
    pub fn shares_network(&self) -> bool {
        self.reuse || self.network.as_deref().is_some_and(shares_network)
    }
}

fn shares_network(network: &str) -> bool {
    network == "host" || network.starts_with("container:")
}

fn is_root(user: &str) -> bool {
    matches!(user.split(':').next(), Some("0" | "root"))
}

fn is_loopback(address: &str) -> bool {
    address.starts_with("127.") || address == "::1" || address == "localhost"
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the shape that serde wants")]
fn is_false(value: &bool) -> bool {
    !value
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plain_container_is_not_weakened() {
        assert_eq!(Container::of("alpine").weakened(), Vec::<String>::new());
        let read = Volume { source: "/src".into(), target: "/src".into(), read_only: true };
        assert_eq!(Container { volumes: vec![read], ..Container::of("a") }.weakened(), Vec::<String>::new());
    }

    #[test]
    fn what_weakens_it_is_named() {
        let container = Container {
            cap_add: vec!["NET_ADMIN".into(), "SYS_PTRACE".into()],
            network: Some("host".into()),
            user: Some("0:0".into()),
            volumes: vec![Volume { source: "/src".into(), target: "/src".into(), read_only: false }],
            publish: vec![Publish { address: Some("0.0.0.0".into()), host: 0, container: 80, udp: false }],
            ..Container::of("alpine")
        };
        let expected = [
            "capabilities NET_ADMIN, SYS_PTRACE",
            "the network of the host",
            "root",
            "writable /src",
            "port 80 open to the network",
        ];
        assert_eq!(container.weakened(), expected);
    }

    #[test]
    fn missing_fields_have_defaults_and_unknown_ones_are_ignored() {
        let container: Container = serde_json::from_str(r#"{"image":"a","of tomorrow":1}"#).unwrap();
        assert_eq!(container, Container::of("a"));
        assert_eq!(serde_json::to_string(&container).unwrap(), r#"{"image":"a","pull":"missing"}"#);
    }
}

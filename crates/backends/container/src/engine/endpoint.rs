//! Finds where an engine listens, as the engine's own command line would.

use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use wharf_model::{Code, Failure};

use crate::engine::caller;

/// Which engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flavour {
    /// Docker.
    Docker,
    /// Podman.
    Podman,
}

impl Flavour {
    /// The word by which users choose it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Docker => "docker",
            Self::Podman => "podman",
        }
    }
}

/// Where an engine listens, and how that was found out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoint {
    /// The address, such as `unix:///run/docker.sock`.
    pub address: String,
    /// Why this one, for people.
    pub from: String,
}

impl Endpoint {
    /// An address that was named.
    pub fn named(address: impl Into<String>, from: impl Into<String>) -> Self {
        Self { address: address.into(), from: from.into() }
    }

    /// The endpoint that variables and files decide, in the order of the engine's own command line.
    pub fn resolve(flavour: Flavour, var: impl Fn(&str) -> Option<OsString>) -> Result<Self, Failure> {
        let text = |name: &str| {
            let value = var(name)?.into_string().ok()?;
            (!value.is_empty()).then_some(value)
        };
        match flavour {
            Flavour::Docker => docker(&text),
            Flavour::Podman => Ok(podman(&text)),
        }
    }

    /// Whether it is on another host, or at least by no file of this one.
    pub(crate) fn is_remote(&self) -> bool {
        self.socket().is_none()
    }

    /// The socket's path, where it is one of this host.
    pub fn socket(&self) -> Option<&Path> {
        self.address.strip_prefix("unix://").map(Path::new)
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.address, self.from)
    }
}

fn docker(text: &dyn Fn(&str) -> Option<String>) -> Result<Endpoint, Failure> {
    if let Some(host) = text("DOCKER_HOST") {
        // Any value will do, as it does for Docker's own command line.
        let tls = text("DOCKER_TLS_VERIFY").or_else(|| text("DOCKER_TLS")).is_some();
        let usual = || text("DOCKER_CONFIG").or_else(|| Some(format!("{}/.docker", text("HOME")?)));
        let certificates = text("DOCKER_CERT_PATH").or_else(usual).filter(|_| tls);
        return Ok(Endpoint::named(secured(host, certificates.as_deref().map(Path::new)), "DOCKER_HOST"));
    }
    let config = text("DOCKER_CONFIG").map(PathBuf::from);
    let config = config.or_else(|| text("HOME").map(|home| Path::new(&home).join(".docker")));
    let chosen = text("DOCKER_CONTEXT").or_else(|| current_context(config.as_deref()?));
    match chosen.filter(|name| name != "default") {
        Some(name) => config.and_then(|config| context(&config, &name)).ok_or_else(|| {
            Failure::new(Code::Unavailable, format!("there is no Docker context {name:?}")).hint(
                "`docker context ls` shows those that there are, `docker context use default` goes back",
            )
        }),
        None => Ok(Endpoint::named("unix:///var/run/docker.sock", "the default")),
    }
}

fn podman(text: &dyn Fn(&str) -> Option<String>) -> Endpoint {
    if let Some(host) = text("CONTAINER_HOST") {
        return Endpoint::named(host, "CONTAINER_HOST");
    }
    let own = text("XDG_RUNTIME_DIR").map(|dir| Path::new(&dir).join("podman/podman.sock"));
    match own.filter(|socket| socket.exists()) {
        Some(socket) => Endpoint::named(format!("unix://{}", socket.display()), "the user's own"),
        None => Endpoint::named("unix:///run/podman/podman.sock", "the default"),
    }
}

/// The address of a port that asks for certificates says where they are: it is never taken for one in plain text, whoever
/// reads it.
fn secured(address: String, certificates: Option<&Path>) -> String {
    match (address.strip_prefix("tcp://"), certificates) {
        (Some(host), Some(path)) => format!("tls://{}{}", host.trim_end_matches('/'), path.display()),
        _ => address,
    }
}

fn current_context(config: &Path) -> Option<String> {
    #[derive(Deserialize)]
    struct Config {
        #[serde(rename = "currentContext")]
        current: Option<String>,
    }
    let text = caller::read(&config.join("config.json")).ok()?;
    serde_json::from_slice::<Config>(&text).ok()?.current.filter(|name| !name.is_empty())
}

/// A context by its name. Its directory is named by a hash, so each is looked into.
fn context(config: &Path, name: &str) -> Option<Endpoint> {
    #[derive(Deserialize)]
    #[serde(rename_all = "PascalCase")]
    struct Meta {
        name: String,
        endpoints: Endpoints,
    }
    #[derive(Deserialize)]
    struct Endpoints {
        docker: Host,
    }
    #[derive(Deserialize)]
    struct Host {
        #[serde(rename = "Host")]
        host: String,
    }
    let entries = std::fs::read_dir(config.join("contexts/meta")).ok()?;
    entries.flatten().find_map(|entry| {
        let text = caller::read(&entry.path().join("meta.json")).ok()?;
        let meta: Meta = serde_json::from_slice(&text).ok()?;
        // What it is reached with stands beside it, under the same name.
        let certificates = config.join("contexts/tls").join(entry.file_name()).join("docker");
        let certificates = Some(certificates.as_path()).filter(|path| path.exists());
        (meta.name == name).then(|| {
            let address = secured(meta.endpoints.docker.host, certificates);
            Endpoint::named(address, format!("the context {name}"))
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(flavour: Flavour, vars: &[(&str, &str)]) -> Result<Endpoint, Failure> {
        Endpoint::resolve(flavour, |name| vars.iter().find(|(n, _)| *n == name).map(|(_, v)| v.into()))
    }

    fn with_context(current: &str) -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        let meta = dir.path().join("contexts/meta/0a1b");
        std::fs::create_dir_all(&meta).unwrap();
        let json =
            r#"{"Name":"far","Endpoints":{"docker":{"Host":"unix:///far.sock","SkipTLSVerify":false}}}"#;
        std::fs::write(meta.join("meta.json"), json).unwrap();
        let config = format!(r#"{{"auths":{{}},"currentContext":"{current}"}}"#);
        std::fs::write(dir.path().join("config.json"), config).unwrap();
        dir
    }

    #[test]
    fn a_host_wins_over_a_context_and_a_context_over_the_default() {
        let dir = with_context("far");
        let config = dir.path().to_str().unwrap();
        let vars = [("DOCKER_HOST", "unix:///host.sock"), ("DOCKER_CONFIG", config)];
        assert_eq!(at(Flavour::Docker, &vars).unwrap().address, "unix:///host.sock");
        assert_eq!(at(Flavour::Docker, &vars[1..]).unwrap().address, "unix:///far.sock");
        let named = [("DOCKER_CONFIG", config), ("DOCKER_CONTEXT", "default")];
        assert_eq!(at(Flavour::Docker, &named).unwrap().address, "unix:///var/run/docker.sock");
        assert_eq!(at(Flavour::Docker, &[]).unwrap().address, "unix:///var/run/docker.sock");
    }

    #[test]
    fn certificates_are_never_overlooked() {
        let all = [
            ("DOCKER_HOST", "tcp://there:2376"),
            ("HOME", "/me"),
            ("DOCKER_TLS_VERIFY", "1"),
            ("DOCKER_CERT_PATH", "/certs"),
        ];
        let address = |vars: &[(&str, &str)]| at(Flavour::Docker, vars).unwrap().address;
        assert_eq!(address(&all), "tls://there:2376/certs");
        assert_eq!(address(&all[..3]), "tls://there:2376/me/.docker");
        assert_eq!(address(&all[..2]), "tcp://there:2376");
        let ssh =
            [("DOCKER_HOST", "ssh://there"), ("DOCKER_TLS_VERIFY", "1"), ("DOCKER_CERT_PATH", "/certs")];
        assert_eq!(address(&ssh), "ssh://there");
        let dir = tempfile::tempdir().unwrap();
        let meta = dir.path().join("contexts/meta/0a1b");
        std::fs::create_dir_all(&meta).unwrap();
        let json = r#"{"Name":"far","Endpoints":{"docker":{"Host":"tcp://there:1"}}}"#;
        std::fs::write(meta.join("meta.json"), json).unwrap();
        let config = dir.path().to_str().unwrap();
        let vars = [("DOCKER_CONFIG", config), ("DOCKER_CONTEXT", "far")];
        assert_eq!(address(&vars), "tcp://there:1");
        let certificates = dir.path().join("contexts/tls/0a1b/docker");
        std::fs::create_dir_all(&certificates).unwrap();
        assert_eq!(address(&vars), format!("tls://there:1{}", certificates.display()));
    }

    #[test]
    fn a_context_that_is_gone_is_an_error_and_not_the_default() {
        let dir = with_context("gone");
        let failure = at(Flavour::Docker, &[("DOCKER_CONFIG", dir.path().to_str().unwrap())]).unwrap_err();
        assert_eq!(failure.code, Code::Unavailable);
        assert!(failure.message.contains("gone") && failure.hint.is_some(), "{failure:?}");
    }

    #[test]
    fn podman_has_a_socket_of_the_user_before_the_systems() {
        let dir = tempfile::tempdir().unwrap();
        let run = dir.path().to_str().unwrap();
        assert_eq!(
            at(Flavour::Podman, &[("XDG_RUNTIME_DIR", run)]).unwrap().address,
            "unix:///run/podman/podman.sock"
        );
        std::fs::create_dir(dir.path().join("podman")).unwrap();
        std::fs::write(dir.path().join("podman/podman.sock"), "").unwrap();
        let own = at(Flavour::Podman, &[("XDG_RUNTIME_DIR", run)]).unwrap();
        assert_eq!(own.socket(), Some(dir.path().join("podman/podman.sock").as_path()));
        let named = [("CONTAINER_HOST", "unix:///x"), ("XDG_RUNTIME_DIR", run)];
        assert_eq!(at(Flavour::Podman, &named).unwrap().address, "unix:///x");
    }
}

//! Reads which engine a caller means, and which variables that engine's own client would give a container.
//!
//! Both come from variables and files of the caller, who may name any file. So files are read on blocking threads,
//! with a limit, and only regular files are read at all.

use std::collections::HashMap;
use std::ffi::OsString;
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use serde::Deserialize;
use wharf_backend::{Beside, Result};
use wharf_model::{EngineVariables, Text};

use crate::engine::endpoint::{Endpoint, Flavour};

/// The longest file of an engine's client that is read.
const MAX_FILE_LEN: u64 = 1 << 20;

/// The caller's variables, or this process's own where the caller sent none.
#[derive(Debug, Clone)]
pub(crate) struct CallerVariables(Option<EngineVariables>);

impl CallerVariables {
    pub(crate) fn of(caller: Option<&EngineVariables>) -> Self {
        Self(caller.cloned())
    }

    fn get(&self, name: &str) -> Option<OsString> {
        match &self.0 {
            Some(said) => said.get(name),
            None => std::env::var_os(name),
        }
    }

    /// The endpoint that is meant.
    pub(crate) async fn endpoint(self, flavour: Flavour) -> Result<Endpoint> {
        run_limited(move || Endpoint::resolve(flavour, |name| self.get(name))).await?
    }

    /// The variables that the engine's own client would give a container.
    pub(crate) async fn client_variables(
        self,
        endpoint: &Endpoint,
        flavour: Flavour,
    ) -> Result<Vec<(Text, Text)>> {
        let host = endpoint.address.clone();
        run_limited(move || match flavour {
            Flavour::Docker => docker(&host, |name| self.get(name)),
            Flavour::Podman => podman(|name| self.get(name)),
        })
        .await
    }
}

/// Runs work that reads files of a caller on a limited number of threads: a file system that never answers delays
/// nobody else.
pub(crate) async fn run_limited<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T> {
    static READERS: LazyLock<Beside> = LazyLock::new(Beside::default);
    READERS.look("the files that say which engine is meant", work).await
}

/// A file of an engine's client. What is not plain, or too long, is as good as none.
pub(crate) fn read(path: &Path) -> io::Result<Vec<u8>> {
    // Opening a pipe would block.
    let flags = rustix::fs::OFlags::NONBLOCK.bits() as i32;
    let file = std::fs::OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    let mut bytes = Vec::new();
    if !file.metadata()?.is_file()
        || file.take(MAX_FILE_LEN + 1).read_to_end(&mut bytes)? as u64 > MAX_FILE_LEN
    {
        return Err(io::ErrorKind::InvalidData.into());
    }
    Ok(bytes)
}

/// What Docker's client gives a container: the proxies of `config.json`, those of this engine or else the default ones,
/// each in capitals and in small letters.
fn docker(host: &str, var: impl Fn(&str) -> Option<OsString>) -> Vec<(Text, Text)> {
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Config {
        proxies: HashMap<String, Proxies>,
    }
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Proxies {
        #[serde(rename = "httpProxy")]
        http: String,
        #[serde(rename = "httpsProxy")]
        https: String,
        #[serde(rename = "noProxy")]
        none: String,
        #[serde(rename = "ftpProxy")]
        ftp: String,
        #[serde(rename = "allProxy")]
        all: String,
    }
    let dir = var("DOCKER_CONFIG").map(PathBuf::from);
    let dir = dir.or_else(|| Some(Path::new(&var("HOME")?).join(".docker")));
    let read = dir.and_then(|dir| read(&dir.join("config.json")).ok());
    let config: Config = read.and_then(|bytes| serde_json::from_slice(&bytes).ok()).unwrap_or_default();
    // What we call an address with certificates, its client calls a plain one.
    let plain = host.strip_prefix("tls://").and_then(|rest| rest.split('/').next());
    let host = plain.map_or_else(|| host.to_owned(), |host| format!("tcp://{host}"));
    let Some(proxies) = config.proxies.get(&host).or_else(|| config.proxies.get("default")) else {
        return Vec::new();
    };
    let pairs = [
        ("HTTP_PROXY", &proxies.http),
        ("HTTPS_PROXY", &proxies.https),
        ("NO_PROXY", &proxies.none),
        ("FTP_PROXY", &proxies.ftp),
        ("ALL_PROXY", &proxies.all),
    ];
    let named = pairs.into_iter().filter(|(_, value)| !value.is_empty());
    named
        .flat_map(|(name, value)| [name.to_owned(), name.to_lowercase()].map(|name| (name, value)))
        .map(|(name, value)| (Text::from(name), Text::from(value.as_str())))
        .collect()
}

/// What Podman's client gives a container: the caller's own proxies unless `containers.conf` says no, and the time zone
/// that stands there.
fn podman(var: impl Fn(&str) -> Option<OsString>) -> Vec<(Text, Text)> {
    let (mut proxies, mut zone) = (true, None);
    for file in podman_files(&var) {
        let Some(text) = read(&file).ok().and_then(|bytes| String::from_utf8(bytes).ok()) else { continue };
        for (key, value) in containers_section(&text) {
            match key {
                "http_proxy" => proxies = value != "false",
                "tz" => zone = Some(value.trim_matches(['"', '\'']).to_owned()),
                _ => {}
            }
        }
    }
    let mut all: Vec<(Text, Text)> = Vec::new();
    if proxies {
        let names = EngineVariables::proxies().iter();
        all.extend(names.filter_map(|name| Some((Text::from(*name), Text::from(var(name)?)))));
    }
    let zone = match zone.as_deref() {
        Some("local") => own_zone(),
        zone => zone.filter(|zone| !zone.is_empty()).map(str::to_owned),
    };
    all.extend(zone.map(|zone| ("TZ".into(), zone.into())));
    all
}

/// The files that Podman's client reads, the last word last.
fn podman_files(var: impl Fn(&str) -> Option<OsString>) -> Vec<PathBuf> {
    if let Some(only) = var("CONTAINERS_CONF").filter(|path| !path.is_empty()) {
        return vec![only.into()];
    }
    let system = ["/usr/share/containers", "/etc/containers"].map(PathBuf::from);
    let own = var("XDG_CONFIG_HOME").filter(|dir| !dir.is_empty()).map(PathBuf::from);
    let own = own.or_else(|| Some(Path::new(&var("HOME")?).join(".config")));
    let dirs = system.into_iter().chain(own.map(|dir| dir.join("containers")));
    dirs.map(|dir| dir.join("containers.conf")).collect()
}

/// The settings of the section `containers` that stand in one line each.
fn containers_section(text: &str) -> impl Iterator<Item = (&str, &str)> {
    let mut inside = false;
    text.lines().filter_map(move |line| {
        let line = line.trim();
        if line.starts_with('[') {
            inside = line.split('#').next().unwrap_or_default().trim() == "[containers]";
            return None;
        }
        let (key, value) = line.split_once('=').filter(|_| inside && !line.starts_with('#'))?;
        Some((key.trim(), value.split('#').next().unwrap_or_default().trim()))
    })
}

/// The time zone of this host by its name.
fn own_zone() -> Option<String> {
    let link = std::fs::canonicalize("/etc/localtime").ok()?;
    let zone = link.to_str()?.split_once("/zoneinfo/")?.1;
    Some(zone.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(all: &[(Text, Text)]) -> Vec<String> {
        let mut all: Vec<String> =
            all.iter().map(|(name, value)| format!("{}={}", name.lossy(), value.lossy())).collect();
        all.sort();
        all
    }

    #[test]
    fn docker_hands_on_the_proxies_of_its_configuration_and_not_the_callers() {
        let dir = tempfile::tempdir().unwrap();
        let config = r#"{"proxies":{"default":{"httpProxy":"http://d","noProxy":"a,b"},
            "tcp://there:1":{"allProxy":"socks5://t"}},"auths":{}}"#;
        std::fs::write(dir.path().join("config.json"), config).unwrap();
        let var = |name: &str| match name {
            "DOCKER_CONFIG" => Some(dir.path().into()),
            "HTTP_PROXY" => Some("http://mine".into()),
            _ => None,
        };
        let default = ["HTTP_PROXY=http://d", "NO_PROXY=a,b", "http_proxy=http://d", "no_proxy=a,b"];
        assert_eq!(texts(&docker("unix:///x", var)), default);
        assert_eq!(texts(&docker("tcp://there:1", var)), ["ALL_PROXY=socks5://t", "all_proxy=socks5://t"]);
        assert_eq!(docker("tls://there:1/certs", var).len(), 2);
        assert_eq!(docker("unix:///x", |_| None), []);
        std::fs::write(dir.path().join("config.json"), "nonsense").unwrap();
        assert_eq!(docker("unix:///x", var), []);
    }

    #[test]
    fn podman_hands_on_the_callers_proxies_and_the_time_zone_that_is_set() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("containers.conf");
        let own = |name: &str| match name {
            "CONTAINERS_CONF" => Some(file.clone().into_os_string()),
            "http_proxy" => Some("http://mine".into()),
            "NO_PROXY" => Some("a".into()),
            "FOO" => Some("bar".into()),
            _ => None,
        };
        assert_eq!(texts(&podman(own)), ["NO_PROXY=a", "http_proxy=http://mine"]);
        std::fs::write(
            &file,
            "[engine]\ntz=\"No/No\"\n[containers] # x\n#tz=\"no\"\ntz = \"Asia/Tokyo\" # y\n",
        )
        .unwrap();
        assert_eq!(texts(&podman(own)), ["NO_PROXY=a", "TZ=Asia/Tokyo", "http_proxy=http://mine"]);
        std::fs::write(&file, "[containers]\nhttp_proxy = false\n").unwrap();
        assert_eq!(podman(own), []);
    }

    #[test]
    fn a_pipe_in_the_place_of_a_file_is_not_waited_for() {
        let dir = tempfile::tempdir().unwrap();
        let pipe = dir.path().join("config.json");
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        assert!(read(&pipe).is_err());
        std::fs::remove_file(&pipe).unwrap();
        std::fs::File::create(&pipe).unwrap().set_len(MAX_FILE_LEN + 1).unwrap();
        assert!(read(&pipe).is_err());
    }
}

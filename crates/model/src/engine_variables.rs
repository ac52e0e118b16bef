//! Which container engine a caller means, by the variables that engines' own clients go by.

use std::ffi::OsString;

use serde::{Deserialize, Serialize};

use crate::Text;

/// The variables of a caller that say which engine is meant, how it is reached, and what its own client would hand on to
/// a container. Where a caller says nothing at all, those of whoever starts the session count.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct EngineVariables(Vec<(Text, Text)>);

/// Which engine, and how it is reached. None of them is a secret; `DOCKER_AUTH_CONFIG` would be.
const PLACES: &[&str] = &[
    "DOCKER_HOST",
    "DOCKER_CONTEXT",
    "DOCKER_CONFIG",
    "DOCKER_TLS",
    "DOCKER_TLS_VERIFY",
    "DOCKER_CERT_PATH",
    "CONTAINER_HOST",
    "CONTAINERS_CONF",
    "HOME",
    "XDG_CONFIG_HOME",
    "XDG_RUNTIME_DIR",
];

/// The way out to the network, which Podman's own client hands on.
const PROXIES: &[&str] = &[
    "http_proxy",
    "https_proxy",
    "ftp_proxy",
    "no_proxy",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "FTP_PROXY",
    "NO_PROXY",
];

/// Those that are paths, and mean another file where they are read from another directory.
const PATHS: &[&str] = &["DOCKER_CONFIG", "DOCKER_CERT_PATH", "CONTAINERS_CONF"];

impl EngineVariables {
    /// Those of a caller that stands in `here`, for a session.
    pub fn of(here: &std::path::Path, var: impl Fn(&str) -> Option<OsString>) -> Self {
        let mut all = Self::places(here, &var);
        all.take(PROXIES, here, var);
        all
    }

    /// Those of a caller that only asks an engine something.
    pub fn places(here: &std::path::Path, var: impl Fn(&str) -> Option<OsString>) -> Self {
        let mut all = Self::default();
        all.take(PLACES, here, var);
        all
    }

    fn take(&mut self, names: &[&str], here: &std::path::Path, var: impl Fn(&str) -> Option<OsString>) {
        self.0.extend(names.iter().filter_map(|name| {
            let value = var(name).filter(|value| !value.is_empty())?;
            let value = if PATHS.contains(name) { here.join(value).into_os_string() } else { value };
            Some((Text::from(*name), Text::from(value)))
        }));
    }

    /// The value of one.
    pub fn get(&self, name: &str) -> Option<OsString> {
        let found = self.0.iter().find(|(known, _)| known.as_bytes() == name.as_bytes());
        found.map(|(_, value)| value.as_os_str().to_owned())
    }

    /// All of them.
    pub fn all(&self) -> &[(Text, Text)] {
        &self.0
    }

    /// The names of the variables that lead out to the network.
    pub fn proxies() -> &'static [&'static str] {
        PROXIES
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn only_what_says_which_engine_is_taken_and_paths_are_whole() {
        let var = |name: &str| match name {
            "DOCKER_HOST" => Some("unix:///x".into()),
            "DOCKER_CONFIG" => Some("conf".into()),
            "DOCKER_CERT_PATH" => Some("/certs".into()),
            "http_proxy" => Some("http://p".into()),
            "DOCKER_AUTH_CONFIG" | "SECRET" => Some("secret".into()),
            "DOCKER_CONTEXT" => Some(OsString::new()),
            _ => None,
        };
        let all = EngineVariables::of(Path::new("/here"), var);
        assert_eq!(all.get("DOCKER_CONFIG"), Some("/here/conf".into()));
        assert_eq!(all.get("DOCKER_CERT_PATH"), Some("/certs".into()));
        assert_eq!((all.get("DOCKER_CONTEXT"), all.get("DOCKER_AUTH_CONFIG")), (None, None));
        assert_eq!(all.all().len(), 4);
        assert_eq!(EngineVariables::places(Path::new("/here"), var).get("http_proxy"), None);
        let text = serde_json::to_string(&all).unwrap();
        assert_eq!(serde_json::from_str::<EngineVariables>(&text).unwrap(), all);
    }
}

//! The variables that a daemon is started with.
//!
//! It lives for months, and whoever types the first command of all starts it. What that one's shell happens to have (keys,
//! tokens) is not the daemon's: anybody of the same user reads it in `/proc`, and every program that the daemon runs
//! inherits it. Sessions do not miss it, for each gets the variables of its own caller.

use std::ffi::{OsStr, OsString};

/// The variable that lets a daemon start under a hard limit that would end its sessions.
pub const INHERIT_LIMITS: &str = "WHARF_INHERIT_LIMITS";

/// What the daemon, or a program that it runs by itself, asks for.
const KEPT: &[&str] = &[
    // Where it lives and who it is for: its directories, the login shell, programs by their names.
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "PATH",
    "TMPDIR",
    // The language of what nix, git, ssh and tmux say, and the time that logs have.
    "LANG",
    "LANGUAGE",
    "TZ",
    // Its own.
    "WHARF_LOG",
    "WHARF_HOLDER",
    INHERIT_LIMITS,
    "RUST_BACKTRACE",
    // Which engine has the containers, and how it is reached. None of them is a secret; DOCKER_AUTH_CONFIG would be.
    "DOCKER_HOST",
    "DOCKER_CONTEXT",
    "DOCKER_CONFIG",
    "DOCKER_TLS",
    "DOCKER_TLS_VERIFY",
    "DOCKER_CERT_PATH",
    "CONTAINER_HOST",
    "CONTAINER_SSHKEY",
    // An engine by ssh, and limits by the user's systemd.
    "SSH_AUTH_SOCK",
    "DBUS_SESSION_BUS_ADDRESS",
    // Nix where it is not installed as usual. NIX_CONFIG is left out: access tokens stand there.
    "NIX_PATH",
    "NIX_PROFILES",
    "NIX_REMOTE",
    "NIX_SSL_CERT_FILE",
    "NIX_CONF_DIR",
    "NIX_USER_CONF_FILES",
    "NIX_STORE_DIR",
    "NIX_STATE_DIR",
    // The way out to the network, for what nix fetches.
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "ALL_PROXY",
    "NO_PROXY",
    "http_proxy",
    "https_proxy",
    "all_proxy",
    "no_proxy",
];

/// The beginnings of further names: directories by the XDG rules, and the parts of a language.
const KEPT_PREFIXES: &[&[u8]] = &[b"XDG_", b"LC_"];

/// Whether a variable of ours is one for the daemon.
pub(crate) fn is_kept(name: &OsStr) -> bool {
    let name = name.as_encoded_bytes();
    KEPT.iter().any(|kept| kept.as_bytes() == name)
        || KEPT_PREFIXES.iter().any(|prefix| name.starts_with(prefix))
}

/// The variables for a daemon that we start.
pub(crate) fn variables(inherit_limits: bool) -> impl Iterator<Item = (OsString, OsString)> {
    let asked = inherit_limits.then(|| (INHERIT_LIMITS.into(), "1".into()));
    std::env::vars_os()
        .filter(move |(name, _)| is_kept(name) && !(inherit_limits && name == INHERIT_LIMITS))
        .chain(asked)
}

/// Whether this process was told to accept hard limits that would end sessions.
pub fn inherits_limits() -> bool {
    std::env::var_os(INHERIT_LIMITS).is_some_and(|value| !value.is_empty() && value != "0")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_and_marks_of_a_session_stay_behind() {
        for name in [
            "WHARF_SESSION",
            "WHARF_SESSION_ID",
            "WHARF_TOKEN",
            "WHARF_READY_FD",
            "WHARF_EVENTS",
            "WHARF_PROMPT_FILE",
            "API_KEY",
            "AWS_SECRET_ACCESS_KEY",
            "DOCKER_AUTH_CONFIG",
            "NIX_CONFIG",
            "LD_PRELOAD",
            "GITHUB_TOKEN",
        ] {
            assert!(!is_kept(name.as_ref()), "{name}");
        }
        for name in ["PATH", "WHARF_LOG", "WHARF_HOLDER", "HOME", "XDG_STATE_HOME", "LC_ALL", "DOCKER_HOST"] {
            assert!(is_kept(name.as_ref()), "{name}");
        }
    }
}

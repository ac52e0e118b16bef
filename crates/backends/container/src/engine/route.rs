//! The way to an engine, as its address says.

use std::path::PathBuf;

use wharf_model::{Code, Failure};

/// The way to an engine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Route {
    /// A socket of this host.
    Socket(PathBuf),
    /// A port of a host.
    Tcp {
        /// The host.
        host: String,
        /// The port; what is usual when absent.
        port: Option<u16>,
    },
    /// The same, for those who have certificates.
    Tls {
        /// The host.
        host: String,
        /// The port; what is usual when absent.
        port: Option<u16>,
        /// The directory with `ca.pem`, and `cert.pem` and `key.pem` where the engine wants to know who asks.
        certificates: PathBuf,
    },
    /// By way of `ssh`, and the engine's own command line over there.
    Ssh {
        /// The user, where one is named.
        user: Option<String>,
        /// The host, or what the user's own configuration calls it.
        host: String,
        /// The port, where one is named.
        port: Option<u16>,
        /// The socket over there, where it is not the usual one.
        socket: Option<String>,
    },
}

impl Route {
    /// Reads an address. Everything in it ends up in an argument of a program, or in a shell of the other host: what is not
    /// plain is refused.
    pub(crate) fn parse(address: &str) -> Result<Self, Failure> {
        let wrong = |why: &str| {
            Failure::new(Code::Invalid, format!("{address:?} is no address of an engine: {why}"))
                .hint("an address is unix:///PATH, tcp://HOST[:PORT] or ssh://[USER@]HOST[:PORT]")
        };
        if let Some(path) = address.strip_prefix("unix://") {
            return Ok(Self::Socket(PathBuf::from(path)));
        }
        if let Some(rest) = address.strip_prefix("tcp://") {
            let (host, port) =
                host(rest.strip_suffix('/').unwrap_or(rest)).ok_or_else(|| wrong("its host is odd"))?;
            return Ok(Self::Tcp { host, port });
        }
        if let Some(rest) = address.strip_prefix("tls://") {
            let (there, path) = rest.split_once('/').ok_or_else(|| wrong("it names no certificates"))?;
            let (host, port) = host(there).ok_or_else(|| wrong("its host is odd"))?;
            return Ok(Self::Tls { host, port, certificates: PathBuf::from(format!("/{path}")) });
        }
        let rest = address.strip_prefix("ssh://").ok_or_else(|| wrong("it is of no known kind"))?;
        let (there, path) = rest.split_once('/').unwrap_or((rest, ""));
        let (user, there) = match there.rsplit_once('@') {
            Some((user, there)) => (Some(user), there),
            None => (None, there),
        };
        if user.is_some_and(|user| !plain(user, "._")) {
            return Err(wrong("its user is odd").hint("a password has no place in an address; ssh has keys"));
        }
        if !path.is_empty() && !plain(&path.replace('/', "x"), "._") {
            return Err(wrong("its path is odd"));
        }
        let (host, port) = host(there).ok_or_else(|| wrong("its host is odd"))?;
        let socket = (!path.is_empty()).then(|| format!("/{path}"));
        Ok(Self::Ssh { user: user.map(str::to_owned), host, port, socket })
    }
}

/// Whether a word is made of letters, digits, dashes and these, and cannot be taken for an option.
fn plain(word: &str, also: &str) -> bool {
    let known = |c: char| c.is_ascii_alphanumeric() || c == '-' || also.contains(c);
    !word.is_empty() && !word.starts_with('-') && word.chars().all(known)
}

/// A host, and a port where one is named.
fn host(text: &str) -> Option<(String, Option<u16>)> {
    if let Some(rest) = text.strip_prefix('[') {
        let (inner, port) = rest.split_once(']')?;
        let port = if port.is_empty() { None } else { Some(port.strip_prefix(':')?.parse().ok()?) };
        return plain(inner, ":.%").then(|| (inner.to_owned(), port));
    }
    let (name, port) = match text.split_once(':') {
        Some((name, port)) => (name, Some(port.parse().ok()?)),
        None => (text, None),
    };
    plain(name, "._").then(|| (name.to_owned(), port))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read() {
        let tcp = |host: &str, port| Route::Tcp { host: host.to_owned(), port };
        assert_eq!(Route::parse("unix:///x/y").unwrap(), Route::Socket("/x/y".into()));
        assert_eq!(Route::parse("tcp://10.0.0.1:2375").unwrap(), tcp("10.0.0.1", Some(2375)));
        assert_eq!(Route::parse("tcp://there/").unwrap(), tcp("there", None));
        assert_eq!(Route::parse("tcp://[::1]:99").unwrap(), tcp("::1", Some(99)));
        let certificates = PathBuf::from("/home/me/my certs");
        let tls = Route::Tls { host: "there".to_owned(), port: Some(2376), certificates };
        assert_eq!(Route::parse("tls://there:2376/home/me/my certs").unwrap(), tls);
        let Route::Ssh { user, host, port, socket } =
            Route::parse("ssh://me@there.example:22/run/user/1000/podman/podman.sock").unwrap()
        else {
            panic!("that is one by ssh")
        };
        assert_eq!((user.as_deref(), host.as_str(), port), (Some("me"), "there.example", Some(22)));
        assert_eq!(socket.as_deref(), Some("/run/user/1000/podman/podman.sock"));
    }

    #[test]
    fn what_could_be_taken_for_an_option_or_a_command_is_refused() {
        for odd in [
            "ssh://-oProxyCommand=x",
            "ssh://-l@host",
            "ssh://me:secret@host",
            "ssh://host:x",
            "ssh://host;ls",
            "ssh://host/run/$(x)",
            "ssh://",
            "tcp://",
            "tls://there",
            "tls://-x/certs",
            "tcp://-x:1",
            "tcp://a b",
            "tcp://[::1]x",
            "npipe:////./pipe/x",
            "http://host:1",
            "",
        ] {
            let failure = Route::parse(odd).unwrap_err();
            assert_eq!(failure.code, Code::Invalid, "{odd}");
            assert!(failure.hint.is_some(), "{odd}");
        }
    }
}

//! A container as its engine sees it.
//!
//! Asked for without the client that everything else goes through: that one takes a state which it has no word for, such as
//! Podman's `stopped`, for a broken answer.

use std::collections::HashMap;
use std::io;
use std::path::Path;

use serde::Deserialize;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;

/// The most that an engine may have to say of one container.
const MOST: u64 = 16 << 20;

/// What is asked of a container. Whatever else there is, is ignored.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub(crate) struct Found {
    /// The engine's own id of it.
    pub(crate) id: String,
    /// How it is.
    pub(crate) state: FoundState,
    config: Config,
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
struct Config {
    labels: Option<HashMap<String, String>>,
}

impl Found {
    /// Its labels.
    pub(crate) fn label(&self, key: &str) -> Option<&str> {
        self.config.labels.as_ref()?.get(key).map(String::as_str)
    }
}

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
}

/// Asks for a container; none where there is no such one. The caller sets the deadline.
pub(crate) async fn container(socket: &Path, id: &str) -> io::Result<Option<Found>> {
    if id.is_empty() || !id.bytes().all(|b| b.is_ascii_alphanumeric() || b"_.-".contains(&b)) {
        return Err(odd("that is no container's name"));
    }
    match get(socket, &format!("/containers/{id}/json")).await? {
        (200, body) => Ok(Some(serde_json::from_slice(&body)?)),
        (404, _) => Ok(None),
        // Podman says so of one that went while it looked at it, and has a field for the cause alone.
        (500, body) if cause(&body).as_deref() == Some("no such container") => Ok(None),
        (status, body) => Err(refused(status, &body)),
    }
}

/// What Podman gives as the cause of an error.
fn cause(body: &[u8]) -> Option<String> {
    let answer: serde_json::Value = serde_json::from_slice(body).ok()?;
    Some(answer.get("cause")?.as_str()?.to_owned())
}

/// Asks for all containers with a label, whether they run or not. The caller sets the deadline.
pub(crate) async fn containers(socket: &Path, label: &str) -> io::Result<Vec<Listed>> {
    let filters = serde_json::json!({ "label": [label] }).to_string();
    let filters: String = filters.bytes().map(|byte| format!("%{byte:02X}")).collect::<Vec<_>>().concat();
    match get(socket, &format!("/containers/json?all=true&filters={filters}")).await? {
        (200, body) => Ok(serde_json::from_slice(&body)?),
        (status, body) => Err(refused(status, &body)),
    }
}

/// What matters of how an engine runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Nature {
    /// Whether it runs as a user: then root in a container is that user.
    pub(crate) rootless: bool,
    /// Whether it can enforce limits: a user has no cgroups of the first version.
    pub(crate) limits: bool,
}

/// How the engine runs. Either engine has its own way to say so. The caller sets the deadline.
pub(crate) async fn nature(socket: &Path) -> io::Result<Nature> {
    #[derive(Default, Deserialize)]
    #[serde(rename_all = "PascalCase", default)]
    struct Info {
        rootless: bool,
        security_options: Option<Vec<String>>,
        cgroup_version: String,
    }
    let info: Info = match get(socket, "/info").await? {
        (200, body) => serde_json::from_slice(&body)?,
        (status, body) => return Err(refused(status, &body)),
    };
    let options = info.security_options.unwrap_or_default();
    let rootless = info.rootless || options.iter().any(|option| option.contains("rootless"));
    Ok(Nature { rootless, limits: !rootless || info.cgroup_version != "1" })
}

async fn get(socket: &Path, path: &str) -> io::Result<(u16, Vec<u8>)> {
    let mut stream = UnixStream::connect(socket).await?;
    // Of this version the answer comes in one piece and ends with the connection.
    let request = format!("GET {path} HTTP/1.0\r\nHost: engine\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    let mut answer = Vec::new();
    stream.take(MOST).read_to_end(&mut answer).await?;
    let (status, body) = split(&answer).ok_or_else(|| odd("the engine's answer is odd"))?;
    Ok((status, body.to_vec()))
}

fn odd(why: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why.to_owned())
}

fn refused(status: u16, body: &[u8]) -> io::Error {
    io::Error::other(format!("status {status}: {}", String::from_utf8_lossy(body).trim()))
}

/// The status and the body of an answer.
fn split(answer: &[u8]) -> Option<(u16, &[u8])> {
    let end = answer.windows(4).position(|window| window == b"\r\n\r\n")?;
    let line = std::str::from_utf8(answer.split(|byte| *byte == b'\r').next()?).ok()?;
    let status = line.strip_prefix("HTTP/1.")?.split(' ').nth(1)?.parse().ok()?;
    Some((status, &answer[end + 4..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_taken_apart_and_nonsense_is_not() {
        let answer = b"HTTP/1.0 404 Not Found\r\nContent-Type: application/json\r\n\r\n{}";
        assert_eq!(split(answer), Some((404, &b"{}"[..])));
        for odd in
            [&b""[..], b"\r\n\r\n", b"HTTP/2 200 OK\r\n\r\n", b"HTTP/1.0 x\r\n\r\n", b"HTTP/1.0 200 OK\r\n"]
        {
            assert_eq!(split(odd), None, "{}", odd.escape_ascii());
        }
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

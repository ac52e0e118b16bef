//! The daemon's HTTP API, asked from inside for what is another's: `api SOCKET SESSION...`.

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use super::Outcome;

/// How long an answer may take.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);

/// What is asked of a session: `{}` stands for it.
const ASKED: &[(&str, &str, &str)] = &[
    ("POST", "/v1/sessions/{}/write", "owned"),
    ("POST", "/v1/sessions/{}/keys", r#"{"keys":["o","w","n","e","d"]}"#),
    ("POST", "/v1/sessions/{}/messages", r#"{"text":"owned"}"#),
    ("POST", "/v1/sessions/{}/rename", r#"{"name":"owned"}"#),
    ("POST", "/v1/sessions/{}/approve", "{}"),
    ("GET", "/v1/sessions/{}/env", ""),
    ("GET", "/v1/sessions/{}/log", ""),
    ("GET", "/v1/sessions/{}/screen", ""),
    ("GET", "/v1/sessions/{}/events", ""),
    ("POST", "/v1/sessions/{}/pipe", r#"{"file":"/tmp/owned"}"#),
    ("POST", "/v1/sessions/{}/files/take", r#"{"path":"."}"#),
    ("POST", "/v1/kill", r#"{"selector":{"names":["{}"]}}"#),
    ("POST", "/v1/stop", r#"{"selector":{"names":["{}"]}}"#),
    ("POST", "/v1/signal", r#"{"selector":{"names":["{}"]},"signal":9}"#),
    ("POST", "/v1/restart", r#"{"selector":{"names":["{}"]}}"#),
    ("POST", "/v1/remove", r#"{"selector":{"names":["{}"]},"force":true}"#),
    ("POST", "/v1/trust/accept", r#"{"file":"/tmp/wharf.toml","sha256":"0"}"#),
    ("POST", "/v1/daemon/stop", "{}"),
];

/// Asks for each. `did` is what was answered as done.
pub(super) fn ask(words: &[String]) -> Result<Outcome, String> {
    let [socket, sessions @ ..] = words else { return Err("api SOCKET SESSION...".to_owned()) };
    let mut outcome = Outcome::default();
    for session in sessions {
        for (method, path, body) in ASKED {
            let (path, body) = (path.replace("{}", session), body.replace("{}", session));
            let what = format!("{method} {path}");
            match exchange(socket, method, &path, &body) {
                Ok(status) if status.starts_with('2') => outcome.did.push(what),
                Ok(status) => outcome.failed.push(format!("{what}: {status}")),
                Err(error) => outcome.failed.push(format!("{what}: {error}")),
            }
        }
    }
    Ok(outcome)
}

/// The status of the answer, and its first words.
fn exchange(socket: &str, method: &str, path: &str, body: &str) -> io::Result<String> {
    let mut stream = UnixStream::connect(socket)?;
    stream.set_read_timeout(Some(ANSWER_TIMEOUT))?;
    let length = body.len();
    let head = format!(
        "{method} {path} HTTP/1.1\r\nHost: wharf\r\nConnection: close\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n"
    );
    // In one piece, and the answer is read all the same where it cannot be sent: who is refused is not listened to.
    let sent = stream.write_all(format!("{head}{body}").as_bytes());
    let mut answer = [0; 512];
    let read =
        stream.read(&mut answer).and_then(|read| if read == 0 { sent.map(|()| 0) } else { Ok(read) })?;
    let text = String::from_utf8_lossy(&answer[..read]).into_owned();
    Ok(text.lines().next().unwrap_or_default().trim_start_matches("HTTP/1.1 ").to_owned())
}

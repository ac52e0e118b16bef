//! What is asked of the engine.

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::Value;

use super::Guest;

/// The most that comes before the body of an answer.
const MAX_HEADER_LEN: usize = 64 << 10;
/// The most that an engine says of an end.
const MAX_ANSWER_LEN: u64 = 1 << 20;
/// How long an engine may be silent over something that it can say at once.
const SILENCE_TIMEOUT: Duration = Duration::from_secs(20);

/// States of a container that is over, in the words of either engine.
const OVER: &[&str] = &["exited", "stopped", "dead"];

/// The keys that make an engine let go of whoever types them. They cannot be done without, so they are some that
/// nobody types.
const DETACH: &str = "ctrl-%5E,ctrl-_,ctrl-%5E,ctrl-_,ctrl-%5E,ctrl-_,ctrl-%5E,ctrl-_";

/// What an engine answers: its status, and the stream behind it with what came along.
struct Answer {
    status: u16,
    stream: UnixStream,
    begun: Vec<u8>,
}

impl Answer {
    fn is_good(&self) -> bool {
        matches!(self.status, 101 | 200..=299)
    }
}

/// The time now, as engines want it.
pub(super) fn now() -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    format!("{}.{:09}", now.as_secs(), now.subsec_nanos())
}

/// A connection to what the container prints and reads from now on, and what came with its first word.
pub(super) fn attach(guest: &Guest) -> io::Result<(UnixStream, Vec<u8>)> {
    let stdin = u8::from(guest.input);
    let path = format!(
        "/containers/{}/attach?stream=1&stdin={stdin}&stdout=1&stderr=1&detachKeys={DETACH}",
        guest.container
    );
    let headers = "Connection: Upgrade\r\nUpgrade: tcp\r\nContent-Length: 0\r\n";
    let answer = ask(guest, &format!("POST {path} HTTP/1.1\r\nHost: engine\r\n{headers}\r\n"))?;
    if !answer.is_good() {
        return Err(io::Error::other(format!("the engine answered {}", answer.status)));
    }
    answer.stream.set_read_timeout(None)?;
    Ok((answer.stream, answer.begun))
}

/// What the container printed since, and prints from now on, as far as the engine keeps it.
pub(super) fn followed(guest: &Guest, since: Option<&str>) -> io::Result<impl Read> {
    let (stream, begun) = printed(guest, "&follow=1", since, None)?;
    stream.set_read_timeout(None)?;
    Ok(io::Cursor::new(begun).chain(stream))
}

/// What the container printed between two times, as far as the engine keeps it.
pub(super) fn logs(guest: &Guest, since: Option<&str>, until: Option<&str>) -> io::Result<impl Read> {
    let (stream, begun) = printed(guest, "", since, until)?;
    Ok(io::Cursor::new(begun).chain(stream))
}

fn printed(
    guest: &Guest,
    how: &str,
    since: Option<&str>,
    until: Option<&str>,
) -> io::Result<(UnixStream, Vec<u8>)> {
    let mut path = format!("/containers/{}/logs?stdout=1&stderr=1{how}", guest.container);
    for (name, time) in [("since", since), ("until", until)] {
        if let Some(time) = time {
            path.extend(["&", name, "=", time]);
        }
    }
    let answer = ask(guest, &format!("GET {path} HTTP/1.0\r\nHost: engine\r\n\r\n"))?;
    if !answer.is_good() {
        return Err(io::Error::other(format!("the engine answered {}", answer.status)));
    }
    Ok((answer.stream, answer.begun))
}

/// Waits until the container is over. Its code; none where nobody knows it. It ran at that time.
///
/// What an engine answers to a wait is not always so: Podman says 0 or -1 of one that was removed or whose end it is
/// still writing down. So it is asked how it is, and where it is gone, what was seen of it.
pub(super) fn wait(guest: &Guest, since: &str) -> io::Result<Option<i64>> {
    let path = format!("/containers/{}/wait", guest.container);
    let waited =
        say(guest, &format!("POST {path} HTTP/1.0\r\nHost: engine\r\nContent-Length: 0\r\n\r\n"), None)?;
    match say(guest, &get(&format!("/containers/{}/json", guest.container)), Some(SILENCE_TIMEOUT))? {
        (200, found) => match &found["State"] {
            // Of one that is about to go nothing can be said: it has no code yet, or has it no more.
            state if state["Status"].as_str().is_some_and(|word| OVER.contains(&word)) => {
                Ok(state["ExitCode"].as_i64())
            }
            _ => Err(io::Error::other("the container is not over")),
        },
        (404, _) => {
            let seen = say(guest, &get(&deaths(guest, since)), Some(SILENCE_TIMEOUT));
            let seen = seen.ok().and_then(|(_, events)| events.as_array()?.iter().rev().find_map(code));
            // One that is removed when it ends is gone by now, and its code was told first.
            Ok(seen.or_else(|| waited.1["StatusCode"].as_i64().filter(|code| waited.0 < 300 && *code > 0)))
        }
        (status, _) => Err(io::Error::other(format!("the engine answered {status}"))),
    }
}

/// Whether the container runs.
pub(super) fn runs(guest: &Guest) -> io::Result<bool> {
    let (_, found) =
        say(guest, &get(&format!("/containers/{}/json", guest.container)), Some(SILENCE_TIMEOUT))?;
    Ok(found["State"]["Running"] == true)
}

fn get(path: &str) -> String {
    format!("GET {path} HTTP/1.0\r\nHost: engine\r\n\r\n")
}

/// What asks what became of a container.
fn deaths(guest: &Guest, since: &str) -> String {
    let filters = serde_json::json!({ "container": [guest.container] }).to_string();
    let filters: String = filters.bytes().map(|byte| format!("%{byte:02X}")).collect::<Vec<_>>().concat();
    // Whole seconds: Podman takes nothing else here.
    let until = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs() + 1;
    let since = since.split('.').next().unwrap_or_default();
    format!("/events?since={since}&until={until}&filters={filters}")
}

/// The code that a death tells, in the words of either engine. Podman has a code in every event.
fn code(event: &Value) -> Option<i64> {
    event["Action"].as_str().filter(|action| matches!(*action, "die" | "died"))?;
    let attributes = &event["Actor"]["Attributes"];
    ["exitCode", "containerExitCode"].iter().find_map(|name| attributes[*name].as_str()?.parse().ok())
}

/// Asks, and reads the answer to its end: its status, and all that it says. Several texts in a row become a list.
fn say(guest: &Guest, request: &str, within: Option<Duration>) -> io::Result<(u16, Value)> {
    let mut stream = UnixStream::connect(guest.socket.as_path())?;
    stream.set_read_timeout(within)?;
    stream.write_all(request.as_bytes())?;
    let (status, mut body) = head(&mut stream)?;
    stream.take(MAX_ANSWER_LEN).read_to_end(&mut body)?;
    let mut texts: Vec<Value> = serde_json::Deserializer::from_slice(&body).into_iter().flatten().collect();
    let is_list = request.starts_with("GET /events");
    let said = if is_list { Value::Array(texts) } else { texts.pop().unwrap_or_default() };
    Ok((status, said))
}

fn ask(guest: &Guest, request: &str) -> io::Result<Answer> {
    let mut stream = UnixStream::connect(guest.socket.as_path())?;
    stream.set_read_timeout(Some(SILENCE_TIMEOUT))?;
    stream.write_all(request.as_bytes())?;
    let (status, begun) = head(&mut stream)?;
    Ok(Answer { status, stream, begun })
}

/// Reads up to the body: the status, and what of the body came along.
fn head(stream: &mut impl Read) -> io::Result<(u16, Vec<u8>)> {
    let (mut bytes, mut buffer) = (Vec::new(), [0_u8; 4096]);
    loop {
        if let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            let line = std::str::from_utf8(bytes.split(|byte| *byte == b'\r').next().unwrap_or_default());
            let status =
                line.ok().and_then(|line| line.strip_prefix("HTTP/1.")?.split(' ').nth(1)?.parse().ok());
            let status = status.ok_or_else(|| io::Error::other("the engine's answer is odd"))?;
            return Ok((status, bytes.split_off(end + 4)));
        }
        match stream.read(&mut buffer)? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            n if bytes.len() + n > MAX_HEADER_LEN => {
                return Err(io::Error::other("the engine's answer has no end"));
            }
            n => bytes.extend_from_slice(&buffer[..n]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_death_is_read_in_the_words_of_either_engine() {
        let event = |action: &str, name: &str| serde_json::json!({ "Action": action, "Actor": { "Attributes": { name: "137" } } });
        assert_eq!(code(&event("die", "exitCode")), Some(137));
        assert_eq!(code(&event("died", "containerExitCode")), Some(137));
        assert_eq!((code(&event("start", "containerExitCode")), code(&event("die", "other"))), (None, None));
        assert_eq!(code(&Value::Null), None);
    }

    #[test]
    fn an_answer_is_taken_apart_however_it_comes() {
        let text = b"HTTP/1.1 101 UPGRADED\r\nUpgrade: tcp\r\n\r\nfirst bytes";
        for cut in 1..text.len() {
            let mut pieces = text[..cut].chain(&text[cut..]);
            let (status, mut begun) = head(&mut pieces).unwrap();
            pieces.read_to_end(&mut begun).unwrap();
            assert_eq!((status, begun.as_slice()), (101, &b"first bytes"[..]), "{cut}");
        }
        assert!(head(&mut &b"HTTP/2 200 OK\r\n\r\n"[..]).is_err());
        assert!(head(&mut &b"HTTP/1.1 200 OK\r\n"[..]).is_err());
        assert!(head(&mut io::repeat(b'x')).is_err());
    }
}

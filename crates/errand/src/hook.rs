//! Tells the daemon what an agent says of itself, by the descriptor in `WHARF_CHANNEL` or the socket in `WHARF_EVENTS`.
//!
//! An agent shows what its hooks print, and stops where they fail: neither is ours to cause.

use std::ffi::OsString;
use std::io::{self, BufRead, BufReader, IsTerminal, Read, Write};
use std::os::unix::net::UnixStream;
use std::process::ExitCode;
use std::time::Duration;

use serde_json::{Value, json};
use wharf_boundary::channel;

/// The word that makes `wharf-holder` this errand.
pub const STEP: &str = "hook";

/// What an agent's own words are told as.
pub const KIND: &str = "hook";

/// An agent waits for its hooks.
const HOOK_TIMEOUT: Duration = Duration::from_secs(2);
/// More than this is nothing that an agent tells.
const MAX_PAYLOAD_LEN: u64 = 15 << 20;

/// Tells it, and is content in any case.
pub(crate) fn main(arguments: impl Iterator<Item = OsString>) -> ExitCode {
    let _ = tell(arguments.collect());
    ExitCode::SUCCESS
}

fn tell(mut words: Vec<OsString>) -> io::Result<()> {
    let payload = words.pop_if(|word| word.as_encoded_bytes().starts_with(b"{"));
    let agent = words.into_iter().next().and_then(|word| word.into_string().ok());
    let text = match payload {
        Some(payload) => payload.into_encoded_bytes(),
        None if io::stdin().is_terminal() => return Ok(()),
        None => {
            let mut bytes = Vec::new();
            io::stdin().lock().take(MAX_PAYLOAD_LEN).read_to_end(&mut bytes)?;
            bytes
        }
    };
    let line = line(agent.as_deref(), &text)?;
    // In a sandbox no socket can be opened, and what there is to tell goes by the descriptor that came with it.
    if let Some(told) = channel::tell(line.as_bytes(), HOOK_TIMEOUT) {
        return told.map(drop);
    }
    let Some(socket) = std::env::var_os("WHARF_EVENTS") else { return Ok(()) };
    let mut stream = UnixStream::connect(socket)?;
    stream.set_read_timeout(Some(HOOK_TIMEOUT))?;
    stream.set_write_timeout(Some(HOOK_TIMEOUT))?;
    stream.write_all(line.as_bytes())?;
    // Until it is stored: what the agent does next comes after it.
    BufReader::new(stream).read_line(&mut String::new()).map(drop)
}

/// The line that tells it.
fn line(agent: Option<&str>, text: &[u8]) -> io::Result<String> {
    let payload: Value = serde_json::from_slice(text)?;
    let event = json!({ "v": 1, "kind": KIND, "ack": true, "data": { "agent": agent, "payload": payload } });
    Ok(format!("{event}\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_agent_tells_is_one_line() {
        let told = line(Some("claude"), b"{\"hook_event_name\":\n\"Stop\"}").unwrap();
        assert_eq!(told.matches('\n').count(), 1);
        let told: Value = serde_json::from_str(&told).unwrap();
        assert_eq!((&told["kind"], &told["data"]["agent"]), (&json!("hook"), &json!("claude")));
        assert_eq!(told["data"]["payload"]["hook_event_name"], "Stop");
        assert!(line(None, b"not json").is_err());
    }
}

//! `wharf hook`: passes on what an agent's hooks tell, and edits the agent's settings.

use std::ffi::OsString;
use std::io::{self, IsTerminal, Read};
use std::time::Duration;

use serde_json::{Value, json};
use wharf_api::{HookAction, HookRequest, HookSettings, daemon};
use wharf_boundary::channel;
use wharf_model::Failure;

use crate::dispatch::Serve;
use crate::table::clean;
use crate::trouble::Done;
use crate::{call, output, place};

/// Arguments of `hook`.
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Args {
    #[command(subcommand)]
    what: Option<What>,
    /// The agent that calls, and what it tells as JSON; standard input has that when absent
    #[arg(value_name = "AGENT [JSON]")]
    told: Vec<OsString>,
}

#[derive(Debug, clap::Subcommand)]
enum What {
    /// Have an agent tell Wharf what it does: entries of our own in its settings, and nothing else
    Install(Which),
    /// Take our entries away again
    Remove(Which),
    /// Say whether our entries are there
    Status(Which),
}

#[derive(Debug, clap::Args)]
struct Which {
    /// The agent: claude, codex, gemini; `wharf agents` lists them
    agent: String,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// An agent waits for its hooks.
const HOOK_TIMEOUT: Duration = Duration::from_secs(2);
/// More than this is nothing that an agent tells.
const MAX_PAYLOAD_LEN: u64 = 16 << 20;

pub(crate) fn run(args: Args, _: Serve) -> Done {
    match args.what {
        Some(What::Install(which)) => settings(&which, HookAction::Install),
        Some(What::Remove(which)) => settings(&which, HookAction::Remove),
        Some(What::Status(which)) => settings(&which, HookAction::Status),
        None => {
            // An agent shows what its hooks print, and stops where they fail: neither is ours to cause.
            let _ = told(args.told);
            Ok(0)
        }
    }
}

/// Hands on what an agent tells of itself.
fn told(words: Vec<OsString>) -> Result<(), Failure> {
    let Some(request) = request(words) else { return Ok(()) };
    // In a sandbox the daemon's socket is out of reach; the session's own channel is not.
    let line = json!({
        "v": 1, "kind": "hook", "ack": true,
        "data": { "agent": request.agent, "payload": request.payload }
    });
    if channel::tell(format!("{line}\n").as_bytes(), HOOK_TIMEOUT).is_some() {
        return Ok(());
    }
    let home = place::home()?;
    call::runtime()?.block_on(async {
        let hand_on = async { daemon::ensure(&home).await?.hook(&request).await };
        tokio::time::timeout(HOOK_TIMEOUT, hand_on).await.unwrap_or(Ok(()))
    })
}

/// What is to be handed on; none outside of a session, and where it is not JSON.
fn request(mut words: Vec<OsString>) -> Option<HookRequest> {
    let is_json = |word: &OsString| word.as_encoded_bytes().starts_with(b"{");
    let payload = words.pop_if(|word| is_json(word));
    let agent = words.into_iter().next().and_then(|word| word.into_string().ok());
    let session = std::env::var("WHARF_SESSION_ID").or_else(|_| std::env::var("WHARF_SESSION")).ok()?;
    let token = std::env::var("WHARF_TOKEN").ok()?;
    let text = match payload {
        Some(payload) => payload.into_encoded_bytes(),
        None if io::stdin().is_terminal() => return None,
        None => {
            let mut bytes = Vec::new();
            io::stdin().lock().take(MAX_PAYLOAD_LEN).read_to_end(&mut bytes).ok()?;
            bytes
        }
    };
    let payload: Value = serde_json::from_slice(&text).ok()?;
    Some(HookRequest { session, token, agent, payload })
}

/// Changes or looks at an agent's settings.
fn settings(which: &Which, action: HookAction) -> Done {
    let command = std::env::current_exe()
        .map_err(|error| Failure::system("cannot find the program that is running", &error))?;
    let variables = std::env::vars_os().filter_map(|(name, value)| {
        let (name, value) = (name.into_string().ok()?, value.into_string().ok()?);
        says_where(&name, &value).then_some((name, value))
    });
    let request = HookSettings { action, command: command.into(), variables: variables.collect() };
    let state = call::again(async |client| client.hook_settings(&which.agent, &request).await)?;
    if which.json {
        output::json(&state)?;
        return Ok(0);
    }
    let word = match (state.installed, state.changed) {
        (true, true) => "installed",
        (true, false) => "installed already",
        (false, true) => "removed",
        (false, false) => "not installed",
    };
    let word = if action == HookAction::Status { word.trim_end_matches(" already") } else { word };
    output::text(&format!("{} {word}: {}\n", clean(&state.agent), clean(&state.file.lossy())))?;
    Ok(0)
}

/// Whether a variable says where an agent's settings are. What else there is may be a secret, and stays here.
fn says_where(name: &str, value: &str) -> bool {
    value.starts_with('/') && (name == "HOME" || name.ends_with("_HOME") || name.ends_with("_DIR"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_places_are_passed_on() {
        assert!(
            says_where("HOME", "/h")
                && says_where("CODEX_HOME", "/c")
                && says_where("CLAUDE_CONFIG_DIR", "/d")
        );
        assert!(
            !says_where("API_KEY", "/x") && !says_where("X_HOME", "relative") && !says_where("X_DIR", "")
        );
    }
}

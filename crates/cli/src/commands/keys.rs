//! `wharf keys`: presses named keys in a session.

use std::cell::LazyCell;
use std::time::Duration;

use wharf_model::key_bytes;

use crate::dispatch::Serve;
use crate::trouble::{Done, invalid};
use crate::typing::{Keyboard, WRITE_TIMEOUT};
use crate::{call, place};

/// How long a daemon may take to say how the application wants its keys. None is started for it.
const MODE_TIMEOUT: Duration = Duration::from_secs(2);

/// Arguments of `keys`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The session, by name or id
    name: String,
    /// Keys: Enter, Escape, C-c, M-x, Up, F5, or one character
    #[arg(required = true, value_name = "KEY")]
    keys: Vec<String>,
    /// Take the words as text and not as names of keys
    #[arg(short, long)]
    literal: bool,
}

pub(crate) fn run(args: Args, _: Serve) -> Done {
    let mut bytes = Vec::new();
    if args.literal {
        bytes.extend_from_slice(args.keys.join(" ").as_bytes());
    } else {
        let application = LazyCell::new(|| wants_application_keys(&args.name).unwrap_or(false));
        for key in &args.keys {
            let mut pressed = key_bytes(key).map_err(|error| {
                invalid(error.to_string())
                    .hint("keys are Enter, Escape, Tab, Up, F5, C-c, M-x or one character; -l types text")
            })?;
            if is_cursor_key(&pressed) && *application {
                pressed[1] = b'O';
            }
            bytes.extend(pressed);
        }
    }
    Keyboard::of(&args.name, WRITE_TIMEOUT)?.type_in(&bytes, WRITE_TIMEOUT)?;
    Ok(0)
}

/// Whether a key is sent otherwise in application cursor mode: the arrows, Home and End.
fn is_cursor_key(bytes: &[u8]) -> bool {
    matches!(bytes, [0x1b, b'[', b'A'..=b'D' | b'F' | b'H'])
}

/// Whether the application has switched application cursor mode on, where a daemon knows its screen.
fn wants_application_keys(name: &str) -> Option<bool> {
    let session = place::session(&place::home().ok()?, name).ok()?;
    let target = format!("/v1/sessions/{}/screen?what=screen&format=json", session.file_name()?.to_str()?);
    let screen = call::directly(&target, None, MODE_TIMEOUT).ok()??;
    let screen: serde_json::Value = serde_json::from_slice(&screen).ok()?;
    screen["modes"]["application_cursor"].as_bool()
}

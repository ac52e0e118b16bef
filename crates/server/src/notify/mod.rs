//! Notifications: a command or a webhook at chosen changes of state.
//!
//! ```toml
//! [[notify]]
//! on = ["asking", "idle", "exited"]
//! agent = "claude"                       # optional, as are group = "…" and name = "worker-*"
//! command = ["notify-send", "{name}", "{state}: {evidence}"]
//!
//! [[notify]]
//! on = ["exited"]
//! webhook = "http://localhost:9000/wharf"
//! headers = { authorization = "Bearer …" }
//! ```
//!
//! The command gets the session and the change as JSON on standard input; a webhook gets them as its body. The file is read
//! again when it changes. Webhooks speak plain HTTP; for HTTPS a command does it: `["curl", "-sS", "--json", "@-", "https://…"]`.

mod delivery;
mod rule;
mod rules;
mod webhook;
mod witness;

pub(crate) use rules::Rules;
pub(crate) use witness::witness;

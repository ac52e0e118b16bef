//! Hooks: what an agent calls when something happens in it.
//!
//! [`install`] writes Wharf's own entries into the agent's settings, and nothing else of the file changes by a byte;
//! [`remove`] takes exactly those away. An entry is Wharf's when its command is `wharf hook …`. [`Profile::session_hooks`]
//! gives the same to one session by arguments, without a file of the user's being touched, where the agent can take them
//! so. [`translate`] reads what the hooks are given.
//!
//! [`Profile::session_hooks`]: crate::Profile::session_hooks

mod entries;
mod install;
mod json;
mod notify;
mod rules;
mod settings;

pub use install::{Hooked, install, remove, status};
pub use rules::{HookEvent, HookRules, Style};

use serde_json::Value;

use crate::{Profile, Told, shape};

/// What a hook's payload says. What no rule knows is `other`.
pub fn translate(profile: &Profile, payload: &Value) -> Vec<Told> {
    let told = profile.hooks.as_ref().map(|rules| shape::read_all(&rules.told, payload)).unwrap_or_default();
    if told.is_empty() { vec![Told::other(payload.clone())] } else { told }
}

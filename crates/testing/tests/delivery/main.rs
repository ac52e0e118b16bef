//! Messages to agents that misbehave: each arrives whole and once, or the receipt says why not.
#![expect(clippy::unwrap_used, reason = "tests, and what only tests call")]

mod control;
mod crashes;
mod hostile;
mod place;
mod plain;
mod queue;
mod streams;
mod terminal;

//! Messages to agents that misbehave: each arrives whole and once, or the receipt says why not.
#![expect(clippy::unwrap_used, reason = "tests, and what only tests call")]

#[path = "../../../backends/container/tests/support/engine.rs"]
mod engine;

mod control;
mod crashes;
mod ground;
mod hostile;
mod place;
mod plain;
mod queue;
mod streams;
mod terminal;

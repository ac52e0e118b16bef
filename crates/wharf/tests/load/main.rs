//! The program under load and among hostile commands: one file a class of faults, each test with an instance of
//! its own. Nothing here sleeps for luck: a test waits for a condition, with a deadline.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

#[path = "../support/mod.rs"]
mod support;

mod attach;
mod bombs;
mod crowd;
mod descriptors;
mod exhaustion;
mod exits;
mod flood;
mod following;
mod identity;
mod input;
mod leaks;
mod limits;
mod output;
mod policies;
mod rights;
mod tools;
mod trees;
mod typing;

//! The program under fault: one file a class of faults, each test with an instance of its own.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

#[path = "../support/mod.rs"]
mod support;

mod ground;
mod tmpfs;

mod arguments;
mod attach;
mod chaos;
mod daemon;
mod full_disk;
mod history;
mod holder;
mod homes;
mod messages;
mod modes;
mod names;
mod stopped;
mod store;

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
mod first_shell;
mod floods;
mod forged_end;
mod full_disk;
mod full_verbs;
mod history;
mod holder;
mod homes;
mod hung_files;
mod large_requests;
mod lost_socket;
mod messages;
mod modes;
mod motd;
mod names;
mod namespace;
mod orphans;
mod own_files;
mod owners;
mod power_cut;
mod silent_holder;
mod stopped;
mod store;

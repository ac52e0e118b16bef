//! The program under fault: one file a class of faults, each test with an instance of its own.

#[path = "../support/mod.rs"]
mod support;

mod ground;
mod tmpfs;

mod attach;
mod chaos;
mod daemon;
mod holder;
mod stopped;

//! Dev shells of a real nix, with a store of each test's own.

mod cancel;
mod capture;
mod collection;
mod hook;
mod sources;
#[path = "../support/mod.rs"]
mod support;
mod wrapped;

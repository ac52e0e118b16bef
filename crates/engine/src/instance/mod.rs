//! One instance: its directory, its lock, and what all of its sessions share.
//!
//! [`engine`] is the handle that callers have; [`open`] makes it and finds sessions again. [`shared`] is what every handle and
//! every task holds, [`registry`] decides who has a name, [`tasks`] owns all that is spawned, [`disk`] reads and writes the small
//! files of a session's directory.

pub(crate) mod catch_panic;
pub(crate) mod checks;
pub(crate) mod config;
pub(crate) mod disk;
pub(crate) mod engine;
pub(crate) mod filter;
pub(crate) mod ids;
pub(crate) mod images;
pub(crate) mod lock;
pub(crate) mod lookup;
pub(crate) mod names;
pub(crate) mod open;
pub(crate) mod registry;
pub(crate) mod shared;
pub(crate) mod tasks;

//! The contract that every backend keeps.
//!
//! A backend does little: it starts a command in its place and gives back a [`Ticket`], finds it again by
//! that ticket, and connects to it. Messages, screens, states, attach and recording are built once, above.
//!
//! - [`Backend`] and [`Connection`] are the contract, [`Output`] is how output is read.
//! - [`Files`], [`Freezer`], [`Keeper`], [`Library`] and [`Publisher`] are what only some places have.
//! - [`Environment`] is what rewrites a launch before a backend runs it.
//! - [`BackendTasks`] owns what a backend spawns, and ends it.
//! - [`Pins`] is what paths of the host mean, decided once; [`Beside`] is where they are looked at.
//!
//! With the feature `testing`, which no user of a backend needs:
//!
//! - `fake` is a backend in memory, for tests of what stands above.
//! - `faults` wraps any backend and makes it fail on purpose.
//! - `conformance` is the suite that every backend runs, chosen by its [`Capabilities`].

mod backend;
mod beside;
#[cfg(feature = "testing")]
pub mod conformance;
mod connection;
mod environment;
#[cfg(feature = "testing")]
pub mod fake;
#[cfg(feature = "testing")]
pub mod faults;
mod files;
mod freezer;
mod keeper;
mod launch;
mod library;
mod output;
mod pins;
mod tasks;

pub use backend::{Adoption, Backend, Probe};
pub use beside::Beside;
pub use connection::{Connection, ExecRequest, Pending, Status, Stop};
pub use environment::{Environment, Progress};
pub use files::{Archive, Files};
pub use freezer::{Freezer, Frozen};
pub use keeper::{Keeper, Leftover};
pub use launch::Launch;
pub use library::{Library, Publisher};
pub use output::{Output, OutputChunk, Stream};
pub use pins::{Pins, Sure, check_pins, open_pinned};
pub use tasks::BackendTasks;
pub use wharf_model::{Capabilities, Failure, Ticket};

/// What every operation of a backend returns.
pub type Result<T> = std::result::Result<T, Failure>;

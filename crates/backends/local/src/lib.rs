//! Sessions on this host: a PTY or pipes, each held by a holder of its own.
//!
//! - [`LocalBackend`] keeps the contract of [`wharf_backend`].
//! - `nursery` forks holders ahead, and `place` has the first words with a fresh one.
//! - `carrier` carries frames to and fro, and replaces a holder that was killed by what `keep` has of it; `link` is
//!   the contract on top of it, with `output`, `stats` and `exec`.
//! - `files` are copied to and from a session's directory, `freezer` makes a session stand still.
//! - [`Speech`] hands on what a session's processes tell, from its channel or from a container's room.
//! - [`held`] is the same connection to a holder that another backend started.

mod backend;
mod carrier;
mod channel;
mod exec;
mod files;
mod freezer;
pub mod held;
mod keep;
mod leavings;
mod link;
mod nursery;
mod output;
mod place;
mod speech;
mod stats;
mod unlisted;

pub use backend::{LocalBackend, Options, holder_program};
pub use speech::Speech;

//! Sessions on this host: a PTY or pipes, each held by a holder of its own.
//!
//! - [`LocalBackend`] keeps the contract of [`wharf_backend`].
//! - `nursery` forks holders ahead; `link` is the connection to one; `keep` holds the descriptors with which a
//!   holder that was killed is replaced; `output` reads the log as it grows.

mod backend;
mod keep;
mod link;
mod nursery;
mod output;

pub use backend::{LocalBackend, Options};

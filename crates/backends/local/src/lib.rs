//! Sessions on this host: a PTY or pipes, each held by a holder of its own.
//!
//! - [`LocalBackend`] keeps the contract of [`wharf_backend`], by the holders of this host that [`wharf_holder_client`] has.
//! - `files` are copied to and from a session's directory, `freezer` makes a session stand still.
//! - `unlisted` finds sessions that run though no directory speaks of them.

mod backend;
mod files;
mod freezer;
mod unlisted;

pub use backend::{LocalBackend, Options};
pub use wharf_holder_client::session::holder_program;

//! Sessions in containers, by Docker or Podman.
//!
//! - [`ContainerBackend`] implements the contract of [`wharf_backend`]; everything above a session's socket is the code
//!   that sessions of this host use too.
//! - `starting` is one start, `place` finds the container of a session again and says what became of it; `session_dirs` has
//!   the two directories that a container shares with this host, and `holder_handshake` hands the new holder its request.
//! - `engine` asks an engine, with a deadline for every question: `endpoint` finds it, `inspect` reads what it says of a
//!   container, and `sentry` hears who makes containers stand still.
//! - `image` provides the image: `context` is what one is built from, `library` lists those that exist, and [`Images`]
//!   fetches and builds ahead of a start, and reports the progress.
//! - `body` says what a container is made of: `mounts` what it sees of the host, `user` who it is, `worktree` what a
//!   repository needs besides.
//! - `owner` says whose a container is: `orphans` are those that are nobody's any more, `leavings` those whose session is
//!   over, `leftovers` tells of both, and `owed` those of starts that failed while their engine was out of reach.
//! - `command_line` decides which command runs, and `kept_container` has containers that stay after their end.
//! - `shared_container` has the directories of a container that several sessions share; `membership` joins and leaves one,
//!   and `configuration` decides which sessions may share.
//! - `guest` takes in a container that somebody else started, and its `link` is what can be done with one.
//! - `events_listener` relays the events of processes in a container to the daemon; `copy` moves files in and out; `freeze`
//!   pauses containers. `ticket_data` is what a ticket says about a container.
//! - `remote` has all that differs where the engine is on another host.

mod backend;
mod command_line;
mod containers;
mod copy;
mod create_body;
mod engine;
mod events_listener;
mod freeze;
mod guest;
mod holder_handshake;
mod image;
mod kept_container;
mod owner;
mod remote;
mod session_dirs;
mod session_start;
mod shared_container;
mod ticket_data;

pub use backend::{ContainerBackend, Options};
pub use engine::endpoint::{Endpoint, Flavour};
pub use image::images::Images;

/// What an agent in a container calls as its hook: the one program of ours that every container has.
pub fn hook_command() -> Vec<String> {
    vec![create_body::mounts::HOLDER.to_owned(), wharf_errand::hook::STEP.to_owned()]
}

//! Sessions in containers, by Docker or Podman.
//!
//! - [`ContainerBackend`] implements the contract of [`wharf_backend`]; everything above a session's socket is the code
//!   that sessions of this host use too.
//! - `session_start` is one start. `session_dirs` has the two directories that a container shares with this host,
//!   `holder_handshake` hands the new holder its request, and `command_line` decides which command runs.
//! - `containers` finds the container of a session again and says what became of it. `ticket_data` is what a ticket says
//!   about a container, and `kept_container` has containers that stay after their end.
//! - `engine` asks an engine, with a deadline for every question: `endpoint` finds it, `inspect` reads what it says of a
//!   container, `caller` reads which engine a caller means, and `pause_events` reports who pauses containers.
//! - `image` provides the image: `context` is what one is built from, `library` lists those that exist, and [`Images`]
//!   fetches and builds ahead of a start, and reports the progress.
//! - `create_body` describes a new container to the engine: `mounts` what it sees of the host, `checked_paths` that it may,
//!   `engine_sockets` what it never sees, `worktree` what a git work tree needs besides, `user_ids` who its user is.
//! - `owner` says whose a container is: `orphaned_containers` are those whose session is unknown or over, `ended_sessions`
//!   removes them session by session, `failed_starts` those of starts that failed while their engine was out of reach, and
//!   `leftover_report` tells of them.
//! - `shared_container` has the directories of a container that several sessions share; `membership` joins and leaves one,
//!   and `configuration` decides which sessions may share.
//! - `guest` takes in a container that somebody else started: a *guest*. Its `connection` is what can be done with one.
//! - `events_listener` relays the events of processes in a container to the daemon; `copy` moves files in and out; `freeze`
//!   pauses containers.
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

//! Sessions in containers, by Docker or Podman.
//!
//! - [`ContainerBackend`] keeps the contract of [`wharf_backend`]; everything above a session's socket is the code that
//!   sessions of this host use too.
//! - `starting` is one start, `place` finds the container of a session again and says what became of it; `rooms` are the
//!   two directories that a container shares with this host, and `birth` is the first word with the holder in it.
//! - `engine` asks an engine, with a deadline for every question: `endpoint` finds it, `inspect` reads what it says of a
//!   container, and `sentry` hears who makes containers stand still.
//! - `image` sees to the image: `context` is what one is built from, `library` has those that are there, and [`Images`]
//!   fetches and builds ahead of a start, and tells how far it is.
//! - `body` says what a container is made of: `mounts` what it sees of the host, `user` who it is, `worktree` what a
//!   repository needs besides.
//! - `owner` says whose a container is: `orphans` are those that are nobody's any more, `leavings` those whose session is
//!   over, `leftovers` tells of both, and `owed` those of starts that failed while their engine was out of reach.
//! - `words` is what is run there, `keep` has containers that stay after their end.
//! - `shared_container` has the directories of a container that several sessions share; `membership` joins and leaves one,
//!   and `configuration` decides which sessions may share.
//! - `guest` takes in a container that somebody else started, and its `link` is what can be done with one.
//! - `ear` hears what processes in a container tell, and hands it to the daemon; `copy` moves files in and out; `freeze`
//!   makes containers stand still.
//! - `remote` has all that differs where the engine is on another host.

mod backend;
mod birth;
mod body;
mod copy;
mod ear;
mod engine;
mod freeze;
mod guest;
mod image;
mod keep;
mod owner;
mod place;
mod private;
mod remote;
mod rooms;
mod shared_container;
mod starting;
mod words;

pub use backend::{ContainerBackend, Options};
pub use engine::endpoint::{Endpoint, Flavour};
pub use image::images::Images;

/// What an agent in a container calls as its hook: the one program of ours that every container has.
pub fn hook_command() -> Vec<String> {
    vec![body::mounts::HOLDER.to_owned(), wharf_errand::hook::STEP.to_owned()]
}

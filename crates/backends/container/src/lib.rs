//! Sessions in containers, by Docker or Podman.
//!
//! - [`ContainerBackend`] keeps the contract of [`wharf_backend`]; everything above a session's socket is the code that
//!   sessions of this host use too.
//! - `starting` is one start, `place` finds the container of a session again and says what became of it.
//! - `endpoint` finds the engine, `engine` asks it with a deadline for every question, `inspect` reads
//!   what it says of a container, `image` sees to the image, `context` is what one is built from.
//! - [`Images`] does so ahead of a start, and tells how far it is.
//! - `body` says what a container is made of, `mounts` what it sees of the host, `owner` whose it is; `orphans`
//!   are those that are nobody's any more, and `leavings` those whose session is over.
//! - `ear` hears what processes in a container tell, and hands it to the daemon.
//! - `guest` takes in a container that somebody else started, `guest_link` is what can be done with one.
//! - `copy` moves files in and out, `freeze` makes containers stand still and `sentry` hears who else does, `library` has
//!   the images.
//! - `far` is all that differs where the engine is on another host.
//! - `berth` is the place of a container that several sessions share, `berths` joins and leaves one.
//! - `rooms` are the two directories that a container shares with this host, and `birth` is the first word with the
//!   holder in it.

mod backend;
mod berth;
mod berths;
mod birth;
mod body;
mod context;
mod copy;
mod ear;
mod endpoint;
mod engine;
mod far;
mod freeze;
mod guest;
mod guest_link;
mod image;
mod images;
mod inspect;
mod leavings;
mod library;
mod mounts;
mod orphans;
mod owner;
mod place;
mod private;
mod rooms;
mod sentry;
mod starting;
mod user;
mod worktree;

pub use backend::{ContainerBackend, Options};
pub use endpoint::{Endpoint, Flavour};
pub use images::Images;

/// What an agent in a container calls as its hook: the one program of ours that every container has.
pub fn hook_command() -> Vec<String> {
    vec![mounts::HOLDER.to_owned(), wharf_errand::hook::STEP.to_owned()]
}

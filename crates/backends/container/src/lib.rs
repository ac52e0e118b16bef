//! Sessions in containers, by Docker or Podman.
//!
//! - [`ContainerBackend`] keeps the contract of [`wharf_backend`]; everything above a session's socket is the code that
//!   sessions of this host use too.
//! - `starting` is one start, `place` finds the container of a session again and says what became of it.
//! - `endpoint` finds the engine, `engine` asks it with a deadline for every question, `inspect` reads
//!   what it says of a container, `image` sees to the image, `context` is what one is built from.
//! - [`Images`] does so ahead of a start, and tells how far it is.
//! - `body` says what a container is made of, `mounts` what it sees of the host, `owner` whose it is; `orphans`
//!   are those that are nobody's any more.
//! - `rooms` are the two directories that a container shares with this host, and `birth` is the first word with the
//!   holder in it.

mod backend;
mod birth;
mod body;
mod context;
mod endpoint;
mod engine;
mod image;
mod images;
mod inspect;
mod mounts;
mod orphans;
mod owner;
mod place;
mod private;
mod rooms;
mod starting;
mod worktree;

pub use backend::{ContainerBackend, Options};
pub use endpoint::{Endpoint, Flavour};
pub use images::Images;

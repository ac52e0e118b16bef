//! Engines on another host: nothing of this one can be mounted there, and no file is shared.
//!
//! The holder is put into the container before it is started, and its room is in there with it. A stream to a `relay` in
//! the container is a connection to it. On this side a *door* stands in for it: it listens at the session's own socket
//! and carries each connection over such a stream, so that nobody above need know; and a *mirror* keeps the session's log
//! here, byte for byte at its offset.
//!
//! - `tube` is a stream to a program in a container.
//! - `site` is one session's container over there, `load` is what is put into it; `starting` and `adopting` are
//!   a start there and its finding again.
//! - `door` and `visit` carry connections, `lending` further commands; `mirror` and `fetch` bring the output home.

mod adopting;
mod door;
mod fetch;
mod lending;
mod load;
mod mirror;
mod site;
mod starting;
mod tube;
mod visit;

pub(crate) use door::{Key, lock_up};
pub(crate) use mirror::Fate;

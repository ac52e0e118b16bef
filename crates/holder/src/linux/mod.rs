//! What only Linux has, behind names that another system could offer too.

#![expect(unsafe_code, reason = "fork, exec, clone3, signalfd and two ioctls have no safe form")]

pub mod callers;
pub(crate) mod cgroup;
pub(crate) mod children;
pub(crate) mod events;
pub(crate) mod memory;
pub(crate) mod net;
pub mod origin;
pub(crate) mod orphans;
pub(crate) mod own;
pub mod proc;
pub(crate) mod spawn;
pub(crate) mod terminal;
pub(crate) mod tree;

mod pidfd;
mod scope;
mod socket;

pub use orphans::Orphans;
pub use pidfd::exit_of;
pub use scope::{Usage, can_freeze, can_limit, strays, sweep, usage};
pub(crate) use socket::send_bytes;
pub use socket::{bind, connect, receive, send};
pub use terminal::open_terminal;

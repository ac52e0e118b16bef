//! The connection to a session's holder, asynchronous: what backends build on.
//!
//! - [`HostHolders`] starts sessions by holders of this host, finds them again and ends them. `nursery` forks holders ahead,
//!   and `pool` takes a fresh one for each start.
//! - `holder_client` carries frames to and fro, and replaces a holder that was killed by the descriptors of `kept_fds`;
//!   `connection` is the contract of [`wharf_backend`] on top of it, with `output`, `stats` and `exec`.
//! - `start_frame` is what a fresh holder is told, and `exchange` the first words with it; `find` has the first words with one
//!   that was started before. `records` reads what both leave on disk.
//! - [`ChannelRelay`] hands on what a session's processes tell, from its channel or from a container's room.

mod channel;
mod channel_relay;
mod connection;
mod exchange;
mod exec;
mod find;
mod holder_client;
mod host;
mod kept_fds;
mod leftovers;
mod nursery;
mod output;
mod pending_requests;
mod pool;
mod records;
mod start_frame;
mod stats;

pub use channel_relay::ChannelRelay;
pub use exchange::{begin, begin_with};
pub use find::{connect, find, first_status};
pub use host::{HostHolders, holder_program};
pub use records::{read_exit, read_ticket};
pub use start_frame::{given, resume_frame, start_frame, start_of};

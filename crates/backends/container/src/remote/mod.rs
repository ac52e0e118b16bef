//! Engines on another host, where nothing of this host can be mounted and no file is shared.
//!
//! The backend uploads the holder into the container before it starts it; the room is inside the container as well. A
//! stream to a `relay` in the container is a connection to the holder. On this side a *socket proxy* listens at the
//! session's own socket and carries each connection over such a stream, so nothing above needs to know. A *log mirror*
//! keeps a copy of the session's log here, byte for byte at its offset.
//!
//! - `container` is one session's container there; `exec_stream` has the streams of a program in it, `upload` packs what
//!   it gets before it starts.
//! - `start_session` starts a session there, and `adopt` finds one again.
//! - `socket_proxy` and `proxied_client` carry connections to the holder, `exec` runs further commands.
//! - `log_mirror` copies the output, and `leftover_download` fetches what a stopped container left.

mod adopt;
mod container;
mod exec;
mod exec_stream;
mod leftover_download;
mod log_mirror;
mod proxied_client;
mod socket_proxy;
mod start_session;
mod upload;

pub(crate) use log_mirror::Outcome;
pub(crate) use socket_proxy::{ProxyLock, remove_lock_if_over};

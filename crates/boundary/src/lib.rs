//! The one way to touch what a session can write.
//!
//! Whatever runs in a session may put a link, a FIFO, a device, a directory, a huge file or a socket that nobody answers in
//! the place of every file that it can write. Code that runs outside it therefore never opens such a file by its path. It
//! holds a descriptor of a directory ([`Dir`], and [`SessionDir`] for the one of a session) and asks for names below that:
//!
//! - no link is followed, neither at the end of a path nor on the way, and nothing leads above the directory;
//! - nothing is waited for: files are opened without blocking, sockets are connected with a deadline;
//! - a file is a regular one, and a read has a limit;
//! - a socket's peer is asked who it is ([`Peer`]) before a byte of it is believed.
//!
//! The same holds for our own files (lock, log, store): in the place of one of them something else is refused or put aside,
//! never followed, truncated, appended to or waited for. `docs/design/boundary.md` says why.

mod aside;
pub mod cached;
pub mod channel;
mod config;
mod dir;
mod file;
#[cfg(feature = "testing")]
mod left_out;
pub mod limits;
mod ours;
mod peer;
mod session;
mod socket;
mod tree;

#[cfg(target_os = "linux")]
mod linux;
#[cfg(target_os = "linux")]
use linux as platform;
#[cfg(not(target_os = "linux"))]
mod other;
#[cfg(not(target_os = "linux"))]
use other as platform;

pub use aside::Aside;
pub use config::{MAX_CONFIG_LEN, read_config};
pub use dir::{Dir, FileIdentity, Kind};
pub use file::{MAX_RECORD_LEN, is_hostile};
#[cfg(feature = "testing")]
pub use left_out::left_out;
pub use ours::{Distrust, check_ours, is_locked_by_us};
pub use peer::Peer;
pub use platform::{NAME_ONLY, mode_of, path_of};
pub use session::{MAX_EXIT_LEN, SessionDir, open_log};
pub use socket::take_descriptors;

//! Files on their way in and out of a session's place, as a tar stream.
//!
//! - [`pack`] writes a file or a tree as an archive, [`unpack`] makes files of one. Both stream: however large a file is, a
//!   few pieces of it are in memory.
//! - What an archive says is never believed: a name with `..`, an absolute one, or one that leads through a link out of the
//!   destination is refused by the kernel, and nothing is written there. Devices, pipes and sockets are left out, and said.
//! - What is packed is held by a descriptor ([`PackSource`]) and walked from there: whoever swaps a directory for a link meanwhile
//!   leads nobody outside.
//! - [`Feed`] and [`Drain`] join a thread that packs or unpacks to a task that sends or receives.

mod beneath;
mod budget;
mod fault;
mod names;
mod pack;
mod pipe;
mod source;
mod unpack;

pub use names::EntryNames;
pub use pack::{How, pack};
pub use pipe::{Drain, Feed, pipe};
pub use source::PackSource;
pub use unpack::unpack;

/// What was moved.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Moved {
    /// Files, directories and links.
    pub entries: u64,
    /// Bytes of files.
    pub bytes: u64,
    /// Devices, pipes and sockets, which are not copied.
    pub left_out: u64,
}

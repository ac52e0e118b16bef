//! The output log of a session: bytes in a directory, addressed by offset.
//!
//! A log is a directory of *segments*. Each is named by the offset of its first byte and has an index beside it:
//!
//! ```text
//! log/00000000000000000000.log   the bytes, exactly as the session printed them
//! log/00000000000000000000.idx   when they came, on which stream, at which terminal size
//! log/00000000000004194304.log
//! log/00000000000004194304.idx
//! ```
//!
//! One [`Writer`] appends (the holder); any number of [`Reader`]s in any process read, each of which is no more
//! than an offset. They share nothing but the files, so a slow reader costs the session nothing, and a writer
//! that was killed at any moment is simply continued by the next. What makes that work:
//!
//! - A byte's offset never changes. The end of the log is the last segment's first offset plus its file size.
//! - A segment is never written again once a later one exists. So a reader that sees a later segment, and *then*
//!   finds the end of its own, is done with it.
//! - The index is made before its segment and removed after it; whoever could open the bytes has the marks.
//! - A [`Mark`] is written before the bytes it speaks of; whoever has read bytes can read all their marks.
//! - Bytes that are gone, by retention or because the disk was full, leave a hole between segments. The reader
//!   reports it as a [`Chunk::Gap`]; nothing is ever skipped silently.
//!
//! ```
//! use wharf_log::{Chunk, Reader, Retention, Writer};
//! use wharf_model::Offset;
//!
//! # let home = tempfile::tempdir()?;
//! let dir = home.path().join("log");
//! let mut writer = Writer::open(&dir, Retention::default())?;
//! writer.append(b"hello")?;
//!
//! let mut reader = Reader::open(&dir, Offset(0))?;
//! let mut buf = [0; 64];
//! assert_eq!(reader.read(&mut buf)?, Chunk::Data { offset: Offset(0), len: 5 });
//! assert_eq!(reader.read(&mut buf)?, Chunk::End);
//! # std::io::Result::Ok(())
//! ```

pub mod asciicast;
mod files;
mod follower;
mod index;
mod lines;
mod mark;
mod marks;
mod reader;
mod retention;
mod segment;
mod since;
mod streams;
mod text;
mod writer;

#[cfg(target_os = "linux")]
mod linux;
#[cfg(target_os = "linux")]
use linux as platform;

// Built for the tests everywhere, so that it cannot rot where it is not used.
#[cfg(any(not(target_os = "linux"), test))]
mod portable;
#[cfg(not(target_os = "linux"))]
use portable as platform;

pub use files::last_written;
pub use follower::Follower;
pub use lines::lines_back;
pub use mark::{Mark, Record, Stream};
pub use marks::{Marks, marks};
pub use reader::{Chunk, Reader};
pub use retention::Retention;
pub use segment::share_files;
pub use since::since;
pub use streams::Streams;
pub use writer::Writer;

//! Declares the `Files` trait: copies files to and from a session as tar archives.

use async_trait::async_trait;
use wharf_model::{FileStat, Text, Ticket};

use crate::Result;

/// The files of a session's place. A relative path begins at the session's directory.
#[async_trait]
pub trait Files: Send + Sync {
    /// What stands at a path; none where there is nothing. A link at its end is followed where that is asked for.
    async fn look(&self, ticket: &Ticket, path: &Text, follow: bool) -> Result<Option<FileStat>>;

    /// A file or a directory with all that is below it, as a tar archive. Every name in it begins with one and the same,
    /// which is that of its first entry.
    async fn take(&self, ticket: &Ticket, path: &Text, follow: bool) -> Result<Box<dyn Archive>>;

    /// Unpacks a tar archive into a directory, which must be there. In a place with users of its own, what comes of it
    /// belongs to whom the archive says.
    async fn put(&self, ticket: &Ticket, dir: &Text, archive: Box<dyn Archive>) -> Result<()>;
}

/// A tar archive as it comes. Dropped before its end, whoever makes it stops.
#[async_trait]
pub trait Archive: Send {
    /// The next bytes; none at the end.
    async fn next(&mut self) -> Result<Option<Vec<u8>>>;
}

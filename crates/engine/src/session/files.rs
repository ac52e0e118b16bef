//! Copies files to and from sessions through the `Files` of their backend.

use wharf_backend::{Archive, Files};
use wharf_model::{Failure, FileStat, Text, Ticket};

use crate::Result;
use crate::session::session_handle::SessionHandle;

/// What is copied to and from sessions. A relative path begins at the session's directory.
impl SessionHandle {
    /// What stands at a path of a session's place; none where there is nothing.
    pub async fn file(&self, path: &Text, follow: bool) -> Result<Option<FileStat>> {
        let handle = self.entry().await?;
        let ticket = handle.ticket();
        self.within(self.files(&ticket)?.look(&ticket, path, follow)).await
    }

    /// A file or a directory of a session's place, as a tar archive.
    pub async fn copy_out(&self, path: &Text, follow: bool) -> Result<Box<dyn Archive>> {
        let handle = self.entry().await?;
        let ticket = handle.ticket();
        self.within(self.files(&ticket)?.take(&ticket, path, follow)).await
    }

    /// Unpacks a tar archive into a directory of a session's place. It takes as long as the archive does.
    pub async fn copy_in(&self, dir: &Text, archive: Box<dyn Archive>) -> Result<()> {
        let handle = self.entry().await?;
        let ticket = handle.ticket();
        self.files(&ticket)?.put(&ticket, dir, archive).await
    }

    fn files(&self, ticket: &Ticket) -> Result<&dyn Files> {
        let backend = self.engine.shared.backend(&ticket.backend)?;
        backend
            .files()
            .ok_or_else(|| Failure::unsupported("copying files", format!("the {} backend", ticket.backend)))
    }
}

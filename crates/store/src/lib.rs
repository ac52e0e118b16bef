//! What Wharf remembers of its sessions: an index and a history over the session directories.
//!
//! The directories are the truth. So a write never holds anybody up: it is queued and written behind, in order,
//! by the one thread that owns the database. A file that cannot be read is put aside, and the owner is told
//! to fill a new one from the directories.
//!
//! - [`Store`] is the handle, [`Opened`] says what was found at opening.
//! - [`SessionRow`] is one session. There are no variables and no arguments in it: they may be secrets.

mod error;
mod row;
mod schema;
mod store;
mod writer;

pub use error::StoreError;
pub use row::SessionRow;
pub use store::{Opened, Store};

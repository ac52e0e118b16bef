//! One session: the handle that callers have, the entry in memory, the task that owns what happens to it.
//!
//! A [`SessionHandle`](session_handle::SessionHandle) is what a program that embeds the engine holds: an id, and a method for
//! each operation. The [`Handle`](handle::Handle) is the registry's entry: the published snapshot, the ticket, and the links to
//! connection and task. The [`Task`](task::Task) alone changes what happens to the session; [`requests`] has all that it, the
//! observer and the courier can be asked, and a [`worker`] is the way to one of these two, which come and go. What needs only the
//! connection goes past the task: [`calls`], [`files`], [`published_ports`].

pub(crate) mod calls;
pub(crate) mod edit;
pub(crate) mod files;
pub(crate) mod handle;
pub(crate) mod published_ports;
pub(crate) mod requests;
pub(crate) mod session_handle;
pub(crate) mod task;
pub(crate) mod worker;

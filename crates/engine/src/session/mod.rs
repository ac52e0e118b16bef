//! One session in memory: its entry, its task, what is asked of both, and the calls that need nothing but its connection.

pub(crate) mod calls;
pub(crate) mod edit;
pub(crate) mod files;
pub(crate) mod handle;
pub(crate) mod published_ports;
pub(crate) mod requests;
pub(crate) mod session_handle;
pub(crate) mod task;

//! Sessions in panes of tmux, so that a person can join them with tmux itself.
//!
//! tmux holds the terminal. The pane's own process is a holder that sits in it: it starts the command there as the
//! terminal's first process, and is the parent of all that comes of it. What the pane prints and what is typed go
//! through one socket that tmux hands out (`pipe-pane` in both directions), straight into the log and into the
//! terminal: no key names, no formats, no copy mode, byte for byte.
//!
//! - [`TmuxBackend`] keeps the contract of [`wharf_backend`].
//! - `server` is the private server: its directory, its configuration, and how it is asked, always with a deadline.
//! - `door` is where a fresh pane reports, and where it is told what to run.
//! - `geometry` has tmux follow when a session's size changes.
//! - `guest` is a pane of the user's own server, which is taken in to be watched and typed at, found by its `target`.
//!
//! No text of a user ever reaches tmux: sessions are named by their ids, and commands, variables and directories go
//! to the holder as they are.

mod backend;
mod geometry;
mod guest;
mod pane_socket;
mod server;
mod target;

pub use backend::{Options, TmuxBackend};

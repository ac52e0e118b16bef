//! What only tmux can do to a session, and what a session must never do to tmux.

mod guest;
mod hostile;
mod human;
mod leftovers;
mod server;
mod support;

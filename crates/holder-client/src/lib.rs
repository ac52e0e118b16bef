//! The connection to a session's holder, blocking: frames, the greeting, and the proof of who answers.
//!
//! - [`reach`] finds the holder of a session and proves that it is the one of the session's ticket.
//! - [`client`] is the connection that `attach`, `exec` and benchmarks use.
//! - [`pumped`] runs a further command on pipes or on a [terminal of our own making](fresh_terminal).

pub mod client;
pub mod fresh_terminal;
pub mod pumped;
pub mod reach;

//! The connection to a session's holder: frames, the greeting, the proof of who answers, and a limit on what is heard.
//!
//! - [`reach`] finds the holder of a session and proves that it is the one of the session's ticket.
//! - [`client`] is the blocking connection that `attach`, `exec` and benchmarks use; `direct_input` takes keys past the holder.
//! - `session` is the asynchronous one, for backends: with the feature `async`, and a runtime.
//! - Both say the same `greeting` and `request`s, and hear the same [events](client::Event).
//! - [`pumped`] runs a further command on pipes or on a [terminal of our own making](fresh_terminal).

pub mod client;
mod direct_input;
mod event;
pub mod fresh_terminal;
mod greeting;
pub mod pumped;
pub mod reach;
mod request;
#[cfg(feature = "async")]
pub mod session;

//! The process that owns one session, and its protocol.
//!
//! A session's terminal must not live in the daemon: when that dies, the kernel hangs the terminal up. So each
//! session has a holder, a small process with no runtime in it, that
//!
//! - starts the command with its ticket and log on disk first, and is the subreaper of all that comes of it;
//! - moves output into the log inside the kernel, whether anybody watches or not;
//! - listens on a socket for [frames](frame): input, output from an offset, size, signals, the end;
//! - hands out duplicates of the terminal, so that another holder can take its place;
//! - writes the exit record, once nothing of the session is left, and goes.
//!
//! It knows nothing of agents, screens or HTTP.

pub mod frame;
pub mod line;
pub mod linux;
pub mod pace;
mod process;
pub mod wire;

pub use process::main;

//! A backend in memory, for tests of what stands above.
//!
//! Sessions live in the [`FakeBackend`] value: a second engine that is given a clone of it finds them again,
//! as it would find real ones after a crash. Tickets, logs and exit records are written to the session's
//! directory as a real backend writes them. No process is ever started: the first word of the command chooses
//! a [`Program`], and all waiting is done with tokio's clock, so that tests may pause it.
//!
//! | command | what it does |
//! |---|---|
//! | `fake:echo` | prints what is typed; a line `exit N`, ^D or the end of input ends it |
//! | `fake:exit N [MS]` | ends with code N, after MS milliseconds |
//! | `fake:print TEXT...` | prints its arguments and a newline, ends with 0 |
//! | `fake:sleep [MS]` | reads nothing, and ends with 0 after MS milliseconds, or never |
//! | `fake:ignore-term` | as `fake:sleep`, and only KILL ends it |
//! | `fake:flood N` | prints N bytes, ends with 0 |
//! | `fake:env` | prints its variables, each with a NUL after it, ends with 0 |
//! | `fake:missing` | is not found, as is anything else |

mod backend;
mod connection;
mod program;
mod session;

pub use backend::FakeBackend;
pub use program::Program;

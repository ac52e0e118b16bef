//! The hostile suite: `wharf-hostile` attacks from inside a session, and the test looks from outside, with the whole program on real engines.
//!
//! No file of the host is read or written that is not the session's, no other session is typed at or ended, and the daemon, as the next
//! one, answers everybody else within a second.

#[path = "../support/mod.rs"]
mod support;
#[allow(dead_code, reason = "the tests of the backend use the rest of it")]
#[path = "../../../backends/container/tests/support/wire.rs"]
mod wire;

mod at_once;
mod exec;
mod lending;
mod links;
mod mounts;
mod place;
mod reach;
mod sandbox;
mod shared;
mod terminal;

use support::engine;

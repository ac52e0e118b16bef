//! The log from outside: one file per subject.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

#[allow(dead_code, unreachable_pub, reason = "other tests use the rest of it, from another crate")]
#[path = "../../../backend/src/conformance/left_out.rs"]
mod left_out;

mod asciicast;
mod bytes;
mod follower;
mod full;
mod gaps;
mod hostile;
mod index;
mod kill;
mod lines;
mod marks;
mod permissions;
mod race;
mod retention;
mod since;
mod splice;
mod support;

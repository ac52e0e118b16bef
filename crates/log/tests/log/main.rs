//! The log from outside: one file per subject.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

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

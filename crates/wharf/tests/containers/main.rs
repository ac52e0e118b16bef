//! Sessions in containers from outside: the whole program on real engines.

#[path = "../support/mod.rs"]
mod support;
#[allow(dead_code, reason = "the tests of the backend use the rest of it")]
#[path = "../../../backends/container/tests/support/wire.rs"]
mod wire;

mod dock;
mod engines;
mod events;
mod exec;
mod far;
mod files;
mod guests;
mod images;
mod keeping;
mod lifecycle;
mod own_words;
mod pauses;
mod pins;
mod registry;
mod reuse;
mod survival;

use support::engine;

//! Sessions in containers from outside: the whole program on real engines.

#[path = "../../../backends/container/tests/support/engine.rs"]
#[allow(dead_code, reason = "the other tests of containers use the rest")]
mod engine;
#[path = "../support/mod.rs"]
mod support;

mod dock;
mod lifecycle;
mod survival;

//! Sessions in containers from outside: the whole program on real engines.

#[path = "../../../backends/container/tests/support/engine.rs"]
mod engine;
#[path = "../support/mod.rs"]
mod support;

mod dock;
mod lifecycle;
mod survival;

//! The examples of the library run to their ends, and nothing of them fails.

#[path = "../examples/embed.rs"]
mod embed;
#[path = "../examples/runtime_trait.rs"]
mod runtime_trait;

#[test]
fn a_session_without_a_daemon() {
    embed::main().expect("it runs");
}

#[test]
fn a_small_trait_of_somebody_elses() {
    runtime_trait::main().expect("it runs");
}

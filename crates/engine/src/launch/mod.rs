//! What is decided before a command runs: a `Spec` comes in, the `Launch` that a backend is told goes out.

pub(crate) mod agent_command;
pub(crate) mod backend_choice;
pub(crate) mod backend_launch;
pub(crate) mod environments;
pub(crate) mod login_shell;
pub(crate) mod ports;
pub(crate) mod required_programs;
pub(crate) mod secrets;
pub(crate) mod validate;
pub(crate) mod variables;

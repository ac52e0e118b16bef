//! What is decided before a command runs: a `Spec` comes in, the `Launch` that a backend is told goes out.
//!
//! [`validate`] refuses what can never run. [`backend_choice`] decides where it runs, [`agent_command`] the command line of an
//! agent. [`backend_launch`] puts the rest together: [`ports`], [`variables`] (some from the [`login_shell`]), [`secrets`], and
//! what [`environments`] make of it; then it looks for the [`required_programs`].

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

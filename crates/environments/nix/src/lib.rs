//! Sessions in a Nix dev shell.
//!
//! The shell is captured once, by `nix print-dev-env`, and kept: what a session then costs is the reading of a file.
//! What was captured is found again by everything that decides it, and nix does not collect it while it is kept.
//!
//! - [`NixEnvironment`] is the environment.
//! - A flake of this host is read as git has it, or whole where git does not have all of it.
//! - A container that sees the host's store gets the shell that was captured on the host.
//! - Where a shell cannot be captured, nix starts the command itself, and that is said.

mod builders;
mod cache;
mod capture;
mod dev_shell;
mod environment;
mod flake;
mod git;
mod hook;
mod key;
mod merge;
mod place;
mod program;
mod sources;

pub use environment::NixEnvironment;

/// What everything here returns.
type Result<T> = std::result::Result<T, wharf_model::Failure>;

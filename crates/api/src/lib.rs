//! Wharf's wire types and typed client: all that a face (command line, page, program) needs.
//!
//! - The types of requests and answers, and [`Problem`], which is how a failure travels.
//! - [`Client`] makes requests; [`LogReader`] follows a session's output.
//! - [`daemon`] starts a daemon where none answers.
//! - [`linux`] holds what both ends of the socket need from the system.
//!
//! Futures of this crate run on any tokio runtime whose I/O and time drivers are on.

mod client;
mod connection;
pub mod daemon;
mod directory;
#[cfg(target_os = "linux")]
pub mod linux;
mod log_reader;
mod problem;
mod query;
mod types;

pub use client::{Client, LARGEST_WRITE, Timeouts};
pub use directory::private_directory;
pub use log_reader::{GAP_TRAILER, LogChunk, LogReader, PROBLEM_TRAILER};
pub use problem::Problem;
pub use types::*;

//! Wharf's wire types and typed client: all that a face (command line, page, program) needs.
//!
//! - The types of requests and answers, and [`Problem`], which is how a failure travels.
//! - [`Client`] makes requests; [`LogReader`] follows a session's output, [`EventReader`] its events,
//!   [`ArchiveReader`] its files.
//! - [`direct`] makes one request without a runtime; [`rows`] is how a list is printed without being parsed.
//! - [`ConfigFile`] is what the user's `config.toml` says.
//! - [`daemon`] starts a daemon where none answers.
//! - [`linux`] holds what both ends of the socket need from the system.
//!
//! Futures of this crate run on any tokio runtime whose I/O and time drivers are on.

mod client;
mod config_file;
mod connection;
pub mod daemon;
mod daemon_environment;
mod daemon_log;
pub mod direct;
mod directory;
mod environments;
mod event_reader;
mod files;
mod hooks;
mod line_reader;
#[cfg(target_os = "linux")]
pub mod linux;
mod log_reader;
mod messages;
mod places;
mod problem;
mod query;
mod questions;
pub mod rows;
mod screens;
mod states;
mod target;
mod trust;
mod types;

pub use client::{Client, MAX_WRITE_LEN, Timeouts};
pub use config_file::{Backends, ConfigFile, NOTIFY_HINT, NotifyRule, Setting};
pub use daemon_environment::{INHERIT_LIMITS, inherits_limits};
pub use directory::{check_ours, private_directory};
pub use environments::{Preparation, PrepareRequest, PrepareStep};
pub use event_reader::EventReader;
pub use files::{ArchiveReader, FileRequest, TAR};
pub use hooks::{HookAction, HookRequest, HookSettings, HookState};
pub use log_reader::{GAP_TRAILER, LogChunk, LogReader, PROBLEM_TRAILER};
pub use messages::SendRequest;
pub use places::{PruneRequest, RemoveImageRequest};
pub use problem::Problem;
pub use questions::{ApproveRequest, KeysRequest};
pub use screens::OFFSET_HEADER;
pub use states::Met;
pub use trust::{TrustAccept, TrustLook, TrustRevoke};
pub use types::*;
pub use wharf_model::{AgentSummary, Await, Check, Format, GcItem, Retry, ScreenChanges, ScreenRow, What};

//! The suite that every backend runs: each behaves the same, or says what it cannot do.
//!
//! A backend's `tests/conformance.rs` is this, and each case is then a test with a name of its own:
//!
//! ```
//! use std::sync::Arc;
//! use wharf_backend::conformance::{Subject, Tools};
//! use wharf_backend::fake::FakeBackend;
//!
//! wharf_backend::conformance_suite!(async || {
//!     let (dir, backend) = (tempfile::tempdir().expect("a directory"), FakeBackend::new());
//!     let root = dir.path().to_owned();
//!     Subject::new(&root, Tools::fake(), move || Arc::new(backend.clone())).keep(dir)
//! });
//! # fn main() {}
//! ```
//!
//! - A [`Subject`] is a backend in an empty home, the way to open that backend again as after a restart, and the
//!   [`Tools`] of its place.
//! - [`Dressed`] is a backend whose launches go through an environment, and that runs the same suite.
//! - A case whose capability the backend does not claim asserts that the operation answers
//!   [`wharf_model::Code::Unsupported`]; it is not skipped.
//! - A case whose tools the place does not have passes and prints what was missing.
//! - After each case every session that it started is ended, and nothing of them may be left.
//!
//! The cases are in [`cases`], one module for each subject.

pub mod cases;
mod deadlines;
mod dressed;
mod left_out;
mod place;
mod processes;
mod running;
mod subject;
mod suite;
mod sum;
mod test_archive;
mod tools;
mod transcript;

pub use deadlines::{ANSWER_TIMEOUT, CASE_TIMEOUT, until, within};
pub use dressed::Dressed;
pub use left_out::{left_out, needs_namespaces};
pub use place::{Mode, Place};
pub use processes::{Bystander, carrying, none_carry};
pub use running::Running;
pub use subject::Subject;
pub use suite::check;
pub use sum::cksum;
pub use test_archive::TestArchive;
pub use tools::Tools;
pub use transcript::Transcript;

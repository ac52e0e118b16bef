//! A backend that fails on purpose: just another layer around any other one.
//!
//! ```
//! # use std::sync::Arc;
//! # use wharf_backend::{Backend, Failure, fake::FakeBackend};
//! # use wharf_backend::faults::{Fault, FaultyBackend, Op, Times};
//! # use wharf_model::Code;
//! # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
//! let (backend, faults) = FaultyBackend::new(Arc::new(FakeBackend::new()));
//! faults.inject(Op::List, Fault::Fail(Failure::new(Code::Unreachable, "the engine is down")), Times::Once);
//! assert_eq!(backend.list().await.unwrap_err().code, Code::Unreachable);
//! assert!(backend.list().await.unwrap().is_empty());
//! # });
//! ```

mod backend;
mod connection;
mod rules;

pub use backend::FaultyBackend;
pub use rules::{Fault, FaultHandle, Op, Times};

//! The engine: it starts sessions, finds them again, looks after them and answers for them.
//!
//! It is a library. The daemon is one user of it; a program that embeds it has the same semantics without one.
//!
//! - [`Engine`] is a handle; [`Engine::open`] takes the instance's lock and adopts what lives. [`Engine::session`] gives a
//!   handle for one session, with a method for each thing that can be done with it.
//! - One registry decides names, ids and their order. One task a session owns what happens to it: start,
//!   supervision, restart, end. An observer has what is seen of it and a courier what is typed into it, while there is need.
//!   Handles send them requests over bounded channels, and follow what they publish.
//! - [`Engine::close`] ends every task that the engine has spawned, and waits for all of them.
//! - What is on disk in a session's directory is the truth; the store is an index and a history over it.
//! - A session that cannot be reached is *unknown*, and nothing is concluded, ended or removed on that.
//!
//! ```
//! # use std::sync::Arc;
//! # use wharf_backend::fake::FakeBackend;
//! use wharf_engine::prelude::*;
//!
//! # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
//! # let root = tempfile::tempdir().unwrap();
//! let engine = Engine::open(Config::new(Home::below(root.path()), vec![Arc::new(FakeBackend::new())])).await?;
//! let started = engine.start(Spec::new(["fake:exit", "3"], "/")).await?;
//! let session = engine.session(started.name.as_str()).await?;
//! assert_eq!(session.wait().await?.code, Some(3));
//! engine.close().await;
//! # Ok::<(), wharf_engine::Failure>(()) }).unwrap();
//! ```
//!
//! Without the feature `local`, which is a default, there is no backend in it: bring one that implements
//! [`backend::Backend`].
//!
//! Where a change belongs:
//!
//! | folder | holds |
//! |---|---|
//! | `instance` | the engine itself: open and close, lock, registry, names and ids, the small files on disk, every task |
//! | `session` | one session: its public handle, its entry in memory, its task, what is asked of them, calls over its connection |
//! | `launch` | what is decided before a command runs: validation, backend, environments, variables, secrets, ports |
//! | `lifecycle` | start, wait for others, adopt, supervise, restart, stop, finish, pause, remove, collect |
//! | `observe` | what is seen of a session: screen, state, events, agent profiles |
//! | `deliver` | what is typed into it: messages with receipts, answers, interrupts, keys |
//! | `output` | its output: read from the log, followed, copied to a file |
//! | `platform` | what differs between systems |

mod deliver;
mod instance;
mod launch;
mod lifecycle;
mod observe;
mod output;
mod platform;
mod session;

pub use deliver::messages::{Answer, Await};
pub use deliver::retry::Retry;
pub use instance::checks::{BackendStatus, Check};
pub use instance::config::{Config, Naming, Order, Timeouts};
pub use instance::engine::{Change, Changes, Engine};
pub use instance::filter::Filter;
pub use lifecycle::collect::GcItem;
pub use observe::events::{AgentSummary, EventStream};
pub use observe::screen::Met;
pub use observe::view::{ScreenChanges, ScreenRow};
pub use session::session_handle::{SessionHandle, SessionWatch};
pub use wharf_backend::{Archive, Environment, ExecRequest, Output, OutputChunk, Pending, Progress, Stream};
pub use wharf_model::Failure;
pub use wharf_screen::{Format, What};

/// The contract of backends and environments.
pub use wharf_backend as backend;
/// Sessions on this host.
#[cfg(feature = "local")]
pub use wharf_local as local;
/// Plain data: ids, names, specs, states, receipts.
pub use wharf_model as model;

/// What most programs that embed the engine name: `use wharf_engine::prelude::*;`.
pub mod prelude {
    pub use wharf_backend::{Output, OutputChunk};
    #[cfg(feature = "local")]
    pub use wharf_local::LocalBackend;
    pub use wharf_model::{
        Code, ExitRecord, Failure, Home, Manner, Name, Offset, Progress, Receipt, Session, SessionId, Size,
        Spec, State, Text, Until,
    };

    pub use crate::{Answer, Await, Config, Engine, Filter, SessionHandle, SessionWatch, Timeouts};
}

/// What every operation of the engine returns.
pub type Result<T> = std::result::Result<T, Failure>;

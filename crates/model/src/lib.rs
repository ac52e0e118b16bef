//! Plain data that every part of Wharf shares: ids, names, specs, states, records.
//!
//! Nothing here touches a file, a socket or a clock. What is written to disk or sent over a wire is
//! versioned by its fields: an unknown one is ignored, a missing one has a default.

mod capabilities;
mod code;
mod environment;
mod exit;
mod failure;
mod home;
mod id;
mod keys;
mod name;
mod offset;
mod policy;
mod process;
mod scope;
mod session;
mod size;
mod spec;
mod state;
mod text;
mod ticket;
mod time;

pub use capabilities::Capabilities;
pub use code::Code;
pub use environment::{Change, Environment, EnvironmentBase};
pub use exit::{ExitRecord, Reason};
pub use failure::Failure;
pub use home::{Home, HomeError};
pub use id::{ParseIdError, SessionId};
pub use keys::{KeyError, key_bytes};
pub use name::{Name, NameError};
pub use offset::Offset;
pub use policy::{After, AfterWhat, Backoff, ParseAfterError, Restart};
pub use process::ProcessIdentity;
pub use scope::{Limits, Scope, ScopeKind};
pub use session::{Session, Stats};
pub use size::Size;
pub use spec::{Port, Spec};
pub use state::{Liveness, State};
pub use text::Text;
pub use ticket::Ticket;
pub use time::Millis;

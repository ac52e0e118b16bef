//! Plain data that every part of Wharf shares: ids, names, specs, states, records.
//!
//! Nothing here touches a file, a socket or a clock. What is written to disk or sent over a wire is
//! versioned by its fields: an unknown one is ignored, a missing one has a default.

mod agent;
mod capabilities;
mod code;
mod container;
mod environment;
mod event;
mod exit;
mod failure;
mod home;
mod id;
mod keys;
mod message;
mod name;
mod nix;
mod offset;
mod policy;
mod process;
mod question;
mod report;
mod sandbox;
mod scope;
mod session;
mod size;
mod spec;
mod state;
mod text;
mod ticket;
mod time;
mod until;

pub use agent::{AgentLaunch, Conversation};
pub use capabilities::Capabilities;
pub use code::Code;
pub use container::{Container, Publish, Pull, Secret, Volume};
pub use environment::{Change, Environment, EnvironmentBase};
pub use event::Event;
pub use exit::{ExitRecord, Reason};
pub use failure::Failure;
pub use home::{Home, HomeError};
pub use id::{ParseIdError, SessionId};
pub use keys::{KeyError, key_bytes};
pub use message::{Manner, Message, Progress, Receipt, Step, When};
pub use name::{Name, NameError};
pub use nix::Nix;
pub use offset::Offset;
pub use policy::{After, AfterWhat, Backoff, ParseAfterError, Restart};
pub use process::ProcessIdentity;
pub use question::{Answered, Choice, ChoiceKind, Question, Reply};
pub use report::{Claim, Explanation, Report, Source};
pub use sandbox::{Network, Sandbox};
pub use scope::{Limits, Scope, ScopeKind};
pub use session::{Session, Stats};
pub use size::{Geometry, Size};
pub use spec::{Port, Spec};
pub use state::{Liveness, State};
pub use text::Text;
pub use ticket::Ticket;
pub use time::Millis;
pub use until::{ParseUntilError, Until};

//! Sessions on this host that may touch only what they were given.
//!
//! Between the holder and the command stands one step of `wharf-holder`, which gives up rights and then becomes the
//! command: the kernel keeps it, and all that it starts, from the rest.
//!
//! - Files: landlock. What is named may be read or changed, and what every program needs may be read.
//! - Sockets: seccomp. No Unix socket can be opened, since behind one may be anything: a container engine, an agent of
//!   keys, our own daemon. With the network off there is no socket at all.
//! - A loopback of one's own is a network namespace, by bubblewrap where users may not make one.
//! - What cannot be enforced here is refused before anything runs: the same step is tried first.

mod environment;
mod linux;
mod program;
mod rules;

pub use environment::SandboxEnvironment;
pub use linux::main;
pub use rules::{Namespace, Rules};

/// The word that makes `wharf-holder` this step.
pub const STEP: &str = "sandboxed";

/// What everything here returns.
type Result<T> = std::result::Result<T, wharf_model::Failure>;

//! Sessions on this host that may touch only what they were given.
//!
//! Between the holder and the command stands one step of `wharf-holder`, which gives up rights and then becomes the
//! command: the kernel keeps it, and all that it starts, from the rest.
//!
//! - Files: landlock. What is named may be read or changed, and what every program needs may be read.
//! - A view of the files of its own, by a mount namespace: all but what it may change is read-only, Wharf's own state is not
//!   there, and `/dev` has terminals of its own and nobody else's.
//! - Sockets: seccomp. No Unix socket can be opened, since behind one may be anything: a container engine, an agent of
//!   keys, our own daemon; nor a pair of datagram ones, of which an end can be connected anew. With the network off there
//!   is no socket at all. What it has to tell goes by a descriptor that it was handed, `WHARF_CHANNEL`.
//! - Privileges: none, and no namespace to get any in.
//! - A further command joins the namespaces of the first and is kept to the same rules.
//! - A loopback of one's own is a network namespace, by bubblewrap where users may not make one.
//! - What cannot be enforced here is refused before anything runs: the same step is tried first.

mod environment;
mod linux;
mod pinned;
mod program;
mod rules;

pub use environment::SandboxEnvironment;
pub use linux::main;
pub use rules::{Guarded, Namespace, Rules};

/// The word that makes `wharf-holder` this step.
pub const STEP: &str = "sandboxed";

/// The option that has a further command join the sandbox of a process.
pub const BESIDE: &str = "--beside";

/// What everything here returns.
type Result<T> = std::result::Result<T, wharf_model::Failure>;

//! What the tests of Wharf talk to. Nothing here is shipped.
//!
//! - [`fake`]: agents that misbehave in the ways that real ones do, as the program `wharf-fake-agent`.
//! - [`hostile`]: a program that attacks Wharf from inside a session, `wharf-hostile`.
//! - [`service`]: a model service on the loopback, for real agents.

pub mod fake;
pub mod hostile;
pub mod service;

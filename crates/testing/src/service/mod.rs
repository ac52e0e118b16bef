//! A model service on the loopback: what real agents talk to in tests in place of a model.
//!
//! It speaks the four protocols that the agents speak, answers by what the text asks for (see [`Directive`]), and keeps
//! a record of every user turn that an agent really submitted: the ground truth of a test. One service serves one conversation.

mod dialect;
mod directive;
mod http;
mod record;
mod server;
mod stream;

pub use directive::Directive;
pub use record::{RecordedRequest, Turn};
pub use server::{ModelService, Settings};

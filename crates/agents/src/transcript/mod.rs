//! What an agent writes on disk about its conversation, with no set-up: proof of a submission, and the answer's text.

mod file;
mod find;
mod rules;
mod watch;

pub use rules::TranscriptRules;
pub use watch::AgentTranscript;

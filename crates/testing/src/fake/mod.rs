//! Agents that misbehave, each in one way that a real agent was seen to.
//!
//! Every mode is a terminal program with a composer, `> `, at the bottom. What is submitted is shown as `GOT n: "text"`, is worked
//! on for a moment, and is written to the log that `--log` names, which is the ground truth of a test: one JSON
//! object a line, `{"n": 1, "text": "…"}` for a message and `{"event": "granted"}` and the like for everything else.

mod agent;
mod composer;
mod face;
mod input;
mod journal;
mod manner;
mod options;
mod program;
mod terminal;

pub use agent::run;
pub use manner::{MODES, Manner};
pub use program::{NAME, PROFILE, install_profile, program};

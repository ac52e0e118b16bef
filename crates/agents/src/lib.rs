//! Agent profiles, and what reads them.
//!
//! A [`Profile`] is data: how one agent program is launched, resumed, driven and recognised. Nothing else in Wharf
//! names an agent. The profiles that come with Wharf stand in `profiles/*.toml`; a user adds or changes one in the
//! configuration directory, and a project changes one in its `wharf.toml`.
//!
//! What reads them is text in, text out: [`Look`] is what is seen of a session, [`Profile::recognise`] says what every
//! rule makes of it, [`Profile::composer`] and [`Profile::question`] what stands in the input box and what is asked,
//! [`Profile::prepare`] makes a text safe to hand over. Files are touched in three places: loading profiles,
//! [`hooks`], and [`AgentTranscript`].

mod answer;
mod budget;
mod careful;
mod composer;
pub mod hooks;
mod launch;
mod line;
mod look;
mod merge_toml;
mod pattern;
mod place;
mod prepare;
mod profile;
mod profiles;
mod program;
mod project_file;
mod question;
mod received;
mod recognise;
mod region;
mod retry;
mod rule;
mod shape;
mod stream;
mod told;
mod transcript;
mod trust;

pub use answer::AnswerRules;
pub use budget::{Budget, MAX_LOOK_TIME};
pub use composer::{Composer, Locator};
pub use launch::{Launch, LaunchRules, PromptWay};
pub use look::Look;
pub use pattern::Pattern;
pub use place::Lookup;
pub use prepare::{Care, Prepared, TextRules};
pub use profile::{Keys, Profile, Queueing, Variables};
pub use profiles::Profiles;
pub use project_file::{MAX_PROJECT_FILE_LEN, PROJECT_FILE, ProjectFile, RefusedProject};
pub use question::{Asked, FixedChoice, FoundQuestion};
pub use received::ReceivedChange;
pub use recognise::Finding;
pub use region::Region;
pub use retry::RetryRules;
pub use rule::{Rule, Seen};
pub use shape::{ExpectedShape, Path, Paths, Shape};
pub use stream::{StreamJson, StreamRules};
pub use told::Told;
pub use transcript::{AgentTranscript, TranscriptRules};
pub use trust::Trust;

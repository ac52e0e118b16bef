//! Agent profiles, and what reads them.
//!
//! A [`Profile`] is data: how one agent program is launched, resumed, driven and recognised. Nothing else in Wharf
//! names an agent. The profiles that come with Wharf stand in `profiles/*.toml`; a user adds or changes one in the
//! configuration directory, and a project changes one in its `wharf.toml`.
//!
//! What reads them is text in, text out: [`Look`] is what is seen of a session, [`Profile::recognise`] says what every
//! rule makes of it, [`Profile::composer`] and [`Profile::question`] what stands in the input box and what is asked,
//! [`Profile::prepare`] makes a text safe to hand over. Files are touched in three places: loading profiles,
//! [`hooks`], and [`Transcript`].

mod composer;
pub mod hooks;
mod launch;
mod line;
mod look;
mod merge;
mod pattern;
mod place;
mod prepare;
mod profile;
mod profiles;
mod program;
mod question;
mod received;
mod recognise;
mod region;
mod rule;
mod shape;
mod stream;
mod told;
mod transcript;

pub use composer::{Composer, Locator};
pub use launch::{Launch, LaunchRules};
pub use look::Look;
pub use pattern::Pattern;
pub use place::Lookup;
pub use prepare::{Care, Prepared, TextRules};
pub use profile::{Keys, Profile, Queueing, Variables};
pub use profiles::Profiles;
pub use question::{Asked, Choice, ChoiceKind, FixedChoice, Question};
pub use received::Change;
pub use recognise::Finding;
pub use region::Region;
pub use rule::{Rule, Seen};
pub use shape::{Expected, Path, Paths, Shape};
pub use stream::{StreamJson, StreamRules};
pub use told::Told;
pub use transcript::{Transcript, TranscriptRules};

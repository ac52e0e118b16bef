//! Looking at sessions, and speaking to them.
//!
//! Everything that one session needs for that is its [`Attention`]: its profile, its events, its queue of messages, and
//! what is seen of it. It is made when it is first needed. Its *attendant* is a task that reads the session's
//! output behind its log, keeps the screen, answers the terminal's questions, weighs what every source says of the state
//! and publishes what is [`Seen`]. It goes to sleep when nobody looks and nothing happens; the [`Tap`] wakes it. Its
//! *courier* is a task that delivers messages one after the other; it looks at what is seen and types, and never parses
//! anything itself.

mod answer;
mod attendant;
mod attention;
mod courier;
mod events;
mod interrupt;
mod journal;
mod judge;
mod profile;
mod prompt;
mod proof;
mod queue;
mod ready;
mod record;
mod request;
mod seen;
mod signals;
mod submitting;
mod tap;
mod typing;
mod view;
mod writing;

pub(crate) use attention::{Attention, Told, lock};
pub(crate) use events::{EventReader, any_event};
pub(crate) use profile::{Shelf, has_no_project, load as profiles, of as profile_of, project};
pub(crate) use proof::{RECORD, packed, transcript};
pub(crate) use queue::Facts;
pub(crate) use request::Request;
pub(crate) use seen::{Foreground, Seen};
pub(crate) use tap::Tap;
pub(crate) use typing::Typist;
pub(crate) use view::View;
pub use view::{ChangedRow, ScreenChanges};

//! What is seen of a session: its screen, its state, its events.
//!
//! [`Observed`](observed::Observed) holds the ways to a session's observer and courier, its events and what was
//! [`Seen`](seen::Seen) last. It is made when somebody first needs it. The [`observer`] is a task: it reads the session's output
//! behind its log, feeds the screen, answers the terminal's queries, has the [`judge`] weigh what every source claims about the
//! state, and publishes the result. It goes to sleep when nobody looks and nothing happens, and leaves its
//! [`memory`] to the next one; the [`output_watch`] wakes it. [`screen`] and [`events`] are what callers ask.

pub(crate) mod agent_record;
pub(crate) mod event_log;
pub(crate) mod events;
pub(crate) mod journal;
pub(crate) mod judge;
pub(crate) mod memory;
pub(crate) mod observed;
pub(crate) mod observer;
pub(crate) mod output_watch;
pub(crate) mod profiles;
pub(crate) mod prompt;
pub(crate) mod screen;
pub(crate) mod seen;
pub(crate) mod signals;
pub(crate) mod view;

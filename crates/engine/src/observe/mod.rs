//! What is seen of a session: its screen, its state, its events.

pub(crate) mod agent_record;
pub(crate) mod event_log;
pub(crate) mod events;
pub(crate) mod journal;
pub(crate) mod judge;
pub(crate) mod observed;
pub(crate) mod observer;
pub(crate) mod output_watch;
pub(crate) mod profiles;
pub(crate) mod prompt;
pub(crate) mod request;
pub(crate) mod screen;
pub(crate) mod seen;
pub(crate) mod signals;
pub(crate) mod view;

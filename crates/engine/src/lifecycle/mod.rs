//! What happens to a session from its first start to its removal.
//!
//! [`start_session`] claims a name and begins the session's [`Task`](crate::session::task::Task). The task goes from phase to
//! phase: [`wait_for_others`], [`start_run`], [`live`], [`restart`], [`finish`]; [`adopt`] where the session lived before the
//! engine did. [`remove`] and [`collect`] take away what is over.

pub(crate) mod adopt;
pub(crate) mod collect;
pub(crate) mod finish;
pub(crate) mod first_prompt;
pub(crate) mod live;
pub(crate) mod pause;
pub(crate) mod remove;
pub(crate) mod restart;
pub(crate) mod run_events;
pub(crate) mod run_timeouts;
pub(crate) mod start_run;
pub(crate) mod start_session;
pub(crate) mod stop;
pub(crate) mod wait_for_others;

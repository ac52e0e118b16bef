//! What is typed into a session for somebody: messages with receipts, answers to its questions, interrupts, keys.
//!
//! [`messages`] is what callers ask. The [`courier`] is a task that has the session's [`queue`], on disk, and delivers its
//! messages one after the other: it waits until the agent is [`ready`], types the text ([`writing`]), presses the submit key
//! ([`submitting`]) and looks for [`proof`]. It parses nothing itself: it looks at what the observer has published. Whoever types
//! has the [`turn`] to type meanwhile.

pub(crate) mod answer;
pub(crate) mod courier;
pub(crate) mod interrupt;
pub(crate) mod messages;
pub(crate) mod proof;
pub(crate) mod queue;
pub(crate) mod ready;
pub(crate) mod retry;
pub(crate) mod submitting;
pub(crate) mod turn;
pub(crate) mod typing;
pub(crate) mod writing;

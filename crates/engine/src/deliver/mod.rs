//! What is said to a session: messages with receipts, answers to its questions, interrupts, keys.

pub(crate) mod answer;
pub(crate) mod courier;
pub(crate) mod interrupt;
pub(crate) mod messages;
pub(crate) mod proof;
pub(crate) mod queue;
pub(crate) mod ready;
pub(crate) mod retry;
pub(crate) mod submitting;
pub(crate) mod typing;
pub(crate) mod writing;

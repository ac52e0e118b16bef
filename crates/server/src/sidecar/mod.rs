//! The socket that agents tell events to: `WHARF_EVENTS` in every session.
//!
//! One JSON object a line: `{"v":1,"kind":"turn.started","data":{…}}`. Optional are `"seq"`, the sender's own number (one
//! that came before is passed over, one that is missing is told as an event `gap`), and `"ack":true`, which is answered with
//! `{"v":1,"ack":SEQ,"event":N}` or `{"v":1,"ack":SEQ,"error":{…}}`; nothing else is ever answered. Unknown kinds are kept.
//!
//! The session is known by the sender's process. Where that says nothing, as from inside a container, the first line does:
//! `{"v":1,"session":"…","token":"…"}`, from `WHARF_SESSION_ID` and `WHARF_TOKEN`.
//!
//! A sender that floods waits for its own lines to be stored, and delays nobody else.

mod account;
mod envelope;
mod lines;
mod serve;
mod teller;

pub(crate) use serve::serve;

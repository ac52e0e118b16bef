//! The engine against the fake backend: one file a subject.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on shall say where")]

mod adoption;
mod after;
mod choice;
mod closing;
mod collecting;
mod costly_output;
mod edits;
mod environments;
mod history;
mod lifecycle;
mod messages;
mod name_scope;
mod names;
mod pausing;
mod pipes;
mod place;
mod policies;
mod session_handle;
mod unknown;

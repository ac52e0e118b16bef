//! Files between here and a session's place.
//!
//! - `side` reads what was typed, `target` decides where things go, by the rules that `docker cp` has.
//! - `inward` and `outward` move them.

mod inward;
mod outward;
mod side;
mod target;

pub(crate) use inward::{from_archive, from_here};
pub(crate) use outward::{to_archive, to_here};
pub(crate) use side::Side;

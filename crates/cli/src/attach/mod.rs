//! A session brought to this terminal, or into this pipeline. It speaks to the holder: a daemon is not involved.

mod input;
mod reach;
mod screen;
mod session;
mod tail;

pub(crate) use reach::{Reached, reach};
pub(crate) use session::{Begin, Options, attach};

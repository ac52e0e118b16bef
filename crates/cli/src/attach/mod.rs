//! A session brought to this terminal, or into this pipeline. It speaks to the holder; a daemon paints the screen where one
//! runs, and is not needed.

mod geometry;
mod input;
mod options;
mod paint;
mod reach;
mod screen;
mod session;
mod tail;

pub(crate) use options::{Begin, Options, Outer};
pub(crate) use reach::{Reached, reach};
pub(crate) use session::attach;

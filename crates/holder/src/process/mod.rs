//! The process itself: a nursery that forks holders ahead, and the holder.

mod channel;
mod departure;
mod ending;
mod holder;
mod input;
mod nursery;
mod one;
mod pane;
mod peer;
mod pumping;
mod record;
mod request;
mod seat;
mod start;
mod telling;
mod typing;

pub use nursery::main;

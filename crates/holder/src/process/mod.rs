//! The process itself: a nursery that forks holders ahead, and the holder.

mod channel;
mod ending;
mod holder;
mod input;
mod nursery;
mod peer;
mod record;
mod request;
mod start;

pub use nursery::main;

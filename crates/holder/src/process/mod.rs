//! The process itself: a nursery that forks holders ahead, and the holder.

mod channel;
mod departure;
mod ending;
mod holder;
mod input;
mod keep;
mod lend;
mod loan;
mod nursery;
mod one;
mod pane;
mod peer;
mod pumping;
mod record;
mod relay;
mod request;
mod seat;
mod start;
mod telling;
mod typing;

pub use nursery::main;
pub(crate) use typing::TELL;

//! The process itself: a nursery that forks holders ahead, and the holder.

mod channel;
mod departure;
mod ending;
mod expected;
mod files;
mod filling;
mod forsaken;
mod holder;
mod input;
mod keep;
mod lend;
mod loan;
mod motd;
mod nursery;
mod one;
mod orphanage;
mod pane;
mod peer;
mod pumping;
mod recall;
mod record;
mod relay;
mod request;
mod seat;
mod standing;
mod start;
mod telling;
mod trouble;
mod typing;

pub use nursery::main;

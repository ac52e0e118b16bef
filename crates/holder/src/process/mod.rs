//! The process itself: a nursery that forks holders ahead, and the holder.

mod channel;
mod container_init;
mod departure;
mod direct_input;
mod end_exec_proxy;
mod ending;
mod exec_proxy;
mod expected;
mod files;
mod filling;
mod forsaken;
mod holder;
mod input;
mod motd;
mod nursery;
mod one;
mod orphanage;
mod pane;
mod peer;
mod pumping;
mod record;
mod relay;
mod request;
mod standing;
mod start;
mod telling;
mod tmux_pane;
mod trouble;
mod typing;

pub use nursery::main;

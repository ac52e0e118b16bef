//! The process itself: a nursery that forks holders ahead, and the holder.

mod caller_rights;
mod channel;
mod command_watch;
mod container_init;
mod direct_input;
mod end_exec_proxy;
mod ending;
mod exec_proxy;
mod expected;
mod files;
mod filling;
mod forsaken;
mod holder;
mod holder_end;
mod input;
mod motd;
mod nursery;
mod nursery_children;
mod one;
mod pane;
mod peer;
mod peer_news;
mod pumping;
mod record;
mod relay;
mod request;
mod start;
mod tmux_pane;
mod typing;

pub use nursery::main;

//! The program from outside: one file a verb, each test with an instance of its own.

#[path = "../support/mod.rs"]
mod support;

mod agents;
mod attach;
mod cp;
mod daemon;
mod environments;
mod events;
mod exec;
mod input;
mod logs;
mod ls;
mod notify;
mod output;
mod pause;
mod port;
mod questions;
mod record;
mod run;
mod screen;
mod send;
mod show;
mod stop;
mod tmux;
mod wait;

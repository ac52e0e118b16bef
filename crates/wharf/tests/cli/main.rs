//! The program from outside: one file a verb, each test with an instance of its own.

#[path = "../support/mod.rs"]
mod support;

mod agents;
mod attach;
mod controls;
mod cp;
mod daemon;
mod drafts;
mod environments;
mod events;
mod exec;
mod groups;
mod input;
mod lines;
mod logs;
mod ls;
mod names;
mod notify;
mod output;
mod pause;
mod port;
mod project;
mod questions;
mod record;
mod rights;
mod run;
mod said;
mod sandbox;
mod screen;
mod secrets;
mod send;
mod several;
mod show;
mod stop;
mod tmux;
mod trouble;
mod unfinished;
mod viewers;
mod wait;

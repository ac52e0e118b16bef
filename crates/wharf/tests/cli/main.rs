//! The program from outside: one file a verb, each test with an instance of its own.

#[path = "../support/mod.rs"]
mod support;

mod attach;
mod daemon;
mod exec;
mod input;
mod logs;
mod ls;
mod output;
mod record;
mod run;
mod stop;
mod wait;

//! Wharf's command line: one file a verb, and nothing is loaded that the verb at hand does not need.
//!
//! - [`main`] looks at the first word, builds that verb's arguments alone and runs it.
//! - Verbs that change or list sessions ask the daemon, which is started when none answers. `logs`, `record`,
//!   `attach` and `version` need none: the log, and the holder's socket, are found by the session's name.
//! - Data goes to standard output, everything else to standard error; [`EXIT_CODES`] is the one table of codes.

mod attach;
mod call;
mod commands;
mod config;
mod container;
mod copy;
mod delivery;
mod detach;
mod diff;
mod dispatch;
mod duration;
mod each;
mod exit_codes;
mod filter;
mod help;
mod inner_terminal;
mod join;
mod last_lines;
mod log_text;
mod other_screen;
mod output;
mod permission;
mod persistence;
mod place;
mod plain;
mod ports;
mod progress;
mod quantity;
mod replay;
mod secrets;
mod selection;
mod shortcut;
mod signals;
mod start;
mod surroundings;
mod table;
mod terminal;
mod trouble;
mod typing;
mod variables;
mod verb;
mod versions;

pub use dispatch::{Serve, main};
pub use exit_codes::EXIT_CODES;

//! The verbs, one file each, and the table of them.

#![expect(clippy::needless_pass_by_value, reason = "every verb has the same form: its arguments are its own")]

use crate::verb::{Verb, arguments};

mod adopt;
mod agents;
mod approve;
mod ask;
mod attach;
mod backends;
mod cancel;
mod capture;
mod completions;
mod cp;
mod daemon;
mod deny;
mod doctor;
mod ensure;
mod env;
mod escape;
mod events;
mod exec;
mod explain;
mod gc;
mod groups;
mod hook;
mod image;
mod interrupt;
mod keys;
mod kill;
mod logs;
mod ls;
mod man;
mod messages;
mod pause;
mod pipe;
mod port;
mod record;
mod rename;
mod restart;
mod retry;
mod rm;
mod run;
mod screen;
mod send;
mod show;
mod signal;
mod stats;
mod stop;
mod top;
mod trust;
mod unpause;
mod version;
mod wait;
mod write;

pub(crate) use exec::finished;
pub(crate) use ls::{Args as LsArgs, run as list};
pub(crate) use run::{Args as RunArgs, run as start};

macro_rules! verb {
    ($module:ident, $about:literal) => {
        Verb {
            name: stringify!($module),
            about: $about,
            args: <$module::Args as clap::Args>::augment_args,
            run: |matches, serve| $module::run(arguments(matches)?, serve),
        }
    };
}

/// Every verb. `help.rs` says in which group help shows it.
pub(crate) const VERBS: &[Verb] = &[
    verb!(run, "Start a session"),
    verb!(ensure, "Start a session unless one of that name or group runs"),
    verb!(adopt, "Take in what runs already: watch it and type"),
    verb!(ls, "List sessions"),
    verb!(groups, "List the groups that sessions belong to"),
    verb!(show, "Show all that is known of a session"),
    verb!(attach, "Bring a session to this terminal"),
    verb!(logs, "Print a session's output"),
    verb!(send, "Send a message to a session's agent, with proof that it arrived"),
    verb!(ask, "Send a message, wait for the turn to end, and print the answer"),
    verb!(retry, "Have an agent go on whose last turn failed"),
    verb!(messages, "List a session's messages and what became of them"),
    verb!(cancel, "Take a message back that is not typed yet"),
    verb!(approve, "Answer an agent's question with yes, or with a choice"),
    verb!(deny, "Answer an agent's question with no"),
    verb!(interrupt, "Stop an agent's turn, and prove it"),
    verb!(escape, "Press Escape in a session"),
    verb!(capture, "Print what stands on a session's screen"),
    verb!(screen, "Show a session's screen, and watch it"),
    verb!(explain, "Say why a session is in its state"),
    verb!(events, "Print a session's events"),
    verb!(keys, "Press keys in a session"),
    verb!(write, "Type text or bytes into a session"),
    verb!(signal, "Send a signal to sessions"),
    verb!(stop, "Stop sessions: TERM to the whole tree, grace, KILL"),
    verb!(kill, "Kill sessions at once, with their whole trees"),
    verb!(pause, "Make sessions stand still"),
    verb!(unpause, "Let paused sessions run again"),
    verb!(restart, "Start sessions again, with the same command"),
    verb!(rm, "Remove ended sessions and their logs"),
    verb!(rename, "Give a session another name"),
    verb!(wait, "Wait for sessions to end, or to be idle, asking and so on"),
    verb!(exec, "Run one more command in a session's place"),
    verb!(cp, "Copy files between a session's place and here"),
    verb!(port, "Say where a session's ports are reached"),
    verb!(env, "Show or set the variables of what starts later in a session"),
    verb!(stats, "Show what sessions use"),
    verb!(top, "Watch what sessions use"),
    verb!(pipe, "Copy a session's output to a file as well"),
    verb!(record, "Export a session as a recording"),
    verb!(gc, "Clear up what is left of ended sessions"),
    verb!(doctor, "Look for what is wrong"),
    verb!(image, "List, fetch, build and remove images for containers"),
    verb!(backends, "List the places where sessions can run"),
    verb!(agents, "List the agents whose profiles are known"),
    verb!(trust, "Accept a project's wharf.toml, having seen it"),
    verb!(hook, "Have agents tell Wharf what they do"),
    verb!(daemon, "Look after the daemon"),
    verb!(completions, "Print completions for a shell"),
    verb!(man, "Print or write the manual pages"),
    verb!(version, "Print the version"),
];

/// The verb of this name.
pub(crate) fn find(word: &str) -> Option<&'static Verb> {
    VERBS.iter().find(|verb| verb.name == word)
}

//! Finds the verb of a command line, runs it, and turns its result into an exit code.

use std::ffi::OsString;

use clap::ArgMatches;
use wharf_model::Home;

use crate::trouble::{Done, Trouble};
use crate::verb::Verb;
use crate::{commands, help, output, shortcut};

/// What `wharf daemon run` does: given by the program, so that this crate knows no server.
pub type Serve = fn(Home) -> u8;

/// Runs a command line, the program's name first. Returns its exit code.
pub fn main(argv: &[OsString], serve: Serve) -> u8 {
    let word = argv.get(1).and_then(|word| word.to_str());
    // The whole tree of verbs costs more than most verbs do: it is built only where it is shown.
    match word.and_then(commands::find) {
        Some(verb) => run(verb, &argv[1..], serve),
        None => told(help::answer(argv), false),
    }
}

fn run(verb: &Verb, argv: &[OsString], serve: Serve) -> u8 {
    match verb.name {
        "run" => {
            if let Some(args) = shortcut::run(&argv[1..]) {
                let json = args.start.json;
                return told(commands::start(args, serve), json);
            }
        }
        "ls" => {
            if let Some(args) = shortcut::ls(&argv[1..]) {
                let json = args.json;
                return told(commands::list(args, serve), json);
            }
        }
        _ => {}
    }
    match verb.command().try_get_matches_from(argv) {
        Ok(matches) => told((verb.run)(&matches, serve), json(&matches)),
        Err(error) => {
            let own = argv.iter().take_while(|word| *word != "--");
            told(output::parser(&error), own.into_iter().any(|word| word == "--json"))
        }
    }
}

/// Whether the answer, and so the failure too, is for a program.
fn json(matches: &ArgMatches) -> bool {
    let deepest = matches.subcommand().map_or(matches, |(_, deeper)| deeper);
    deepest.try_get_one::<bool>("json").ok().flatten().copied().unwrap_or(false)
}

fn told(done: Done, json: bool) -> u8 {
    match done {
        Ok(code) => code,
        Err(Trouble::Closed) => 0,
        Err(Trouble::Failed(failure)) => {
            output::failure(&failure, json);
            failure.code.exit_code()
        }
    }
}

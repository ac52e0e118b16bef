//! Everything that needs the whole tree of verbs: help, and words that are none.

use std::ffi::OsString;
use std::fmt::Write as _;

use clap::{Arg, Command};

use crate::trouble::{Done, Trouble, invalid};
use crate::verb::Verb;
use crate::{EXIT_CODES, commands, output};

const ABOUT: &str = "One place where any agent ties up: sessions that outlive everything.";
const TOUR: &str = "\
Start here:
  wharf run --name demo -- bash     a session, attached; ctrl-\\ leaves it running
  wharf ls                          what there is
  wharf send demo 'echo hello'      a message, with proof that it arrived
  wharf capture demo                what stands on its screen
  wharf attach demo                 back in
  wharf stop demo                   its whole process tree ends

wharf help VERB says more; wharf help exit-codes lists the codes.";

/// The verbs by what they are for.
const GROUPS: &[(&str, &[&str])] = &[
    (
        "Sessions",
        &[
            "run", "ensure", "adopt", "ls", "groups", "show", "stop", "kill", "pause", "unpause", "restart",
            "rm", "rename", "wait",
        ],
    ),
    (
        "Agents",
        &[
            "send",
            "ask",
            "retry",
            "messages",
            "cancel",
            "approve",
            "deny",
            "interrupt",
            "escape",
            "explain",
            "events",
            "agents",
            "hook",
            "trust",
        ],
    ),
    ("Terminals", &["attach", "capture", "screen", "logs", "record", "keys", "write", "pipe"]),
    ("Processes", &["exec", "cp", "port", "env", "signal", "stats", "top"]),
    (
        "Wharf itself",
        &["backends", "image", "doctor", "gc", "daemon", "completions", "man", "version", "help"],
    ),
];

/// The verbs as help lists them.
fn listing() -> String {
    let mut text = String::new();
    for (title, names) in GROUPS {
        let _ = writeln!(text, "{title}:");
        for name in *names {
            let about =
                commands::find(name).map_or("Show help on a verb, or on exit-codes", |verb| verb.about);
            if commands::find(name).is_some() || *name == "help" {
                let _ = writeln!(text, "  {name:<12} {about}");
            }
        }
        text.push('\n');
    }
    text
}

/// The whole command with every verb: for help, completions and manual pages.
pub(crate) fn tree() -> Command {
    let verbs = commands::VERBS.iter().map(Verb::command);
    Command::new("wharf")
        .bin_name("wharf")
        .version(env!("CARGO_PKG_VERSION"))
        .about(ABOUT)
        .help_template("{about}\n\n{usage-heading} {usage}\n\n{after-help}")
        .after_help(format!("{}{TOUR}", listing()))
        .subcommand_required(true)
        .arg_required_else_help(true)
        .disable_help_subcommand(true)
        .subcommands(verbs)
        .subcommand(
            Command::new("help")
                .about("Show help on a verb, or on exit-codes")
                .arg(Arg::new("topic").value_name("VERB")),
        )
}

/// Answers a command line that does not begin with a verb.
pub(crate) fn answer(argv: &[OsString]) -> Done {
    let words: Vec<&str> = argv.iter().skip(1).filter_map(|word| word.to_str()).collect();
    match words.as_slice() {
        [] | ["help"] => shown(&mut tree()),
        ["help", "exit-codes"] => exit_codes(),
        ["help", verb, ..] => match commands::find(verb) {
            Some(verb) => shown(&mut verb.command()),
            None => Err(invalid(format!("there is no verb {verb:?}")).hint("`wharf help` lists them").into()),
        },
        _ => match tree().try_get_matches_from(argv) {
            Ok(_) => shown(&mut tree()),
            Err(error) => output::parser(&error),
        },
    }
}

fn shown(command: &mut Command) -> Done {
    output::text(&command.render_long_help().to_string())?;
    Ok(0)
}

fn exit_codes() -> Result<u8, Trouble> {
    let mut table = crate::table::Table::new(&["CODE", "MEANING"]);
    for (code, meaning) in EXIT_CODES {
        table.row([(*code).to_owned(), (*meaning).to_owned()]);
    }
    output::text(&table.text(None))?;
    Ok(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_verb_is_well_formed() {
        tree().debug_assert();
        for verb in commands::VERBS {
            verb.command().debug_assert();
            assert!(!verb.about.ends_with('.') && !verb.about.is_empty(), "{}", verb.name);
        }
    }

    #[test]
    fn help_lists_every_verb_with_what_it_does() {
        let text = tree().render_long_help().to_string();
        for verb in commands::VERBS {
            assert!(
                text.contains(&format!("  {:<12} {}\n", verb.name, verb.about)),
                "{} in {text}",
                verb.name
            );
            assert!(verb.command().render_help().to_string().starts_with(verb.about), "{}", verb.name);
        }
    }

    #[test]
    fn every_verb_that_users_were_promised_is_there() {
        let promised = "run ls show logs attach keys write interrupt escape signal stop kill rm rename restart wait \
                        exec env stats top pipe ensure gc doctor backends daemon completions man version record \
                        send ask retry messages cancel approve deny capture screen explain events agents hook groups";
        for word in promised.split_whitespace() {
            assert!(commands::find(word).is_some(), "{word}");
        }
    }
}

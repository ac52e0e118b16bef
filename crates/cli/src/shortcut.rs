//! The forms of `run` and `ls` that scripts use most, read by hand.
//!
//! The tree of arguments costs more than all else that such a command does itself. Whatever is not plainly one of
//! these forms, also what is wrong, goes the long way.

use std::ffi::OsString;
use std::str::FromStr;

use crate::commands::{LsArgs, RunArgs};

/// `run -d` with nothing but a name, a group, a backend, a directory and variables.
pub(crate) fn run(words: &[OsString]) -> Option<RunArgs> {
    let mut args = RunArgs::default();
    let start = &mut args.start;
    ":".clone_into(&mut start.env_sep);
    let mut rest = words.iter();
    loop {
        let word = rest.next()?.to_str()?;
        match word {
            "-d" | "--detach" => once(&mut args.detach)?,
            "-q" | "--quiet" => once(&mut args.quiet)?,
            "--no-tty" => once(&mut start.no_tty)?,
            "--json" => once(&mut start.json)?,
            "-n" | "--name" => only(&mut start.name, name(rest.next()?)?)?,
            "-g" | "--group" => only(&mut start.group, name(rest.next()?)?)?,
            "-b" | "--backend" => only(&mut start.backend, value(rest.next()?)?.to_str()?.to_owned())?,
            "-w" | "--dir" => only(&mut start.dir, value(rest.next()?)?.into())?,
            "-e" | "--env" => start.env.push(value(rest.next()?)?.clone()),
            "--" => break,
            _ => return None,
        }
    }
    start.argv = rest.cloned().collect();
    (args.detach && !args.start.argv.is_empty()).then_some(args)
}

/// `ls`, and `ls --json`.
pub(crate) fn ls(words: &[OsString]) -> Option<LsArgs> {
    match words {
        [] => Some(LsArgs::default()),
        [word] if word == "--json" => {
            let mut args = LsArgs::default();
            args.json = true;
            Some(args)
        }
        _ => None,
    }
}

/// A switch that is given once.
fn once(switch: &mut bool) -> Option<()> {
    (!std::mem::replace(switch, true)).then_some(())
}

/// An option that is given once.
fn only<T>(option: &mut Option<T>, value: T) -> Option<()> {
    option.replace(value).is_none().then_some(())
}

/// A value that cannot be taken for another option.
fn value(word: &OsString) -> Option<&OsString> {
    let bytes = word.as_encoded_bytes();
    (!bytes.is_empty() && !bytes.starts_with(b"-")).then_some(word)
}

fn name<T: FromStr>(word: &OsString) -> Option<T> {
    value(word)?.to_str()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use clap::FromArgMatches;

    use super::*;

    fn words(line: &str) -> Vec<OsString> {
        line.split(' ').filter(|word| !word.is_empty()).map(OsString::from).collect()
    }

    /// What the long way makes of the same words.
    fn long<A: clap::Args + FromArgMatches + std::fmt::Debug>(
        verb: &'static str,
        line: &str,
    ) -> Option<String> {
        let command = A::augment_args(clap::Command::new(verb));
        let matches = command.try_get_matches_from(words(&format!("{verb} {line}"))).ok()?;
        Some(format!("{:?}", A::from_arg_matches(&matches).ok()?))
    }

    #[test]
    fn the_short_way_reads_what_the_long_way_reads() {
        for line in [
            "-d -- true",
            "-d --name a -- sh -c x -d --name b",
            "--detach -q -n a -g g -b local -w /tmp -e A=1 --env B=2=3 -e C+=4 -e D --no-tty -- x",
            "--json -d --dir . -- x --",
            "-d -n team/api -g team -- x",
        ] {
            let short = run(&words(line)).map(|args| format!("{args:?}"));
            assert_eq!(short, long::<RunArgs>("run", line), "{line}");
            assert!(short.is_some(), "{line}");
        }
        for line in ["", "--json"] {
            let short = ls(&words(line)).map(|args| format!("{args:?}"));
            assert_eq!(short, long::<LsArgs>("ls", line), "{line}");
            assert!(short.is_some(), "{line}");
        }
    }

    #[test]
    fn anything_else_goes_the_long_way() {
        for line in [
            "",
            "-d",
            "-d --",
            "-- x",
            "-d x",
            "-dq -- x",
            "-d -d -- x",
            "-d --name a --name b -- x",
            "-d --name -- x",
            "-d --name ../x -- x",
            "-d --name a/b/c -- x",
            "-d --group a/b -- x",
            "-d --name=a -- x",
            "-d --help -- x",
            "-d -e -- x",
            "-d --memory 1g -- x",
            "--attach -- x",
        ] {
            assert!(run(&words(line)).is_none(), "{line}");
        }
        for line in ["a", "-q", "--json --json", "--help"] {
            assert!(ls(&words(line)).is_none(), "{line}");
        }
    }
}

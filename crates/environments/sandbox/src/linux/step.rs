//! Runs inside `wharf-holder`: applies the sandbox rules to itself, then becomes the command.

use std::ffi::{OsStr, OsString};
use std::io::{self, Write as _};
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};

use rustix::thread::UnshareFlags;
use wharf_boundary::channel;
use wharf_model::{Code, Failure, Network, Text};

use super::{calls, descriptors, files, namespace, network, own_devices, privileges, view};
use crate::rules::{InForce, Namespace, OWN_TERMINALS};
use crate::{BESIDE, Result, Rules, STEP};

/// Runs `RULES -- COMMAND…`, or `RULES --check`, which only says whether the rules can be kept, or
/// `RULES --beside PID:START -- COMMAND…`, which joins that process of a sandbox first.
pub fn main(arguments: impl Iterator<Item = OsString>) -> ExitCode {
    let arguments: Vec<OsString> = arguments.collect();
    let (rules, rest) = match arguments.as_slice() {
        [rules, rest @ ..] if !rest.is_empty() => (rules, rest),
        _ => {
            return told(&Failure::new(
                Code::Invalid,
                "this is a step of Wharf's own, and not for use by hand",
            ));
        }
    };
    let text = rules.as_encoded_bytes();
    let rules: Rules = match serde_json::from_slice(text) {
        Ok(rules) => rules,
        Err(error) => return told(&Failure::new(Code::Invalid, format!("the rules are odd: {error}"))),
    };
    match rest {
        [check] if check == "--check" => checked(apply_or_wrap(&rules, rest)),
        [dashes, command @ ..] if dashes == "--" && !command.is_empty() => {
            match apply_or_wrap(&rules, rest) {
                Ok(_) => told(&ran(command, None)),
                Err(failure) => told(&failure),
            }
        }
        [beside, process, dashes, command @ ..]
            if beside == BESIDE && dashes == "--" && !command.is_empty() =>
        {
            match apply_beside(&rules, &process.to_string_lossy()) {
                Ok(_) => told(&ran(command, rules.temporary.as_ref())),
                Err(failure) => told(&failure),
            }
        }
        _ => told(&Failure::new(Code::Invalid, "there is no command")),
    }
}

/// Says by standard output what is in force, or why not.
fn checked(outcome: Result<InForce>) -> ExitCode {
    let (json, code) = match outcome {
        Ok(in_force) => (serde_json::to_string(&in_force), ExitCode::SUCCESS),
        Err(failure) => (serde_json::to_string(&failure), ExitCode::FAILURE),
    };
    // The asker may have left.
    let _ = writeln!(std::io::stdout(), "{}", json.unwrap_or_default());
    code
}

/// Says a failure to the session's own output.
fn told(failure: &Failure) -> ExitCode {
    let _ = writeln!(std::io::stderr(), "wharf: {}", failure.message);
    ExitCode::from(failure.code.exit_code())
}

fn apply_or_wrap(rules: &Rules, rest: &[OsString]) -> Result<InForce> {
    if rules.network == Network::Loopback && rules.namespace == Namespace::Bubblewrap {
        // It calls this step again, in a network that is closed already.
        return Err(wrap(rules, rest));
    }
    apply(rules)
}

/// Gives up everything that the rules do not give.
fn apply(rules: &Rules) -> Result<InForce> {
    if let Some(dir) = &rules.temporary {
        let made = std::fs::DirBuilder::new().mode(0o700).create(dir.as_path());
        // It is there from an earlier run, or its session is not there yet, as in a check.
        drop(made);
    }
    let modes = own_namespaces(rules)?;
    if !modes && let Some(path) = view::exposed(rules) {
        let message =
            format!("the sandbox would have {}, which is Wharf's own, in its reach", path.display());
        return Err(Failure::new(Code::Unsupported, message)
            .hint("run it in another directory, or allow user namespaces: then it can be hidden"));
    }
    keep_to(rules, modes)
}

/// The same beside a process that is in a sandbox of these rules already.
fn apply_beside(rules: &Rules, process: &str) -> Result<InForce> {
    if rules.namespace == Namespace::Bubblewrap {
        return Err(Failure::unsupported("a further command", "a sandbox by bubblewrap"));
    }
    let modes = namespace::join(process, rules.network == Network::Loopback).map_err(|error| {
        Failure::new(Code::Unreachable, format!("the sandbox of process {process} cannot be joined: {error}"))
    })?;
    keep_to(rules, modes)
}

/// Gives up privileges, files, calls and descriptors. What comes now holds for all that this process starts.
fn keep_to(rules: &Rules, own_view: bool) -> Result<InForce> {
    // Without a view of its own, terminals of others are where its own would be.
    let terminals: Vec<Text> = if own_view {
        vec![OWN_TERMINALS.into()]
    } else {
        own_devices::terminal().map(Text::from).into_iter().collect()
    };
    descriptors::close_others()?;
    privileges::drop_all()?;
    let signals = files::restrict(rules, &terminals)?;
    // A view of its own comes with shared memory of its own.
    calls::restrict(rules.network, own_view)?;
    Ok(InForce { signals, modes: own_view })
}

/// A network of its own where it is asked for, and a closed view of the files with shared memory of its own where that can be
/// had. Says whether it is.
fn own_namespaces(rules: &Rules) -> Result<bool> {
    let mut flags = UnshareFlags::NEWNS | UnshareFlags::NEWIPC;
    if rules.network == Network::Loopback {
        flags |= UnshareFlags::NEWNET;
    }
    let entered = namespace::enter(flags);
    if rules.network == Network::Loopback {
        let cannot = |error: io::Error| {
            let message = format!("no network of its own can be had: {error}");
            Failure::new(Code::Unsupported, message).hint(network::HINT)
        };
        entered.map_err(cannot)?;
        network::raise_loopback().map_err(cannot)?;
    } else if entered.is_err() {
        return Ok(false);
    }
    // Landlock holds either way; what this adds is said, or said to be missing.
    Ok(view::close(rules).is_ok())
}

/// Becomes the command; returns only why that failed.
fn ran(command: &[OsString], temporary: Option<&Text>) -> Failure {
    let mut ready = Command::new(&command[0]);
    if let Some(dir) = temporary {
        ready.env("TMPDIR", dir.as_os_str()).env(channel::VARIABLE, channel::NUMBER.to_string());
    }
    let error = ready.args(&command[1..]).exec();
    let code = if error.kind() == std::io::ErrorKind::NotFound {
        Code::CommandNotFound
    } else {
        Code::NotExecutable
    };
    Failure::new(code, format!("cannot run {:?} in the sandbox: {error}", command[0].display().to_string()))
}

/// Becomes bubblewrap, which makes the network and runs this step in it; returns only why that failed.
fn wrap(rules: &Rules, rest: &[OsString]) -> Failure {
    let inner = Rules { network: Network::Open, namespace: Namespace::Own, ..rules.clone() };
    let json = serde_json::to_string(&inner).unwrap_or_default();
    // Kept across everything that bubblewrap does, so that it is this very program that goes on.
    let own = std::env::current_exe().unwrap_or_else(|_| "wharf-holder".into());
    let mut command = Command::new("bwrap");
    command.args(["--dev-bind", "/", "/", "--unshare-net", "--"]).arg(own).arg(STEP).arg(OsStr::new(&json));
    let error = command.args(rest).exec();
    Failure::new(Code::Unsupported, format!("bubblewrap cannot be run: {error}")).hint(network::HINT)
}

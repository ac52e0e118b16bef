//! A program that attacks Wharf from inside a session, as an agent would that has turned on its user.
//!
//! It is static, so it runs in any image. Each attack does one thing, says in a line of JSON what it could do, and goes on until the
//! session ends, so that a test on the host can look:
//!
//! ```text
//! {"attack":"place","words":["exit.json","fifo"],"did":["exit.json"],"failed":[]}
//! ```
//! The line goes to standard output, and to a file of the session's name in the directory that `HOSTILE_REPORTS` names: whoever replaces
//! the log cannot be read by it. Several attacks of one call, with `+` between them, happen together.

mod api;
mod events;
mod files;
mod frame;
mod mounts;
mod reach;
mod room;
mod sockets;
mod system;
mod terminal;
mod trees;

use std::io::Write;

use serde_json::json;

/// What an attack found out: what it could do, and what it could not with the reason.
#[derive(Debug, Default)]
pub struct Outcome {
    /// What was possible.
    pub did: Vec<String>,
    /// What was refused, and how.
    pub failed: Vec<String>,
}

impl Outcome {
    /// Notes the result of one try.
    fn note<T>(&mut self, what: impl Into<String>, result: std::io::Result<T>) {
        match result {
            Ok(_) => self.did.push(what.into()),
            Err(error) => self.failed.push(format!("{}: {error}", what.into())),
        }
    }
}

type Attack = fn(&[String]) -> Result<Outcome, String>;

/// Every attack: its name, and what does it.
const ATTACKS: &[(&str, Attack)] = &[
    ("place", files::place),
    ("race", files::race),
    ("neighbours", files::neighbours),
    ("listen", sockets::listen),
    ("speak", events::speak),
    ("tree", trees::grow),
    ("swap", mounts::swap),
    ("worktree", mounts::worktree),
    ("terminal", terminal::print),
    ("reach", reach::look_around),
    ("api", api::ask),
    ("type", reach::type_at_the_caller),
    ("fail", mounts::fail_once_swapped),
];

/// Every misbehaviour at once: a session's name, and what it does. Between two of its attacks there is a `+`.
pub const AT_ONCE: &[(&str, &str)] = &[
    ("full", "listen sock full + place exit.json fifo + place log/*.idx fifo"),
    ("endless", "place exit.json huge-json + listen sock endless + place log/*.log dangling"),
    ("descriptors", "listen sock descriptors + place exit.json lies + place log/*.log fifo"),
    ("hello", "listen sock hello-then-close + place exit.json directory + place log/*.idx huge"),
    ("dripping", "listen sock dripping + place exit.json dangling + tree deep deep + tree log/deep deep"),
    ("mute", "listen sock mute + place exit.json circle + tree log/wide wide + place log/*.idx noise"),
    ("liar", "listen sock liar + place exit.json nested-json + place log/*.log huge"),
    ("false", "listen sock false-end + place exit.json closed + place log/*.log directory"),
    ("long", "listen sock too-long + place events fifo + place prompt fifo"),
    ("noise", "listen sock noise + place events directory + place birth fifo"),
    ("news", "listen sock news + place sock.new link /dev/zero"),
    ("recalls", "listen sock recalls"),
    ("speaks", "speak brackets + speak deep + terminal titles"),
    ("floods", "speak flood + speak endless + speak mute + terminal flood"),
];

/// Runs what the words ask for, and stays until somebody ends the session.
pub fn run(words: impl Iterator<Item = String>) -> Result<(), String> {
    let mut words: Vec<String> = words.collect();
    let once = words.first().is_some_and(|word| word == "--once");
    if once {
        words.remove(0);
    }
    // What it costs others shall be seen, and not that there are few processors for many.
    let _ = rustix::process::nice(19);
    // With autogroups the kernel weighs sessions of processes against each other, and that only counts within one.
    let _ = std::fs::write("/proc/self/autogroup", "19");
    for call in words.split(|word| word == "+") {
        let (name, rest) = call.split_first().ok_or("an attack is named first")?;
        let attack = ATTACKS.iter().find(|(known, _)| known == name);
        let (_, attack) = attack.ok_or_else(|| format!("there is no attack {name:?}"))?;
        let outcome = attack(rest)?;
        tell(name, rest, &outcome);
    }
    if once {
        return Ok(());
    }
    loop {
        std::thread::park();
    }
}

fn tell(name: &str, words: &[String], outcome: &Outcome) {
    let line = json!({ "attack": name, "words": words, "did": outcome.did, "failed": outcome.failed });
    // A terminal that is gone is no reason to stop.
    let _ = writeln!(std::io::stdout(), "{line}");
    let (Some(dir), Some(session)) = (std::env::var_os("HOSTILE_REPORTS"), std::env::var_os("WHARF_SESSION"))
    else {
        return;
    };
    let path = std::path::Path::new(&dir).join(session);
    if let Ok(mut file) = std::fs::File::options().append(true).create(true).open(path) {
        let _ = writeln!(file, "{line}");
    }
}

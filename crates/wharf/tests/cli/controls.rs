//! What a session, a name or an argument holds never reaches a terminal as more than text.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use crate::support::{Pty, Wharf};

/// A title, CSI as C1, a turn of the direction, DEL, and the same as raw bytes outside UTF-8.
const EVIL: &str = "E\x1b]0;owned\x07\u{9b}31mx\u{202e}y\u{2066}z\u{7f}\u{61c}";

/// What a program paints on its own terminal is told by this word, which evil texts begin with.
#[track_caller]
fn harmless(shown: &str, what: &dyn std::fmt::Debug) {
    for bad in ["\x1b]", "\u{9b}", "\u{202e}", "\u{2066}", "\u{7f}", "\u{61c}"] {
        assert!(!shown.contains(bad), "{what:?} printed {bad:?}: {shown:?}");
    }
}

/// Runs a command on a terminal and gives all that it printed, standard error included.
fn on_a_terminal(wharf: &Wharf, args: &[&OsStr]) -> String {
    let mut command = wharf.command(&[]);
    command.args(args);
    let mut pty = Pty::spawn(command, (200, 50));
    pty.end();
    pty.shown()
}

#[test]
fn no_verb_hands_a_sessions_controls_to_a_terminal() {
    let wharf = Wharf::on_this_host();
    let dir = wharf.home().join(format!("dir{}", EVIL.replace('/', "")));
    std::fs::create_dir(&dir).unwrap();
    let script = "printf '\\033]0;T\\302\\2331mtitle\\007'; printf 'Do you want to \\342\\200\\256proceed?\\n'; \
                  cat";
    let label = format!("evil={EVIL}");
    let variable = format!("EVIL={EVIL}");
    wharf.ok(&[
        "run",
        "-d",
        "--name",
        "one",
        "--label",
        &label,
        "-e",
        &variable,
        "-w",
        dir.to_str().unwrap(),
        "--",
        "sh",
        "-c",
        script,
        EVIL,
    ]);
    wharf.until_log("one", "proceed?");
    wharf.ok(&[
        "send",
        "one",
        &format!("hello {}", EVIL.replace(['\x1b', '\x07', '\u{7f}'], "")),
        "--no-wait",
    ]);
    wharf.ok(&["run", "-d", "--name", "two", "--label", &label, "--", "sh", "-c", "exit 3", EVIL]);
    wharf.run(&["wait", "two"]);
    let verbs: &[&[&str]] = &[
        &["ls"],
        &["ls", "--json"],
        &["ls", "--json", "--running"],
        &["show", "one"],
        &["show", "one", "--json"],
        &["show", "two"],
        &["env", "one"],
        &["env", "one", "--json"],
        &["explain", "one"],
        &["explain", "one", "--json"],
        &["events", "one"],
        &["events", "one", "--json"],
        &["messages", "one"],
        &["messages", "one", "--json"],
        &["capture", "one"],
        &["capture", "one", "--json"],
        &["capture", "one", "--html"],
        &["capture", "one", "--since", ""],
        &["capture", "one", "--since", "", "--json"],
        &["screen", "one"],
        &["screen", "one", "--json"],
        &["record", "export", "one"],
        &["record", "export", "--v2", "one"],
        &["port", "one"],
        &["stats", "one"],
        &["stats", "one", "--json"],
        &["top", "--once"],
        &["doctor"],
        &["doctor", "--json"],
        &["agents"],
        &["backends"],
        &["approve", "one", "--timeout", "1s"],
        &["deny", "one", "--timeout", "1s"],
        &["wait", "one", "--until", "idle", "--timeout", "100ms"],
        &["exec", "one", "--", EVIL],
        &["run", "-d", "--", EVIL],
        &["run", "-d", "-w", EVIL, "--", "true"],
        &["run", "-d", "--label", EVIL, "--", "sleep", "1000"],
        &["daemon", "status"],
        &["restart", "two"],
        &["stop", "one", "-t", "1"],
        &["rm", "one"],
        &["gc"],
        // What is no session, no option, no value, no verb.
        &["show", EVIL],
        &["show", EVIL, "--json"],
        &["logs", EVIL],
        &["attach", EVIL],
        &["ls", EVIL],
        &["ls", "--label", EVIL],
        &["wait", "one", "--timeout", EVIL],
        &["wait", "one", "--until", EVIL],
        &["run", "--memory", EVIL, "--", "true"],
        &["run", "--env-file", EVIL, "--", "true"],
        &["keys", "two", EVIL],
        &["cp", EVIL, EVIL],
        &["image", EVIL],
        &[EVIL],
        &["help", EVIL],
    ];
    for verb in verbs {
        let args: Vec<&OsStr> = verb.iter().map(OsStr::new).collect();
        harmless(&on_a_terminal(&wharf, &args), verb);
    }
    for verb in ["ls", "show", "run", "daemon", "help"] {
        let option = format!("--{EVIL}");
        harmless(&on_a_terminal(&wharf, &[OsStr::new(verb), OsStr::new(&option)]), &verb);
        let bytes = b"--x\x9b31m\x85";
        let mut command = wharf.command(&[]);
        command.arg(verb).arg(OsStr::from_bytes(bytes));
        let mut pty = Pty::spawn(command, (200, 50));
        pty.end();
        harmless(&pty.shown(), &verb);
    }
    let option = format!("--{EVIL}");
    harmless(&on_a_terminal(&wharf, &[OsStr::new(&option)]), &"no verb");
}

#[test]
fn what_goes_to_a_program_is_exact() {
    let wharf = Wharf::on_this_host();
    wharf.ok(&["run", "-d", "--name", "one", "-e", &format!("EVIL={EVIL}"), "--", "cat"]);
    assert!(wharf.ok(&["env", "one"]).contains(&format!("EVIL={EVIL}\n")));
    let json = wharf.ok(&["env", "one", "--json"]);
    harmless(&json, &"env --json");
    let vars: Vec<(String, String)> = serde_json::from_str(&json).unwrap();
    assert!(vars.contains(&("EVIL".to_owned(), EVIL.to_owned())), "JSON says the same");
}

//! Blocks and quotations that a message leaves open, and messages that come then.

use serde_json::Value;

use crate::support::{Ran, Wharf, needs, until};

fn receipt(ran: &Ran) -> Value {
    serde_json::from_str(&ran.out).unwrap_or_else(|error| panic!("{error}: {ran:#?}"))
}

/// A message that begins something is not confirmed; the next one is not typed into it; once that is given up, all is well.
#[track_caller]
fn stays_out(argv: &[&str], begins: &str, next: &str, shows: &str) {
    let wharf = Wharf::on_this_host();
    wharf.start("a", &[], argv);
    let open = wharf.run(&["send", "a", begins, "--timeout", "60", "--json"]);
    assert_ne!(open.code, 0, "{argv:?}: {open:#?}\n{}", wharf.ok(&["capture", "a"]));
    let open = receipt(&open);
    assert_eq!(open["status"], "unconfirmed", "{argv:?}: {open:#}");
    assert!(open["evidence"].as_str().is_some_and(|text| text.contains("not complete")), "{open:#}");
    assert!(open["hint"].as_str().is_some_and(|text| text.contains("wharf deny a")), "{open:#}");
    let idle = wharf.run(&["wait", "a", "--until", "idle", "--timeout", "1"]);
    assert_ne!(idle.code, 0, "{argv:?}: what waits for the rest of something is not idle: {idle:#?}");
    let late = wharf.run(&["send", "a", next, "--timeout", "2"]);
    assert!(late.code != 0 && late.err.contains("part of it"), "{argv:?}: {late:#?}");
    let now = wharf.run(&["send", "a", next, "--when", "now"]);
    assert!(now.code != 0 && now.err.contains("part of it"), "{argv:?}: {now:#?}");
    wharf.ok(&["deny", "a", "--timeout", "30"]);
    let ran = wharf.run(&["send", "a", next, "--timeout", "60"]);
    assert_eq!(ran.code, 0, "{argv:?}: {ran:#?}\n{}", wharf.ok(&["capture", "a"]));
    wharf.until_log("a", shows);
}

#[test]
fn a_message_is_not_typed_into_an_open_block_of_a_shell() {
    for argv in [["bash", "--norc", "--noprofile"].as_slice(), &["dash"]] {
        stays_out(argv, "echo \"open", "echo a$((40 + 2))b", "a42b");
        stays_out(argv, "for i in 1 2; do", "echo a$((40 + 2))b", "a42b");
    }
}

#[test]
fn a_message_is_not_typed_into_an_open_block_of_zsh_or_fish() {
    for (argv, next) in
        [(&["zsh", "-f"][..], "echo a$((40 + 2))b"), (&["fish", "-N"], "echo a(math 40 + 2)b")]
    {
        needs(argv[0]);
        stays_out(argv, "echo \"open", next, "a42b");
    }
}

#[test]
fn a_message_is_not_typed_into_an_open_block_of_python() {
    stays_out(&["python3", "-q"], "def f():", "print(40 + 2, 'b')", "42 b");
}

/// A debugger as far as its prompts go: a block ends with `end`, and C-c gives it up.
const DEBUGGER: &str = r#"import readline
depth = 0
while True:
    try:
        line = input(" " * (depth - 1) + ">" if depth else "(gdb) ")
    except KeyboardInterrupt:
        depth = 0
        print("Quit")
        continue
    if line in ("commands", "while 1"):
        depth += 1
    elif line == "end":
        depth -= 1
    elif not depth:
        print("ran", line, sep="-")
"#;

#[test]
fn a_message_is_not_typed_into_the_commands_of_a_debugger() {
    let wharf = Wharf::on_this_host();
    let file = wharf.home().join("gdb");
    std::fs::write(&file, DEBUGGER).expect("a script");
    stays_out(&["python3", file.to_str().expect("a path of letters")], "commands", "next", "ran-next");
}

#[test]
fn a_sender_may_go_on_with_what_was_begun() {
    let wharf = Wharf::on_this_host();
    wharf.start("a", &[], &["bash", "--norc", "--noprofile"]);
    for (text, code) in [("for i in 1 2; do", false), ("touch made-$i", false), ("done", true)] {
        let ran = wharf.run(&["send", "a", text, "--now", "--timeout", "60"]);
        assert_eq!(ran.code == 0, code, "{text}: {ran:#?}");
    }
    let file = wharf.home().join("made-2");
    assert!(until(|| file.exists()), "{}", wharf.ok(&["capture", "a"]));
    wharf.ok(&["wait", "a", "--until", "idle", "--timeout", "30"]);
}

#[test]
fn a_prompt_that_looks_like_one_for_more_is_the_prompt_where_nobody_has_typed() {
    let wharf = Wharf::on_this_host();
    wharf.start("a", &["-e", "PS1=> ", "-e", "PS2=more: "], &["bash", "--norc", "--noprofile"]);
    wharf.ok(&["wait", "a", "--until", "idle", "--timeout", "60"]);
    for number in 1..=2 {
        let ran = wharf.run(&["send", "a", &format!("echo a$((40 + {number}))b"), "--timeout", "60"]);
        assert_eq!(ran.code, 0, "{ran:#?}\n{}", wharf.ok(&["capture", "a"]));
        wharf.until_log("a", &format!("a{}b", 40 + number));
    }
}

#[test]
fn a_prompt_that_looks_like_one_for_more_is_known_once_a_program_ran_or_nothing_gives_it_up() {
    for (first, learns) in [("sleep 1\r", &["wait", "a", "--until", "idle"][..]), ("true\r", &["deny", "a"])]
    {
        let wharf = Wharf::on_this_host();
        wharf.start("a", &["-e", "PS1=> "], &["bash", "--norc", "--noprofile"]);
        wharf.until_log("a", "> ");
        // Somebody types before anybody looks.
        let ran = wharf.run_with(&["write", "a", "-"], first.as_bytes());
        assert_eq!(ran.code, 0, "{ran:#?}");
        let ran = wharf.run(&[learns, &["--timeout", "30"]].concat());
        assert_eq!(ran.code, 0, "{first:?}: {ran:#?}");
        let ran = wharf.run(&["send", "a", "echo a$((40 + 2))b", "--timeout", "30"]);
        assert_eq!(ran.code, 0, "{first:?}: {ran:#?}\n{}", wharf.ok(&["capture", "a"]));
        wharf.until_log("a", "a42b");
    }
}

//! Lines that somebody has begun at a prompt, and messages that come then.

use crate::support::{Pty, Ran, Wharf, needs, until};

const BASH: &[&str] = &["bash", "--norc", "--noprofile"];
const DASH: &[&str] = &["dash"];

fn shell(argv: &[&str]) -> Wharf {
    let wharf = Wharf::on_this_host();
    wharf.start("a", &[], argv);
    wharf
}

fn types(wharf: &Wharf, keys: &str) {
    let ran = wharf.run_with(&["write", "a", "-"], keys.as_bytes());
    assert_eq!(ran.code, 0, "{ran:#?}");
}

/// Waits for a file that a line has made.
#[track_caller]
fn made(wharf: &Wharf, name: &str) {
    let file = wharf.home().join(name);
    assert!(until(|| file.exists()), "{name} was never made; {}", wharf.ok(&["capture", "a"]));
}

#[track_caller]
fn sends(wharf: &Wharf, text: &str, options: &[&str]) -> Ran {
    wharf.run(&[&["send", "a", text, "--timeout", "60"], options].concat())
}

#[track_caller]
fn arrives(wharf: &Wharf, text: &str, file: &str) {
    let ran = sends(wharf, text, &[]);
    assert_eq!(ran.code, 0, "{ran:#?}\n{}", wharf.ok(&["capture", "a"]));
    made(wharf, file);
}

/// A message that must not be typed: it comes too late, with the reason and a way out.
#[track_caller]
fn held_back(wharf: &Wharf) {
    let ran = wharf.run(&["send", "a", "touch sent", "--timeout", "2"]);
    assert_ne!(ran.code, 0, "{ran:#?}");
    assert!(ran.err.contains("typed") && ran.err.contains("--clear"), "{ran:#?}");
}

/// What was begun is ended by its own Enter, alone; then messages arrive again.
#[track_caller]
fn goes_on(wharf: &Wharf) {
    types(wharf, "\r");
    made(wharf, "mine");
    arrives(wharf, "touch next", "next");
    let files = std::fs::read_dir(wharf.home()).expect("the home is there").flatten();
    let joined = files.filter(|file| file.file_name().to_string_lossy().contains("sent")).count();
    assert_eq!(joined, 0, "{}", wharf.ok(&["capture", "a"]));
}

#[test]
fn a_line_begun_before_the_first_message_is_not_joined() {
    for argv in [BASH, DASH] {
        let wharf = shell(argv);
        types(&wharf, "touch mine");
        held_back(&wharf);
        goes_on(&wharf);
    }
}

#[test]
fn a_line_begun_in_zsh_or_fish_is_not_joined_or_is_cleared() {
    for argv in [["zsh", "-f"].as_slice(), &["fish", "-N"]] {
        needs(argv[0]);
        let wharf = shell(argv);
        types(&wharf, "touch mine");
        held_back(&wharf);
        goes_on(&wharf);
        types(&wharf, "touch other \u{1b}[D\u{1b}[D");
        let ran = sends(&wharf, "touch cleared", &["--clear"]);
        assert_eq!(ran.code, 0, "{ran:#?}");
        made(&wharf, "cleared");
        types(&wharf, "touch behind");
        let ran = sends(&wharf, "andsent", &["--now"]);
        assert!(ran.code != 0 && ran.err.contains("draft"), "{argv:?}: {ran:#?}");
        made(&wharf, "behindandsent");
        assert!(!wharf.home().join("other").exists(), "{argv:?}");
    }
}

#[test]
fn a_line_begun_after_a_program_ran_is_not_joined() {
    for argv in [BASH, DASH] {
        let wharf = shell(argv);
        arrives(&wharf, "touch first", "first");
        types(&wharf, "sleep 0.3; touch ran\r");
        made(&wharf, "ran");
        types(&wharf, "touch mine");
        held_back(&wharf);
        goes_on(&wharf);
    }
}

#[test]
fn a_line_begun_while_a_program_runs_is_not_joined() {
    for argv in [BASH, DASH] {
        let wharf = shell(argv);
        // Nobody has seen a prompt yet, and the next one comes behind what is typed now.
        types(&wharf, "touch ran; sleep 1\r");
        made(&wharf, "ran");
        types(&wharf, "touch mine");
        held_back(&wharf);
        goes_on(&wharf);
    }
}

#[test]
fn a_line_begun_by_somebody_who_is_attached_is_not_joined() {
    let wharf = shell(BASH);
    // The prompt, whose last sign says who the user is.
    wharf.until_log("a", "bash-");
    let mut pty = Pty::spawn(wharf.command(&["attach", "a"]), (80, 24));
    pty.until("bash-");
    // Keys come one by one, and go past the holder.
    for key in "touch mine".bytes() {
        pty.type_in(&[key]);
    }
    pty.until("touch mine");
    held_back(&wharf);
    pty.type_in(b"\r");
    made(&wharf, "mine");
    arrives(&wharf, "touch next", "next");
}

#[test]
fn a_line_that_was_ended_or_taken_back_holds_nothing_up() {
    let wharf = shell(BASH);
    for (index, keys) in
        ["true\r", "half\u{15}", "half\u{3}", "x\u{7f}", "\u{1b}[C\u{1b}[D"].iter().enumerate()
    {
        types(&wharf, keys);
        arrives(&wharf, &format!("touch made-{index}"), &format!("made-{index}"));
    }
}

#[test]
fn a_key_that_a_program_took_is_no_draft() {
    let wharf = shell(BASH);
    types(&wharf, "touch waits; bash -c 'read -rsn1 key; touch pressed'\r");
    made(&wharf, "waits");
    types(&wharf, "q");
    made(&wharf, "pressed");
    arrives(&wharf, "touch after", "after");
}

#[test]
fn a_sender_may_have_the_line_cleared() {
    for argv in [BASH, DASH, &["sh", "-c", "while read -r line; do eval \"$line\"; done"]] {
        let wharf = shell(argv);
        types(&wharf, "touch mine \u{1b}[D\u{1b}[D");
        let ran = sends(&wharf, "touch sent", &["--clear"]);
        assert_eq!(ran.code, 0, "{ran:#?}");
        made(&wharf, "sent");
        assert!(!wharf.home().join("mine").exists(), "{argv:?}");
    }
}

#[test]
fn a_text_that_was_typed_behind_a_draft_is_never_confirmed() {
    for argv in [BASH, DASH] {
        let wharf = shell(argv);
        types(&wharf, "touch mine");
        let ran = sends(&wharf, "andsent", &["--now"]);
        assert_ne!(ran.code, 0, "{ran:#?}");
        assert!(ran.err.contains("draft"), "{ran:#?}");
        made(&wharf, "mineandsent");
    }
}

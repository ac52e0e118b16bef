//! What a session's screen and its terminal's answers are while somebody looks, or nobody.

use crate::support::{Pty, Wharf, signal, until};

/// Asks whether the terminal is well each time that it is told to, and keeps all that is typed at it.
const ASKS: &str = "stty raw -echo; exec 3<&0; cat <&3 >> typed & \
    for i in 1 2 3; do while [ ! -e ask$i ]; do sleep 0.02; done; printf '\\033[5n'; done; wait";
const ANSWER: &str = "\u{1b}[0n";

fn typed(wharf: &Wharf) -> String {
    std::fs::read_to_string(wharf.home().join("typed")).unwrap_or_default()
}

/// Has the program ask, and waits for so many answers in all.
#[track_caller]
fn answered(wharf: &Wharf, question: usize, answers: usize) {
    std::fs::write(wharf.home().join(format!("ask{question}")), "").expect("a file");
    assert!(until(|| typed(wharf).len() >= answers * ANSWER.len()), "{:?}", typed(wharf));
    assert_eq!(typed(wharf), ANSWER.repeat(answers));
}

fn attached(wharf: &Wharf, count: u64) {
    assert!(
        until(|| wharf.json(&["show", "a", "--json"])["attached"] == count),
        "{count} are never attached"
    );
}

#[test]
fn a_viewer_takes_no_answers_away_and_leaves_none_double() {
    let wharf = Wharf::on_this_host();
    wharf.start("a", &[], &["sh", "-c", ASKS]);
    let mut viewer = Pty::spawn(wharf.command(&["attach", "--read-only", "a"]), (80, 24));
    attached(&wharf, 1);
    answered(&wharf, 1, 1);
    viewer.type_in(b"\x1c");
    viewer.end();
    attached(&wharf, 0);
    answered(&wharf, 2, 2);
    // Who may type answers himself: this one does not, and nobody does it for him, not even once he has gone.
    let mut typist = Pty::spawn(wharf.command(&["attach", "a"]), (80, 24));
    attached(&wharf, 1);
    std::fs::write(wharf.home().join("ask3"), "").unwrap();
    typist.until("\u{1b}[5n");
    typist.type_in(b"\x1c");
    typist.end();
    attached(&wharf, 0);
    wharf.ok(&["capture", "a"]);
    wharf.ok(&["write", "a", "end"]);
    assert!(until(|| typed(&wharf).ends_with("end")), "{:?}", typed(&wharf));
    assert_eq!(typed(&wharf), format!("{ANSWER}{ANSWER}end"));
}

/// A shell in which a program asks its terminal, and has gone before anybody can answer.
#[track_caller]
fn answers_nobody(asks: &str) {
    let wharf = Wharf::on_this_host();
    wharf.start("a", &[], &["bash", "--norc", "--noprofile"]);
    wharf.ok(&["wait", "a", "--until", "idle", "--timeout", "60"]);
    let script = wharf.home().join("asks");
    std::fs::write(&script, format!("touch runs; while [ ! -e go ]; do sleep 0.02; done; printf '{asks}'\n"))
        .expect("a script");
    let after = "PROMPT_COMMAND='[ -e go ] && echo ba\"\"ck'; bash asks";
    let ran = wharf.run_with(&["write", "a", "-"], format!("{after}\r").as_bytes());
    assert_eq!(ran.code, 0, "{ran:#?}");
    assert!(until(|| wharf.home().join("runs").exists()), "it never runs");
    let daemon = wharf.daemon_pid().expect("a daemon runs");
    signal(daemon, rustix::process::Signal::STOP);
    std::fs::write(wharf.home().join("go"), "").expect("a file");
    assert!(until(|| printed(&wharf, "back")), "the prompt never comes");
    signal(daemon, rustix::process::Signal::CONT);
    wharf.ok(&["wait", "a", "--until", "idle", "--timeout", "60"]);
    let ran = wharf.run(&["send", "a", "touch typed", "--timeout", "60"]);
    assert_eq!(ran.code, 0, "{ran:#?}\n{}", wharf.ok(&["capture", "a"]));
    assert!(until(|| wharf.home().join("typed").exists()), "{}", wharf.ok(&["capture", "a"]));
    let screen = wharf.ok(&["capture", "a"]);
    assert!(!screen.contains("4;0m") && !screen.contains("0n"), "{screen}");
}

#[test]
fn a_shell_that_asks_as_it_starts_is_answered_though_it_prints_on() {
    let wharf = Wharf::on_this_host();
    let rc = wharf.home().join("rc");
    let asks =
        "stty raw -echo; printf '\\033[5nWelcome'; IFS= read -rsn4 answer; stty sane; touch answered\n";
    std::fs::write(&rc, asks).expect("a file");
    wharf.start("a", &[], &["bash", "--rcfile", rc.to_str().expect("a path of letters")]);
    assert!(until(|| wharf.home().join("answered").exists()), "{}", wharf.ok(&["capture", "a"]));
}

/// Whether the session has printed a text, by its log on disk: nobody can be asked.
fn printed(wharf: &Wharf, text: &str) -> bool {
    let sessions = std::fs::read_dir(wharf.state().join("sessions")).expect("sessions").flatten();
    let logs =
        sessions.flat_map(|session| std::fs::read_dir(session.path().join("log")).into_iter().flatten());
    logs.flatten().any(|file| {
        let bytes = std::fs::read(file.path()).unwrap_or_default();
        bytes.windows(text.len()).any(|window| window == text.as_bytes())
    })
}

#[test]
fn an_answer_that_comes_too_late_is_not_typed_at_the_shell() {
    answers_nobody("\\033[?4m");
    answers_nobody("\\033[?1049h\\033[?4m\\033[?1049l");
}

fn size(wharf: &Wharf) -> (u64, u64) {
    let screen = wharf.json(&["capture", "a", "--json"]);
    let number = |name: &str| screen["size"][name].as_u64().expect("a number");
    (number("cols"), number("rows"))
}

#[test]
fn a_size_that_the_program_answers_with_nothing_is_seen() {
    let wharf = Wharf::on_this_host();
    wharf.start("a", &[], &["sh", "-c", "printf ready; exec sleep 1000"]);
    wharf.until_log("a", "ready");
    // The last is the size that a terminal has where nobody says another.
    for (cols, rows) in [(100, 40), (132, 30), (80, 24)] {
        let mut pty = Pty::spawn(wharf.command(&["attach", "a"]), (cols, rows));
        pty.until("ready");
        assert!(
            until(|| size(&wharf) == (cols.into(), rows.into())),
            "{:?} is not {cols}x{rows}",
            size(&wharf)
        );
        pty.type_in(b"\x1c");
        pty.end();
        // Another daemon finds it so, too: what it has kept of the screen may be of another size.
        wharf.kill_daemon();
        assert_eq!(size(&wharf), (cols.into(), rows.into()));
    }
}

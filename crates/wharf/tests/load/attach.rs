//! Tests attaching under load: every way out, resizes, and old terminal queries.

use std::time::Duration;

use rustix::process::Signal;

use crate::support::{Pty, Wharf, until};
use crate::tools::{show, within};

fn attach(wharf: &Wharf, name: &str) -> Pty {
    Pty::spawn(wharf.command(&["attach", name]), (80, 24))
}

/// An application that takes the terminal for itself and never gives it back.
const RUDE: &str = "stty raw -echo; printf '\\033[?1049h\\033[?1000h\\033[?2004h\\033[?25lpainted'; ";

/// How somebody leaves.
type Way = fn(&Wharf, &mut Pty);

#[test]
fn the_terminals_modes_are_as_before_on_every_way_out() {
    let wharf = Wharf::new();
    let ways: [(&str, Way, i32); 6] = [
        ("detach", |_, pty| pty.type_in(b"\x1c"), 0),
        ("exit", |wharf, _| drop(wharf.run(&["write", "exit", "x"])), 5),
        ("kill", |wharf, _| drop(wharf.run(&["kill", "kill"])), 137),
        ("term", |_, pty| pty.signal(Signal::TERM), 143),
        ("hup", |_, pty| pty.signal(Signal::HUP), 129),
        (
            "daemon",
            |wharf, pty| {
                wharf.kill_daemon();
                pty.type_in(b"\x1c");
            },
            0,
        ),
    ];
    // Every new terminal has these; this one's own may have been changed before they could be looked at.
    let before = Pty::spawn(std::process::Command::new("true"), (80, 24)).modes();
    for (name, way, code) in ways {
        wharf.start(name, &[], &["sh", "-c", &format!("{RUDE} head -c 1 >/dev/null; exit 5")]);
        wharf.until_log(name, "painted");
        let mut pty = attach(&wharf, name);
        pty.until("painted");
        assert!(until(|| pty.modes() != before), "{name}: the terminal never was raw");
        way(&wharf, &mut pty);
        assert_eq!(pty.end(), code, "{name}: {}", pty.shown());
        assert_eq!(pty.modes(), before, "{name} left the terminal otherwise");
        for reset in ["\x1b[?1049l", "\x1b[?1000l", "\x1b[?2004l", "\x1b[?25h"] {
            assert!(pty.shown().contains(reset), "{name} left out {reset:?}: {:?}", pty.shown());
        }
    }
}

#[test]
fn a_terminal_that_is_closed_detaches() {
    let wharf = Wharf::new();
    wharf.start("one", &[], &["sleep", "1000"]);
    for _ in 0..5 {
        let mut pty = attach(&wharf, "one");
        pty.until("attached to one");
        let attached = || show(&wharf, "one")["attached"].as_u64();
        assert!(until(|| attached() == Some(1)));
        pty.signal(Signal::KILL);
        assert_eq!(pty.end(), 137);
        // Nothing of a killed one is left behind in the session.
        assert!(until(|| attached() == Some(0)), "{:?}", attached());
    }
    assert!(crate::support::is_live(&show(&wharf, "one")));
}

#[test]
fn a_storm_of_resizes_ends_at_the_last_size() {
    let wharf = Wharf::new();
    wharf.start(
        "one",
        &[],
        &["sh", "-c", "trap 'stty size' WINCH; echo ready; while :; do sleep 0.02; done"],
    );
    wharf.until_log("one", "ready");
    let mut pty = attach(&wharf, "one");
    pty.until("attached to one");
    for n in 0..200_u16 {
        pty.resize(20 + n % 150, 10 + n % 60);
    }
    pty.resize(101, 41);
    pty.until("41 101");
    assert!(until(|| show(&wharf, "one")["size"] == serde_json::json!({"cols": 101, "rows": 41})));
    // Sizes that no application expects.
    for (cols, rows) in [(1, 1), (0, 0), (65_535, 65_535)] {
        pty.resize(cols, rows);
        within(Duration::from_secs(1), "show", || show(&wharf, "one"));
    }
    pty.resize(80, 24);
    assert!(until(|| show(&wharf, "one")["size"]["cols"] == 80));
    assert!(crate::support::is_live(&show(&wharf, "one")));
}

#[test]
fn fifty_returns_to_a_screen_full_of_questions_type_nothing() {
    let wharf = Wharf::new();
    // Device status, attributes, colours, modes, a title, a DCS request, XTVERSION, kitty keyboard, window reports.
    let questions = r"\033[6n\033[5n\033[c\033[>c\033[=c\033]10;?\007\033]11;?\033\\\033]4;1;?\007\033[?6n\033[21t\033[18t\033[14t\033P$qm\033\\\033P+q544e\033\\\033[>q\033[?u\033[?2026$p\005\033]52;c;?\007\033Z";
    let script = format!(
        "stty raw -echo; head -c 1 >/dev/null; for i in 1 2 3 4 5 6 7 8 9 10; do printf 'line '$i'{questions}\\r\\n'; done; printf ready; exec cat > got"
    );
    asked_while_attached(&wharf, &script);
    for _ in 0..50 {
        let mut pty = attach(&wharf, "one");
        pty.until("ready");
        answer(&pty);
        pty.type_in(b"\x1c");
        pty.until("[detached from one]");
        assert_eq!(pty.end(), 0);
        answer(&pty);
    }
    wharf.ok(&["write", "one", "end"]);
    let got = || std::fs::read(wharf.home().join("got")).unwrap_or_default();
    assert!(until(|| got().ends_with(b"end")), "{:?}", got());
    assert_eq!(String::from_utf8_lossy(&got()), "end", "the replay typed into the agent");
}

/// Starts a program that asks its terminal much after one key, with somebody attached who never answers: the questions are
/// old to all who come later, and nobody but he may answer them.
#[track_caller]
fn asked_while_attached(wharf: &Wharf, script: &str) {
    wharf.start("one", &[], &["sh", "-c", script]);
    let mut pty = attach(wharf, "one");
    pty.until("attached to one");
    assert!(until(|| show(wharf, "one")["attached"] == 1), "the daemon does not know of him");
    pty.type_in(b"x");
    wharf.until_log("one", "ready");
    pty.until("ready");
    wharf.ok(&["capture", "one"]);
    pty.type_in(b"\x1c");
    assert_eq!(pty.end(), 0);
}

/// Answers as a terminal would whatever was asked on it.
#[track_caller]
fn answer(pty: &Pty) {
    let shown = pty.shown();
    let asked: &[(&str, &str)] = &[
        ("\x1b[6n", "\x1b[1;1R"),
        ("\x1b[5n", "\x1b[0n"),
        ("\x1b[c", "\x1b[?62;22c"),
        ("\x1bZ", "\x1b[?62;22c"),
        ("\x1b[>c", "\x1b[>0;10;1c"),
        ("\x1b[=c", "\x1bP!|00000000\x1b\\"),
        ("\x1b]10;?", "\x1b]10;rgb:0/0/0\x07"),
        ("\x1b]11;?", "\x1b]11;rgb:0/0/0\x07"),
        ("\x1b]4;1;?", "\x1b]4;1;rgb:0/0/0\x07"),
        ("\x1b[?6n", "\x1b[?1;1R"),
        ("\x1b[21t", "\x1b]lx\x1b\\"),
        ("\x1b[18t", "\x1b[8;24;80t"),
        ("\x1b[14t", "\x1b[4;1;1t"),
        ("\x1bP$qm", "\x1bP1$r0m\x1b\\"),
        ("\x1bP+q", "\x1bP0+r\x1b\\"),
        ("\x1b[>q", "\x1bP>|x\x1b\\"),
        ("\x1b[?u", "\x1b[?0u"),
        ("\x1b[?2026$p", "\x1b[?2026;0$y"),
        ("\x1b]52;c;?", "\x1b]52;c;\x07"),
        ("\x05", "answer"),
    ];
    for (question, reply) in asked {
        if shown.contains(question) {
            pty.type_in(reply.as_bytes());
        }
    }
}

#[test]
fn a_live_question_is_answered_once_by_each_terminal() {
    let wharf = Wharf::new();
    let script = "stty raw -echo; printf ready; head -c 1 >/dev/null; printf 'now\\033[6n'; exec cat > got";
    wharf.start("one", &[], &["sh", "-c", script]);
    wharf.until_log("one", "ready");
    let mut pty = attach(&wharf, "one");
    pty.until("ready");
    pty.type_in(b"x");
    pty.until("now\x1b[6n");
    answer(&pty);
    let got = || std::fs::read(wharf.home().join("got")).unwrap_or_default();
    assert!(until(|| got() == b"\x1b[1;1R"), "{:?}", got());
}

#[test]
fn a_thousand_attaches_to_old_questions_type_nothing() {
    let wharf = Wharf::new();
    // Questions in the scrollback and on the screen, then a program that keeps all that is typed at it.
    let script = "stty raw -echo; head -c 1 >/dev/null; i=0; while [ $i -lt 60 ]; do printf 'row %s \\033[6n\\033[c\\033]11;?\\007\\033[?u\\r\\n' $i; i=$((i+1)); done; printf ready; exec cat >> typed";
    asked_while_attached(&wharf, script);
    let typed = || std::fs::read(wharf.home().join("typed")).unwrap_or_default();
    for round in 0..1_000 {
        let mut pty = attach(&wharf, "one");
        pty.until("ready");
        let shown = pty.shown();
        for question in ["\x1b[6n", "\x1b[c", "\x1b]11;?", "\x1b[?u"] {
            assert!(!shown.contains(question), "round {round} asks {question:?}: {shown:?}");
        }
        pty.type_in(b"\x1c");
        assert_eq!(pty.end(), 0, "round {round}: {}", pty.shown());
    }
    wharf.ok(&["write", "one", "end"]);
    assert!(until(|| typed().ends_with(b"end")));
    assert_eq!(String::from_utf8_lossy(&typed()), "end");
}

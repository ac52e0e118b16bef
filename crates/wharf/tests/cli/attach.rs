//! Tests `wharf attach`: detaching, sizes, repainting, viewers, and the restored terminal.

use rustix::process::Signal;

use crate::support::{Pty, Wharf, until};

fn attach(wharf: &Wharf, more: &[&str]) -> Pty {
    Pty::spawn(wharf.command(&[&["attach", "one"], more].concat()), (80, 24))
}

#[test]
fn leaving_and_coming_back() {
    let wharf = Wharf::new();
    let mut pty = Pty::spawn(wharf.command(&["run", "--name", "one", "--", "cat"]), (100, 30));
    pty.until("attached to one; detach with ctrl-\\");
    pty.type_in(b"first\r");
    pty.until("first\r\nfirst");
    pty.type_in(b"\x1c");
    pty.until("[detached from one]");
    assert_eq!(pty.end(), 0);
    assert!(pty.is_cooked());
    assert!(crate::support::is_live(&wharf.json(&["show", "one", "--json"])));

    let mut again = attach(&wharf, &[]);
    again.until("first\r\nfirst");
    again.type_in(b"second\r");
    again.until("second\r\nsecond");
    again.type_in(b"\x04");
    again.until("[exited with code 0]");
    assert_eq!(again.end(), 0);
    assert!(again.is_cooked());
}

#[test]
fn the_sessions_size_follows_the_terminal() {
    let wharf = Wharf::new();
    wharf.start("one", &[], &["sh", "-c", "trap 'stty size' WINCH; stty size; while :; do sleep 0.05; done"]);
    wharf.until_log("one", "24 80");
    let mut pty = Pty::spawn(wharf.command(&["attach", "one"]), (120, 40));
    pty.until("40 120");
    pty.resize(77, 33);
    pty.until("33 77");
}

#[test]
fn the_terminal_is_restored_on_every_way_out() {
    let wharf = Wharf::new();
    let script = "printf '\\033[?1049h\\033[?1003h\\033[?25l\\033[>1upainted'; exec sleep 1000";
    wharf.start("one", &[], &["sh", "-c", script]);
    wharf.until_log("one", "painted");
    for (signal, code) in [(Signal::TERM, 143), (Signal::HUP, 129), (Signal::INT, 130), (Signal::QUIT, 131)] {
        let mut pty = attach(&wharf, &[]);
        pty.until("painted");
        assert!(!pty.is_cooked());
        pty.signal(signal);
        assert_eq!(pty.end(), code);
        assert!(pty.is_cooked(), "{signal:?} left the terminal raw");
        let shown = pty.shown();
        for reset in ["\x1b[?1049l", "\x1b[?1003l", "\x1b[?25h", "\x1b[<u", "\x1b[?2004l", "\x1b[0m"] {
            assert!(shown.contains(reset), "{signal:?} left out {reset:?} in {shown:?}");
        }
    }
    let mut pty = attach(&wharf, &[]);
    pty.until("painted");
    wharf.ok(&["kill", "one"]);
    assert_eq!(pty.end(), 137);
    assert!(pty.is_cooked());
}

#[test]
fn a_dead_daemon_is_not_noticed() {
    let wharf = Wharf::new();
    wharf.start("one", &[], &["cat"]);
    let mut pty = attach(&wharf, &[]);
    pty.until("attached to one");
    wharf.kill_daemon();
    pty.type_in(b"still here\r");
    pty.until("still here\r\nstill here");
    assert_eq!(wharf.daemon_pid(), None);
}

#[test]
fn old_questions_are_not_asked_again_and_live_ones_are() {
    let wharf = Wharf::new();
    let script = "printf 'A\\033[6n\\033[c\\033]11;?\\007\\033P$qm\\033\\\\\\005B\\n'; read -r x; printf 'C\\033[6nD\\n'; sleep 1000";
    wharf.start("one", &[], &["sh", "-c", script]);
    wharf.until_log("one", "B");
    let mut pty = attach(&wharf, &[]);
    let shown = pty.until("AB");
    assert!(!shown.contains("\x1b[6n") && !shown.contains("\x1b[c") && !shown.contains('\x05'), "{shown:?}");
    pty.type_in(b"\r");
    // Where the terminal answers by itself, nobody else is asked.
    pty.until(if wharf.answers_itself() { "CD" } else { "C\x1b[6nD" });
}

#[test]
fn a_viewer_sees_and_does_not_type() {
    let wharf = Wharf::new();
    wharf.start("one", &[], &["cat"]);
    let mut viewer = attach(&wharf, &["--read-only"]);
    let mut user = attach(&wharf, &[]);
    viewer.until("attached to one");
    user.until("attached to one");
    let attached = || wharf.json(&["show", "one", "--json"])["attached"].clone();
    assert!(until(|| attached().as_u64() > Some(0)), "{}", attached());
    viewer.type_in(b"nobody\r");
    user.type_in(b"somebody\r");
    user.until("somebody\r\nsomebody");
    viewer.until("somebody\r\nsomebody");
    assert!(!String::from_utf8_lossy(&wharf.log("one")).contains("nobody"));
    viewer.type_in(b"\x1c");
    assert_eq!(viewer.end(), 0);
}

#[test]
fn the_detach_keys_can_be_chosen() {
    let wharf = Wharf::new();
    wharf.start("one", &[], &["cat"]);
    let mut pty = attach(&wharf, &["--detach-keys", "ctrl-p,ctrl-q"]);
    pty.until("detach with ctrl-p,ctrl-q");
    pty.type_in(b"\x10x\r");
    pty.until("x");
    pty.type_in(b"\x10\x11");
    assert_eq!(pty.end(), 0);
    let mut command = wharf.command(&["attach", "one"]);
    command.env("WHARF_DETACH_KEYS", "ctrl-]");
    let mut pty = Pty::spawn(command, (80, 24));
    pty.until("detach with ctrl-]");
    pty.type_in(b"\x1d");
    assert_eq!(pty.end(), 0);
    assert_eq!(wharf.run(&["attach", "one", "--detach-keys", "hello"]).code, 2);
}

#[test]
fn an_ended_session_shows_its_end() {
    let wharf = Wharf::new();
    wharf.start("one", &[], &["sh", "-c", "echo last words; exit 6"]);
    wharf.run(&["wait", "one"]);
    let ran = wharf.run(&["attach", "one"]);
    assert_eq!((ran.code, ran.out.as_str()), (6, "last words\r\n"), "{ran:#?}");
    assert!(ran.err.contains("[exited with code 6]"), "{ran:#?}");
}

#[test]
fn a_long_history_is_cut_after_a_line() {
    let wharf = Wharf::new();
    wharf.start("one", &[], &["sh", "-c", "seq 1 100000; exec cat"]);
    wharf.until_log("one", "\n100000\r\n");
    let mut pty = attach(&wharf, &[]);
    let shown = pty.until("\n100000\r\n");
    let first = shown.lines().find_map(|line| line.trim().parse::<u32>().ok());
    assert!(first.is_some_and(|first| first > 1) && shown.len() < 300 << 10, "{first:?}, {}", shown.len());
}

#[test]
fn a_screen_is_painted_as_it_is_and_not_as_it_came_about() {
    let wharf = Wharf::new();
    let script = "printf '\\033[?1049h\\033[2J\\033[3;5Hold\\033[3;5Hnew\\033[6n\\033[c\\033[?2004h'; exec cat >/dev/null";
    wharf.start("one", &["--size", "80x24"], &["sh", "-c", script]);
    assert!(until(|| wharf.ok(&["capture", "one"]).contains("new")), "{}", wharf.ok(&["capture", "one"]));
    let mut pty = attach(&wharf, &[]);
    let shown = pty.until("new");
    assert!(!shown.contains("old") && !shown.contains("\x1b[6n") && !shown.contains("\x1b[c"), "{shown:?}");
    pty.until("\x1b[?2004h");
    assert!(pty.shown().contains("\x1b[?1049h"));
    pty.type_in(b"\x1c");
    assert_eq!(pty.end(), 0);
    assert!(pty.shown().contains("\x1b[?1049l"), "the terminal is itself again");
}

#[test]
fn the_size_is_whose_the_session_says() {
    let wharf = Wharf::new();
    let size = |name: &str| {
        let size = wharf.json(&["show", name, "--json"])["size"].clone();
        (size["cols"].as_u64().unwrap(), size["rows"].as_u64().unwrap())
    };
    let enter = |name: &str, size| {
        let mut pty = Pty::spawn(wharf.command(&["attach", name]), size);
        pty.until("attached to");
        pty
    };
    for geometry in ["fixed", "owner", "latest"] {
        wharf.start(geometry, &["--geometry", geometry, "--size", "80x24"], &["cat"]);
    }
    let fixed = enter("fixed", (100, 30));
    fixed.type_in(b"x\r");
    wharf.until_log("fixed", "x\r\nx");
    assert_eq!(size("fixed"), (80, 24));

    let mut owner = enter("owner", (100, 30));
    assert!(until(|| size("owner") == (100, 30)));
    let mut heir = enter("owner", (60, 20));
    heir.type_in(b"x\r");
    heir.until("x\r\nx");
    assert_eq!(size("owner"), (100, 30));
    owner.type_in(b"\x1c");
    assert_eq!(owner.end(), 0);
    assert!(until(|| size("owner") == (60, 20)), "the next one owns it");

    let mut first = enter("latest", (100, 30));
    assert!(until(|| size("latest") == (100, 30)));
    let second = enter("latest", (60, 20));
    first.type_in(b"a\r");
    first.until("a\r\na");
    assert_eq!(size("latest"), (100, 30), "who only looks changes nothing");
    second.type_in(b"b\r");
    assert!(until(|| size("latest") == (60, 20)), "who types does");
    first.type_in(b"c\r");
    assert!(until(|| size("latest") == (100, 30)));
}

#[test]
fn a_session_is_not_attached_to_itself() {
    let wharf = Wharf::on_this_host();
    wharf.start("one", &[], &[env!("CARGO_BIN_EXE_wharf"), "attach", "one"]);
    let ran = wharf.run(&["wait", "--timeout", "30", "one"]);
    let log = String::from_utf8_lossy(&wharf.log("one")).into_owned();
    assert_eq!(ran.code, 2, "{ran:#?}\n{log}");
    assert!(log.contains("would show it to itself"), "{log}");
    // Another one may be, also from inside a session.
    wharf.start("two", &[], &["sh", "-c", "echo seen; exec sleep 1000"]);
    wharf.until_log("two", "seen");
    wharf.start("three", &["--allow-control"], &[env!("CARGO_BIN_EXE_wharf"), "attach", "two"]);
    wharf.until_log("three", "seen");
}

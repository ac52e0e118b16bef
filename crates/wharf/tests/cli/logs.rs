//! Tests `wharf logs` and `pipe`: offsets, times, streams, following.

use std::process::Stdio;

use crate::support::{Pty, Wharf, until};

#[test]
fn the_log_is_read_with_the_daemon_dead() {
    let wharf = Wharf::new();
    let script = r"printf 'a\0b\377\033[31mred\033[0m\n'; seq 1000";
    wharf.start("one", &["--no-tty"], &["sh", "-c", script]);
    assert_eq!(wharf.run(&["wait", "one"]).code, 0);
    wharf.ok(&["daemon", "stop"]);
    let log = wharf.log("one");
    assert!(log.starts_with(b"a\0b\xff\x1b[31mred\x1b[0m\n1\n2\n"), "{:?}", &log[..40]);
    assert_eq!(wharf.ok(&["logs", "-n", "2", "one"]), "999\n1000\n");
    let offset = (log.len() - 5).to_string();
    assert_eq!(wharf.ok(&["logs", "--from", &offset, "one"]), "1000\n");
    assert!(wharf.run(&["logs", "--plain", "one"]).bytes.starts_with(b"ab\xffred\n1\n"));
    assert_eq!(wharf.daemon_pid(), None, "logs started a daemon");
}

#[test]
fn streams_are_told_apart() {
    let wharf = Wharf::new();
    wharf.start("one", &["--no-tty"], &["sh", "-c", "echo out; echo err >&2"]);
    wharf.run(&["wait", "one"]);
    assert_eq!(wharf.ok(&["logs", "--stdout", "one"]), "out\n");
    assert_eq!(wharf.ok(&["logs", "--stderr", "one"]), "err\n");
}

#[test]
fn output_is_copied_to_a_file_until_that_is_ended() {
    let wharf = Wharf::new();
    let (log, copy) = (wharf.home().join("log"), wharf.home().join("copy"));
    let read = |file: &std::path::Path| std::fs::read_to_string(file).unwrap_or_default();
    let script = "stty -echo; echo first; while read -r line; do echo \"<$line>\"; done";
    wharf.start("logged", &["--log", log.to_str().unwrap()], &["sh", "-c", script]);
    wharf.start("copied", &[], &["sh", "-c", script]);
    wharf.until_log("copied", "first");
    wharf.ok(&["pipe", "copied", copy.to_str().unwrap()]);
    for name in ["logged", "copied"] {
        wharf.ok(&["write", name, "second\n"]);
        wharf.until_log(name, "<second>");
    }
    assert!(until(|| read(&log) == "first\r\n<second>\r\n"), "{:?}", read(&log));
    assert!(until(|| read(&copy) == "<second>\r\n"), "{:?}", read(&copy));
    wharf.ok(&["pipe", "copied", "--stop"]);
    // Another daemon goes on with the one, and not with the other.
    wharf.kill_daemon();
    for name in ["logged", "copied"] {
        wharf.ok(&["write", name, "third\n"]);
        wharf.until_log(name, "<third>");
    }
    wharf.ok(&["ls"]);
    assert!(until(|| read(&log).ends_with("<third>\r\n")), "{:?}", read(&log));
    assert_eq!(read(&copy), "<second>\r\n");
}

#[test]
fn the_log_begins_at_a_time() {
    let wharf = Wharf::new();
    wharf.start("one", &[], &["sh", "-c", "echo first; echo last"]);
    wharf.run(&["wait", "one"]);
    let all = "first\r\nlast\r\n";
    for (since, text) in [("1h", all), ("2000-01-31T12:00:00Z", all), ("2100-01-31T12:00:00Z", "")] {
        assert_eq!(wharf.ok(&["logs", "--since", since, "one"]), text, "{since}");
    }
    assert_eq!(wharf.run(&["logs", "--since", "yesterday", "one"]).code, 2);
}

#[test]
fn an_unknown_name_is_code_3_without_a_daemon() {
    let wharf = Wharf::new();
    for name in ["nothing", "0000000000000000"] {
        let ran = wharf.run(&["logs", name]);
        assert_eq!(ran.code, 3, "{ran:#?}");
        assert!(ran.err.contains("hint: "), "{ran:#?}");
    }
    assert_eq!(wharf.daemon_pid(), None);
}

#[test]
fn following_ends_with_the_session() {
    let wharf = Wharf::new();
    wharf.start("one", &[], &["sh", "-c", "echo first; read x; echo last"]);
    wharf.until_log("one", "first");
    let follower = wharf.command(&["logs", "-f", "one"]).stdout(Stdio::piped()).spawn().unwrap();
    // A daemon that dies meanwhile is none of its business.
    wharf.kill_daemon();
    wharf.ok(&["keys", "one", "Enter"]);
    let output = follower.wait_with_output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{output:?}");
    assert!(text.starts_with("first") && text.ends_with("last\r\n"), "{text:?}");
}

#[test]
fn a_reader_that_leaves_ends_it_quietly() {
    let wharf = Wharf::new();
    wharf.start("one", &["--no-tty"], &["seq", "200000"]);
    wharf.run(&["wait", "one"]);
    let mut command = wharf.command(&["logs", "one"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    assert!(until(|| child.try_wait().unwrap().is_some()), "it goes on for nobody");
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), output.stderr.as_slice()), (Some(0), &b""[..]));
}

#[test]
fn the_last_lines_as_text_are_as_many_as_were_asked_for() {
    let wharf = Wharf::new();
    let script = r"printf 'one\n\r\033[?2004l\rtwo\n10%%\r20%%\nprompt$ '";
    wharf.start("one", &["--no-tty"], &["sh", "-c", script]);
    assert_eq!(wharf.run(&["wait", "one"]).code, 0);
    assert_eq!(wharf.ok(&["logs", "--plain", "-n", "2", "one"]), "20%\nprompt$ \n");
    assert_eq!(wharf.ok(&["logs", "--plain", "one"]), "one\ntwo\n10%\n20%\nprompt$ \n");
    assert_eq!(wharf.ok(&["logs", "--plain", "-f", "-n", "1", "one"]), "prompt$ \n");
    assert!(wharf.log("one").ends_with(b"prompt$ "), "the log itself is as it is");
}

#[test]
fn following_waits_for_a_session_that_waits() {
    let wharf = Wharf::new();
    wharf.start("first", &[], &["cat"]);
    wharf.start("second", &["--after", "first"], &["sh", "-c", "echo second ran"]);
    let early = wharf.run(&["logs", "second"]);
    assert!(early.code == 4 && early.err.contains("\"second\" does not run yet\nhint: "), "{early:#?}");
    let mut command = wharf.command(&["logs", "-f", "second"]);
    let mut follower = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // It says that it waits, and does.
    let mut said = std::io::BufReader::new(follower.stderr.take().unwrap());
    let mut line = String::new();
    std::io::BufRead::read_line(&mut said, &mut line).unwrap();
    assert_eq!(line, "second does not run yet; its output follows\n");
    assert!(follower.try_wait().unwrap().is_none());
    wharf.ok(&["keys", "first", "C-d"]);
    let output = follower.wait_with_output().unwrap();
    assert!(output.status.success(), "{output:?}");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "second ran\r\n");
}

#[test]
fn following_ends_where_a_session_never_ran() {
    let wharf = Wharf::new();
    wharf.start("first", &[], &["cat"]);
    for name in ["stopped", "removed"] {
        wharf.start(name, &["--after", "first"], &["true"]);
    }
    let follow = |name: &str| {
        let mut command = wharf.command(&["logs", "-f", name]);
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    };
    let (stopped, removed) = (follow("stopped"), follow("removed"));
    wharf.ok(&["stop", "stopped"]);
    let ran = crate::support::Ran::from(stopped.wait_with_output().unwrap());
    assert!(ran.code == 4 && ran.err.contains("never ran, and printed nothing\nhint: "), "{ran:#?}");
    assert_eq!(wharf.run(&["logs", "stopped"]).code, 4);
    wharf.ok(&["rm", "-f", "removed"]);
    let ran = crate::support::Ran::from(removed.wait_with_output().unwrap());
    assert!(matches!(ran.code, 3 | 4), "{ran:#?}");
}

#[test]
fn a_terminal_is_asked_nothing_by_old_output_unless_it_is_raw() {
    // Device attributes, the cursor's place, the background colour, a key's protocol: a terminal would type the answers.
    const QUESTIONS: [&str; 4] = ["\x1b[c", "\x1b[6n", "\x1b]11;?\x07", "\x1b[?u"];
    let wharf = Wharf::new();
    let said = format!("\x1b[31mred{}\x1b[0m", QUESTIONS.concat());
    let script = format!("printf '%s' '{said}'; echo; echo done");
    wharf.start("one", &["--no-tty"], &["sh", "-c", &script]);
    assert_eq!(wharf.run(&["wait", "one"]).code, 0);
    let shown = |options: &[&str]| {
        let mut pty = Pty::spawn(wharf.command(&[&["logs", "one"], options].concat()), (80, 24));
        let shown = pty.until("done");
        assert_eq!(pty.end(), 0, "{shown:?}");
        shown
    };
    let (usual, raw) = (shown(&[]), shown(&["--raw"]));
    assert!(usual.contains("\x1b[31mred"), "colours are shown: {usual:?}");
    for question in QUESTIONS {
        assert!(!usual.contains(question), "{question:?} reached the terminal: {usual:?}");
        assert!(raw.contains(question), "{question:?} is missing: {raw:?}");
    }
    // A file gets every byte.
    assert!(String::from_utf8(wharf.log("one")).unwrap().contains(&said));
}

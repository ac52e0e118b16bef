//! The text that stands before a session's output: it is a line of its own, and costs the output after it nothing.

use crate::ground::Ground;
use crate::support::{Pty, until};

const SCRIPT: &str = "echo ready; while read x; do echo \"<$x>\"; done";

#[test]
fn a_text_before_the_output_costs_nothing_of_it_when_the_size_changes() {
    let ground = Ground::new();
    ground.start("one", &["--motd", "hello"], &["sh", "-c", SCRIPT]);
    ground.until_log("one", "ready");
    let mut user = Pty::spawn(ground.command(&["attach", "one"]), (80, 24));
    user.until("ready");
    for round in 1..=10_u16 {
        user.resize(80 + round, 24 + round);
        let sized =
            || ground.show("one")["size"] == serde_json::json!({"cols": 80 + round, "rows": 24 + round});
        assert!(until(sized), "round {round}: {}", ground.show("one"));
        user.type_in(format!("round{round}\r").as_bytes());
        ground.until_log("one", &format!("<round{round}>"));
    }
    let ran = ground.run(&["logs", "one"]);
    assert!(!ran.err.contains("gone"), "{:?}", ran.err);
    let rounds: Vec<String> = (1..=10).map(|round| format!("round{round}\r\n<round{round}>\r\n")).collect();
    let rounds = rounds.concat();
    assert_eq!(ran.out, format!("hello\r\nready\r\n{rounds}"));
    // The sizes are marks in the index, and a recording has every one of them.
    let cast = ground.ok(&["record", "export", "one"]);
    for round in 1..=10 {
        assert!(
            cast.contains(&format!("\"{}x{}\"", 80 + round, 24 + round)),
            "size {round} is not in {cast}"
        );
    }
}

#[test]
fn a_text_before_the_output_is_a_line_of_its_own() {
    let ground = Ground::new();
    let cases = [
        ("tty", "one\ntwo", &[][..], "one\r\ntwo\r\nready\r\n"),
        ("ended", "one\r\n", &[], "one\r\nready\r\n"),
        ("pipes", "one\ntwo", &["--no-tty"], "one\ntwo\nready\n"),
        ("empty", "", &[], "ready\r\n"),
    ];
    for (name, text, options, wanted) in cases {
        ground.start(name, &[&["--motd", text], options].concat(), &["echo", "ready"]);
        assert_eq!(ground.run(&["wait", name]).code, 0);
        assert_eq!(String::from_utf8(ground.log(name)).unwrap(), wanted, "{name}");
    }
}

#[test]
fn a_text_before_the_output_is_read_from_a_file() {
    let ground = Ground::new();
    std::fs::write(ground.home().join("text"), "of a file\n@not another\n").unwrap();
    ground.start("file", &["--no-tty", "--motd", "@text"], &["echo", "ready"]);
    assert_eq!(ground.run(&["wait", "file"]).code, 0);
    assert_eq!(String::from_utf8(ground.log("file")).unwrap(), "of a file\n@not another\nready\n");
    // One that cannot be read starts nothing.
    for wrong in ["@none", "@."] {
        let ran = ground.run(&["run", "-d", "--name", "none", "--motd", wrong, "--", "true"]);
        assert!(ran.code != 0 && ran.err.contains(&wrong[1..]), "{wrong}: {ran:#?}");
    }
    assert_eq!(ground.states().len(), 1);
}

#[test]
fn a_start_that_fails_leaves_no_text_behind() {
    let ground = Ground::new();
    let ran = ground.run(&["run", "-d", "--name", "one", "--motd", "hello", "--", "/no/such/program"]);
    assert_ne!(ran.code, 0, "{ran:#?}");
    assert_eq!(ground.states().len(), 0);
    let left = std::fs::read_dir(ground.state().join("sessions")).map_or(0, Iterator::count);
    assert_eq!(left, 0, "a directory was left");
}

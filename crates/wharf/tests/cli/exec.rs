use crate::support::{Pty, Wharf};

#[test]
fn a_command_runs_in_the_sessions_place() {
    let wharf = Wharf::new();
    wharf.start("one", &["-w", "/tmp", "-e", "A=session"], &["sleep", "1000"]);
    let ran = wharf
        .run_with(&["exec", "one", "--", "sh", "-c", "pwd; echo $A; cat; echo e >&2; exit 9"], b"in\0put");
    assert_eq!(
        (ran.code, ran.out.as_str(), ran.err.as_str()),
        (9, "/tmp\nsession\nin\0put", "e\n"),
        "{ran:#?}"
    );
    wharf.ok(&["env", "one", "A=later"]);
    assert_eq!(wharf.ok(&["exec", "one", "--", "sh", "-c", "echo $A"]), "later\n");
    assert_eq!(wharf.run(&["exec", "one", "--", "/nonexistent"]).code, 127);
    assert_eq!(wharf.run(&["exec", "missing", "--", "true"]).code, 3);
}

#[test]
fn on_a_terminal_it_gets_one_of_its_own() {
    let wharf = Wharf::new();
    wharf.start("one", &[], &["sleep", "1000"]);
    let script = "stty size; read x; echo \"<$x>\"; exit 4";
    let mut pty = Pty::spawn(wharf.command(&["exec", "one", "--", "sh", "-c", script]), (66, 20));
    pty.until("20 66");
    pty.type_in(b"hello\r");
    pty.until("<hello>");
    assert_eq!(pty.end(), 4);
    assert!(pty.is_cooked());
}

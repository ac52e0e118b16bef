use crate::support::Wharf;

#[test]
fn a_session_starts_by_name_and_the_daemon_by_itself() {
    let wharf = Wharf::new();
    assert_eq!(wharf.daemon_pid(), None);
    wharf.start("one", &["-g", "team", "-l", "k=v"], &["sleep", "1000"]);
    let session = wharf.json(&["show", "one", "--json"]);
    assert_eq!(session["state"], "running");
    assert_eq!(session["group"], "team");
    assert_eq!(session["labels"]["k"], "v");
    assert!(wharf.daemon_pid().is_some());
}

#[test]
fn a_taken_name_is_refused_and_ensure_takes_it() {
    let wharf = Wharf::new();
    wharf.start("one", &[], &["sleep", "1000"]);
    let pid = wharf.json(&["show", "one", "--json"])["pid"].clone();
    let again = wharf.run(&["run", "-d", "--name", "one", "--", "true"]);
    assert_eq!(again.code, 4, "{again:#?}");
    assert!(again.err.starts_with("wharf: "), "{again:#?}");
    let ensured = wharf.json(&["ensure", "--json", "--name", "one", "--", "true"]);
    assert_eq!(ensured["created"], false);
    assert_eq!(ensured["session"]["pid"], pid);
}

#[test]
fn what_cannot_run_is_told_at_once_and_leaves_nothing() {
    // A container is not looked into before it runs: `--require` is refused there.
    let wharf = Wharf::on_this_host();
    let script = wharf.home().join("script");
    std::fs::write(&script, "no interpreter").unwrap();
    let script = script.to_str().unwrap();
    let cases: [(&[&str], i32); 5] = [
        (&["--", "/nonexistent/program"], 127),
        (&["--", script], 126),
        (&["-w", "/nonexistent", "--", "true"], 125),
        (&["--require", "no-such-program", "--", "true"], 127),
        (&["--name", "../x", "--", "true"], 2),
    ];
    for (options, code) in cases {
        let ran = wharf.run(&[&["run", "-d"], options].concat());
        assert_eq!(ran.code, code, "{options:?}: {ran:#?}");
        assert!(ran.out.is_empty(), "{ran:#?}");
    }
    assert_eq!(wharf.json(&["ls", "--json"]), serde_json::json!([]));
}

#[test]
fn the_environment_is_exact() {
    let wharf = Wharf::new();
    let file = wharf.home().join("vars");
    std::fs::write(&file, "FROM_FILE='two\nlines'\nBOTH=file\n").unwrap();
    let file = file.to_str().unwrap();
    let options = [
        "--no-tty",
        "-e",
        "A=$(x) 'q'\n\"",
        "-e",
        "EMPTY=",
        "-e",
        "LIST=a",
        "-e",
        "LIST+=b",
        "--env-sep",
        ",",
        "--env-file",
        file,
        "-e",
        "BOTH=flag",
        "--unset",
        "HOME",
    ];
    wharf.start("env", &options, &["env", "-0"]);
    wharf.run(&["wait", "env"]);
    let log = String::from_utf8(wharf.log("env")).unwrap();
    let vars: Vec<&str> = log.split('\0').collect();
    for expected in ["A=$(x) 'q'\n\"", "EMPTY=", "LIST=a,b", "FROM_FILE=two\nlines", "BOTH=flag"] {
        assert!(vars.contains(&expected), "{expected:?} is not in {vars:?}");
    }
    assert!(!vars.iter().any(|var| var.starts_with("HOME=")), "{vars:?}");
}

#[test]
fn attached_in_a_pipeline_it_is_the_command() {
    let wharf = Wharf::new();
    let bytes: Vec<u8> = (0..300_000_u32).map(|i| (i % 251) as u8).collect();
    let script = "cat; echo oops >&2; exit 7";
    let ran = wharf.run_with(&["run", "--attach", "--no-tty", "--", "sh", "-c", script], &bytes);
    assert_eq!(ran.code, 7, "{}", ran.err);
    assert_eq!(ran.err, "oops\n");
    assert!(ran.bytes == bytes, "{} of {} bytes came back", ran.bytes.len(), bytes.len());
}

#[test]
fn everything_after_the_command_is_its_own() {
    let wharf = Wharf::new();
    let ran = wharf.run(&["run", "-a", "--no-tty", "printf", "%s,", "--json", "-d", "--", "-x"]);
    assert_eq!((ran.code, ran.out.as_str()), (0, "--json,-d,--,-x,"), "{ran:#?}");
}

#[test]
fn one_line_for_a_shell_and_a_reserved_port() {
    let wharf = Wharf::new();
    let ran = wharf.run(&["run", "-a", "--no-tty", "-p", "auto:WEB", "--shell", "echo $WEB | tr -d '\\n'"]);
    assert_eq!(ran.code, 0, "{ran:#?}");
    assert!(ran.out.parse::<u16>().is_ok_and(|port| port > 0), "{ran:#?}");
}

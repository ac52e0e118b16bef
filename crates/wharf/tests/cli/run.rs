//! Tests `wharf run` and `ensure`: names, environment, refusals, pipelines, prompts.

use crate::support::{Ran, Wharf, is_live};

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

#[test]
fn the_place_is_the_flags_the_variables_or_the_configurations_and_stays_so() {
    // It names its places.
    let wharf = Wharf::on_this_host();
    let file = wharf.home().join(".config/wharf/config.toml");
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    let start = |name: &str, variable: Option<&str>, options: &[&str]| {
        let args = [&["run", "-d", "--name", name], options, &["--", "sleep", "1000"]].concat();
        let mut command = wharf.command(&args);
        command.envs(variable.map(|place| ("WHARF_BACKEND", place)));
        let ran: Ran = command.output().unwrap().into();
        assert_eq!(ran.code, 0, "{ran:#?}");
    };
    start("default", None, &[]);
    std::fs::write(&file, "backend = \"tmux\"\n").unwrap();
    start("configured", None, &[]);
    start("variable", Some("local"), &[]);
    start("flag", Some("local"), &["--backend", "tmux"]);
    std::fs::remove_file(&file).unwrap();
    let show = |name: &str| wharf.json(&["show", name, "--json"]);
    let places = || ["default", "configured", "variable", "flag"].map(|name| show(name)["backend"].clone());
    assert_eq!(places(), ["local", "tmux", "local", "tmux"]);
    // It is the session's own: neither another daemon nor another run has another.
    wharf.kill_daemon();
    assert_eq!(places(), ["local", "tmux", "local", "tmux"]);
    wharf.ok(&["restart", "-t", "1", "configured"]);
    let again = show("configured");
    assert!(again["backend"] == "tmux" && again["run"] == 2 && is_live(&again), "{again}");
    let nowhere = wharf.run(&["run", "-d", "--backend", "nowhere", "--", "true"]);
    assert!(nowhere.code == 2 && nowhere.err.contains("nowhere"), "{nowhere:#?}");
}

#[test]
fn a_prompt_is_a_file_that_the_command_reads() {
    let wharf = Wharf::new();
    let file = wharf.home().join("task.md");
    std::fs::write(&file, "do $(it)\n").unwrap();
    let read = ["sh", "-c", "cat \"$WHARF_PROMPT_FILE\""];
    wharf.start("file", &["--prompt-file", file.to_str().unwrap()], &read);
    let input = [&["run", "-d", "--name", "input", "--prompt-file", "-", "--"], &read[..]].concat();
    assert_eq!(wharf.run_with(&input, b"from here\n").code, 0);
    for (name, text) in [("file", "do $(it)\r\n"), ("input", "from here\r\n")] {
        assert_eq!(wharf.run(&["wait", name]).code, 0);
        assert_eq!(String::from_utf8_lossy(&wharf.log(name)), text);
    }
}

#[test]
fn one_line_fits_all_places_where_there_is_nothing_to_map() {
    let wharf = Wharf::on_this_host();
    let home = wharf.home().to_str().expect("UTF-8").to_owned();
    let mut places = vec!["local"];
    if std::process::Command::new("tmux").arg("-V").output().is_ok_and(|ran| ran.status.success()) {
        places.push("tmux");
    }
    for place in places {
        let same = format!("{home}:{home}");
        wharf.ok(&[
            "run",
            "-d",
            "-n",
            place,
            "-b",
            place,
            "-v",
            ".",
            "-v",
            &same,
            "--publish",
            "81:81",
            "cat",
        ]);
        let page = wharf.ok(&["show", place]);
        for words in [format!("-v {home}: nothing to map"), "--publish 81:81: nothing to map".to_owned()] {
            assert!(page.contains(&words), "{page}");
        }
        for (option, value) in
            [("-v", ".:/elsewhere"), ("-v", ".:ro"), ("-v", "cache:/c"), ("--publish", "82:81")]
        {
            let ran = wharf.run(&["run", "-d", "-b", place, option, value, "cat"]);
            assert!(ran.code == 6 && ran.err.contains("hint: "), "{option} {value}: {ran:#?}");
        }
        // It is shown of every run.
        wharf.ok(&["restart", place]);
        assert!(wharf.ok(&["show", place]).contains("nothing to map"));
        wharf.ok(&["kill", place]);
    }
    assert_eq!(wharf.run(&["run", "-d", "-v", "./none", "cat"]).code, 2);
}

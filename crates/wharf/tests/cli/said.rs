//! What people are told: which key leaves what, how a program is got, why nothing was done.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Stdio;

use wharf_backend::conformance::left_out;

use crate::support::{Pty, Ran, Wharf, lives, needs, signal, until};

fn program(dir: &Path, name: &str, text: &str) {
    std::fs::create_dir_all(dir).expect("it can be made");
    let path = dir.join(name);
    std::fs::write(&path, format!("#!/bin/sh\n{text}\n")).expect("it can be made");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).expect("it is ours");
}

#[test]
fn inside_of_a_session_it_is_said_which_key_leaves_which() {
    let wharf = Wharf::on_this_host();
    // What is started inside may be attached to inside.
    let mut pty = Pty::spawn(
        wharf.command(&["run", "--name", "outer", "--", "sh", "-c", "PS1='> ' exec sh -i"]),
        (120, 40),
    );
    pty.until("attached to outer; detach with ctrl-\\");
    // Keys that come before its prompt would stand before it.
    pty.until("\n> ");
    let wharf_path = env!("CARGO_BIN_EXE_wharf");
    pty.type_in(format!("{wharf_path} run -d --name inner -- cat\r").as_bytes());
    pty.until("\ninner\r\n");
    pty.type_in(format!("{wharf_path} attach inner\r").as_bytes());
    pty.until("attached to inner inside of outer; ctrl-] leaves inner, ctrl-\\ leaves outer");
    pty.type_in(b"hello\r");
    pty.until("hello\r\nhello");
    pty.type_in(b"\x1d");
    pty.until("[detached from inner]");
    pty.clear();
    // The same key for both is said to leave the outer one.
    pty.type_in(format!("{wharf_path} attach --detach-keys 'ctrl-\\' inner\r").as_bytes());
    pty.until("ctrl-\\ leaves outer, and never comes as far as inner");
    pty.type_in(b"\x1c");
    pty.until("[detached from outer]");
    assert_eq!(pty.end(), 0);
    for name in ["outer", "inner"] {
        assert!(crate::support::is_live(&wharf.json(&["show", name, "--json"])), "{name}");
    }
}

#[test]
fn attached_without_a_terminal_it_says_what_it_does() {
    let wharf = Wharf::on_this_host();
    wharf.start("one", &[], &["sh", "-c", "read x; echo \"<$x>\""]);
    let ran = wharf.run_with(&["attach", "one"], b"hello\n");
    assert_eq!(ran.code, 0, "{ran:#?}");
    assert!(ran.out.contains("<hello>"), "{ran:#?}");
    let told = "attached to one, without a terminal: standard input goes to it as it comes, its output comes here until it ends";
    assert!(ran.err.starts_with(told), "{ran:#?}");
    wharf.start("two", &[], &["sh", "-c", "echo done"]);
    let ran = wharf.run(&["attach", "--read-only", "two"]);
    // It may have ended before: then there was nothing to attach to.
    assert!(ran.out.contains("done") && !ran.err.contains("standard input"), "{ran:#?}");
    // A command in a pipeline is that command, and says nothing of its own.
    let ran = wharf.run(&["run", "-a", "--no-tty", "--", "true"]);
    assert_eq!((ran.code, ran.err.as_str()), (0, ""));
    // A session without a terminal, from one.
    wharf.start("three", &["--no-tty"], &["cat"]);
    let mut pty = Pty::spawn(wharf.command(&["attach", "three"]), (120, 40));
    pty.until("attached to three, which has no terminal: what you type goes to it line by line");
    pty.until("ctrl-c leaves it running\r\n");
    pty.type_in(b"hello\r");
    pty.until("hello\r\nhello");
}

#[test]
fn an_agent_that_is_not_installed_is_told_with_how_to_get_it() {
    let wharf = Wharf::on_this_host();
    let empty = wharf.home().join("empty");
    std::fs::create_dir(&empty).unwrap();
    let run = |args: &[&str]| {
        let mut command = wharf.command(args);
        let ran: Ran = command.env("PATH", &empty).output().unwrap().into();
        ran
    };
    for (agent, way) in [
        ("claude", "npm install -g @anthropic-ai/claude-code"),
        ("codex", "npm install -g @openai/codex"),
        ("gemini", "npm install -g @google/gemini-cli"),
        ("opencode", "npm install -g opencode-ai"),
        ("aider", "pipx install aider-chat"),
    ] {
        for args in [&["run", "-d", "--agent", agent][..], &["run", "-d", "--", agent]] {
            let ran = run(args);
            assert_eq!(ran.code, 127, "{args:?}: {ran:#?}");
            assert!(ran.err.contains(&format!("\nhint: `{way}` installs ")), "{args:?}: {ran:#?}");
        }
    }
    // Of any other program nothing is known, and `npx` is not the agent that it would run.
    for args in [&["run", "-d", "--", "no-such-program"][..], &["run", "-d", "--", "npx", "@openai/codex"]] {
        let ran = run(args);
        assert!(ran.code == 127 && !ran.err.contains("installs"), "{args:?}: {ran:#?}");
    }
}

#[test]
fn an_interrupt_says_what_it_did_and_why_not() {
    let wharf = Wharf::on_this_host();
    wharf.start("plain", &[], &["sh", "-c", "echo ready; exec sleep 1000"]);
    wharf.until_log("plain", "ready");
    let ran = wharf.run(&["interrupt", "plain"]);
    assert_eq!(ran.code, 0, "{ran:#?}");
    assert!(ran.err.starts_with("plain was interrupted: C-c was pressed"), "{ran:#?}");
    wharf.run(&["wait", "plain"]);
    let ran = wharf.run(&["interrupt", "plain"]);
    assert!(ran.code == 4 && ran.err.starts_with("wharf: session plain has ended\nhint: "), "{ran:#?}");
    wharf.start("still", &[], &["sleep", "1000"]);
    let paused = wharf.run(&["pause", "still"]);
    if paused.code == 6 {
        left_out("sessions cannot be paused here: there is no control group for them");
    }
    assert_eq!(paused.code, 0, "{paused:#?}");
    let ran = wharf.run(&["interrupt", "still"]);
    assert!(ran.code == 8 && ran.err.contains("still is paused, and reads no keys\nhint: "), "{ran:#?}");
    wharf.ok(&["unpause", "still"]);
}

#[test]
fn agents_are_looked_for_in_the_callers_path_and_say_their_versions() {
    let wharf = Wharf::on_this_host();
    // A daemon with another PATH runs already.
    wharf.start("one", &[], &["sleep", "1000"]);
    let own = wharf.home().join("own/bin");
    program(&own, "claude", "echo '9.8.7 (Claude Code)'");
    program(&own, "codex", "exec sleep 1000");
    let path = std::env::join_paths([own.as_path(), Path::new("/usr/bin"), Path::new("/bin")]).unwrap();
    let run = |args: &[&str]| {
        let ran: Ran = wharf.command(args).env("PATH", &path).output().unwrap().into();
        assert_eq!(ran.code, 0, "{args:?}: {ran:#?}");
        ran.out
    };
    let agents: serde_json::Value = serde_json::from_str(&run(&["agents", "--json"])).unwrap();
    let agent = |name: &str| agents.as_array().unwrap().iter().find(|agent| agent["name"] == name).unwrap();
    assert_eq!(agent("claude")["version"], "9.8.7", "{agents}");
    assert_eq!(agent("claude")["installed"], own.join("claude").to_str().unwrap());
    assert_eq!(agent("claude")["install"], "npm install -g @anthropic-ai/claude-code");
    // One that does not answer is there all the same.
    assert_eq!(agent("codex")["installed"], own.join("codex").to_str().unwrap());
    assert!(agent("codex").get("version").is_none(), "{agents}");
    let table = run(&["agents"]);
    let line = table.lines().find(|line| line.starts_with("claude ")).unwrap();
    assert!(line.contains(" 9.8.7 "), "{table}");
    let doctor = run(&["doctor"]);
    let line = |name: &str| doctor.lines().find(|line| line[6..].starts_with(name)).unwrap().to_owned();
    assert!(line("agent claude ").ends_with(&format!("9.8.7, {}", own.join("claude").display())), "{doctor}");
    assert!(line("agent codex ").contains("does not say its version"), "{doctor}");
    // A clock for people, and versions of places.
    let year = &line("clock ")[6..];
    let digits: String = year.chars().map(|c| if c.is_ascii_digit() { '0' } else { c }).collect();
    assert!(digits.ends_with("it is 0000-00-00 00:00 UTC"), "{doctor}");
    let version = env!("CARGO_PKG_VERSION");
    assert!(line("backend local ").contains(&format!(" {version}, holder ")), "{doctor}");
}

#[test]
fn a_doctor_says_the_versions_of_tmux_and_nix() {
    let wharf = Wharf::on_this_host();
    for (program, args, check) in
        [("tmux", ["-V"].as_slice(), "backend tmux"), ("nix", &["--version"], "environment nix")]
    {
        needs(program);
        let said = std::process::Command::new(program).args(args).output().unwrap();
        let said = String::from_utf8(said.stdout).unwrap();
        let version = said.split_whitespace().last().unwrap();
        let checks: serde_json::Value = serde_json::from_str(&wharf.run(&["doctor", "--json"]).out).unwrap();
        let found = checks.as_array().unwrap().iter().find(|found| found["name"] == check).unwrap();
        let detail = found["detail"].as_str().unwrap();
        // Debian's nix is for root alone until somebody makes a store for others: then the doctor says why it cannot be used.
        if program == "nix" && !rustix::process::geteuid().is_root() && detail.starts_with("not here: ") {
            left_out("nix has no store for this user");
        }
        let words = detail.split([' ', ',']);
        assert!(words.clone().any(|word| word == version), "{version:?} of {program} is not in {found}");
        let page = wharf.run(&["doctor"]).out;
        let row = page.lines().find(|line| line[6..].starts_with(check)).unwrap();
        assert!(row.starts_with("ok ") && row.contains(version), "{row}");
    }
}

#[test]
fn programs_that_are_asked_for_their_version_go_with_whoever_asks() {
    let wharf = Wharf::on_this_host();
    wharf.ok(&["agents"]);
    let (own, pids) = (wharf.home().join("bin"), wharf.home().join("pid"));
    program(
        &own,
        "claude",
        &format!("/bin/sleep 1000 & echo $! > {0}.new; /bin/mv {0}.new {0}; wait", pids.display()),
    );
    let mut command = wharf.command(&["agents"]);
    let mut child = command.env("PATH", &own).stdout(Stdio::null()).spawn().unwrap();
    assert!(until(|| pids.exists()), "it was not asked");
    signal(child.id() as i32, rustix::process::Signal::INT);
    let status = child.wait().unwrap();
    // Under load it may have been done by then.
    assert!(
        Ran::from(std::process::Output { status, stdout: Vec::new(), stderr: Vec::new() }).code % 130 == 0
    );
    let pid: i32 = std::fs::read_to_string(&pids).unwrap().trim().parse().unwrap();
    assert!(until(|| !lives(pid)), "process {pid} was left");
}

#[test]
fn the_default_place_is_the_one_that_the_user_chose() {
    let wharf = Wharf::on_this_host();
    let file = wharf.home().join(".config/wharf/config.toml");
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    let default = |variable: Option<&str>| {
        let mut command = wharf.command(&["backends", "--json"]);
        let ran: Ran = command.envs(variable.map(|name| ("WHARF_BACKEND", name))).output().unwrap().into();
        let all: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
        let all = all.as_array().unwrap().iter().filter(|backend| backend["default"] == true);
        (all.map(|backend| backend["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>(), ran.err)
    };
    assert_eq!(default(None), (vec!["local".to_owned()], String::new()));
    std::fs::write(&file, "backend = \"tmux\"\n").unwrap();
    assert_eq!(default(None), (vec!["tmux".to_owned()], String::new()));
    assert_eq!(default(Some("docker")), (vec!["docker".to_owned()], String::new()));
    let (marked, said) = default(Some("auto"));
    assert!(marked.is_empty() && said.contains("the default is auto"), "{said}");
    let (marked, said) = default(Some("nowhere"));
    assert!(marked.is_empty() && said.contains("\"nowhere\" is none of them"), "{said}");
    let table = wharf.ok(&["backends"]);
    assert!(table.lines().any(|line| line.starts_with("tmux ") && line.contains(" yes ")), "{table}");
    // A default that is not there is what is wrong.
    let mut command = wharf.command(&["doctor", "--json"]);
    command.env("WHARF_BACKEND", "podman").env("PATH", "/nowhere").stdout(Stdio::piped());
    let checks = Ran::from(command.output().unwrap());
    let checks: serde_json::Value = serde_json::from_str(&checks.out).unwrap();
    let podman = checks.as_array().unwrap().iter().find(|check| check["name"] == "backend podman").unwrap();
    let there = podman["detail"].as_str().unwrap().starts_with("not available");
    assert_eq!(podman["ok"], !there, "{podman}");
}

#[test]
fn what_is_wrong_with_arguments_is_said_as_everything_is() {
    let wharf = Wharf::on_this_host();
    for (args, message) in [
        (&["run", "--naem", "x", "--", "true"][..], "wharf: unexpected argument '--naem' found\nhint: "),
        (
            &["exec"],
            "wharf: the following required arguments were not provided: <NAME> <COMMAND>...\nhint: usage: ",
        ),
        (&["logs", "one", "--from", "x"], "wharf: invalid value 'x' for '--from <OFFSET>': "),
        (&["nonsense"], "wharf: unrecognized subcommand 'nonsense'\nhint: "),
        (&["stop", "--group", "a/b"], "wharf: invalid value 'a/b' for '--group <GROUP>': "),
    ] {
        let ran = wharf.run(args);
        assert_eq!(ran.code, 2, "{args:?}: {ran:#?}");
        assert!(ran.err.starts_with(message), "{args:?}: {ran:#?}");
        assert_eq!(ran.err.lines().count(), 2, "{args:?}: {ran:#?}");
    }
    let ran = wharf.run(&["ls", "--json", "--runing"]);
    let failure: serde_json::Value = serde_json::from_str(&ran.err).unwrap();
    assert_eq!((ran.code, &failure["code"]), (2, &"invalid".into()));
}

#[test]
fn the_tour_needs_nothing_that_it_does_not_name() {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
    let readme = std::fs::read_to_string(format!("{root}/README.md")).unwrap();
    let picture = std::fs::read_to_string(format!("{root}/docs/tour.svg")).unwrap();
    let typed = readme.split("```console").skip(1).filter_map(|block| block.split("```").next());
    let typed = typed.flat_map(str::lines).chain(picture.lines().filter_map(|line| {
        line.split_once('>').map(|(_, text)| text.split("</text>").next().unwrap_or_default())
    }));
    let typed: Vec<&str> = typed.collect();
    assert!(typed.iter().any(|line| line.starts_with("$ kill -9")), "{typed:?}");
    for line in typed {
        for program in ["jq", "make", "docker run", "tmux "] {
            let words = format!(" {line} ");
            assert!(!words.contains(&format!(" {program} ")), "{program} in {line:?}");
        }
    }
}

#[test]
fn the_page_of_exit_codes_shows_the_table() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/exit-codes.md");
    let page = std::fs::read_to_string(page).unwrap();
    for (code, meaning) in wharf_cli::EXIT_CODES {
        let row = format!("| {code} | {meaning} |");
        assert!(page.contains(&row), "docs/exit-codes.md lacks: {row}");
    }
}

//! Names that are unique in their group: `[names] scope = "group"`.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::fs;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;

use serde_json::Value;

use crate::support::{Pty, Wharf, until};

const WHARF_BINARY: &str = env!("CARGO_BIN_EXE_wharf");

/// Sets what names are unique in, and with it whatever else the file has.
fn set(wharf: &Wharf, scope: &str, more: &str) {
    let config = wharf.home().join(".config/wharf");
    fs::create_dir_all(&config).unwrap();
    fs::write(config.join("config.toml"), format!("{more}\n[names]\nscope = \"{scope}\"\n")).unwrap();
}

/// An instance whose names are unique in their group.
fn by_group() -> Wharf {
    let wharf = Wharf::new();
    set(&wharf, "group", "");
    wharf
}

/// Starts a session by a name and a group, which is called by both.
#[track_caller]
fn start(wharf: &Wharf, group: &str, name: &str, argv: &[&str]) {
    let ran = wharf.ok(&[&["run", "-d", "--group", group, "--name", name, "--"], argv].concat());
    assert_eq!(ran, format!("{group}/{name}\n"));
}

fn links(wharf: &Wharf) -> Vec<String> {
    let links = fs::read_dir(wharf.state().join("names")).unwrap();
    let mut links: Vec<_> = links.map(|link| link.unwrap().file_name().into_string().unwrap()).collect();
    links.sort();
    links
}

#[test]
fn two_groups_have_the_same_name_side_by_side() {
    let wharf = by_group();
    start(&wharf, "team", "api", &["sh", "-c", "echo I am $WHARF_SESSION of team; exec cat"]);
    start(&wharf, "other", "api", &["sh", "-c", "echo I am $WHARF_SESSION of other; exec cat"]);
    wharf.start("api", &[], &["sh", "-c", "echo I am $WHARF_SESSION alone; exec cat"]);
    wharf.start("team/web", &[], &["cat"]);
    wharf.until_log("team/api", "I am team/api of team");
    wharf.until_log("other/api", "I am other/api of other");
    wharf.until_log("api", "I am api alone");
    // A name that nobody gave is one in the group too.
    assert_eq!(wharf.ok(&["run", "-d", "-g", "team", "--", "cat"]), "team/cat-1\n");
    let made = wharf.json(&["run", "-d", "--json", "-g", "other", "--", "cat"]);
    assert_eq!((&made["name"], &made["group"]), (&"other/cat-1".into(), &"other".into()));
    assert_eq!(wharf.ok(&["ls", "-q", "--group", "team"]), "team/api\nteam/web\nteam/cat-1\n");
    let all = wharf.json(&["ls", "--json"]);
    let all: Vec<_> = all.as_array().unwrap().iter().map(|one| (&one["name"], &one["group"])).collect();
    let is = |name: &str, group: Option<&str>| (Value::from(name), Value::from(group));
    let expected = [
        is("team/api", Some("team")),
        is("other/api", Some("other")),
        is("api", None),
        is("team/web", Some("team")),
        is("team/cat-1", Some("team")),
        is("other/cat-1", Some("other")),
    ];
    assert_eq!(all, expected.iter().map(|(name, group)| (name, group)).collect::<Vec<_>>());
    assert!(wharf.ok(&["ls"]).lines().any(|line| line.starts_with("team/api ")));
    // Each is one file, and nothing is below it.
    assert_eq!(links(&wharf), ["api", "other:api", "other:cat-1", "team:api", "team:cat-1", "team:web"]);
    // In its group a name is one session's.
    for options in [&["-g", "team", "-n", "api"][..], &["-n", "team/api"], &["-n", "api"]] {
        let ran = wharf.run(&[&["run", "-d"], options, &["--", "cat"]].concat());
        assert!(ran.code == 4 && ran.err.contains("is taken"), "{ran:#?}");
    }
    let ran = wharf.run(&["run", "-d", "-g", "other", "-n", "team/db", "--", "cat"]);
    assert_eq!(ran.code, 2, "{ran:#?}");
    assert!(ran.err.contains("the group team") && ran.err.contains("--group other --name db"), "{ran:#?}");
    for options in [&["-g", "team", "-n", "api"][..], &["-n", "team/api"]] {
        assert_eq!(wharf.ok(&[&["ensure"], options, &["--", "cat"]].concat()), "team/api\n");
    }
    assert_eq!(wharf.json(&["ls", "--json"]).as_array().unwrap().len(), 6);
}

#[test]
fn every_verb_takes_a_name_in_a_group() {
    let wharf = by_group();
    start(&wharf, "team", "api", &["bash", "--norc"]);
    start(&wharf, "other", "api", &["cat"]);
    let name = "team/api";
    let before = wharf.log("other/api");
    wharf.ok(&["wait", name, "--until", "idle", "--timeout", "30"]);
    wharf.ok(&["write", name, "echo wr$((1 + 1))itten\r"]);
    wharf.until_log(name, "wr2itten");
    wharf.ok(&["keys", name, "e", "c", "h", "o", "Space", "k", "e", "y", "s", "Enter"]);
    wharf.until_log(name, "\rkeys\r\n");
    let sent = wharf.json(&["send", name, "echo s$((1 + 1))nt", "--json", "--timeout", "60"]);
    assert_eq!(sent["status"], "confirmed", "{sent}");
    assert!(wharf.ok(&["messages", name, "--json"]).contains(sent["id"].as_str().unwrap()));
    wharf.until_log(name, "s2nt");
    assert!(wharf.ok(&["ask", name, "echo a$((1 + 1))ked", "--timeout", "60"]).contains("a2ked"));
    let shown = wharf.json(&["show", name, "--json"]);
    assert_eq!((&shown["name"], &shown["group"]), (&name.into(), &"team".into()));
    assert!(wharf.ok(&["show", name]).contains("team/api"));
    assert!(wharf.ok(&["capture", name]).contains("a2ked"));
    assert!(wharf.ok(&["env", name]).contains("WHARF_SESSION=team/api"));
    assert!(wharf.ok(&["exec", name, "sh", "-c", "echo in $WHARF_SESSION"]).contains("in team/api"));
    assert_eq!(wharf.json(&["stats", name, "--json"])[0]["name"], name);
    assert!(wharf.ok(&["events", name, "--json"]).contains(sent["id"].as_str().unwrap()));
    let told = wharf.ok(&["events", "other/api", "--json"]);
    assert!(told.contains("\"name\":\"other/api\""), "{told}");
    let cast = wharf.ok(&["record", "export", name]);
    let header: Value = serde_json::from_str(cast.lines().next().unwrap()).unwrap();
    assert_eq!(header["title"], name);
    let copy = wharf.home().join("copy");
    wharf.ok(&["pipe", name, copy.to_str().unwrap(), "--from-start"]);
    assert!(until(|| fs::read_to_string(&copy).is_ok_and(|text| text.contains("wr2itten"))));

    let mut pty = Pty::spawn(wharf.command(&["attach", name]), (100, 30));
    pty.until("attached to team/api");
    pty.type_in(b"echo at$((1 + 1))ached\r");
    pty.until("at2ached");
    pty.type_in(b"\x1c");
    pty.until("[detached from team/api]");
    assert_eq!(pty.end(), 0);

    // What these make of a shell is their own affair; they find it.
    for verb in ["explain", "port", "approve", "deny", "retry", "pause", "unpause", "interrupt", "escape"] {
        let ran = wharf.run(&[verb, name]);
        assert!(ran.code != 3 && !ran.err.contains("is not a name"), "{verb}: {ran:#?}");
    }
    assert_eq!(wharf.ok(&["rename", name, "web"]), "team/web\n");
    assert_eq!(wharf.run(&["show", name]).code, 3);
    let ran = wharf.run(&["rename", "team/web", "other/web"]);
    assert!(ran.code == 2 && ran.err.contains("hint: a session stays in its group"), "{ran:#?}");
    assert_eq!(wharf.ok(&["restart", "team/web"]), "team/web restarted\n");
    wharf.ok(&["signal", "team/web", "KILL"]);
    assert_eq!(wharf.run(&["wait", "team/web", "--timeout", "30"]).code, 137);
    // Several at once, one of them in no group that there is.
    let ran = wharf.run(&["stop", "team/web", "nobody/web", "other/api", "--grace", "0"]);
    assert_eq!(ran.code, 3, "{ran:#?}");
    assert!(
        ran.out.contains("team/web had ended already") && ran.out.contains("other/api stopped"),
        "{ran:#?}"
    );
    assert!(ran.err.contains("there is no session \"nobody/web\""), "{ran:#?}");
    assert_eq!(wharf.log("other/api"), before, "it was meant for a neighbour");
    assert_eq!(wharf.ok(&["rm", "team/web", "other/api"]), "team/web removed\nother/api removed\n");
    assert_eq!(links(&wharf), Vec::<String>::new());
}

#[test]
fn a_session_starts_after_one_of_a_group() {
    let wharf = by_group();
    start(&wharf, "team", "first", &["cat"]);
    wharf.start("team/then", &["--after", "team/first:success"], &["sh", "-c", "echo then ran; exec cat"]);
    wharf.start("other/then", &["--after", "team/first"], &["sh", "-c", "echo then ran; exec cat"]);
    assert_eq!(wharf.json(&["show", "team/then", "--json"])["detail"], "waits for team/first to end with 0");
    let ran = wharf.run(&["run", "-d", "--after", "first:idle", "--", "cat"]);
    assert!(ran.code == 3 && ran.err.contains("hint: there is team/first"), "{ran:#?}");
    wharf.kill_daemon();
    // Another daemon goes on waiting.
    assert_eq!(wharf.json(&["show", "other/then", "--json"])["state"], "starting");
    wharf.ok(&["write", "team/first", "\u{4}"]);
    wharf.until_log("team/then", "then ran");
    wharf.until_log("other/then", "then ran");
}

#[test]
fn a_copy_goes_to_a_session_of_a_group_or_to_a_path() {
    let wharf = Wharf::on_this_host();
    set(&wharf, "group", "");
    let home = wharf.home();
    for dir in ["there", "dir"] {
        fs::create_dir(home.join(dir)).unwrap();
    }
    fs::write(home.join("file"), "text\n").unwrap();
    fs::write(home.join("dir/file:1"), "one\n").unwrap();
    wharf.ok(&["run", "-d", "-g", "team", "-n", "api", "-w", "there", "--", "cat"]);
    wharf.ok(&["cp", "file", "team/api:copied"]);
    assert_eq!(fs::read_to_string(home.join("there/copied")).unwrap(), "text\n");
    wharf.ok(&["cp", "team/api:copied", "back"]);
    assert_eq!(fs::read_to_string(home.join("back")).unwrap(), "text\n");
    // What is no session is a path, with or without a `./`.
    wharf.ok(&["cp", "./dir/file:1", "team/api:first"]);
    wharf.ok(&["cp", "dir/file:1", "team/api:second"]);
    assert_eq!(fs::read_to_string(home.join("there/second")).unwrap(), "one\n");
    // What could be both is refused: a session of that name, whoever started it, changes nothing. A `./` says that it is the path.
    wharf.ok(&["run", "-d", "-g", "dir", "-n", "file", "-w", "there", "--", "cat"]);
    let ran = wharf.run(&["cp", "dir/file:1", "team/api:third"]);
    assert!(
        ran.code == 2 && ran.err.contains("may be a session, or a file in the directory dir"),
        "{ran:#?}"
    );
    assert!(ran.err.contains("./dir/file:"), "{ran:#?}");
    let ran = wharf.run(&["cp", "file", "dir/file:there"]);
    assert!(ran.code == 2 && !home.join("there/there").exists(), "{ran:#?}");
    wharf.ok(&["cp", "./dir/file:1", "team/api:third"]);
    assert_eq!(fs::read_to_string(home.join("there/third")).unwrap(), "one\n");
    let ran = wharf.run(&["cp", "nobody/api:x", "y"]);
    assert!(ran.code == 2 && ran.err.contains("neither side is a session"), "{ran:#?}");
}

#[test]
fn without_the_setting_a_group_in_a_name_is_refused() {
    let wharf = Wharf::new();
    wharf.start("api", &["-g", "team"], &["cat"]);
    for args in [
        &["run", "-d", "-n", "team/web", "--", "cat"][..],
        &["run", "-d", "-g", "team", "-n", "team/web", "--", "cat"],
        &["ensure", "-n", "team/web", "--", "cat"],
        &["rename", "api", "team/web"],
    ] {
        let ran = wharf.run(args);
        assert_eq!(ran.code, 2, "{args:?}: {ran:#?}");
        assert!(ran.err.contains("unique in the whole instance"), "{args:?}: {ran:#?}");
        assert!(ran.err.contains("hint: ") && ran.err.contains("[names] scope = \"group\""), "{ran:#?}");
    }
    assert_eq!(wharf.ok(&["ls", "-q"]), "api\n");
    // The same where it is said; and what is no scope is told.
    set(&wharf, "instance", "");
    assert_eq!(wharf.run(&["run", "-d", "-n", "team/web", "--", "cat"]).code, 2);
    set(&wharf, "team", "");
    let ran = wharf.run(&["run", "-d", "-g", "team", "-n", "web", "--", "cat"]);
    assert!(ran.code == 2 && ran.err.contains("config.toml"), "{ran:#?}");
    assert!(ran.err.contains("unknown variant `team`"), "{ran:#?}");
    let checks: Value = serde_json::from_str(&wharf.run(&["doctor", "--json"]).out).unwrap();
    assert!(checks.as_array().unwrap().iter().any(|check| check["name"] == "names" && check["ok"] == false));
}

#[test]
fn names_outlive_the_daemon_and_the_setting() {
    let wharf = by_group();
    start(&wharf, "team", "api", &["cat"]);
    start(&wharf, "other", "api", &["cat"]);
    wharf.kill_daemon();
    // With no daemon at all.
    wharf.ok(&["write", "team/api", "while it is down\r"]);
    wharf.until_log("team/api", "while it is down");
    assert_eq!(wharf.ok(&["ls", "-q"]), "team/api\nother/api\n");
    set(&wharf, "instance", "");
    wharf.start("api", &["-g", "team"], &["cat"]);
    assert_eq!(wharf.ok(&["restart", "team/api"]), "team/api restarted\n");
    wharf.kill_daemon();
    assert_eq!(wharf.ok(&["ls", "-q", "--group", "team"]), "team/api\napi\n");
    wharf.ok(&["stop", "team/api", "--grace", "0"]);
    // Also where the store is lost, and only the directories know.
    wharf.ok(&["daemon", "stop"]);
    fs::remove_file(wharf.state().join("store.db")).unwrap();
    assert_eq!(wharf.json(&["show", "team/api", "--json"])["state"], "exited");
    assert_eq!(wharf.json(&["show", "other/api", "--json"])["group"], "other");
    assert_eq!(wharf.ok(&["rename", "other/api", "web"]), "web\n");
    wharf.ok(&["rm", "team/api"]);
    assert_eq!(links(&wharf), ["api", "web"]);
}

#[test]
fn a_name_that_lacks_its_group_is_told_those_that_are_meant() {
    let wharf = by_group();
    start(&wharf, "team", "api", &["cat"]);
    start(&wharf, "other", "api", &["cat"]);
    start(&wharf, "team", "web", &["cat"]);
    for verb in ["show", "logs", "write", "attach", "stop", "rm", "wait", "capture"] {
        let more: &[&str] = if verb == "write" { &["x"] } else { &[] };
        for (name, hint) in
            [("api", "hint: there are other/api, team/api\n"), ("web", "hint: there is team/web\n")]
        {
            let ran = wharf.run(&[&[verb, name], more].concat());
            assert_eq!(ran.code, 3, "{verb}: {ran:#?}");
            assert!(ran.err.ends_with(hint), "{verb}: {ran:#?}");
        }
    }
    assert_eq!(wharf.ok(&["ls", "-q", "--running"]).lines().count(), 3);
}

/// The status that the daemon answers this request with.
fn status(wharf: &Wharf, request: &str) -> String {
    let mut stream = UnixStream::connect(wharf.state().join("daemon.sock")).unwrap();
    write!(stream, "{request} HTTP/1.0\r\nhost: wharf\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer.split(' ').nth(1).unwrap_or_default().to_owned()
}

#[test]
fn what_is_no_name_in_a_group_is_refused() {
    let wharf = by_group();
    start(&wharf, "team", "api", &["cat"]);
    let long = "a".repeat(65);
    let (before, after) = (format!("{long}/a"), format!("a/{long}"));
    let bad =
        ["../x", "a//b", "/a", "a/", "a/b/c", "a/..", "a/.", "./a", "team:api", "a/-b", &before, &after];
    for name in bad {
        for args in [
            &["run", "-d", "-n", name, "--", "cat"][..],
            &["rename", "team/api", name],
            &["show", name],
            &["logs", name],
            &["stop", name],
            &["run", "-d", "-g", name, "--", "cat"],
            &["ls", "--group", name],
        ] {
            let ran = wharf.run(args);
            assert_eq!(ran.code, 2, "{args:?}: {ran:#?}");
        }
    }
    assert_eq!(wharf.run(&["run", "-d", "-g", "a/b", "--", "cat"]).code, 2);
    // Neither by the way that the client does not go.
    for (path, code) in [
        ("/v1/sessions/team%2Fapi", "200"),
        ("/v1/sessions/team%2fapi/screen", "200"),
        ("/v1/sessions/team/api", "404"),
        ("/v1/sessions/team%252Fapi", "400"),
        ("/v1/sessions/..%2Fapi", "400"),
        ("/v1/sessions/team%2F..", "400"),
        ("/v1/sessions/team%2F%2Fapi", "400"),
        ("/v1/sessions/%2Fapi", "400"),
        ("/v1/sessions/team%3Aapi", "400"),
        ("/v1/sessions/team%2Fapi%00", "400"),
    ] {
        assert_eq!(status(&wharf, &format!("GET {path}")), code, "{path}");
    }
    assert_eq!(links(&wharf), ["team:api"]);
    assert_eq!(wharf.ok(&["ls", "-q"]), "team/api\n");
}

#[test]
fn from_inside_a_group_is_no_way_to_others() {
    let wharf = Wharf::on_this_host();
    set(&wharf, "group", "");
    start(&wharf, "team", "neighbour", &["sh", "-c", "echo the-secret; exec cat"]);
    wharf.until_log("team/neighbour", "the-secret");
    let verbs = [
        ("logs team/neighbour", 5),
        ("attach team/neighbour", 5),
        ("write team/neighbour x", 5),
        ("send team/neighbour x", 5),
        ("capture team/neighbour", 5),
        ("env team/neighbour", 5),
        ("cp team/neighbour:x y", 5),
        ("rename team/neighbour mine", 5),
        ("rename team/inside neighbour", 4),
        ("rename team/inside other/inside", 2),
        ("stop team/neighbour", 5),
        ("rm -f team/neighbour", 5),
        ("run -d -n team/neighbour -- cat", 4),
        ("run -d -g team -n ../neighbour -- cat", 2),
    ];
    let lines = verbs.map(|(verb, _)| format!("{WHARF_BINARY} {verb}\necho \"code=$?\"\n")).concat();
    wharf.start("team/inside", &["--no-tty"], &["sh", "-c", &lines]);
    assert_eq!(wharf.run(&["wait", "team/inside", "--timeout", "60"]).code, 0);
    let log = String::from_utf8_lossy(&wharf.log("team/inside")).into_owned();
    let codes: Vec<&str> = log.lines().filter_map(|line| line.strip_prefix("code=")).collect();
    let expected: Vec<String> = verbs.iter().map(|(_, code)| code.to_string()).collect();
    assert_eq!(codes, expected, "{log}");
    assert!(!log.contains("the-secret"), "{log}");
    assert_eq!(wharf.ok(&["ls", "-q", "--running"]), "team/neighbour\n");
}

#[test]
fn a_group_and_a_name_are_told_to_a_command() {
    let wharf = Wharf::new();
    let notes = wharf.home().join("notes");
    let rule = format!(
        "[[notify]]\non = ['exited']\nname = 'team/w*'\ncommand = ['sh', '-c', 'echo $1 >> $0', '{}', '{{name}}']\n",
        notes.display()
    );
    set(&wharf, "group", &rule);
    for (group, name) in [("other", "worker"), ("team", "api"), ("team", "worker")] {
        start(&wharf, group, name, &["true"]);
        wharf.run(&["wait", &format!("{group}/{name}"), "--timeout", "30"]);
    }
    let read = || fs::read_to_string(&notes).unwrap_or_default();
    assert!(until(|| read() == "team/worker\n"), "{}", read());
}

#[test]
fn a_pane_and_a_guest_have_a_name_in_a_group() {
    // It names its backend.
    let wharf = Wharf::on_this_host();
    set(&wharf, "group", "");
    for group in ["team", "other"] {
        let run = ["run", "-d", "-b", "tmux", "-g", group, "-n", "api", "--", "sh", "-c"];
        let script = format!("echo in {group}; exec cat");
        assert_eq!(wharf.ok(&[&run[..], &[&script]].concat()), format!("{group}/api\n"));
        wharf.until_log(&format!("{group}/api"), &format!("in {group}"));
    }
    assert!(wharf.ok(&["attach", "--print-command", "team/api"]).starts_with("tmux -S "));
    let tmux = |args: &[&str]| {
        let mut tmux = std::process::Command::new("tmux");
        tmux.env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default()).env("TERM", "xterm");
        tmux.env("TMUX_TMPDIR", wharf.home()).args(args).output().unwrap()
    };
    let made = tmux(&["new-session", "-d", "-s", "mine", "cat"]);
    assert!(made.status.success(), "{made:?}");
    let mut guest = wharf.command(&["adopt", "tmux:mine", "--name", "guest", "--group", "team"]);
    let guest = guest.env("TMUX_TMPDIR", wharf.home()).output().unwrap();
    tmux(&["kill-server"]);
    assert_eq!(String::from_utf8_lossy(&guest.stdout), "team/guest\n", "{guest:?}");
    assert_eq!(wharf.run(&["kill", "team/api", "other/api"]).code, 0);
}

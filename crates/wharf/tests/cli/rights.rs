//! What a process inside a session can do to others, whichever way it goes.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;
use wharf_holder::wire::Exec;
use wharf_holder_client::client::{Client, Event};
use wharf_model::{Offset, Size};

use crate::support::{Wharf, is_live, kill, lives, until};

const WHARF_BINARY: &str = env!("CARGO_BIN_EXE_wharf");
/// What names the directory of the session that the hostile process below goes for.
const TARGET: &str = "HOSTILE_TARGET";

fn show(wharf: &Wharf, name: &str) -> Value {
    wharf.json(&["show", name, "--json"])
}

fn dir(wharf: &Wharf, name: &str) -> PathBuf {
    PathBuf::from(show(wharf, name)["path"].as_str().unwrap())
}

/// Runs lines inside a new session, and gives the code of each and all that it printed.
fn inside(wharf: &Wharf, name: &str, options: &[&str], lines: &[String]) -> (Vec<i32>, String) {
    let script = lines.iter().map(|line| format!("{line}\necho \"code=$?\"\n")).collect::<Vec<_>>().concat();
    let options = [&["--no-tty"], options].concat();
    wharf.start(name, &options, &["sh", "-c", &script]);
    assert_eq!(wharf.run(&["wait", "--timeout", "60", name]).code, 0);
    let log = String::from_utf8_lossy(&wharf.log(name)).into_owned();
    let codes = log.lines().filter_map(|line| line.strip_prefix("code=")?.parse().ok()).collect();
    (codes, log)
}

#[test]
fn no_verb_reaches_a_neighbour_from_inside() {
    let wharf = Wharf::on_this_host();
    wharf.start("neighbour", &[], &["sh", "-c", "echo the-secret; exec cat", "the-prompt"]);
    wharf.until_log("neighbour", "the-secret");
    let verbs = [
        "attach neighbour",
        "attach --read-only neighbour",
        "logs neighbour",
        "record export neighbour",
        "capture neighbour",
        "explain neighbour",
        "events neighbour",
        "messages neighbour",
        "wait neighbour --until match=secret --timeout 2",
        "env neighbour",
        "env neighbour A=1",
        "exec neighbour true",
        "write neighbour x",
        "keys neighbour C-c",
        "signal neighbour KILL",
        "send neighbour x",
        "approve neighbour",
        "deny neighbour",
        "interrupt neighbour",
        "cp neighbour:/etc/hostname /dev/null",
        "pipe neighbour /dev/null",
        "rename neighbour other",
        "pause neighbour",
        "stop neighbour",
        "rm -f neighbour",
        "run -d --allow-control -- sleep 1000",
        "gc",
        "daemon stop",
    ];
    let plain: Vec<String> = verbs.iter().map(|verb| format!("{WHARF_BINARY} {verb}")).collect();
    // Without its variables, in a session of its own, and with its parent gone.
    let hidden: Vec<String> = verbs
        .iter()
        .map(|verb| format!("setsid -w env -i HOME=\"$HOME\" PATH=\"$PATH\" WHARF_HOLDER=\"$WHARF_HOLDER\" {WHARF_BINARY} {verb}"))
        .collect();
    for (name, lines) in [("plain", plain), ("hidden", hidden)] {
        let (codes, log) = inside(&wharf, name, &[], &lines);
        assert_eq!(codes.len(), lines.len(), "{log}");
        for (line, code) in lines.iter().zip(codes) {
            assert_eq!(code, 5, "{line}: {log}");
        }
        assert!(!log.contains("the-secret"), "{log}");
    }
    assert!(is_live(&show(&wharf, "neighbour")));

    // That it is there may be seen, and what it does; not what it was told.
    let (codes, log) = inside(
        &wharf,
        "looks",
        &[],
        &[format!("{WHARF_BINARY} show neighbour --json; {WHARF_BINARY} ls --json")],
    );
    assert_eq!(codes, [0]);
    assert!(log.contains("neighbour") && !log.contains("the-prompt"), "{log}");
    // With the grant it is otherwise.
    let (codes, log) =
        inside(&wharf, "allowed", &["--allow-control"], &[format!("{WHARF_BINARY} logs neighbour")]);
    assert_eq!(codes, [0]);
    assert!(log.contains("the-secret"), "{log}");
}

#[test]
fn what_a_session_started_is_its_own() {
    let wharf = Wharf::on_this_host();
    let lines = [
        format!("{WHARF_BINARY} run -d --name child -- sh -c 'echo born; exec cat'"),
        format!("{WHARF_BINARY} wait child --until match=born --timeout 20"),
        format!("{WHARF_BINARY} logs child"),
        format!("{WHARF_BINARY} write child x"),
        format!("{WHARF_BINARY} run -a --no-tty --name grandchild -- {WHARF_BINARY} logs parent"),
        format!("{WHARF_BINARY} logs grandchild"),
        format!("{WHARF_BINARY} kill child"),
    ];
    let (codes, log) = inside(&wharf, "parent", &[], &lines);
    assert_eq!(codes, [0, 0, 0, 0, 5, 0, 0], "{log}");
    assert_eq!(show(&wharf, "child")["state"], "exited");
}

/// The process that a session runs for the tests below: it speaks to a neighbour's holder, and to the daemon's socket for
/// events, by itself.
#[test]
fn hostile() {
    // By itself it does nothing: the others run it inside of a session.
    let Some(target) = std::env::var_os(TARGET).map(PathBuf::from) else { return };
    let told = |what: &str, went: bool| println!("{what}: {}", if went { "WENT THROUGH" } else { "refused" });
    told("attach", Client::connect(&target, "attach").is_ok());
    told("watch", Client::connect(&target, "watch").is_ok());
    let program = || {
        let client = Client::connect(&target, "program").ok()?;
        client.set_timeout(Some(Duration::from_secs(10))).ok()?;
        Some(client)
    };
    // Whether the holder answers that it was done.
    let done = |mut client: Client, asked: u32| loop {
        match client.next_event() {
            Ok(Some(Event::Done { seq, .. })) if seq == asked => return true,
            Ok(Some(Event::Output { .. })) => return true,
            Ok(Some(Event::Refused { .. }) | None) | Err(_) => return false,
            Ok(Some(_)) => {}
        }
    };
    let tried = |what: &str, ask: &dyn Fn(&mut Client) -> std::io::Result<u32>| {
        let went = program().is_some_and(|mut client| ask(&mut client).is_ok_and(|seq| done(client, seq)));
        told(what, went);
    };
    tried("input", &|client| client.send_input(b"typed\n", true));
    tried("signal", &|client| client.signal(9, false));
    tried("read", &|client| client.read_from(Offset(0)).map(|()| u32::MAX));
    tried("exec", &|client| {
        let null = std::fs::File::options().read(true).write(true).open("/dev/null")?;
        let null = std::os::fd::AsFd::as_fd(&null);
        let exec = Exec { dir: "/".into(), tty: false };
        client.exec(&["true".into()], &[], &exec, [null; 3])
    });
    tried("resize", &|client| client.resize(Size { cols: 9, rows: 9 }).and_then(|()| client.pending()));
    forge(&target, &told);
    println!("DONE");
}

/// Tells an event for a neighbour, with the mark from its ticket.
fn forge(target: &Path, told: &dyn Fn(&str, bool)) {
    let ticket: Value = serde_json::from_slice(&std::fs::read(target.join("ticket.json")).unwrap()).unwrap();
    let socket = target.parent().unwrap().parent().unwrap().join("events.sock");
    let mut stream = UnixStream::connect(socket).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    let line = serde_json::json!({
        "v": 1, "kind": "forged", "ack": true, "session": ticket["id"], "token": ticket["token"]
    });
    stream.write_all(format!("{line}\n").as_bytes()).unwrap();
    let mut answer = String::new();
    BufReader::new(stream).read_line(&mut answer).unwrap();
    told("event", !answer.contains("error"));
}

/// How to run the hostile process against a session.
fn against(target: &Path) -> String {
    let own = std::env::current_exe().unwrap();
    format!("{TARGET}={} {} --exact rights::hostile --nocapture", target.display(), own.display())
}

#[test]
fn a_holder_refuses_the_processes_of_other_sessions() {
    let wharf = Wharf::on_this_host();
    wharf.start("neighbour", &[], &["sh", "-c", "echo the-secret; exec cat"]);
    wharf.until_log("neighbour", "the-secret");
    let target = dir(&wharf, "neighbour");
    let size = show(&wharf, "neighbour")["size"].clone();
    let lines = [
        against(&target),
        // Without the variables that would say where it comes from.
        format!("setsid -w env -i HOME=\"$HOME\" PATH=\"$PATH\" {}", against(&target)),
    ];
    let (codes, log) = inside(&wharf, "evil", &[], &lines);
    assert_eq!(codes, [0, 0], "{log}");
    assert_eq!(log.matches("DONE").count(), 2, "{log}");
    assert!(!log.contains("WENT THROUGH"), "{log}");
    let neighbour = show(&wharf, "neighbour");
    assert!(is_live(&neighbour), "{neighbour}");
    assert_eq!(neighbour["size"], size);
    assert!(!String::from_utf8_lossy(&wharf.log("neighbour")).contains("typed"));
    assert!(!wharf.ok(&["events", "neighbour"]).contains("forged"));
}

#[test]
fn the_mark_in_anothers_ticket_tells_nothing_for_it() {
    let wharf = Wharf::on_this_host();
    wharf.start("neighbour", &[], &["sleep", "1000"]);
    let target = dir(&wharf, "neighbour");
    let ticket: Value = serde_json::from_slice(&std::fs::read(target.join("ticket.json")).unwrap()).unwrap();
    let text = |name: &str| ticket[name].as_str().unwrap().to_owned();
    let line = format!(
        "WHARF_SESSION_ID={} WHARF_TOKEN={} {WHARF_BINARY} hook claude \
         '{{\"hook_event_name\":\"SessionStart\",\"session_id\":\"forged\"}}'",
        text("id"),
        text("token")
    );
    let before = wharf.ok(&["events", "neighbour"]);
    inside(&wharf, "evil", &[], &[line]);
    let after = wharf.ok(&["events", "neighbour"]);
    assert!(!after.contains("forged") && before.lines().count() == after.lines().count(), "{after}");
}

/// Waits for a file's text.
fn written(path: &Path) -> String {
    let text = || std::fs::read_to_string(path).unwrap_or_default();
    assert!(until(|| text().contains("code=")), "{}", text());
    text()
}

#[test]
fn a_process_whose_holder_was_replaced_is_still_inside() {
    let wharf = Wharf::on_this_host();
    wharf.start("neighbour", &[], &["sleep", "1000"]);
    let at = |name: &str| wharf.home().join(name);
    let hidden = format!("env -i HOME=\"$HOME\" PATH=\"$PATH\" {WHARF_BINARY}");
    // One keeps its terminal session, the others lead their own; of all of them the parents are gone.
    let ways = [
        ("led", "", WHARF_BINARY.to_owned()),
        ("marked", "setsid", WHARF_BINARY.to_owned()),
        ("grouped", "setsid", hidden),
    ];
    let mut script = String::new();
    for (name, how, program) in &ways {
        let (go, out) = (at("go"), at(name));
        let line = format!(
            "({how} sh -c 'echo $$ >{out}.pid; while ! test -e {go}; do sleep 0.05; done; {program} kill neighbour >{out} 2>&1; \
             echo code=$? >>{out}' &)\n",
            go = go.display(),
            out = out.display()
        );
        script.push_str(&line);
    }
    wharf.start("evil", &[], &["sh", "-c", &format!("{script} echo ready; exec sleep 1000")]);
    wharf.until_log("evil", "ready");
    for (name, ..) in &ways {
        let pid = at(&format!("{name}.pid"));
        assert!(until(|| std::fs::read_to_string(&pid).is_ok_and(|pid| pid.ends_with('\n'))));
    }
    let holder = |name: &str| show(&wharf, name)["holder"]["pid"].as_i64().unwrap() as i32;
    let ticket = || -> Value {
        serde_json::from_slice(&std::fs::read(dir(&wharf, "evil").join("ticket.json")).unwrap()).unwrap()
    };
    let old = holder("evil");
    kill(old);
    assert!(until(|| !lives(old) && ticket()["holder"]["pid"] != old), "it was not replaced");
    std::fs::write(at("go"), "").unwrap();
    let grouped = ticket()["scope"]["dirs"].as_array().is_some_and(|dirs| !dirs.is_empty());
    for (name, ..) in &ways {
        let text = written(&at(name));
        // Who has cleared its variables and left its terminal is known by its cgroup alone, where there is one.
        assert!(text.contains("code=5") || (*name == "grouped" && !grouped), "{name}: {text}");
    }
    // And what the new holder starts is inside as well.
    let ran = wharf.run(&["exec", "evil", WHARF_BINARY, "kill", "neighbour"]);
    assert!(ran.code == 5 || !grouped && ran.code == 0, "{ran:#?}");
    assert!(is_live(&show(&wharf, "neighbour")));
}

#[test]
fn a_session_does_not_answer_its_own_question() {
    let wharf = Wharf::on_this_host();
    let out = wharf.home().join("tries");
    let tries = ["approve one", "deny one", "write one 1", "keys one Enter", "escape one", "interrupt one"]
        .iter()
        .map(|verb| {
            format!("{WHARF_BINARY} {verb} >>{out} 2>&1; echo \"code=$?\" >>{out}; ", out = out.display())
        })
        .collect::<Vec<_>>()
        .concat();
    let wait = format!("{WHARF_BINARY} wait one --until asking --timeout 20 >/dev/null 2>&1");
    super::questions::asker_with(
        &wharf,
        &["--allow-control"],
        &format!("({wait}; {tries} echo end >>{}) &", out.display()),
    );
    let text = || std::fs::read_to_string(&out).unwrap_or_default();
    assert!(until(|| text().contains("end")), "{}", text());
    assert_eq!(text().matches("code=5").count(), 6, "{}", text());
    assert!(text().contains("its own question"), "{}", text());
    // It is still open, and answered from outside.
    assert!(wharf.ok(&["approve", "one"]).contains("answered  Yes"));
    wharf.until_log("one", "got <1>");
}

#[test]
fn a_daemon_started_from_inside_has_nothing_from_there() {
    let wharf = Wharf::on_this_host();
    let fake = wharf.home().join("fake-holder");
    let proof = wharf.home().join("proof");
    std::fs::write(&fake, format!("#!/bin/sh\necho ran >{}\n", proof.display())).unwrap();
    std::fs::set_permissions(&fake, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let script = format!("read x; WHARF_HOLDER={} {WHARF_BINARY} ls; echo listed; exec cat", fake.display());
    wharf.start("evil", &[], &["sh", "-c", &script]);
    wharf.kill_daemon();
    wharf.ok(&["write", "evil", "\n"]);
    wharf.until_log("evil", "listed");
    let daemon = wharf.daemon_pid().unwrap_or_else(|| {
        let log = std::fs::read_to_string(wharf.state().join("daemon.log")).unwrap_or_default();
        panic!("the session had none started: {} {log}", String::from_utf8_lossy(&wharf.log("evil")))
    });
    let environment = std::fs::read_to_string(format!("/proc/{daemon}/environ")).unwrap();
    assert!(!environment.contains("fake-holder") && !environment.contains("WHARF_SESSION"), "{environment}");
    wharf.start("next", &[], &["sleep", "1000"]);
    assert!(!proof.exists());
}

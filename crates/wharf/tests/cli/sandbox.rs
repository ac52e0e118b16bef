//! What a session in a sandbox, and every further command in it, can reach; and how it is heard all the same.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::process::Stdio;

use serde_json::Value;
use wharf_backend::conformance::needs_namespaces;

use crate::support::{Wharf, until};

/// An instance with a directory for a sandbox, and a secret beside it.
fn ground() -> Wharf {
    // A container is a sandbox already.
    let wharf = Wharf::on_this_host();
    fs::create_dir(wharf.home().join("work")).expect("it can be made");
    fs::write(wharf.home().join("secret"), "secret").expect("it can be made");
    wharf
}

#[test]
fn a_further_command_runs_in_the_same_sandbox() {
    needs_namespaces();
    let wharf = ground();
    let listen = "readlink /proc/self/ns/mnt > files; readlink /proc/self/ns/net > net; \
        exec perl -MSocket -e 'socket(S, AF_INET, SOCK_STREAM, 0); bind(S, sockaddr_in(0, INADDR_LOOPBACK)); listen(S, 9); \
        ($port) = sockaddr_in(getsockname(S)); open(F, \">\", \"new\"); print F $port; close F; rename(\"new\", \"port\"); \
        while (accept(C, S)) { close C }'";
    wharf.start("box", &["--sandbox", "--sandbox-network", "loopback", "-w", "work"], &["sh", "-c", listen]);
    assert!(until(|| wharf.home().join("work/port").exists()));
    let exec = |script: &str| wharf.run(&["exec", "box", "--", "bash", "-c", script]);
    let secret = wharf.home().join("secret").display().to_string();
    let ticket = wharf.state().join("names/box/ticket.json").display().to_string();
    for script in [
        format!("cat {secret}"),
        format!("echo x > {secret}"),
        format!("cat {ticket}"),
        format!("chmod 777 {secret}"),
        "unshare -U true".to_owned(),
        "perl -MSocket -e 'socket(S, AF_UNIX, SOCK_STREAM, 0) or exit 1'".to_owned(),
    ] {
        let ran = exec(&script);
        assert!(ran.code != 0 && !ran.out.contains("secret"), "{script}: {ran:#?}");
    }
    let ran = exec(
        "cmp files <(readlink /proc/self/ns/mnt) && cmp net <(readlink /proc/self/ns/net) && pwd && \
         exec 3<>/dev/tcp/127.0.0.1/$(cat port) && grep CapEff /proc/self/status && f=$(mktemp) && echo x > $f && exit 7",
    );
    assert_eq!(ran.code, 7, "{ran:#?}");
    assert!(ran.out.contains("0000000000000000"), "{ran:#?}");
    assert_eq!(ran.out.lines().next(), wharf.home().join("work").to_str(), "{ran:#?}");
    assert_eq!(fs::read_to_string(&secret).unwrap(), "secret");
    assert_eq!(wharf.run(&["exec", "box", "--", "/no/such/command"]).code, 127);
}

#[test]
fn its_descriptors_are_not_the_callers() {
    let wharf = ground();
    wharf.start("box", &["--sandbox", "-w", "work"], &["sleep", "600"]);
    fs::write(wharf.home().join("input"), "in\0put").unwrap();
    let mut command = wharf.command(&[
        "exec",
        "box",
        "--",
        "sh",
        "-c",
        "readlink /proc/self/fd/0; cat; echo e >&2; exit 9",
    ]);
    let ran = command.stdin(File::open(wharf.home().join("input")).unwrap()).output().unwrap();
    let out = String::from_utf8(ran.stdout).unwrap();
    assert!(out.starts_with("pipe:[") && out.ends_with("\nin\0put"), "{out}");
    assert_eq!((ran.stderr.as_slice(), ran.status.code()), (&b"e\n"[..], Some(9)));
    let much: Vec<u8> = (0..3_000_000_u32).map(|number| (number % 251) as u8).collect();
    let ran = wharf.run_with(&["exec", "box", "--", "sh", "-c", "cat > copy; wc -c < copy"], &much);
    assert_eq!(ran.out.trim(), "3000000");
    assert!(fs::read(wharf.home().join("work/copy")).unwrap() == much, "other bytes came");
    // One that reads no input is not waited for, nor is what it leaves behind.
    let ran = wharf.run_with(&["exec", "box", "--", "sh", "-c", "sleep 600 & exec 0<&-; exit 3"], &much);
    assert_eq!(ran.code, 3, "{ran:#?}");
}

#[test]
fn what_is_typed_after_a_further_command_stays_with_the_caller() {
    let wharf = ground();
    wharf.start("box", &["--sandbox", "-w", "work"], &["sleep", "600"]);
    let (ours, typed) = rustix::pipe::pipe().unwrap();
    let thief = "exec 3<&0; setsid sh -c 'echo > begun; cat <&3 > stolen; echo > over' & while ! test -e begun; do :; done; exit 0";
    let mut command = wharf.command(&["exec", "-T", "box", "--", "sh", "-c", thief]);
    let ran = command.stdin(Stdio::from(ours.try_clone().unwrap())).status().unwrap();
    assert!(ran.success());
    File::from(typed).write_all(b"a password").unwrap();
    drop(command);
    // The thief has all the time that it needs before we look.
    assert!(until(|| wharf.home().join("work/over").exists()), "the thief waits on");
    assert_eq!(fs::read_to_string(wharf.home().join("work/stolen")).unwrap(), "");
    let mut kept = String::new();
    File::from(ours).read_to_string(&mut kept).unwrap();
    assert_eq!(kept, "a password");
}

#[test]
fn what_it_tells_is_heard_as_its_own_by_every_daemon() {
    heard_by_every_daemon("local");
}

#[test]
fn what_it_tells_in_a_pane_is_heard_as_its_own_by_every_daemon() {
    heard_by_every_daemon("tmux");
}

fn heard_by_every_daemon(backend: &str) {
    let wharf = ground();
    let hook = format!("{} hook claude", env!("CARGO_BIN_EXE_wharf-holder"));
    let long = format!("{} hook claude", env!("CARGO_BIN_EXE_wharf"));
    let stop = r#"{"hook_event_name":"Stop","session_id":"x"}"#;
    let script = format!(
        "echo '{stop}' | {hook}; echo a$?; {long} '{stop}'; echo b$?; read -r x; {hook} '{stop}'; echo c$?; \
         for i in 1 2 3 4 5 6 7 8; do {hook} '{stop}' & done; wait; echo d$?; exec sleep 600"
    );
    let options = ["-b", backend, "--sandbox", "--sandbox-network", "off", "-w", "work"];
    wharf.start("box", &options, &["sh", "-c", &script]);
    wharf.until_log("box", "b0");
    let heard = || {
        let text = wharf.ok(&["events", "box", "--json"]);
        let all = text.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
        all.filter(|event| event["source"] == "hook" && event["kind"] == "turn.ended").count()
    };
    assert_eq!(heard(), 2);
    wharf.kill_daemon();
    wharf.ok(&["show", "box"]);
    wharf.ok(&["write", "box", "\n"]);
    wharf.until_log("box", "d0");
    assert_eq!(heard(), 11);
    if backend == "tmux" {
        // A pane ends with its holder.
        return;
    }
    // A holder that is killed is replaced, and the channel is as it was.
    let holder = wharf.json(&["show", "box", "--json"])["holder"]["pid"].as_i64().expect("a pid");
    crate::support::kill(i32::try_from(holder).expect("a pid"));
    assert!(until(|| wharf.run(&["exec", "box", "--", "sh", "-c", &format!("{hook} '{stop}'")]).code == 0));
    assert!(until(|| heard() == 12), "{}", heard());
}

#[test]
fn a_further_command_whose_output_finds_no_room_says_so() {
    let wharf = ground();
    wharf.start("box", &["--sandbox", "-w", "work"], &["sleep", "600"]);
    for options in [&["-T"][..], &["-t"]] {
        let full = File::options().write(true).open("/dev/full").unwrap();
        let mut command = wharf.command(&[&["exec"], options, &["box", "--", "seq", "100000"]].concat());
        let ran = command.stdout(full).stderr(Stdio::piped()).output().unwrap();
        let said = String::from_utf8_lossy(&ran.stderr).into_owned();
        assert_eq!(ran.status.code(), Some(8), "{options:?}: {said}");
        assert!(
            said.starts_with("wharf: ") && said.contains("\nhint: the disk is full"),
            "{options:?}: {said}"
        );
    }
    // Whoever reads no further is told nothing: that is no fault.
    let mut command = wharf.command(&["exec", "-T", "box", "--", "seq", "100000"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    let ran = child.wait_with_output().unwrap();
    assert!(!String::from_utf8_lossy(&ran.stderr).contains("wharf:"), "{ran:?}");
}

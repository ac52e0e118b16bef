//! A further command in a container is joined to the caller, and gets nothing that is the caller's own.

use std::fs::File;
use std::io::{Read, Write};
use std::process::Stdio;

use rustix::process::Signal;

use crate::dock::{Dock, on_both};
use crate::support::{signal, until};

on_both! {
    its_descriptors_are_not_the_callers
    it_ends_when_its_caller_is_killed
}

fn its_descriptors_are_not_the_callers(dock: &Dock) {
    dock.start("one", &[], &["sleep", "600"]);
    let input = dock.wharf.home().join("input");
    std::fs::write(&input, "in\0put").expect("a file");
    let script = "test -p /proc/self/fd/0 && echo pipe; cat; echo e >&2; exit 9";
    let mut command = dock.command(&["exec", "-T", "one", "--", "sh", "-c", script]);
    let ran = command.stdin(File::open(&input).expect("it is there")).output().expect("it runs");
    let out = String::from_utf8(ran.stdout).expect("text");
    assert_eq!(out, "pipe\nin\0put");
    assert_eq!((ran.stderr.as_slice(), ran.status.code()), (&b"e\n"[..], Some(9)));
    // What is typed after it has returned stays here, whatever it left behind.
    let (ours, typed) = rustix::pipe::pipe().expect("a pipe");
    let thief = "exec 3<&0; setsid sh -c 'echo > /tmp/begun; cat <&3 > /tmp/stolen; echo > /tmp/over' & \
        while ! test -e /tmp/begun; do :; done; exit 0";
    let mut command = dock.command(&["exec", "-T", "one", "--", "sh", "-c", thief]);
    let ran = command.stdin(Stdio::from(ours.try_clone().expect("a descriptor"))).status().expect("it runs");
    assert!(ran.success());
    drop(command);
    File::from(typed).write_all(b"a password").expect("room in the pipe");
    let over = "while ! test -e /tmp/over; do :; done; test -s /tmp/stolen || echo nothing";
    assert_eq!(dock.ok(&["exec", "one", "--", "sh", "-c", over]).trim(), "nothing");
    let mut kept = String::new();
    File::from(ours).read_to_string(&mut kept).expect("it is ours");
    assert_eq!(kept, "a password");
    dock.ok(&["kill", "one"]);
    dock.must_be_empty();
}

pub(crate) fn it_ends_when_its_caller_is_killed(dock: &Dock) {
    dock.start("one", &[], &["sleep", "600"]);
    let ask = |script: &str| dock.ok(&["exec", "-T", "one", "--", "sh", "-c", script]).trim().to_owned();
    for how in [Signal::TERM, Signal::INT, Signal::KILL] {
        let script = "echo $$ > /tmp/pid.new; mv /tmp/pid.new /tmp/pid; exec sleep 600";
        let mut caller = dock.command(&["exec", "-T", "one", "--", "sh", "-c", script]);
        let mut caller = caller.stdin(Stdio::null()).stdout(Stdio::null()).spawn().expect("it runs");
        assert!(until(|| ask("test -e /tmp/pid && echo there; true") == "there"), "{how:?}");
        signal(caller.id() as i32, how);
        caller.wait().expect("it was killed");
        let gone = "kill -0 $(cat /tmp/pid) 2>/dev/null || echo gone; true";
        assert!(until(|| ask(gone) == "gone"), "{how:?}: the command outlived its caller");
        ask("rm /tmp/pid");
    }
    dock.ok(&["kill", "one"]);
    dock.must_be_empty();
}

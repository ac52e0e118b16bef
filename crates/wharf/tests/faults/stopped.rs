//! A daemon that is stopped: what needs none goes on, what needs one says so in time.

use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::ground::Ground;
use crate::support::{Pty, signal};

/// What a question to the daemon may take at most, with room for a loaded machine.
const DEADLINE: Duration = Duration::from_secs(20);

#[test]
fn a_stopped_daemon_stops_nothing_else() {
    let ground = Ground::new();
    ground.start("one", &[], &["cat"]);
    let pid = ground.pid("one");
    let mut before = Pty::spawn(ground.command(&["attach", "one"]), (80, 24));
    before.until("attached to one");
    let daemon = ground.daemon_pid().expect("it runs");
    signal(daemon, Signal::STOP);

    ground.ok(&["write", "one", "written\r"]);
    ground.until_log("one", "written\r\nwritten");
    ground.ok(&["keys", "one", "k", "Enter"]);
    ground.until_log("one", "k\r\nk");
    before.type_in(b"typed\r");
    before.until("typed\r\ntyped");
    let mut after = Pty::spawn(ground.command(&["attach", "one"]), (80, 24));
    after.until("typed\r\ntyped");
    after.type_in(b"\x1c");
    assert_eq!(after.end(), 0);
    assert!(ground.run(&["record", "export", "one"]).out.contains("typed"));

    let begun = Instant::now();
    let asking: Vec<_> = [&["ls"][..], &["show", "one"], &["daemon", "status"]]
        .into_iter()
        .map(|args| {
            let mut command = ground.command(args);
            (args, std::thread::spawn(move || (command.output().expect("wharf runs"), Instant::now())))
        })
        .collect();
    for (args, asked) in asking {
        let (output, ended) = asked.join().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(ended - begun < DEADLINE, "{args:?} took {:?}", ended - begun);
        assert_eq!(output.status.code(), Some(124), "{args:?}: {said}");
        assert!(said.contains("did not answer within") && said.contains("hint: "), "{args:?}: {said}");
    }

    signal(daemon, Signal::CONT);
    assert!(ground.runs("one"));
    assert_eq!(ground.daemon_pid(), Some(daemon));
    assert_eq!(ground.pid("one"), pid);
    before.type_in(b"\x04");
    assert_eq!(before.end(), 0);
    assert_eq!(ground.run(&["wait", "one"]).code, 0);
}

//! The server killed, hung, or told from outside to let go; and the user's own, which is none of our business.

use std::process::Command;
use std::time::Duration;

use tokio::time::Instant;
use wharf_backend::conformance::{CASE_TIMEOUT, until, within};
use wharf_backend::{Adoption, Backend};
use wharf_model::{Code, Reason};

use crate::support::Instance;

#[tokio::test]
async fn a_killed_server_loses_its_sessions_and_says_so() {
    let instance = Instance::new();
    let session = instance.run("echo before; trap '' HUP; while :; do sleep 0.05; done").await;
    let mut transcript = session.transcript().await;
    transcript.until("before").await;
    instance.server().signal("KILL");
    let record = session.ended().await;
    assert_eq!(record.reason, Reason::Lost, "{record:?}");
    assert!(record.by.as_deref().is_some_and(|by| by.contains("terminal")), "{record:?}");
    assert!(transcript.rest().await.seen.starts_with(b"before"), "the log is kept");
    match instance.backend.adopt(&session.ticket).await.expect("an answer") {
        Adoption::Ended(again) => assert_eq!(again, record),
        _ => panic!("it has ended"),
    }
    wharf_backend::conformance::none_carry(&session.ticket.token);

    // The next one has a new server.
    let next = instance.run("echo after; exec sleep 600").await;
    next.transcript().await.until("after").await;
    next.kill().await;
}

#[tokio::test]
async fn a_command_that_dies_of_it_is_lost_too() {
    let instance = Instance::new();
    let session = instance.run("echo before; exec sleep 600").await;
    session.transcript().await.until("before").await;
    instance.server().signal("KILL");
    let record = session.ended().await;
    assert_eq!(record.reason, Reason::Lost, "{record:?}");
}

#[tokio::test]
async fn a_pane_that_is_closed_by_hand_is_lost() {
    let instance = Instance::new();
    let session = instance.run("echo before; exec sleep 600").await;
    let other = instance.run("echo other; exec sleep 600").await;
    session.transcript().await.until("before").await;
    instance.tmux(&["kill-pane", "-t", &session.target()]);
    assert_eq!(session.ended().await.reason, Reason::Lost);
    assert!(other.connection.status().borrow().exit.is_none(), "the other lives on");
    other.kill().await;
}

#[tokio::test]
async fn a_hung_server_is_not_a_dead_session() {
    let instance = Instance::new();
    let session = instance.run("stty raw -echo; echo ready; exec cat").await;
    let mut transcript = session.transcript().await;
    transcript.until("ready").await;
    let server = instance.server();
    server.signal("STOP");

    // Nothing can be typed, and that is said in time; the session is neither dead nor lost.
    let late = session.connection.write(b"x", Duration::from_millis(300)).await.expect_err("nobody takes it");
    assert_eq!(late.code, Code::Timeout, "{late:?}");
    assert!(matches!(instance.backend.adopt(&session.ticket).await, Ok(Adoption::Alive(_))));
    let before = Instant::now();
    let refused = instance.backend.start(instance.launch("exit 0")).await.err().expect("no server answers");
    assert_eq!(refused.code, Code::Timeout, "{refused:?}");
    assert!(before.elapsed() < Duration::from_secs(8), "it took {:?}", before.elapsed());

    // It goes on where it was.
    server.signal("CONT");
    transcript.until("x").await;
    session.type_in("y").await;
    transcript.until("y").await;

    // A stop needs no server.
    server.signal("STOP");
    let record = session.kill().await;
    assert_eq!(record.signal, Some(9), "{record:?}");
    server.signal("CONT");
    until("the server goes with its last session", async || !server.lives()).await;
}

#[tokio::test]
async fn the_users_own_server_is_left_alone() {
    let instance = Instance::new();
    let theirs = instance.root().join("theirs");
    std::fs::create_dir(&theirs).expect("a directory");
    let user = |args: &[&str]| {
        let mut command = Command::new("tmux");
        command.args(args).env("TMUX_TMPDIR", &theirs).env_remove("TMUX");
        let output = command.output().expect("tmux runs");
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    };
    user(&["-f", "/dev/null", "new-session", "-d", "-s", "mine", "sleep 600"]);
    let list = ["list-sessions", "-F", "#{session_name} #{pid}"];
    let before = user(&list);
    let session = instance.run("exec sleep 600").await;
    assert_eq!(user(&list), before);
    session.kill().await;
    assert_eq!(user(&list), before);
    assert_ne!(before, "");
    user(&["kill-server"]);
}

#[tokio::test]
async fn without_tmux_it_is_not_available() {
    let instance = Instance::new();
    let options = wharf_tmux::Options {
        tmux: "/no/such/tmux".into(),
        ..wharf_tmux::Options::new(&wharf_model::Home::below(instance.root()))
    };
    let backend = wharf_tmux::TmuxBackend::new(options);
    let probe = within(CASE_TIMEOUT, "a probe", backend.probe()).await;
    assert!(!probe.available && probe.hint.is_some(), "{probe:?}");
    let launch = instance.launch("exit 0");
    let home = launch.home.clone();
    let refused =
        within(CASE_TIMEOUT, "a start", backend.start(launch)).await.err().expect("there is no tmux");
    assert_eq!(refused.code, Code::Unavailable, "{refused:?}");
    assert!(!home.exists());
}

#[tokio::test]
async fn a_server_without_descriptors_is_exhausted_and_not_hung() {
    let instance = Instance::new();
    let keeper = instance.run("echo up; exec sleep 600").await;
    let server = instance.server().0;
    let open = std::fs::read_dir(format!("/proc/{server}/fd")).expect("it runs").count();
    // Not even enough for whoever asks.
    for left in [0, 2] {
        let limit = format!("--nofile={}:", open + left);
        let set = Command::new("prlimit").args(["--pid", &server.to_string(), &limit]).status();
        assert!(set.expect("prlimit runs").success());
        let refused = instance.backend.start(instance.launch("exit 0")).await.err().expect("it cannot");
        assert_eq!(refused.code, Code::Exhausted, "{left} left: {refused:?}");
    }
    let set = Command::new("prlimit").args(["--pid", &server.to_string(), "--nofile=1024:"]).status();
    assert!(set.expect("prlimit runs").success());
    let next = instance.run("echo after; exec sleep 600").await;
    next.transcript().await.until("after").await;
    next.kill().await;
    keeper.kill().await;
}

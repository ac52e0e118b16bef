//! The daemon as a process: how it is started, told apart, and ended.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use common::{TEST_TIMEOUT, until};
use tempfile::TempDir;
use wharf_api::daemon::ensure_by;
use wharf_api::linux::Watched;
use wharf_backend::fake::FakeBackend;
use wharf_model::{Code, Home};

/// Where a test's daemon lives. The daemon is ended with it.
struct Place {
    root: TempDir,
    home: Home,
    exe: PathBuf,
}

impl Place {
    fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        let home = Home::below(root.path());
        let exe = root.path().join("wharf");
        // `EXE daemon run` becomes this test binary, in which `daemon_process` is the daemon.
        let me = std::env::current_exe().unwrap();
        let text = format!(
            "#!/bin/sh\nexport WHARF_TEST_DAEMON='{}'\nexec '{}' --exact daemon_process --nocapture\n",
            root.path().display(),
            me.display()
        );
        fs::write(&exe, text).unwrap();
        fs::set_permissions(&exe, fs::Permissions::from_mode(0o700)).unwrap();
        Self { root, home, exe }
    }

    async fn client(&self) -> wharf_api::Client {
        ensure_by(&self.home, &self.exe).await.unwrap_or_else(|failure| {
            let log = fs::read_to_string(self.home.daemon_log()).unwrap_or_default();
            panic!("{failure} {:?}\n{log}", failure.hint)
        })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        // A test that failed leaves its daemon; its pid is in the lock, which it still holds.
        let _ = &self.root;
        let Ok(stream) = wharf_api::linux::connect(&self.home.socket()) else { return };
        if let Ok(peer) = wharf_api::linux::peer(&stream)
            && let Some(pid) = rustix::process::Pid::from_raw(peer.pid)
        {
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
        }
    }
}

/// The daemon of the tests here; without the variable it is nothing.
#[test]
fn daemon_process() {
    let Some(root) = std::env::var_os("WHARF_TEST_DAEMON") else { return };
    let code = wharf_server::run_with(&Home::below(Path::new(&root)), |process| {
        assert!(process.descriptor_limit.is_some());
        Ok(vec![Arc::new(FakeBackend::new())])
    });
    std::process::exit(i32::from(code != 0) * 7);
}

#[tokio::test]
async fn a_daemon_starts_by_itself_and_ends_when_asked() {
    let place = Place::new();
    let client = place.client().await;
    let status = client.daemon().await.unwrap();
    assert_ne!(status.pid, std::process::id() as i32);
    assert_eq!(place.client().await.daemon().await.unwrap().pid, status.pid);
    let daemon = Watched::pid(status.pid).unwrap().expect("it runs");
    client.stop_daemon().await.unwrap();
    assert!(daemon.ended(TEST_TIMEOUT).await.unwrap());
    assert!(!place.home.socket().exists());
    // The next command starts another at once.
    let client = place.client().await;
    assert_ne!(client.daemon().await.unwrap().pid, status.pid);
    client.stop_daemon().await.unwrap();
}

#[tokio::test]
async fn many_who_start_it_at_once_meet_the_same_daemon() {
    let place = Arc::new(Place::new());
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..8 {
        let place = Arc::clone(&place);
        tasks.spawn(async move { place.client().await.daemon().await.unwrap().pid });
    }
    let mut pids = tasks.join_all().await;
    pids.dedup();
    assert_eq!(pids.len(), 1, "{pids:?}");
    place.client().await.stop_daemon().await.unwrap();
}

#[tokio::test]
async fn a_daemon_that_is_killed_is_followed_by_another() {
    let place = Place::new();
    let client = place.client().await;
    let pid = client.daemon().await.unwrap().pid;
    let daemon = Watched::pid(pid).unwrap().expect("it runs");
    let target = rustix::process::Pid::from_raw(pid).unwrap();
    rustix::process::kill_process(target, rustix::process::Signal::KILL).unwrap();
    assert!(daemon.ended(TEST_TIMEOUT).await.unwrap());
    assert!(place.home.socket().exists(), "its socket is stale");
    let client = place.client().await;
    assert_ne!(client.daemon().await.unwrap().pid, pid);
    client.stop_daemon().await.unwrap();
}

#[tokio::test]
async fn signals_end_it_in_order() {
    for signal in [rustix::process::Signal::TERM, rustix::process::Signal::INT, rustix::process::Signal::HUP]
    {
        let place = Place::new();
        let pid = place.client().await.daemon().await.unwrap().pid;
        let daemon = Watched::pid(pid).unwrap().expect("it runs");
        rustix::process::kill_process(rustix::process::Pid::from_raw(pid).unwrap(), signal).unwrap();
        assert!(daemon.ended(TEST_TIMEOUT).await.unwrap());
        assert!(!place.home.socket().exists(), "it took its socket with it");
        let log = fs::read_to_string(place.home.daemon_log()).unwrap();
        assert!(log.contains("its sessions go on"), "{log}");
    }
}

#[tokio::test]
async fn the_second_by_hand_says_who_and_leaves_with_seven() {
    let place = Place::new();
    let client = place.client().await;
    let pid = client.daemon().await.unwrap().pid;
    let exe = place.exe.clone();
    let output = tokio::task::spawn_blocking(move || Command::new(exe).args(["daemon", "run"]).output());
    let output = output.await.unwrap().unwrap();
    assert_eq!(output.status.code(), Some(7));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains(&pid.to_string()), "{said}");
    client.stop_daemon().await.unwrap();
}

#[tokio::test]
async fn what_is_wrong_at_the_start_reaches_the_caller() {
    let place = Place::new();
    fs::create_dir_all(place.home.socket()).unwrap();
    let failure = ensure_by(&place.home, &place.exe).await.unwrap_err();
    assert_eq!(failure.code, Code::Unavailable);
    assert!(failure.message.contains("daemon.sock"), "{failure}");
    assert!(failure.hint.unwrap().contains("move"));
}

#[tokio::test]
async fn a_deleted_place_is_made_again_or_taken_over() {
    let place = Place::new();
    let client = place.client().await;
    let old = client.daemon().await.unwrap().pid;
    let daemon = Watched::pid(old).unwrap().expect("it runs");
    fs::remove_dir_all(place.home.state()).unwrap();
    // A second one takes the instance, since the lock is gone too; the first makes room and does not fight.
    let next = place.client().await.daemon().await.unwrap().pid;
    if next == old {
        client.stop_daemon().await.unwrap();
        return;
    }
    assert!(daemon.ended(TEST_TIMEOUT).await.unwrap());
    until("the second still answers", async || {
        wharf_api::Client::new(place.home.socket()).daemon().await.is_ok_and(|status| status.pid == next)
    })
    .await;
    place.client().await.stop_daemon().await.unwrap();
}

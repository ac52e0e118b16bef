//! The socket's file: what may be in its place, and what may become of it.

mod common;

use std::fs;
use std::os::fd::AsFd;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::Duration;

use common::{World, until};
use wharf_api::Client;
use wharf_backend::fake::FakeBackend;
use wharf_model::{Code, Home};
use wharf_server::Daemon;

async fn open(home: &Home) -> Result<Daemon, wharf_model::Failure> {
    Daemon::open(home, vec![Arc::new(FakeBackend::new())]).await
}

#[tokio::test]
async fn a_stale_socket_is_replaced() {
    let root = tempfile::tempdir().unwrap();
    let home = Home::below(root.path());
    fs::create_dir_all(home.state()).unwrap();
    drop(std::os::unix::net::UnixListener::bind(home.socket()).unwrap());
    let daemon = open(&home).await.unwrap();
    let stopper = daemon.stopper();
    let task = tokio::spawn(daemon.run());
    Client::new(home.socket()).daemon().await.unwrap();
    stopper.stop();
    task.await.unwrap();
}

#[tokio::test]
async fn what_is_no_socket_is_left_alone_and_named() {
    let root = tempfile::tempdir().unwrap();
    let home = Home::below(root.path());
    fs::create_dir_all(home.socket().join("precious")).unwrap();
    let failure = open(&home).await.err().expect("a directory is in the socket's place");
    assert_eq!(failure.code, Code::Unavailable);
    assert!(failure.message.contains("daemon.sock"), "{failure}");
    assert!(failure.hint.unwrap().contains("move"));
    assert!(home.socket().join("precious").exists());
    // The instance was let go again.
    fs::remove_dir_all(home.socket()).unwrap();
    open(&home).await.unwrap();
}

#[tokio::test]
async fn no_socket_of_the_daemon_takes_descriptors() {
    let world = World::new().await;
    let (null, bytes) = (fs::File::open("/dev/null").unwrap(), [std::io::IoSlice::new(b"x")]);
    let send = |from: &UnixStream| wharf_holder::linux::send(from.as_fd(), &bytes, &[null.as_fd()]);
    let (one, other) = UnixStream::pair().unwrap();
    wharf_boundary::take_descriptors(&other, false);
    if send(&one).is_ok() && std::env::var_os("CI").is_none() {
        eprintln!("left out: this kernel refuses no descriptors (Linux 6.16 does)");
        return world.end().await;
    }
    for socket in [world.home.socket(), world.home.events_socket()] {
        let caller = wharf_api::linux::connect(&socket).unwrap();
        let error = send(&caller).expect_err("to close one may take as long as its owner wishes");
        assert_eq!(error.kind(), std::io::ErrorKind::PermissionDenied, "{}", socket.display());
    }
    world.end().await;
}

#[tokio::test]
async fn the_second_daemon_is_told_who_has_the_instance() {
    let world = World::new().await;
    let failure = open(&world.home).await.err().expect("the instance is taken");
    assert_eq!(failure.code, Code::Locked);
    assert_eq!(failure.code.exit_code(), 7);
    assert!(failure.message.contains(&std::process::id().to_string()), "{failure}");
    // The first is as it was.
    world.client.daemon().await.unwrap();
    Client::connect(world.home.socket()).await.unwrap();
    world.end().await;
}

#[tokio::test]
async fn a_socket_that_was_deleted_or_replaced_is_made_again() {
    let world = World::new().await;
    let socket = world.home.socket();
    let answers = async || Client::new(&socket).daemon().await.is_ok();

    fs::remove_file(&socket).unwrap();
    until("it listens again after a deletion", answers).await;

    fs::remove_file(&socket).unwrap();
    drop(std::os::unix::net::UnixListener::bind(&socket).unwrap());
    until("it listens again after a replacement", answers).await;

    // It waits until something that is no socket is out of the way.
    fs::remove_file(&socket).unwrap();
    fs::create_dir(&socket).unwrap();
    assert!(!answers().await);
    fs::remove_dir(&socket).unwrap();
    until("it listens again after a directory", answers).await;

    assert_eq!(fs::metadata(&socket).unwrap().permissions().mode() & 0o777, 0o600);
    world.client.daemon().await.unwrap();
    world.end().await;
}

#[tokio::test]
async fn modes_hold_whatever_the_umask_is() {
    for umask in [0o000, 0o777] {
        rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o022));
        let root = tempfile::tempdir().unwrap();
        let home = Home::below(&root.path().join("not/there/yet"));
        rustix::process::umask(rustix::fs::Mode::from_raw_mode(umask));
        let daemon = open(&home).await;
        rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o022));
        let daemon = daemon.unwrap();
        let mode = |path: &std::path::Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&home.socket()), 0o600, "umask {umask:o}");
        assert_eq!(mode(home.state()), 0o700, "umask {umask:o}");
        let stopper = daemon.stopper();
        let task = tokio::spawn(daemon.run());
        Client::new(home.socket()).daemon().await.unwrap();
        stopper.stop();
        task.await.unwrap();
    }
}

#[tokio::test]
async fn a_long_home_works() {
    let root = tempfile::tempdir().unwrap();
    let home = Home::below(&root.path().join("h".repeat(200)).join("with space"));
    let daemon = open(&home).await.unwrap();
    let stopper = daemon.stopper();
    let task = tokio::spawn(daemon.run());
    let status = Client::new(home.socket()).daemon().await.unwrap();
    assert_eq!(status.socket, home.socket().into());
    fs::remove_file(home.socket()).unwrap();
    until("it listens again", async || Client::new(home.socket()).daemon().await.is_ok()).await;
    stopper.stop();
    task.await.unwrap();
    assert!(!home.socket().exists());
}

#[tokio::test]
async fn a_client_with_an_idle_connection_outlives_the_daemon() {
    let world = World::new().await;
    let home = world.home.clone();
    let client = world.client.clone();
    client.daemon().await.unwrap();
    let (root, fake) = (world.root, world.fake);
    world.stopper.stop();
    tokio::time::timeout(Duration::from_secs(10), world.task).await.unwrap().unwrap();
    let daemon = Daemon::open(&home, vec![Arc::new(fake)]).await.unwrap();
    let stopper = daemon.stopper();
    let task = tokio::spawn(daemon.run());
    client.daemon().await.unwrap();
    stopper.stop();
    task.await.unwrap();
    drop(root);
}

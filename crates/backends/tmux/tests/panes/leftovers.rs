//! What is left after sessions: nothing.

use wharf_backend::conformance::{none_carry, until};
use wharf_backend::{Adoption, Backend};

use crate::support::Instance;

#[tokio::test]
async fn sessions_leave_no_pane_no_door_and_no_server() {
    let instance = Instance::new();
    let keeper = instance.run("exec sleep 600").await;
    let server = instance.server();
    for round in 0..10 {
        let session = instance.run("setsid sleep 600 & echo up; exec sleep 600").await;
        session.transcript().await.until("up").await;
        session.kill().await;
        none_carry(&session.ticket.token);
        until("its pane is gone", async || {
            instance.tmux(&["list-panes", "-a", "-F", "x"]).lines().count() == 1
        })
        .await;
        assert!(server.lives(), "the server died in round {round}");
    }
    let doors = || {
        let names = std::fs::read_dir(instance.server_dir()).expect("it is there");
        names
            .filter(|name| {
                name.as_ref().is_ok_and(|name| name.file_name().as_encoded_bytes().starts_with(b"door"))
            })
            .count()
    };
    assert_eq!(doors(), 0);
    keeper.kill().await;
    until("the server goes with its last session", async || !server.lives()).await;
}

#[tokio::test]
async fn a_holder_that_is_killed_is_a_lost_session() {
    let instance = Instance::new();
    let session = instance.run("echo before; exec sleep 600").await;
    session.transcript().await.until("before").await;
    let holder = crate::support::Process(session.ticket.holder.as_ref().expect("it has one").pid);
    holder.signal("KILL");
    until("it is known to be lost", async || {
        matches!(instance.backend.adopt(&session.ticket).await, Ok(Adoption::Lost))
    })
    .await;
    instance.backend.sweep(&session.ticket).await.expect("a sweep");
    none_carry(&session.ticket.token);
    let log = std::fs::read_dir(session.ticket.dir.as_path().join("log")).expect("the log is kept");
    let kept = log
        .filter_map(|file| std::fs::read(file.ok()?.path()).ok())
        .any(|bytes| bytes.starts_with(b"before"));
    assert!(kept, "its output is kept");
}

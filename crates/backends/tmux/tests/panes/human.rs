//! A person who joins with tmux itself.

use std::sync::Arc;

use wharf_backend::conformance::{CASE_TIMEOUT, Transcript, until, within};
use wharf_backend::{Backend, Connection};
use wharf_local::{LocalBackend, Options};
use wharf_model::{Home, Offset, Size, Text};

use crate::support::{Instance, Session};

/// Joins a session as its ticket says, on a terminal of this size.
async fn join(instance: &Instance, session: &Session, size: Size) -> Arc<dyn Connection> {
    let private = session.ticket.private.as_deref().expect("a ticket says how to join");
    let private: serde_json::Value = serde_json::from_str(private).expect("JSON");
    let argv: Vec<Text> = serde_json::from_value(private["join"].clone()).expect("a command");
    let mut launch = instance.launch("");
    launch.spec.size = size;
    launch.argv = argv;
    let home = Home::below(&instance.root().join("human"));
    launch.home = home.session(&launch.id);
    let terminal = LocalBackend::new(Options::new(&home));
    within(CASE_TIMEOUT, "a start", terminal.start(launch)).await.expect("tmux runs").1
}

#[tokio::test]
async fn a_person_joins_types_and_leaves() {
    let instance = Instance::new();
    let session = instance.run("stty -echo; echo ready; while read -r line; do echo \"<$line>\"; done").await;
    let mut transcript = session.transcript().await;
    transcript.until("ready").await;
    let size = Size { cols: 101, rows: 31 };
    let person = join(&instance, &session, size).await;
    let mut seen = Transcript::of(&*person, Offset(0)).await;
    seen.until("ready").await;
    person.write(b"by hand\r", CASE_TIMEOUT).await.expect("a person types");
    transcript.until("<by hand>").await;
    session.type_in("by us\n").await;
    transcript.until("<by us>").await;
    seen.until("<by us>").await;
    let mut status = session.connection.status();
    within(CASE_TIMEOUT, "the person's size", status.wait_for(|status| status.size == size))
        .await
        .expect("a status");

    // Keys would do the same, where they do not come so fast that tmux takes them for something pasted.
    instance.tmux(&["detach-client", "-s", &session.target().replace(':', "")]);
    within(CASE_TIMEOUT, "leaving", person.wait()).await.expect("tmux ends");
    session.type_in("still here\n").await;
    transcript.until("<still here>").await;
    session.kill().await;
}

#[tokio::test]
async fn copy_mode_swallows_nothing() {
    let instance = Instance::new();
    let session = instance.run("stty raw -echo; printf ready; exec cat").await;
    let mut transcript = session.transcript().await;
    transcript.until("ready").await;
    instance.tmux(&["copy-mode", "-t", &session.target()]);
    assert_eq!(instance.tmux(&["display-message", "-p", "-t", &session.target(), "#{pane_in_mode}"]), "1");
    session.type_in("q is typed, and not a key of tmux\0\x02").await;
    transcript.until("q is typed, and not a key of tmux\0\x02").await;
    session.kill().await;
}

#[tokio::test]
async fn tmux_follows_the_sessions_size() {
    let instance = Instance::new();
    let session = instance.run("exec sleep 600").await;
    let has = || {
        instance.tmux(&["display-message", "-p", "-t", &session.target(), "#{window_width}x#{window_height}"])
    };
    assert_eq!(has(), "80x24");
    for cols in [100, 90, 132] {
        session.connection.resize(Size { cols, rows: 43 }).await.expect("a resize");
    }
    until("tmux has the last size", async || has() == "132x43").await;
    assert_eq!(session.connection.status().borrow().size, Size { cols: 132, rows: 43 });
    session.kill().await;
}

#[tokio::test]
async fn colours_are_known_while_nobody_is_there_and_a_persons_own_afterwards() {
    let instance = Instance::new();
    let session = instance.run("stty raw -echo; printf 'ready\\033]11;?\\033\\\\'; exec cat").await;
    let mut transcript = session.transcript().await;
    transcript.until("\x1b]11;rgb:0000/0000/0000").await;
    let own = || instance.tmux(&["show-options", "-wv", "-t", &session.target(), "window-style"]);
    assert_eq!(own(), "", "what holds for all");
    let person = join(&instance, &session, Size { cols: 80, rows: 24 }).await;
    until("a person's own colours", async || own() == "default").await;
    instance.tmux(&["detach-client", "-s", &session.target().replace(':', "")]);
    within(CASE_TIMEOUT, "leaving", person.wait()).await.expect("tmux ends");
    until("what holds for all", async || own().is_empty()).await;
    session.kill().await;
}

//! Text that would mean something to tmux or to a shell, everywhere that a user can put some.

use std::path::Path;

use wharf_backend::conformance::until;
use wharf_model::Text;

use crate::support::Instance;

const HOSTILE: &str = "#(touch pwned) $(touch pwned) `touch pwned` #{session_name} %1 'a' \"b\" -x ;";

#[tokio::test]
async fn text_of_a_user_is_only_text() {
    // Also as a part of the instance's own path, which ends like a command of tmux.
    let instance = Instance::below(Path::new(HOSTILE));
    let mut launch = instance.launch("printf '%s|%s|%s|' \"$1\" \"$HOSTILE\" \"$PWD\"; exec sleep 600");
    launch.argv.extend([Text::from("sh"), Text::from(HOSTILE)]);
    launch.env.push(("HOSTILE".into(), HOSTILE.into()));
    let dir = instance.root().join(HOSTILE);
    std::fs::create_dir(&dir).expect("a directory");
    launch.spec.dir = dir.as_path().into();
    let session = instance.start(launch).await;
    let mut transcript = session.transcript().await;
    transcript.until(format!("{HOSTILE}|{HOSTILE}|{}|", dir.display())).await;
    session.kill().await;
    for place in [instance.root(), &dir, &instance.server_dir(), Path::new(".")] {
        assert!(!place.join("pwned").exists(), "something was run in {}", place.display());
    }
}

#[tokio::test]
async fn a_title_is_only_a_title() {
    let instance = Instance::new();
    let script = "printf '\\033]2;#(touch pwned)\\033\\\\\\033k#(touch pwned)\\033\\\\done'; exec sleep 600";
    let session = instance.run(script).await;
    session.transcript().await.until("done").await;
    let target = session.target();
    until("tmux has read the title", async || {
        instance.tmux(&["display-message", "-p", "-t", &target, "#{pane_title}"]).contains("touch")
    })
    .await;
    let name = instance.tmux(&["display-message", "-p", "-t", &target, "#{window_name}"]);
    assert_eq!(format!("={name}:"), target, "a program cannot rename its window");
    for place in [instance.root(), &instance.server_dir(), Path::new("/")] {
        assert!(!place.join("pwned").exists(), "something was run in {}", place.display());
    }
    session.kill().await;
}

#[tokio::test]
async fn bytes_that_are_keys_and_commands_arrive_as_they_are() {
    let instance = Instance::new();
    let session = instance.run("stty raw -echo; printf ready; exec cat").await;
    let mut transcript = session.transcript().await;
    transcript.until("ready").await;
    for text in
        ["-l", ";", "a;", "C-c", "Enter", "\x1b[200~pasted\nlines\x1b[201~", "\x02d", "\x03\x04\x1a", HOSTILE]
    {
        session.type_in(text).await;
        transcript.until(text).await;
    }
    session.kill().await;
}

#[tokio::test]
async fn a_path_of_any_length() {
    let instance = Instance::below(Path::new(&["long-directory-name"; 9].join("/")));
    let session = instance.run("echo ready; read -r line; echo \"<$line>\"; exec sleep 600").await;
    let mut transcript = session.transcript().await;
    transcript.until("ready").await;
    session.type_in("text\n").await;
    transcript.until("<text>").await;
    session.kill().await;
}

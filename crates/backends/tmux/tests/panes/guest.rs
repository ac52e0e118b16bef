//! A pane of the user's own server: watched, typed at, and never ended.

use std::path::PathBuf;
use std::process::Command;

use wharf_backend::conformance::{CASE_TIMEOUT, until, within};
use wharf_backend::{Adoption, Backend, Launch};
use wharf_model::{Code, Reason, Size, Text};
use wharf_screen::Screen;

use crate::support::{Instance, Process, Session};

/// A server as a user would have one.
struct User {
    dir: PathBuf,
}

impl User {
    fn new(instance: &Instance) -> Self {
        let dir = instance.root().join("theirs");
        std::fs::create_dir(&dir).expect("a directory");
        Self { dir }
    }

    fn tmux(&self, args: &[&str]) -> String {
        let mut command = Command::new("tmux");
        command.args(["-f", "/dev/null"]).args(args).env("TMUX_TMPDIR", &self.dir).env_remove("TMUX");
        let output = command.output().expect("tmux runs");
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    }

    /// A session that says who it is and what it is told.
    fn session(&self, name: &str) -> Process {
        let script =
            format!("stty -echo; echo this is {name}; while read -r line; do echo \"<$line>\"; done; exit 7");
        self.tmux(&["new-session", "-d", "-s", name, "-x", "90", "-y", "20", "sh", "-c", &script]);
        let pid = self.tmux(&["list-panes", "-t", &format!("={name}:"), "-F", "#{pane_pid}"]);
        Process(pid.parse().expect("a pid"))
    }

    fn piped(&self, name: &str) -> String {
        self.tmux(&["list-panes", "-t", &format!("={name}:"), "-F", "#{pane_pipe}"])
    }

    /// The start that takes one of them in.
    fn guest(&self, instance: &Instance, what: &str) -> Launch {
        let mut launch = instance.launch("");
        launch.argv = vec![Text::from(what)];
        launch.spec.adopt = Some(what.into());
        launch.env.push(("TMUX_TMPDIR".into(), self.dir.as_path().into()));
        launch
    }

    async fn taken(&self, instance: &Instance, what: &str) -> Session {
        until("it has printed", async || self.tmux(&["capture-pane", "-p", "-t", what]).contains("this is"))
            .await;
        instance.start(self.guest(instance, what)).await
    }
}

impl Drop for User {
    fn drop(&mut self) {
        self.tmux(&["kill-server"]);
    }
}

#[tokio::test]
async fn a_pane_is_watched_and_typed_at_and_let_go() {
    let instance = Instance::new();
    let user = User::new(&instance);
    // Names that begin alike: only the whole one counts.
    let (_other, pane) = (user.session("eng-10"), user.session("eng-1"));
    let session = user.taken(&instance, "eng-1").await;
    assert_eq!(session.connection.status().borrow().pid, Some(pane.0));
    assert_eq!(session.connection.status().borrow().size, Size { cols: 90, rows: 20 });
    let mut transcript = session.transcript().await;
    transcript.until("this is eng-1").await;
    session.type_in("-hello; #(x)\n").await;
    transcript.until("<-hello; #(x)>").await;

    // Another daemon finds it again.
    assert!(matches!(instance.backend.adopt(&session.ticket).await, Ok(Adoption::Alive(_))));
    session.type_in("again\n").await;
    transcript.until("<again>").await;

    // Its size and its processes are the user's.
    let refused = session.connection.resize(Size { cols: 40, rows: 10 }).await.expect_err("it is not ours");
    assert_eq!(refused.code, Code::Unsupported, "{refused:?}");
    let record = session.kill().await;
    assert_eq!((record.code, record.signal, record.reason), (None, None, Reason::Killed), "{record:?}");
    assert_eq!(instance.backend.sweep(&session.ticket).await.expect("a sweep"), 0);
    assert!(pane.lives(), "a pane that is the user's lives on");
    until("tmux is let go", async || user.piped("eng-1") == "0").await;

    // It can be taken in again, and its own end is known.
    let again = user.taken(&instance, "eng-1:0.0").await;
    again.type_in("last\n").await;
    again.transcript().await.until("<last>").await;
    again.type_in("\x04").await;
    let record = again.ended().await;
    assert_eq!(record.reason, Reason::Exited, "{record:?}");
}

/// The screen that this output makes.
fn screen_of(output: &[u8], size: Size) -> Screen {
    let mut screen = Screen::new(size, 0);
    let _ = screen.feed(output);
    screen
}

/// What is drawn before a pane is taken in, where its cursor stands then (column and row), and what is printed at the end.
const DRAWN: [(&str, &str, &str, &str); 5] = [
    ("prompt", "printf 'this is it\\r\\nname: '", "6 1", ""),
    // Above rows with text, and under empty ones.
    ("above", "printf 'this is it\\033[3;5Hx\\033[9;1Hlow\\033[5;8H'", "7 4", ""),
    ("below", "printf 'this is it\\033[31m red\\033[18;31H'", "30 17", ""),
    ("hidden", "printf '\\033[?25lthis is it\\033[2;2H'", "1 1", ""),
    (
        "alternate",
        "printf '\\r\\nthis was it\\r\\n$ '; printf '\\033[?1049h\\033[2;1Hthis is it\\033[7;4H'",
        "3 6",
        "\\033[?1049l",
    ),
];

#[tokio::test]
async fn a_pane_that_is_taken_in_keeps_its_cursor() {
    let instance = Instance::new();
    let user = User::new(&instance);
    let size = Size { cols: 90, rows: 20 };
    for (name, draw, place, end) in DRAWN {
        let script = format!(
            "stty -echo; {draw}; read -r line; printf FIRST; read -r line; printf '{end}LAST'; exec sleep 1000"
        );
        user.tmux(&["new-session", "-d", "-s", name, "-x", "90", "-y", "20", "sh", "-c", &script]);
        let told = |format: &str| user.tmux(&["display-message", "-p", "-t", name, format]);
        let of_tmux = || told("#{cursor_x} #{cursor_y}");
        until("the cursor is where it is left", async || of_tmux() == place).await;
        let visible = told("#{cursor_flag}") == "1";
        let session = user.taken(&instance, name).await;
        let ours = |screen: &Screen| {
            let (row, column) = screen.modes().cursor;
            format!("{column} {row}")
        };
        let rows = || -> Vec<String> {
            let shown = user.tmux(&["capture-pane", "-p", "-t", name]);
            shown.lines().map(|row| row.trim_end().to_owned()).collect()
        };
        let mut transcript = session.transcript().await;
        session.type_in("go\n").await;
        transcript.until("FIRST").await;
        let drawn = transcript.seen.strip_suffix(b"FIRST").expect("nothing comes after it");
        let screen = screen_of(drawn, size);
        assert_eq!((ours(&screen).as_str(), screen.modes().cursor_visible), (place, visible), "{name}");
        // What comes after it lands in the same places.
        session.type_in("go\n").await;
        transcript.until("LAST").await;
        let screen = screen_of(&transcript.seen, size);
        assert_eq!(ours(&screen), of_tmux(), "{name}");
        let shown: Vec<String> = screen.rows().iter().map(|row| row.trim_end().to_owned()).collect();
        // What `tmux` prints here is trimmed at both ends.
        let shown = shown.join("\n").trim().to_owned();
        assert_eq!(shown, rows().join("\n").trim(), "{name}");
        session.kill().await;
    }
}

#[tokio::test]
async fn a_signal_reaches_it_when_asked() {
    let instance = Instance::new();
    let user = User::new(&instance);
    let pane = user.session("one");
    let session = user.taken(&instance, "one").await;
    session.connection.signal(9, false).await.expect("a signal");
    let record = session.ended().await;
    assert_eq!(record.reason, Reason::Exited, "{record:?}");
    until("it is gone", async || !pane.lives()).await;
}

#[tokio::test]
async fn a_pane_that_others_read_is_left_to_them() {
    let instance = Instance::new();
    let user = User::new(&instance);
    user.session("one");
    user.tmux(&["pipe-pane", "-t", "=one:", "exec cat > /dev/null"]);
    let refused =
        within(CASE_TIMEOUT, "a refusal", instance.backend.start(user.guest(&instance, "one"))).await;
    assert_eq!(refused.err().expect("it is taken").code, Code::Busy);
    assert_eq!(user.piped("one"), "1", "the user's own pipe goes on");
}

#[tokio::test]
async fn what_is_not_there_is_not_found() {
    let instance = Instance::new();
    let user = User::new(&instance);
    user.session("one");
    for (what, code) in [
        ("on", Code::NotFound),
        ("one:5", Code::NotFound),
        ("one:0.7", Code::NotFound),
        ("%4000", Code::NotFound),
        ("#(touch pwned)", Code::NotFound),
        ("one:x", Code::Invalid),
    ] {
        let launch = user.guest(&instance, what);
        let home = launch.home.clone();
        let refused = within(CASE_TIMEOUT, "a refusal", instance.backend.start(launch)).await.err();
        assert_eq!(refused.expect("there is none").code, code, "{what}");
        assert!(!home.exists());
    }
}

#[tokio::test]
async fn the_users_server_may_go() {
    let instance = Instance::new();
    let user = User::new(&instance);
    user.session("one");
    let session = user.taken(&instance, "one").await;
    user.tmux(&["kill-server"]);
    let record = session.ended().await;
    assert!(matches!(record.reason, Reason::Lost | Reason::Exited), "{record:?}");
}

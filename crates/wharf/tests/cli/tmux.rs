//! Tests the tmux backend on the command line, and panes of the user that are adopted.

use std::process::Command;

use crate::support::{Pty, Wharf, until};

#[test]
fn a_session_in_a_pane_is_a_session_like_any_other() {
    // It names its backend.
    let wharf = Wharf::on_this_host();
    let echo = "stty -echo; echo ready; while read -r line; do echo \"<$line>\"; done; exit 9";
    wharf.start("one", &["--backend", "tmux"], &["sh", "-c", echo]);
    wharf.until_log("one", "ready");
    assert_eq!(wharf.run_with(&["write", "one", "-"], b"typed\n").code, 0);
    wharf.until_log("one", "<typed>");
    let shown = wharf.json(&["show", "one", "--json"]);
    assert_eq!(shown["backend"], "tmux");

    let mut attached = Pty::spawn(wharf.command(&["attach", "one"]), (100, 30));
    attached.until("<typed>");
    attached.type_in(b"attached\r");
    attached.until("<attached>");
    attached.type_in(b"\x1c");
    attached.until("[detached from one]");
    assert_eq!(attached.end(), 0);

    // The real command, as a person would paste it.
    let printed = wharf.run(&["attach", "--print-command", "one"]);
    assert!(printed.out.starts_with("tmux -S ") && printed.out.contains("attach-session"), "{printed:?}");
    let mut person = Command::new("sh");
    person.args(["-c", printed.out.trim()]).env("TERM", "xterm").env_remove("TMUX");
    let mut joined = Pty::spawn(person, (100, 30));
    joined.until("<attached>");
    joined.type_in(b"by hand\r");
    wharf.until_log("one", "<by hand>");

    assert_eq!(wharf.run_with(&["write", "one", "-"], b"\x04").code, 0);
    assert_eq!(wharf.run(&["wait", "one"]).code, 9);
    assert_eq!(joined.end(), 0);
}

#[test]
fn only_tmux_answers_what_an_application_asks() {
    // It names its backend.
    let wharf = Wharf::on_this_host();
    let ask = "stty raw -echo; printf '\\033[6n'; head -c 6 | od -An -c; printf ready; exec od -An -c";
    wharf.start("one", &["--backend", "tmux"], &["sh", "-c", ask]);
    wharf.until_log("one", "ready");
    // Whoever has drawn it has seen the question, and would have answered it.
    assert!(until(|| wharf.run(&["capture", "one"]).out.contains("ready")));
    wharf.ok(&["write", "one", "0123456789abcdef"]);
    wharf.until_log("one", "f");
    let text = String::from_utf8_lossy(&wharf.log("one")).into_owned();
    assert!(text.split("ready").nth(1).is_some_and(|rest| !rest.contains('R')), "{text}");
}

/// A server as a user would have one.
struct Own<'a>(&'a Wharf);

impl Own<'_> {
    fn tmux(&self, args: &[&str]) -> String {
        let mut command = Command::new("tmux");
        command.args(["-f", "/dev/null"]).args(args).env("TMUX_TMPDIR", self.0.home()).env_remove("TMUX");
        String::from_utf8_lossy(&command.output().expect("tmux runs").stdout).trim().to_owned()
    }
}

impl Drop for Own<'_> {
    fn drop(&mut self) {
        self.tmux(&["kill-server"]);
    }
}

#[test]
fn a_pane_of_the_user_is_taken_in_and_let_go() {
    let wharf = Wharf::new();
    let own = Own(&wharf);
    let echo = "stty -echo; while read -r line; do echo \"<$line>\"; done";
    own.tmux(&["new-session", "-d", "-s", "mine", "sh", "-c", echo]);
    let mut adopt = wharf.command(&["adopt", "tmux:mine", "--name", "guest"]);
    let adopted = adopt.env("TMUX_TMPDIR", wharf.home()).output().expect("wharf runs");
    assert!(adopted.status.success(), "{adopted:?}");
    assert_eq!(wharf.run_with(&["write", "guest", "-"], b"hello\n").code, 0);
    wharf.until_log("guest", "<hello>");
    assert_eq!(wharf.run(&["kill", "guest"]).code, 0);
    assert!(until(|| own.tmux(&["list-panes", "-a", "-F", "#{pane_pipe}"]) == "0"), "the pane is let go");
    assert_eq!(own.tmux(&["list-sessions", "-F", "#{session_name}"]), "mine");
    let refused = wharf.run(&["adopt", "local:1"]);
    assert!(refused.code != 0 && refused.err.contains("does not support"), "{refused:?}");
}

//! A daemon in another PID namespace, where the numbers of processes say nothing.

use std::process::Command;

use serde_json::Value;
use wharf_backend::conformance::left_out;

use crate::ground::Ground;
use crate::support::{is_live, lives, until};

#[test]
fn a_daemon_in_another_pid_namespace_concludes_nothing() {
    let flags: &[&str] = if rustix::process::geteuid().is_root() { &["-p"] } else { &["-Urp"] };
    let unshare = || {
        let mut command = Command::new("unshare");
        command.args(flags).args(["--fork", "--mount-proc"]);
        command
    };
    if !unshare().arg("true").status().is_ok_and(|status| status.success()) {
        left_out(&format!("`unshare {flags:?}` does not work here"));
    }
    let ground = Ground::new();
    ground.start("one", &[], &["cat"]);
    let pid = ground.pid("one");
    ground.kill_daemon();
    // One shell for all of it: with the first process of the namespace goes its daemon.
    let script = "\"$W\" show one --json; \"$W\" stop -t 1 one; echo stop $?; \"$W\" kill one; echo kill $?; \
                  \"$W\" show one --json; true";
    let from = ground.command(&[]);
    let output = unshare()
        .args(["sh", "-c", script])
        .env_clear()
        .envs(from.get_envs().filter_map(|(name, value)| Some((name, value?))))
        .env("W", from.get_program())
        .output()
        .unwrap();
    let out = String::from_utf8_lossy(&output.stdout).into_owned();
    let said = format!("{out}\n{}", String::from_utf8_lossy(&output.stderr));
    let shown: Vec<Value> = out.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    assert!(!shown.is_empty() && shown.iter().all(|shown| shown["state"] == "unknown"), "{said}");
    let detail = shown[0]["detail"].as_str().unwrap_or_default();
    assert!(detail.contains("another PID namespace"), "{said}");
    for verb in ["stop 0", "kill 0"] {
        assert!(!out.contains(verb), "{said}");
    }
    assert!(lives(pid), "{said}");
    // Where its processes can be seen, all is as it was.
    assert!(until(|| is_live(&ground.show("one"))), "{}", ground.show("one"));
    assert_eq!(ground.pid("one"), pid);
    ground.ok(&["stop", "-t", "1", "one"]);
    assert!(!lives(pid));
}

//! A small chaos run: the same code as the large ones that are run by hand.

use std::path::{Path, PathBuf};
use std::process::Command;

/// The binaries beside ours; a run of the whole workspace has built them.
fn wharf() -> PathBuf {
    let beside = Path::new(env!("CARGO_BIN_EXE_xtask")).with_file_name("wharf");
    if !beside.is_file() || !beside.with_file_name("wharf-holder").is_file() {
        let mut build = Command::new(env!("CARGO"));
        build.args(["build", "--package", "wharf", "--bins"]);
        if !cfg!(debug_assertions) {
            build.arg("--release");
        }
        assert!(build.status().expect("cargo runs").success(), "wharf does not build");
    }
    beside
}

fn chaos(args: &[&str]) {
    let output = Command::new(env!("CARGO_BIN_EXE_xtask"))
        .arg("chaos")
        .args(["--seed", "7", "--wharf"])
        .arg(wharf())
        .args(args)
        .output()
        .expect("xtask runs");
    let shown =
        format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{shown}");
    assert!(shown.contains("nothing lost"), "{shown}");
}

#[test]
fn ten_kills_of_the_daemon_lose_nothing() {
    chaos(&["--agents", "5", "--kills", "10"]);
}

#[test]
fn ten_kills_of_holders_lose_nothing() {
    chaos(&["--agents", "5", "--kills", "10", "--holders"]);
}

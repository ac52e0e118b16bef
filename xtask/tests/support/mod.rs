//! How a test runs a task on the binaries that were built beside it.

#![allow(dead_code, reason = "each test uses its own part of it")]

use std::path::{Path, PathBuf};
use std::process::Command;

use wharf_backend::conformance::left_out;

/// The binaries beside ours; a run of the whole workspace has built them.
pub(crate) fn wharf() -> PathBuf {
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

/// Runs a task that must work and say this.
pub(crate) fn task(name: &str, args: &[&str], says: &str) {
    let engine = args.iter().any(|arg| ["docker", "podman"].contains(arg));
    if engine && !rustix::process::geteuid().is_root() {
        left_out("an engine of the tests' own needs root");
    }
    let mut xtask = Command::new(env!("CARGO_BIN_EXE_xtask"));
    xtask.arg(name).arg("--wharf").arg(wharf()).args(args);
    let output = xtask.output().expect("xtask runs");
    let shown =
        format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    if engine && shown.contains("is not here: `cargo xtask setup`") {
        left_out("the engine is not here: `cargo xtask setup` installs it");
    }
    assert!(output.status.success(), "{shown}");
    assert!(shown.contains(says), "{shown}");
}

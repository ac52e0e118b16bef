//! Mounts small or read-only file systems for a fault test, in a namespace of its own.

use std::path::Path;
use std::process::Command;

/// Runs a test in a mount namespace of its own, so that no mount of it can outlive it or be seen by another.
///
/// `name` is the test's full name. As root that always works; else it needs user namespaces, and where the host
/// forbids those the test says so, and fails where nothing may be skipped.
pub(crate) fn in_a_namespace(name: &str, test: impl FnOnce()) {
    const INSIDE: &str = "WHARF_TEST_INSIDE";
    if std::env::var_os(INSIDE).is_some() {
        return test();
    }
    let flags: &[&str] = if rustix::process::geteuid().is_root() { &["-m"] } else { &["-Urm"] };
    let can = Command::new("unshare").args(flags).arg("true").status().is_ok_and(|status| status.success());
    if !can {
        assert!(std::env::var_os("CI").is_none(), "unshare {flags:?} does not work here");
        eprintln!("{name} is skipped: `unshare {flags:?}` does not work here");
        return;
    }
    let own = std::env::current_exe().expect("the test program");
    let output = Command::new("unshare")
        .args(flags)
        .arg(own)
        .args(["--exact", name, "--nocapture"])
        .env(INSIDE, "1")
        .output()
        .expect("unshare runs");
    let said = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    println!("{said}");
    assert!(output.status.success(), "{name} failed in its namespace");
    assert!(said.contains("1 passed"), "{name} is not the name of this test");
}

/// Mounts a file system of this many bytes.
pub(crate) fn mount(at: &Path, bytes: usize) {
    let size = format!("size={bytes},mode=700");
    let done = Command::new("mount").args(["-t", "tmpfs", "-o", &size, "tmpfs"]).arg(at).status();
    assert!(done.expect("mount runs").success(), "cannot mount a tmpfs of {bytes} bytes");
}

/// Makes a directory read-only, also for root.
pub(crate) fn freeze(at: &Path) {
    for args in [&["--bind"][..], &["-o", "remount,bind,ro"]] {
        let mut command = Command::new("mount");
        command.args(args);
        if args.len() == 1 {
            command.arg(at);
        }
        assert!(command.arg(at).status().expect("mount runs").success(), "mount {args:?}");
    }
}

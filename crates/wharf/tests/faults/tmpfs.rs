//! Mounts small or read-only file systems for a fault test, in a namespace of its own.

use std::path::Path;
use std::process::Command;

use wharf_backend::conformance::left_out;

/// Runs a test in a mount namespace of its own, so that no mount of it can outlive it or be seen by another.
///
/// `name` is the test's full name. As root that always works; else it needs user namespaces, and where the host
/// forbids those the test is left out.
pub(crate) fn in_a_namespace(name: &str, test: impl FnOnce()) {
    const INSIDE: &str = "WHARF_TEST_INSIDE";
    if std::env::var_os(INSIDE).is_some() {
        return test();
    }
    let flags: &[&str] = if rustix::process::geteuid().is_root() { &["-m"] } else { &["-Urm"] };
    let can = Command::new("unshare").args(flags).arg("true").status().is_ok_and(|status| status.success());
    if !can {
        left_out(&format!("`unshare {flags:?}` does not work here"));
    }
    let own = std::env::current_exe().expect("the test program");
    // In the namespace what is mounted on cannot be removed. Out here nothing is mounted once the test is over.
    let temporary = tempfile::tempdir().expect("a directory");
    let output = Command::new("unshare")
        .args(flags)
        .arg(own)
        .args(["--exact", name, "--nocapture"])
        .env(INSIDE, "1")
        .env("TMPDIR", temporary.path())
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

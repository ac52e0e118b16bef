//! What a test needs that is not everywhere.

pub use wharf_boundary::left_out;

/// Leaves a test out where an ordinary user may not make user namespaces: in a chroot, or by a rule of the system.
pub fn needs_namespaces() {
    let mut unshare = std::process::Command::new("unshare");
    unshare.args(["--user", "true"]).stderr(std::process::Stdio::null());
    if !rustix::process::geteuid().is_root() && !unshare.status().is_ok_and(|status| status.success()) {
        left_out("an ordinary user may not make user namespaces here");
    }
}

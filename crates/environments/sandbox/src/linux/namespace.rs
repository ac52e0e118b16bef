//! Namespaces of the sandbox's own: a network, and a view of the files in which the rest cannot be changed at all.

use std::fs;
use std::io;

use rustix::process::{getegid, geteuid};
use rustix::thread::{UnshareFlags, unshare_unsafe};

/// Moves this process into new namespaces, as a user of its own where it may not do so as it is.
pub(super) fn enter(flags: UnshareFlags) -> io::Result<()> {
    let (user, group) = (geteuid(), getegid());
    // Whoever may is not asked to change who they are.
    if unshare(flags).is_ok() {
        return Ok(());
    }
    unshare(flags | UnshareFlags::NEWUSER)?;
    fs::write("/proc/self/setgroups", "deny")?;
    fs::write("/proc/self/uid_map", format!("{0} {0} 1", user.as_raw()))?;
    fs::write("/proc/self/gid_map", format!("{0} {0} 1", group.as_raw()))
}

fn unshare(flags: UnshareFlags) -> io::Result<()> {
    // SAFETY: this process has one thread, and its file table, which others might share, is not touched.
    #[expect(unsafe_code, reason = "namespaces are a matter of the whole process")]
    unsafe {
        unshare_unsafe(flags)?;
    }
    Ok(())
}

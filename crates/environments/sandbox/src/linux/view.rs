//! A view of the files in which all but what may be changed is read-only.
//!
//! Landlock knows nothing of modes, owners and times: by itself it would let a command change those of any file that
//! is the user's. A read-only mount does not.

use std::ffi::CString;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Makes everything read-only but these paths, in a mount namespace of our own.
pub(super) fn close(writable: &[PathBuf]) -> io::Result<()> {
    let here = std::env::current_dir()?;
    mount_private()?;
    // Taken before the rest is closed, so that they stay as they are.
    let open: Vec<(CString, OwnedFd)> = outermost(writable)
        .into_iter()
        .map(|path| {
            let path = CString::new(path.as_os_str().as_bytes())?;
            let tree = clone_tree(&path)?;
            Ok((path, tree))
        })
        .collect::<io::Result<_>>()?;
    set_read_only()?;
    for (path, tree) in &open {
        attach(tree, path)?;
    }
    // The old way here leads to what is read-only now.
    std::env::set_current_dir(here)
}

/// The paths that are below no other of them: what is one tree stays one, and files move freely in it.
fn outermost(paths: &[PathBuf]) -> Vec<PathBuf> {
    let real: Vec<PathBuf> = paths.iter().filter_map(|path| path.canonicalize().ok()).collect();
    let covers = |a: &Path, b: &Path| a != b && b.starts_with(a);
    let mut kept: Vec<PathBuf> =
        real.iter().filter(|path| !real.iter().any(|other| covers(other, path))).cloned().collect();
    kept.sort();
    kept.dedup();
    kept
}

fn mount_private() -> io::Result<()> {
    let none = c"none".as_ptr();
    // SAFETY: the strings are constants that end with a NUL; no data is passed.
    #[expect(unsafe_code, reason = "mounts are system calls that the library does not have")]
    let done = unsafe {
        libc::mount(none, c"/".as_ptr(), std::ptr::null(), libc::MS_REC | libc::MS_PRIVATE, std::ptr::null())
    };
    checked(i64::from(done)).map(drop)
}

fn clone_tree(path: &CString) -> io::Result<OwnedFd> {
    const OPEN_TREE_CLONE: libc::c_uint = 1;
    let flags = OPEN_TREE_CLONE | libc::O_CLOEXEC.unsigned_abs() | libc::AT_RECURSIVE.unsigned_abs();
    // SAFETY: the path ends with a NUL and lives across the call; what it returns is ours alone.
    #[expect(unsafe_code, reason = "mounts are system calls that the library does not have")]
    unsafe {
        let fd = checked(libc::syscall(libc::SYS_open_tree, libc::AT_FDCWD, path.as_ptr(), flags))?;
        Ok(OwnedFd::from_raw_fd(fd as i32))
    }
}

fn set_read_only() -> io::Result<()> {
    let attr =
        libc::mount_attr { attr_set: libc::MOUNT_ATTR_RDONLY, attr_clr: 0, propagation: 0, userns_fd: 0 };
    let size = std::mem::size_of::<libc::mount_attr>();
    // SAFETY: the attributes live across the call, and their size is told.
    #[expect(unsafe_code, reason = "mounts are system calls that the library does not have")]
    let done = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            libc::AT_FDCWD,
            c"/".as_ptr(),
            libc::AT_RECURSIVE,
            &raw const attr,
            size,
        )
    };
    checked(done).map(drop)
}

fn attach(tree: &OwnedFd, path: &CString) -> io::Result<()> {
    const MOVE_MOUNT_F_EMPTY_PATH: libc::c_uint = 4;
    // SAFETY: both strings end with a NUL and live across the call.
    #[expect(unsafe_code, reason = "mounts are system calls that the library does not have")]
    let done = unsafe {
        libc::syscall(
            libc::SYS_move_mount,
            tree.as_raw_fd(),
            c"".as_ptr(),
            libc::AT_FDCWD,
            path.as_ptr(),
            MOVE_MOUNT_F_EMPTY_PATH,
        )
    };
    checked(done).map(drop)
}

fn checked(done: libc::c_long) -> io::Result<libc::c_long> {
    if done < 0 { Err(io::Error::last_os_error()) } else { Ok(done) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_tree_stays_one() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        for name in ["a/b", "ab"] {
            std::fs::create_dir_all(root.join(name)).unwrap();
        }
        let paths = ["a/b", "a", "ab", "a/../a", "missing"].map(|name| root.join(name));
        assert_eq!(outermost(&paths), [root.join("a"), root.join("ab")]);
    }
}

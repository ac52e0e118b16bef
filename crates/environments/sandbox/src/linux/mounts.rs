//! What is mounted where: the system calls.

use std::ffi::{CStr, CString};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Makes a copy instead of a handle; the library has no word for it.
const OPEN_TREE_CLONE: libc::c_uint = 1;
/// The tree is the descriptor itself; the same.
const MOVE_MOUNT_F_EMPTY_PATH: libc::c_uint = 4;

/// Has no mount of ours appear outside, and none of there here.
pub(super) fn mount_private() -> io::Result<()> {
    let none = c"none".as_ptr();
    // SAFETY: the strings are constants that end with a NUL; no data is passed.
    #[expect(unsafe_code, reason = "mounts are system calls that the library does not have")]
    let done = unsafe {
        libc::mount(none, c"/".as_ptr(), std::ptr::null(), libc::MS_REC | libc::MS_PRIVATE, std::ptr::null())
    };
    checked(i64::from(done)).map(drop)
}

/// A copy of what is mounted at a path and below, as it is now, attached nowhere yet.
pub(super) fn clone_tree(path: &Path) -> io::Result<OwnedFd> {
    let path = c_path(path)?;
    let flags = OPEN_TREE_CLONE | libc::O_CLOEXEC.unsigned_abs() | libc::AT_RECURSIVE.unsigned_abs();
    // SAFETY: the path ends with a NUL and lives across the call; what it returns is ours alone.
    #[expect(unsafe_code, reason = "mounts are system calls that the library does not have")]
    unsafe {
        let fd = checked(libc::syscall(libc::SYS_open_tree, libc::AT_FDCWD, path.as_ptr(), flags))?;
        Ok(OwnedFd::from_raw_fd(fd as i32))
    }
}

/// Makes what is mounted at a path read-only, and all below it where that is asked.
pub(super) fn set_read_only(path: &Path, below: bool) -> io::Result<()> {
    let path = c_path(path)?;
    let flags = if below { libc::AT_RECURSIVE } else { 0 };
    let attr =
        libc::mount_attr { attr_set: libc::MOUNT_ATTR_RDONLY, attr_clr: 0, propagation: 0, userns_fd: 0 };
    let size = std::mem::size_of::<libc::mount_attr>();
    // SAFETY: the attributes live across the call, and their size is told.
    #[expect(unsafe_code, reason = "mounts are system calls that the library does not have")]
    let done = unsafe {
        libc::syscall(libc::SYS_mount_setattr, libc::AT_FDCWD, path.as_ptr(), flags, &raw const attr, size)
    };
    checked(done).map(drop)
}

/// Puts a copy over a path.
pub(super) fn attach(tree: &OwnedFd, path: &Path) -> io::Result<()> {
    let path = c_path(path)?;
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

/// Mounts a new file system over a path.
pub(super) fn mount_new(kind: &CStr, path: &Path, flags: libc::c_ulong, options: &CStr) -> io::Result<()> {
    let path = c_path(path)?;
    // SAFETY: all strings end with a NUL and live across the call.
    #[expect(unsafe_code, reason = "mounts are system calls that the library does not have")]
    let done =
        unsafe { libc::mount(kind.as_ptr(), path.as_ptr(), kind.as_ptr(), flags, options.as_ptr().cast()) };
    checked(i64::from(done)).map(drop)
}

fn c_path(path: &Path) -> io::Result<CString> {
    Ok(CString::new(path.as_os_str().as_bytes())?)
}

fn checked(done: libc::c_long) -> io::Result<libc::c_long> {
    if done < 0 { Err(io::Error::last_os_error()) } else { Ok(done) }
}

//! What only Linux has: paths that the kernel keeps below a directory, descriptors that only name a file, proven peers.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, FileType, Mode, OFlags, RawDir, ResolveFlags, Stat, openat2};
use rustix::io::Errno;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType};
use rustix::process::Resource;

use crate::dir::Links;

/// Opens nothing: the descriptor only names what stands at a path.
pub const NAME_ONLY: OFlags = OFlags::PATH;

/// A write to a socket whose other end is gone is an error and no signal.
pub(crate) const NOSIGNAL: SendFlags = SendFlags::NOSIGNAL;

/// Descriptors that come with a message are closed by an exec.
pub(crate) const RECEIVE_CLOEXEC: RecvFlags = RecvFlags::CMSG_CLOEXEC;

/// Limits that other systems do not know.
pub(crate) const OWN_LIMITS: &[Resource] =
    &[Resource::Locks, Resource::Sigpending, Resource::Msgqueue, Resource::Rttime];

/// How often a path is resolved again that somebody changed meanwhile.
const MAX_RESOLVE_TRIES: u32 = 16;

/// A directory of up to this length is listed by one system call, during which the kernel lets nobody change it.
const LIST_BUFFER_LEN: usize = 32 << 10;

/// Opens a path below a directory; the kernel refuses one that leads out of it.
pub(crate) fn open_beneath(
    dir: &OwnedFd,
    path: &Path,
    flags: OFlags,
    mode: Mode,
    links: Links,
) -> Result<OwnedFd, Errno> {
    let how = match links {
        Links::None => ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS,
        Links::Beneath => ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS,
    };
    let mut tries = 0;
    loop {
        match openat2(dir, path, flags | OFlags::CLOEXEC, mode, how) {
            Err(Errno::AGAIN | Errno::INTR) if tries < MAX_RESOLVE_TRIES => tries += 1,
            opened => return opened,
        }
    }
}

/// Opens a path by what the kernel has in memory; an error where it would have to ask a disk, a network or a program.
pub(crate) fn open_cached(path: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
    openat2(CWD, path, flags | OFlags::PATH | OFlags::CLOEXEC, Mode::empty(), ResolveFlags::CACHED)
}

/// A path that leads to what a descriptor holds, itself, whatever has its name by now.
pub fn path_of(fd: impl AsFd) -> PathBuf {
    format!("/proc/self/fd/{}", fd.as_fd().as_raw_fd()).into()
}

/// Calls `entry` with each name in a readable directory and its type, until it answers false.
pub(crate) fn list(
    readable: OwnedFd,
    mut entry: impl FnMut(OsString, FileType) -> bool,
) -> Result<(), Errno> {
    let mut buf = Vec::with_capacity(LIST_BUFFER_LEN);
    let mut entries = RawDir::new(readable, buf.spare_capacity_mut());
    while let Some(found) = entries.next() {
        let found = found?;
        let name = OsString::from_vec(found.file_name().to_bytes().to_vec());
        if name != "." && name != ".." && !entry(name, found.file_type()) {
            break;
        }
    }
    Ok(())
}

/// The mode in what `stat` says, with the file's type.
pub fn mode_of(stat: &Stat) -> u32 {
    stat.st_mode
}

/// The device in what `stat` says.
pub(crate) fn device_of(stat: &Stat) -> u64 {
    stat.st_dev
}

/// A new stream socket that does not block.
pub(crate) fn stream_socket() -> Result<OwnedFd, Errno> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)
}

/// A pair of sockets that carry whole messages.
pub(crate) fn message_pair() -> Result<(OwnedFd, OwnedFd), Errno> {
    rustix::net::socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)
}

/// See [`crate::take_descriptors`].
pub(crate) fn take_descriptors(socket: impl AsFd, take: bool) {
    const SO_PASSRIGHTS: libc::c_int = 83;
    let take = libc::c_int::from(take);
    // SAFETY: an integer that lives across the call, and its size.
    #[expect(unsafe_code, reason = "rustix has no word for this option")]
    let _ = unsafe {
        libc::setsockopt(
            socket.as_fd().as_raw_fd(),
            libc::SOL_SOCKET,
            SO_PASSRIGHTS,
            (&raw const take).cast(),
            size_of::<libc::c_int>() as libc::socklen_t,
        )
    };
}

/// Pid and user of the process at the other end of a socket.
pub(crate) fn credentials(socket: impl AsFd) -> io::Result<(i32, u32)> {
    let mut credentials = libc::ucred { pid: 0, uid: 0, gid: 0 };
    let mut length = size_of::<libc::ucred>() as libc::socklen_t;
    // SAFETY: the kernel writes at most `length` bytes to `credentials`, for which any bytes are a value.
    #[expect(unsafe_code, reason = "rustix takes the pid for one that is not zero, and it may be")]
    let done = unsafe {
        libc::getsockopt(
            socket.as_fd().as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_PEERCRED,
            (&raw mut credentials).cast(),
            &raw mut length,
        )
    };
    if done < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok((credentials.pid, credentials.uid))
}

/// A pidfd of the process at the other end of a socket.
pub(crate) fn process_of(socket: impl AsFd) -> Option<OwnedFd> {
    const SO_PEERPIDFD: libc::c_int = 77;
    let mut fd: libc::c_int = -1;
    let mut length = size_of::<libc::c_int>() as libc::socklen_t;
    // SAFETY: the kernel writes at most `length` bytes to `fd`.
    #[expect(unsafe_code, reason = "rustix has no word for this option")]
    let done = unsafe {
        libc::getsockopt(
            socket.as_fd().as_raw_fd(),
            libc::SOL_SOCKET,
            SO_PEERPIDFD,
            (&raw mut fd).cast(),
            &raw mut length,
        )
    };
    // SAFETY: the kernel has just made this descriptor for us, and nobody else knows of it.
    #[expect(unsafe_code, reason = "a number that the kernel gave us becomes a descriptor")]
    let owned = (done == 0 && fd >= 0).then(|| unsafe { OwnedFd::from_raw_fd(fd) });
    owned
}

/// Whether a user is one that this user namespace does not know, such as the root of the host: who is in a namespace of
/// their own sees all of the system's directories as that one's.
pub(crate) fn is_unmapped(owner: u32) -> bool {
    let number = |path: &str| fs::read_to_string(path).ok()?.trim().parse::<u32>().ok();
    let whole = |map: String| map.split_whitespace().eq(["0", "0", "4294967295"]);
    number("/proc/sys/kernel/overflowuid") == Some(owner)
        && fs::read_to_string("/proc/self/uid_map").is_ok_and(|map| !whole(map))
}

/// See [`crate::is_locked_by_us`].
pub(crate) fn is_locked_by_us(device: u64, inode: u64) -> bool {
    let us = rustix::process::geteuid().as_raw();
    let locks = fs::read("/proc/locks").unwrap_or_default();
    let pids = String::from_utf8_lossy(&locks)
        .lines()
        .filter_map(|line| {
            let mut words = line.split_whitespace().skip_while(|word| *word != "FLOCK");
            words.nth(3)?.parse::<i32>().ok()
        })
        .collect::<BTreeSet<i32>>();
    pids.into_iter().filter(|pid| *pid > 0).any(|pid| {
        let process = PathBuf::from(format!("/proc/{pid}"));
        let Ok(fds) = fs::read_dir(process.join("fd")) else { return false };
        let holds = |fd: fs::DirEntry| {
            fs::metadata(fd.path()).is_ok_and(|meta| (meta.dev(), meta.ino()) == (device, inode))
                && fs::read_to_string(process.join("fdinfo").join(fd.file_name()))
                    .is_ok_and(|info| info.contains("FLOCK"))
        };
        fs::metadata(&process).is_ok_and(|process| process.uid() == us) && fds.flatten().any(holds)
    })
}

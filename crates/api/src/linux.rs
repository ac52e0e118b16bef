//! What both ends of the daemon's socket need from Linux: paths of any length, peer credentials, pidfds.

use std::fs::{self, File, Permissions};
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::OFlags;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};
use rustix::process::{Pid, PidfdFlags};
pub use wharf_boundary::Peer;

/// The longest path that a socket address holds.
const MAX_SOCKET_PATH_LEN: usize = 107;

/// Connects to a Unix socket, however long its path is. The connection is non-blocking.
pub fn connect(path: &Path) -> io::Result<UnixStream> {
    let short = Short::of(path)?;
    // Non-blocking from the start: else a stopped daemon with a full backlog would hold us for ever.
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    rustix::net::connect(&socket, &SocketAddrUnix::new(&short.path)?)?;
    Ok(socket.into())
}

/// Listens on a Unix socket (0600 whatever the umask is), however long its path is. The listener is
/// non-blocking.
///
/// A stale socket is replaced, so the caller must hold the lock that says that it is stale. The new one
/// appears complete: it is made beside its place and moved there.
pub fn bind(path: &Path) -> io::Result<UnixListener> {
    match fs::symlink_metadata(path) {
        Ok(meta) if meta.file_type().is_socket() => {}
        Ok(_) => return Err(io::ErrorKind::AlreadyExists.into()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    let short = Short::of(path)?;
    let fresh = short.beside(".new");
    match fs::remove_file(&fresh) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let listener = UnixListener::bind(&fresh)?;
    wharf_boundary::take_descriptors(&listener, false);
    fs::set_permissions(&fresh, Permissions::from_mode(0o600))?;
    fs::rename(&fresh, &short.path)?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}

/// Who is at the other end.
pub fn peer(socket: impl AsFd) -> io::Result<Peer> {
    Peer::of(socket)
}

/// A process that is watched for its end.
#[derive(Debug)]
pub struct Watched(OwnedFd);

impl Watched {
    /// Watches a process; `None` when there is none of that pid.
    pub fn pid(pid: i32) -> io::Result<Option<Self>> {
        let Some(pid) = Pid::from_raw(pid) else { return Ok(None) };
        match rustix::process::pidfd_open(pid, PidfdFlags::NONBLOCK) {
            Ok(fd) => Ok(Some(Self(fd))),
            Err(rustix::io::Errno::SRCH) => Ok(None),
            Err(errno) => Err(errno.into()),
        }
    }

    /// Waits for its end. Returns whether it came.
    pub async fn ended(self, within: Duration) -> io::Result<bool> {
        // A thread and not the runtime: registering a descriptor there is unsafe, and this is rare.
        tokio::task::spawn_blocking(move || {
            let timeout = Timespec::try_from(within).map_err(|_| io::ErrorKind::InvalidInput)?;
            Ok(poll(&mut [PollFd::new(&self.0, PollFlags::IN)], Some(&timeout))? > 0)
        })
        .await?
    }
}

/// Makes a command start in a session of its own, with standard streams and `keep` as its only descriptors.
///
/// What the caller of ours had left open (a lock, a pipe that somebody reads to its end) must not live on in
/// the daemon.
pub(crate) fn detached(command: &mut Command, keep: &OwnedFd) {
    let keep = keep.as_raw_fd();
    let prepare = move || {
        // SAFETY: setsid, close_range, fcntl, umask and signal are system calls on numbers, and the set of signals is
        // ours; all are safe between fork and exec.
        #[expect(unsafe_code, reason = "std has no call for these, and rustix none for close_range")]
        unsafe {
            if libc::setsid() < 0 {
                return Err(io::Error::last_os_error());
            }
            // Kernels before 5.11 lack the flag. Then descriptors of the caller leak as they would anyway.
            libc::syscall(libc::SYS_close_range, 3_u32, u32::MAX, libc::CLOSE_RANGE_CLOEXEC);
            if libc::fcntl(keep, libc::F_SETFD, 0) < 0 {
                return Err(io::Error::last_os_error());
            }
            // What the shell that happens to be the first one ignores, blocks and masks is not for all sessions to come.
            for signal in 1..=libc::SIGRTMAX() {
                libc::signal(signal, libc::SIG_DFL);
            }
            let mut none = std::mem::zeroed::<libc::sigset_t>();
            libc::sigemptyset(&raw mut none);
            libc::sigprocmask(libc::SIG_SETMASK, &raw const none, std::ptr::null_mut());
            libc::umask(0o077);
        }
        Ok(())
    };
    // SAFETY: `prepare` captures one number, and makes only the calls above.
    #[expect(unsafe_code, reason = "what runs between fork and exec is the caller's promise")]
    unsafe {
        command.pre_exec(prepare);
    }
}

/// A path that fits into a socket address: itself, or its name below an open directory.
struct Short {
    path: PathBuf,
    /// Keeps `/proc/self/fd/N` alive.
    _parent: Option<File>,
}

impl Short {
    fn of(path: &Path) -> io::Result<Self> {
        // Room for what `beside` adds.
        if path.as_os_str().len() + 8 <= MAX_SOCKET_PATH_LEN {
            return Ok(Self { path: path.to_owned(), _parent: None });
        }
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
            return Err(io::ErrorKind::InvalidInput.into());
        };
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let dir = File::from(rustix::fs::open(parent, flags, rustix::fs::Mode::empty())?);
        let path = PathBuf::from(format!("/proc/self/fd/{}", dir.as_raw_fd())).join(name);
        Ok(Self { path, _parent: Some(dir) })
    }

    fn beside(&self, suffix: &str) -> PathBuf {
        let mut name = self.path.clone().into_os_string();
        name.push(suffix);
        name.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_of_any_length_is_bound_and_reached() {
        let root = tempfile::tempdir().unwrap();
        for dir in [root.path().to_owned(), root.path().join("d".repeat(200)).join("e".repeat(200))] {
            fs::create_dir_all(&dir).unwrap();
            let path = dir.join("daemon.sock");
            let listener = bind(&path).unwrap();
            assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
            let stream = connect(&path).unwrap();
            let us = Peer { pid: std::process::id() as i32, uid: rustix::process::geteuid().as_raw() };
            assert_eq!(peer(&stream).unwrap(), us);
            let (other, _) = listener.accept().unwrap();
            assert_eq!(peer(&other).unwrap(), us);
            assert!(us.is_us());
            assert_eq!(
                fs::read_dir(&dir).unwrap().filter(|e| e.as_ref().unwrap().path().is_file()).count(),
                0
            );
        }
    }

    #[test]
    fn a_stale_socket_is_replaced_and_anything_else_is_not() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("daemon.sock");
        drop(bind(&path).unwrap());
        assert_eq!(connect(&path).unwrap_err().kind(), io::ErrorKind::ConnectionRefused);
        let _listener = bind(&path).unwrap();
        connect(&path).unwrap();

        for make in [|path: &Path| fs::create_dir(path), |path: &Path| fs::write(path, "keep")] {
            let path = root.path().join("other");
            make(&path).unwrap();
            assert_eq!(bind(&path).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
            fs::rename(&path, root.path().join(format!("kept-{}", path.is_dir()))).unwrap();
        }
    }
}

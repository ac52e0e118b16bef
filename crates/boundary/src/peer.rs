//! Who is at the other end of a socket.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use crate::platform;

/// The process at the other end, as the kernel wrote it down when it connected, listened or made the pair.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Peer {
    /// Its pid: of who connected, or of who listens. Zero for a process that this one cannot see: one in a namespace above
    /// or beside ours. Those in namespaces below ours have a number here too, so nothing in a container becomes zero for
    /// what is in the same container.
    pub pid: i32,
    /// Its user.
    pub uid: u32,
}

impl Peer {
    /// Asks the kernel.
    pub fn of(socket: impl AsFd) -> io::Result<Self> {
        let (pid, uid) = platform::credentials(socket)?;
        Ok(Self { pid, uid })
    }

    /// Whether it is the user of this process.
    pub fn is_us(self) -> bool {
        self.uid == rustix::process::geteuid().as_raw()
    }

    /// A descriptor of the very process that is at the other end, whoever has its number by now: none where the kernel
    /// cannot tell (before Linux 6.5) or the process was reaped.
    pub fn process(socket: impl AsFd) -> Option<OwnedFd> {
        platform::process_of(socket)
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader};
    use std::os::fd::AsRawFd;
    use std::os::unix::net::{UnixListener, UnixStream};
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn a_process_in_a_namespace_below_ours_has_a_number_here() {
        let root = tempfile::tempdir().unwrap();
        let listener = UnixListener::bind(root.path().join("sock")).unwrap();
        let flags = if rustix::process::geteuid().is_root() { "-pf" } else { "-Urpf" };
        let connect = "use Socket; socket(S, AF_UNIX, SOCK_STREAM, 0); connect(S, sockaddr_un('sock')) or die; \
                       $| = 1; print \"$$\\n\"; <STDIN>";
        let mut command = Command::new("unshare");
        command.args([flags, "perl", "-e", connect]).current_dir(root.path());
        let mut inside = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut said = String::new();
        // The one who made the namespace has it open, too: its end would not come.
        BufReader::new(inside.stdout.take().unwrap()).read_line(&mut said).unwrap();
        if said.is_empty() && std::env::var_os("CI").is_none() {
            eprintln!("skipped: there are no namespaces for us");
            inside.wait().unwrap();
            return;
        }
        assert_eq!(said, "1\n", "it is the first of its own namespace");
        let (stream, _) = listener.accept().unwrap();
        let peer = Peer::of(&stream).unwrap();
        assert!(peer.pid > 1, "{peer:?}");
        drop(inside.stdin.take());
        inside.wait().unwrap();
    }

    #[test]
    fn the_other_end_is_known() {
        let (one, _other) = UnixStream::pair().unwrap();
        let peer = Peer::of(&one).unwrap();
        assert_eq!(peer.pid, std::process::id() as i32);
        assert!(peer.is_us());
        if let Some(pidfd) = Peer::process(&one) {
            let info = std::fs::read_to_string(format!("/proc/self/fdinfo/{}", pidfd.as_raw_fd())).unwrap();
            assert!(
                info.lines().any(|line| line.split_whitespace().eq(["Pid:", &peer.pid.to_string()])),
                "{info}"
            );
        }
    }
}

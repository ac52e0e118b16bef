//! A network of one's own.

use std::io;

use rustix::fd::AsRawFd;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};

/// What to do where no network of one's own can be had.
pub(super) const HINT: &str = "allow user namespaces (kernel.apparmor_restrict_unprivileged_userns=0), install bubblewrap, or take --sandbox-network off";

/// Raises the loopback of a new network, which has nothing else.
pub(super) fn raise_loopback() -> io::Result<()> {
    let socket = socket_with(AddressFamily::INET, SocketType::DGRAM, SocketFlags::CLOEXEC, None)?;
    let mut name = [0; libc::IFNAMSIZ];
    for (at, byte) in b"lo".iter().enumerate() {
        name[at] = *byte as libc::c_char;
    }
    let flags = (libc::IFF_UP | libc::IFF_RUNNING) as libc::c_short;
    let request =
        libc::ifreq { ifr_name: name, ifr_ifru: libc::__c_anonymous_ifr_ifru { ifru_flags: flags } };
    // SAFETY: the request is a whole `ifreq` that lives across the call, as this ioctl wants.
    #[expect(unsafe_code, reason = "there is no other way to raise an interface but a netlink library")]
    let done = unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCSIFFLAGS, &raw const request) };
    if done < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

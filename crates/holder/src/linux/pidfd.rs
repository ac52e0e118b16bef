//! The exit status of a process that is not our child, through its pidfd (Linux 6.15 and later).

use std::os::fd::{AsRawFd, BorrowedFd};

/// `struct pidfd_info` of the kernel, as far as the exit status needs it.
#[repr(C)]
#[derive(Default)]
struct PidfdInfo {
    mask: u64,
    cgroup: u64,
    ids: [u32; 11],
    exit_code: i32,
}

const INFO_EXIT: u64 = 1 << 3;
/// `_IOWR(0xFF, 11, struct pidfd_info)` with the struct's first published size, which every kernel takes.
const fn request() -> libc::c_ulong {
    (3 << 30) | ((std::mem::size_of::<PidfdInfo>() as libc::c_ulong) << 16) | (0xff << 8) | 0x0b
}

/// The raw wait status of a process that has ended, where the kernel still knows it.
pub fn exit_of(pidfd: BorrowedFd<'_>) -> Option<i32> {
    let mut info = PidfdInfo { mask: INFO_EXIT, ..PidfdInfo::default() };
    // SAFETY: the kernel writes at most the size that the request encodes, which is the struct's own.
    let done = unsafe { libc::ioctl(pidfd.as_raw_fd(), request(), &raw mut info) };
    (done == 0 && info.mask & INFO_EXIT != 0).then_some(info.exit_code)
}

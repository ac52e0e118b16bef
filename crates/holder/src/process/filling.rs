//! Output on its way from a terminal into the pipe before the log, inside the kernel.

use std::io;
use std::os::fd::OwnedFd;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::pipe::SpliceFlags;

use super::channel::{MAX_MOVED_PER_TURN, Moved, PAGE_LEN};

/// What a terminal hands over at once at most; less means that it had no more.
const TERMINAL_READ_LEN: usize = 4_000;

/// Moves from the terminal to the pipe until the terminal has no more, for now or for ever; none where the pipe
/// was full before that. An error is none of the two, and it is worth to try again later.
pub(super) fn fill(master: &OwnedFd, pipe: &OwnedFd, in_pipe: &mut usize) -> io::Result<Option<Moved>> {
    while *in_pipe < MAX_MOVED_PER_TURN {
        // More would not come at once, and the kernel allocates pages for all that is asked for.
        let wanted = (MAX_MOVED_PER_TURN - *in_pipe).min(PAGE_LEN);
        match rustix::pipe::splice(master, None, pipe, None, wanted, SpliceFlags::NONBLOCK) {
            Ok(n @ 1..) => {
                *in_pipe += n;
                if n < TERMINAL_READ_LEN {
                    return Ok(Some(Moved::Nothing));
                }
            }
            Err(Errno::INTR) => {}
            // The terminal hung up; our own copy of the other side makes that rare.
            Err(Errno::IO) if has_hung_up(master) => return Ok(Some(Moved::Over)),
            // A kernel that cannot do it for terminals, or an error on the way: by our own memory it may work.
            Err(Errno::INVAL | Errno::IO) => match copy(master, pipe) {
                Ok(n @ 1..) => *in_pipe += n,
                Err(Errno::IO) if *in_pipe == 0 => return Err(Errno::IO.into()),
                _ => return Ok(Some(Moved::Nothing)),
            },
            Ok(0) | Err(Errno::AGAIN) => return Ok(Some(Moved::Nothing)),
            // Out of memory, say: it is tried again.
            Err(_) => return Ok(None),
        }
    }
    Ok(None)
}

/// Whether nothing will come from a terminal any more.
fn has_hung_up(master: &OwnedFd) -> bool {
    let mut fds = [PollFd::new(master, PollFlags::empty())];
    let polled = poll(&mut fds, Some(&Timespec { tv_sec: 0, tv_nsec: 0 }));
    polled.is_ok() && fds[0].revents().contains(PollFlags::HUP)
}

/// Moves a piece through our own memory.
fn copy(master: &OwnedFd, pipe: &OwnedFd) -> rustix::io::Result<usize> {
    // What is taken from the terminal must find room: a pipe may have few bytes in it, and no page left.
    let mut fds = [PollFd::new(pipe, PollFlags::OUT)];
    poll(&mut fds, Some(&Timespec { tv_sec: 0, tv_nsec: 0 }))?;
    if !fds[0].revents().contains(PollFlags::OUT) {
        return Err(Errno::AGAIN);
    }
    let mut bytes = [0_u8; PAGE_LEN];
    let n = rustix::io::read(master, &mut bytes)?;
    rustix::io::write(pipe, &bytes[..n])
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use rustix::pipe::{PipeFlags, pipe_with};
    use rustix::pty::OpenptFlags;

    use super::*;

    /// Has the kernel answer every splice of this thread that is not into a file with an error, as a bad driver would.
    fn break_splice() {
        let load = (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16;
        let equal = (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16;
        let give = (libc::BPF_RET | libc::BPF_K) as u16;
        let step = |code, jt, jf, k| libc::sock_filter { code, jt, jf, k };
        let mut steps = [
            step(load, 0, 0, 0),
            step(equal, 0, 1, libc::SYS_splice as u32),
            step(give, 0, 0, libc::SECCOMP_RET_ERRNO | libc::EIO as u32),
            step(give, 0, 0, libc::SECCOMP_RET_ALLOW),
        ];
        let program = libc::sock_fprog { len: steps.len() as u16, filter: steps.as_mut_ptr() };
        // SAFETY: a filter of this thread alone, laid out above, which lets everything else pass.
        #[expect(unsafe_code, reason = "only a filter makes the kernel fail on demand")]
        unsafe {
            assert_eq!(libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
            let mode = libc::SECCOMP_MODE_FILTER;
            assert_eq!(libc::prctl(libc::PR_SET_SECCOMP, mode, &raw const program), 0);
        }
    }

    fn terminal() -> (OwnedFd, OwnedFd) {
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
        let master = rustix::pty::openpt(flags).unwrap();
        rustix::pty::unlockpt(&master).unwrap();
        let slave = rustix::pty::ioctl_tiocgptpeer(&master, flags).unwrap();
        super::super::channel::nonblocking(&master).unwrap();
        (master, slave)
    }

    #[test]
    fn a_splice_that_fails_loses_nothing_and_is_no_end() {
        std::thread::spawn(|| {
            let (master, slave) = terminal();
            let (read, write) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK).unwrap();
            break_splice();
            let mut in_pipe = 0;
            for round in 0..3 {
                rustix::io::write(&slave, format!("round {round}\n").as_bytes()).unwrap();
                assert_eq!(fill(&master, &write, &mut in_pipe).unwrap(), Some(Moved::Nothing));
            }
            let mut got = vec![0; in_pipe];
            std::fs::File::from(read).read_exact(&mut got).unwrap();
            assert_eq!(String::from_utf8(got).unwrap(), "round 0\r\nround 1\r\nround 2\r\n");
            // Nothing is taken out of the terminal that finds no room in the pipe, however few bytes are in that.
            let (read, write) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK).unwrap();
            while rustix::io::write(&write, &[b'x'; PAGE_LEN]).is_ok() {}
            rustix::io::write(&slave, b"kept\n").unwrap();
            assert_eq!(fill(&master, &write, &mut 0).unwrap(), Some(Moved::Nothing));
            let mut rest = vec![0; 1 << 20];
            while rustix::io::read(&read, &mut rest).is_ok() {}
            let mut in_pipe = 0;
            assert_eq!(fill(&master, &write, &mut in_pipe).unwrap(), Some(Moved::Nothing));
            let n = rustix::io::read(&read, &mut rest).unwrap();
            assert_eq!((&rest[..n], in_pipe), (&b"kept\r\n"[..], 6));
            // A hang-up is an end all the same.
            drop(slave);
            assert_eq!(fill(&master, &write, &mut 0).unwrap(), Some(Moved::Over));
        })
        .join()
        .unwrap();
    }
}

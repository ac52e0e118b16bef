//! The session's own channel: a connected descriptor that a sandboxed command is born with, and its one way to Wharf.
//!
//! Several processes share it. So nothing is told on it: each asks on it for a line of its own, and gets one end of a new
//! pair of sockets. Which answer reaches whom does not matter, for all are alike. Whoever is at the other end knows which
//! session it belongs to, whatever is said on it.

use std::io::{self, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd, RawFd};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendFlags};

use crate::platform::{NOSIGNAL, RECEIVE_CLOEXEC, message_pair};
use crate::socket::take_descriptors;

/// The variable that has the descriptor's number.
pub const VARIABLE: &str = "WHARF_CHANNEL";
/// That number, for those who hand it in: above what shells and their scripts use.
pub const NUMBER: RawFd = 100;
/// What asks for a line.
pub const REQUEST: &[u8] = b"connect";
/// How often a line is asked for where those that come are dead: a daemon that was killed may have left some behind.
const MAX_DEAD_LINES: u32 = 64;

/// Tells one line, and answers with the first line that comes back. None where this process has no channel.
pub fn tell(line: &[u8], within: Duration) -> Option<io::Result<Vec<u8>>> {
    let number: RawFd = std::env::var(VARIABLE).ok()?.parse().ok().filter(|number| *number > 2)?;
    // SAFETY: the number was given to us for this, and a wrong one is an error of the first call. Nothing here closes it.
    #[expect(unsafe_code, reason = "a number from a variable becomes a descriptor")]
    let channel = unsafe { BorrowedFd::borrow_raw(number) };
    Some(tell_by(channel, line, Instant::now() + within))
}

fn tell_by(channel: BorrowedFd<'_>, line: &[u8], until: Instant) -> io::Result<Vec<u8>> {
    for _ in 0..MAX_DEAD_LINES {
        let stream = open_line(channel, until)?;
        match send_all(&stream, line, until) {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {}
            sent => {
                sent?;
                return first_line(&stream, until);
            }
        }
    }
    Err(io::ErrorKind::BrokenPipe.into())
}

/// Asks for a line of our own.
fn open_line(channel: BorrowedFd<'_>, until: Instant) -> io::Result<UnixStream> {
    let flags = NOSIGNAL | SendFlags::DONTWAIT;
    while let Err(error) = rustix::net::send(channel, REQUEST, flags) {
        if error != Errno::AGAIN && error != Errno::INTR {
            return Err(error.into());
        }
        wait(channel, PollFlags::OUT, until)?;
    }
    loop {
        wait(channel, PollFlags::IN, until)?;
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let (mut byte, flags) = ([0_u8; 1], RecvFlags::DONTWAIT | RECEIVE_CLOEXEC);
        match rustix::net::recvmsg(channel, &mut [IoSliceMut::new(&mut byte)], &mut control, flags) {
            Ok(got) if got.bytes == 0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(_) => {}
            // Another process of the session was faster, and we have its answer to come.
            Err(Errno::AGAIN | Errno::INTR) => continue,
            Err(error) => return Err(error.into()),
        }
        let mut lines = control.drain().filter_map(|message| match message {
            RecvAncillaryMessage::ScmRights(mut passed) => passed.next(),
            _ => None,
        });
        if let Some(line) = lines.next() {
            return Ok(UnixStream::from(line));
        }
    }
}

fn send_all(stream: &UnixStream, mut bytes: &[u8], until: Instant) -> io::Result<()> {
    while !bytes.is_empty() {
        match rustix::net::send(stream, bytes, NOSIGNAL | SendFlags::DONTWAIT) {
            Ok(count) => bytes = &bytes[count..],
            Err(Errno::AGAIN | Errno::INTR) => wait(stream.as_fd(), PollFlags::OUT, until)?,
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

fn first_line(stream: &UnixStream, until: Instant) -> io::Result<Vec<u8>> {
    let (mut answer, mut buffer) = (Vec::new(), [0; 1024]);
    while !answer.contains(&b'\n') && answer.len() < 64 << 10 {
        wait(stream.as_fd(), PollFlags::IN, until)?;
        match rustix::net::recv(stream, &mut buffer[..], RecvFlags::DONTWAIT) {
            Ok((0, _)) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok((count, _)) => answer.extend_from_slice(&buffer[..count]),
            Err(Errno::AGAIN | Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(answer)
}

fn wait(on: BorrowedFd<'_>, flags: PollFlags, until: Instant) -> io::Result<()> {
    let left = until.saturating_duration_since(Instant::now());
    if left.is_zero() {
        return Err(io::ErrorKind::TimedOut.into());
    }
    let left = Timespec { tv_sec: left.as_secs() as i64, tv_nsec: i64::from(left.subsec_nanos()) };
    match poll(&mut [PollFd::from_borrowed_fd(on, flags)], Some(&left)) {
        Ok(0) => Err(io::ErrorKind::TimedOut.into()),
        Ok(_) | Err(Errno::INTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Makes a channel: the end that stays outside, and the one that the session has.
pub fn pair() -> io::Result<(OwnedFd, OwnedFd)> {
    // Whole messages, whoever sends them; and of a connected pair, which no `connect` leads elsewhere.
    let (outside, inside) = message_pair()?;
    take_descriptors(&outside, false);
    Ok((outside, inside))
}

/// Answers one request at the outer end with a line. The stream is our end of it, and does not block.
pub fn answer(outside: BorrowedFd<'_>) -> io::Result<UnixStream> {
    use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage};
    let (ours, theirs) = UnixStream::pair()?;
    take_descriptors(&ours, false);
    ours.set_nonblocking(true)?;
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    let passed = [theirs.as_fd()];
    control.push(SendAncillaryMessage::ScmRights(&passed));
    let flags = NOSIGNAL | SendFlags::DONTWAIT;
    rustix::net::sendmsg(outside, &[io::IoSlice::new(&[1])], &mut control, flags)?;
    Ok(ours)
}

/// Takes one request at the outer end, without waiting: whether there was one, and it was one. An end is an error.
pub fn request(outside: BorrowedFd<'_>) -> io::Result<bool> {
    let mut message = [0; 16];
    match rustix::net::recv(outside, &mut message[..], RecvFlags::DONTWAIT) {
        Ok((0, _)) => Err(io::ErrorKind::UnexpectedEof.into()),
        Ok((count, _)) => Ok(&message[..count] == REQUEST),
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader, Write};

    use super::*;

    #[test]
    fn whoever_asks_gets_a_line_of_its_own_and_dead_ones_are_passed_over() {
        let (outside, inside) = pair().unwrap();
        // One that was answered by a daemon that is gone.
        drop(answer(outside.as_fd()).unwrap());
        let server = std::thread::spawn(move || {
            let mut lines = Vec::new();
            while lines.len() < 3 {
                wait(outside.as_fd(), PollFlags::IN, Instant::now() + Duration::from_secs(10)).unwrap();
                if !request(outside.as_fd()).unwrap() {
                    continue;
                }
                lines.push(answer(outside.as_fd()).unwrap());
            }
            for line in &mut lines {
                line.set_nonblocking(false).unwrap();
                let mut told = String::new();
                // One of the three was asked for in vain, and nobody tells anything on it.
                line.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
                if BufReader::new(&*line).read_line(&mut told).is_ok() {
                    line.write_all(format!("heard {told}").as_bytes()).unwrap();
                }
            }
        });
        rustix::net::send(&inside, b"nonsense, and long", NOSIGNAL).unwrap();
        let told: Vec<_> = std::thread::scope(|scope| {
            let until = Instant::now() + Duration::from_secs(10);
            let inside = &inside;
            let tellers: Vec<_> = [b"one\n", b"two\n"]
                .map(|line| scope.spawn(move || tell_by(inside.as_fd(), line, until).unwrap()))
                .into_iter()
                .collect();
            tellers.into_iter().map(|teller| teller.join().unwrap()).collect()
        });
        assert_eq!(told, [b"heard one\n", b"heard two\n"]);
        server.join().unwrap();
    }

    #[test]
    fn nobody_inside_hands_a_descriptor_out() {
        use crate::socket::tests::{are_refused, send_descriptor};
        if !are_refused() {
            return;
        }
        let (outside, inside) = pair().unwrap();
        assert_eq!(send_descriptor(&inside), Err(Errno::PERM), "by the channel");
        let _ours = answer(outside.as_fd()).unwrap();
        let theirs = open_line(inside.as_fd(), Instant::now() + Duration::from_secs(10)).unwrap();
        assert_eq!(send_descriptor(&theirs), Err(Errno::PERM), "by a line of its own");
    }

    #[test]
    fn without_anybody_outside_it_ends_in_time() {
        let (outside, inside) = pair().unwrap();
        let within = |millis| Instant::now() + Duration::from_millis(millis);
        let error = tell_by(inside.as_fd(), b"x\n", within(50)).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        drop(outside);
        tell_by(inside.as_fd(), b"x\n", within(5000)).unwrap_err();
    }
}

//! Somebody else at a holder's socket: `listen NAME MANNER`.

use std::io::{self, IoSlice, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::time::Duration;

use rustix::net::{
    AddressFamily, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketAddrUnix, SocketFlags,
    SocketType,
};

use super::Outcome;
use super::frame::{ACK, EXIT, NEWS, RECALL, frame, header, output, welcome};
use super::room::{clear, room};

/// The most descriptors that the kernel takes in one message.
const MAX_DESCRIPTORS: usize = 253;

/// How a listener treats whoever comes.
type Manner = fn(UnixStream) -> io::Result<()>;

const MANNERS: &[(&str, Manner)] = &[
    ("mute", mute),
    ("hello-then-close", hello_then_close),
    ("close", |_| Ok(())),
    ("endless", endless),
    ("news", news),
    ("descriptors", descriptors),
    ("too-long", too_long),
    ("dripping", dripping),
    ("noise", noise),
    ("liar", liar),
    ("false-end", false_end),
    ("recalls", recalls),
];

pub(super) fn listen(words: &[String]) -> Result<Outcome, String> {
    let [name, manner] = words else { return Err("listen NAME MANNER".to_owned()) };
    let path = room()?.join(name);
    let mut outcome = Outcome::default();
    if manner == "full" {
        outcome.note(name, full(&path));
        return Ok(outcome);
    }
    let known = MANNERS.iter().find(|(known, _)| known == manner);
    let (_, treat) = *known.ok_or_else(|| format!("there is no manner {manner:?}"))?;
    outcome.note(name, take(&path).map(|listener| serve(listener, treat)));
    Ok(outcome)
}

/// Listens in the place of whoever did.
fn take(path: &Path) -> io::Result<UnixListener> {
    let aside = path.with_extension("taken");
    clear(&aside);
    let listener = UnixListener::bind(&aside)?;
    if std::fs::rename(&aside, path).is_err() {
        clear(path);
        std::fs::rename(&aside, path)?;
    }
    Ok(listener)
}

fn serve(listener: UnixListener, treat: Manner) {
    std::thread::spawn(move || {
        for stream in listener.incoming().filter_map(Result::ok) {
            std::thread::spawn(move || treat(stream));
        }
    });
}

/// Nobody accepts, and the backlog is full: whoever connects waits.
fn full(path: &Path) -> io::Result<()> {
    clear(path);
    let kind = SocketType::STREAM;
    let listener = rustix::net::socket_with(AddressFamily::UNIX, kind, SocketFlags::CLOEXEC, None)?;
    let address = SocketAddrUnix::new(path)?;
    rustix::net::bind(&listener, &address)?;
    rustix::net::listen(&listener, 0)?;
    let mut callers = vec![listener];
    loop {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let caller = rustix::net::socket_with(AddressFamily::UNIX, kind, flags, None)?;
        match rustix::net::connect(&caller, &address) {
            Ok(()) => callers.push(caller),
            Err(rustix::io::Errno::AGAIN) => break,
            Err(error) => return Err(error.into()),
        }
    }
    // They stay for as long as the attack does.
    std::mem::forget(callers);
    Ok(())
}

/// Reads, and never answers.
fn mute(mut stream: UnixStream) -> io::Result<()> {
    io::copy(&mut stream, &mut io::sink()).map(drop)
}

fn hello_then_close(mut stream: UnixStream) -> io::Result<()> {
    greet(&mut stream)
}

/// Output without an end, at offsets that leap.
fn endless(mut stream: UnixStream) -> io::Result<()> {
    greet(&mut stream)?;
    let bytes = vec![b'x'; 64 << 10];
    let mut offset = 0_u64;
    loop {
        stream.write_all(&output(offset, &bytes))?;
        offset = offset.wrapping_add(1 << 40);
    }
}

fn news(mut stream: UnixStream) -> io::Result<()> {
    greet(&mut stream)?;
    let many: Vec<u8> = (0..500).flat_map(|_| frame(NEWS, 0, br#"{"attached":7,"pid":1}"#)).collect();
    loop {
        stream.write_all(&many)?;
    }
}

/// Descriptors with every piece, for as long as somebody takes them.
fn descriptors(mut stream: UnixStream) -> io::Result<()> {
    greet(&mut stream)?;
    let null = std::fs::File::open("/proc/self/exe")?;
    let fds: Vec<BorrowedFd<'_>> = (0..MAX_DESCRIPTORS).map(|_| null.as_fd()).collect();
    let piece = frame(NEWS, 0, b"{}");
    loop {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_DESCRIPTORS))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        let _ = control.push(SendAncillaryMessage::ScmRights(&fds));
        rustix::net::sendmsg(&stream, &[IoSlice::new(&piece)], &mut control, SendFlags::NOSIGNAL)?;
    }
}

fn too_long(mut stream: UnixStream) -> io::Result<()> {
    greet(&mut stream)?;
    stream.write_all(&header(NEWS, 0, u32::MAX))?;
    mute(stream)
}

/// The longest frame that is allowed, a byte at a time.
fn dripping(mut stream: UnixStream) -> io::Result<()> {
    stream.write_all(&header(128, 0, 16 << 20))?;
    loop {
        stream.write_all(b" ")?;
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn noise(mut stream: UnixStream) -> io::Result<()> {
    let bytes: Vec<u8> = (0_u32..1 << 16).map(|at| (at.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
    loop {
        stream.write_all(&bytes)?;
    }
}

/// Says that everything was done, whatever it was.
fn liar(mut stream: UnixStream) -> io::Result<()> {
    greet(&mut stream)?;
    loop {
        let (seq, _) = request(&mut stream)?;
        stream.write_all(&frame(ACK, seq, b"{}"))?;
    }
}

/// Says that the session has ended long ago.
fn false_end(mut stream: UnixStream) -> io::Result<()> {
    greet(&mut stream)?;
    let record = br#"{"code":0,"log_end":18446744073709551615,"survivors":4294967295}"#;
    stream.write_all(&frame(EXIT, 0, record))?;
    mute(stream)
}

/// Wants a terminal back that it never lent.
fn recalls(mut stream: UnixStream) -> io::Result<()> {
    greet(&mut stream)?;
    let many: Vec<u8> = (0..500).flat_map(|_| frame(RECALL, 0, b"")).collect();
    loop {
        stream.write_all(&many)?;
    }
}

/// Answers the first request with a hello that promises all.
fn greet(stream: &mut UnixStream) -> io::Result<()> {
    let (seq, _) = request(stream)?;
    stream.write_all(&welcome(seq))
}

fn request(stream: &mut UnixStream) -> io::Result<(u32, Vec<u8>)> {
    let mut head = [0; 12];
    stream.read_exact(&mut head)?;
    let word = |at: usize| u32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
    let mut payload = vec![0; word(8).min(1 << 20) as usize];
    stream.read_exact(&mut payload)?;
    Ok((word(4), payload))
}

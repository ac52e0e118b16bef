//! The errand: output, input, and the end.

use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};

use super::line::Line;
use super::streams::{MAX_HELD_LEN, Piece, Resumed, Sink, Streams, before};
use super::{Guest, Past, UNSEEN_END_CODE, talk};

/// The first and the longest wait before an engine is asked again.
const RETRY_BACKOFF: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(2));
/// How long the news of an end may take after the last output.
const END_NEWS_TIMEOUT: Duration = Duration::from_secs(1);
/// How long output may take to come to its end once the container has.
const LAST_OUTPUT_TIMEOUT: Duration = Duration::from_secs(5);
/// How long a live stream may take to show that it begins with what the log ends with.
const OVERLAP_TIMEOUT: Duration = Duration::from_millis(200);

/// Passes a container through: its code, as the engine has it.
pub(super) fn run(guest: &Guest) -> io::Result<u8> {
    if guest.tty {
        let input = io::stdin();
        let mut modes = rustix::termios::tcgetattr(&input)?;
        modes.make_raw();
        rustix::termios::tcsetattr(&input, rustix::termios::OptionalActions::Now, &modes)?;
    }
    let line = Arc::new(Line::default());
    let (tell, ended) = mpsc::channel();
    {
        let (guest, line) = (guest.clone(), Arc::clone(&line));
        std::thread::spawn(move || await_end(&guest, &line, &tell));
    }
    if guest.input {
        // By the descriptor itself: what a buffer has taken would be neither typed nor waiting to be.
        let (input, line) = (File::from(io::stdin().as_fd().try_clone_to_owned()?), Arc::clone(&line));
        std::thread::spawn(move || line.carry(input));
    }
    let to = [
        File::from(io::stdout().as_fd().try_clone_to_owned()?),
        File::from(io::stderr().as_fd().try_clone_to_owned()?),
    ];
    let (mut sink, mut past, mut wait) = (Sink::new(to), guest.past.clone(), RETRY_BACKOFF.0);
    loop {
        // Podman would start one that has ended, to have something to attach to.
        if talk::runs(guest).unwrap_or(false) && watch(guest, &line, &mut sink, &past)? {
            past = Past::Since(talk::now());
            wait = END_NEWS_TIMEOUT;
        }
        if let Some(code) = over(&ended, wait) {
            return Ok(code);
        }
        wait = (wait * 2).clamp(RETRY_BACKOFF.0, RETRY_BACKOFF.1);
    }
}

/// Passes output on for as long as one connection lasts. Whether there was one.
fn watch(guest: &Guest, line: &Line, sink: &mut Sink<File>, past: &Past) -> io::Result<bool> {
    if guest.by_log {
        let now = talk::now();
        let since = match past {
            Past::All => None,
            Past::Since(time) => Some(time.as_str()),
            Past::None => Some(now.as_str()),
        };
        let Ok(log) = talk::followed(guest, since) else { return Ok(false) };
        let (mut log, mut resumed) = (Streams::new(log, guest.tty), Resumed::after(sink.unfinished()));
        while let Ok(Some(piece)) = log.next() {
            sink.put(&resumed.pass(piece))?;
        }
        return Ok(true);
    }
    // What is printed while we connect is in the log, in the stream, or in both; up to here it is in the log alone.
    let asked = talk::now();
    let Ok(connected) = talk::attach(guest) else { return Ok(false) };
    let followed = follow(guest, line, connected, sink, (past, &asked));
    line.disconnect();
    followed.map(|()| true)
}

/// The container's code, where it has ended or does so in time.
fn over(ended: &Receiver<Option<i64>>, within: Duration) -> Option<u8> {
    match ended.recv_timeout(within) {
        Ok(code) => {
            Some(code.map_or(UNSEEN_END_CODE, |code| u8::try_from(code & 0xff).unwrap_or(UNSEEN_END_CODE)))
        }
        Err(RecvTimeoutError::Timeout) => None,
        Err(RecvTimeoutError::Disconnected) => Some(UNSEEN_END_CODE),
    }
}

/// Waits for the container's end, through as many engines as it takes.
fn await_end(guest: &Guest, line: &Line, tell: &Sender<Option<i64>>) {
    let (mut pause, since) = (RETRY_BACKOFF.0, talk::now());
    loop {
        let asked = Instant::now();
        if let Ok(code) = talk::wait(guest, &since) {
            let _ = tell.send(code);
            break;
        }
        // Nothing is concluded from an engine that is down.
        if asked.elapsed() > RETRY_BACKOFF.1 {
            pause = RETRY_BACKOFF.0;
        }
        std::thread::sleep(pause);
        pause = (pause * 2).min(RETRY_BACKOFF.1);
    }
    std::thread::sleep(LAST_OUTPUT_TIMEOUT);
    line.hang_up();
}

/// Follows output until the connection ends, what was printed before first. An error is of our own output: nobody is
/// there to pass it to.
fn follow(
    guest: &Guest,
    line: &Line,
    (stream, begun): (UnixStream, Vec<u8>),
    sink: &mut Sink<File>,
    (past, asked): (&Past, &str),
) -> io::Result<()> {
    let (Ok(typed), Ok(timed)) = (stream.try_clone(), stream.try_clone()) else { return Ok(()) };
    line.connect(typed);
    let mut live = Streams::new(io::Read::chain(io::Cursor::new(begun), stream), guest.tty);
    let since = match past {
        Past::All => Some(None),
        Past::Since(time) => Some(Some(time.as_str())),
        Past::None => None,
    };
    let mut held = Vec::new();
    if let Some(since) = since {
        let mut resumed = Resumed::after(sink.unfinished());
        let mut put = |piece: Piece| sink.put(&resumed.pass(piece));
        let both = printed(guest, since, asked, &mut put)?;
        if !both.is_empty() {
            held = first(&mut live, &timed, size(&both));
        }
        for piece in before(both, &held) {
            sink.put(&piece)?;
        }
    }
    for piece in held {
        sink.put(&piece)?;
    }
    while let Ok(Some(piece)) = live.next() {
        sink.put(&piece)?;
    }
    Ok(())
}

/// Hands over what was printed up to a time, and gives back what was printed since. An engine that keeps no log has
/// none of either.
fn printed(
    guest: &Guest,
    since: Option<&str>,
    asked: &str,
    put: &mut impl FnMut(Piece) -> io::Result<()>,
) -> io::Result<Vec<Piece>> {
    if let Ok(log) = talk::logs(guest, since, Some(asked)) {
        let mut log = Streams::new(log, guest.tty);
        while let Ok(Some(piece)) = log.next() {
            put(piece)?;
        }
    }
    let mut both = Vec::new();
    if let Ok(log) = talk::logs(guest, Some(asked), None) {
        let mut log = Streams::new(log, guest.tty);
        while let Ok(Some(piece)) = log.next() {
            both.push(piece);
            if size(&both) > MAX_HELD_LEN {
                break;
            }
        }
    }
    Ok(both)
}

/// The first of a live stream, as much as is needed to compare it or as comes at once.
fn first(live: &mut Streams<impl io::Read>, stream: &UnixStream, wanted: usize) -> Vec<Piece> {
    let mut held = Vec::new();
    if stream.set_read_timeout(Some(OVERLAP_TIMEOUT)).is_ok() {
        while size(&held) < wanted {
            match live.next() {
                Ok(Some(piece)) => held.push(piece),
                _ => break,
            }
        }
        let _ = stream.set_read_timeout(None);
    }
    held
}

fn size(pieces: &[Piece]) -> usize {
    pieces.iter().map(|(_, bytes)| bytes.len()).sum()
}

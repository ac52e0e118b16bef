//! Too much, or a lie, at the socket for events: `speak MANNER [WORD]`.

use std::io::{self, BufRead, BufReader, IoSliceMut, Write};
use std::mem::MaybeUninit;
use std::os::fd::BorrowedFd;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::Duration;

use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendFlags};
use serde_json::{Value, json};

use super::Outcome;

/// Bytes of a line that no event has.
const LONG_LINE_LEN: usize = 16 << 20;

/// Connections that each do it.
const CALLER_COUNT: usize = 6;

pub(super) fn speak(words: &[String]) -> Result<Outcome, String> {
    let (manner, word) = match words {
        [manner] => (manner.as_str(), None),
        [manner, word] => (manner.as_str(), Some(word.clone())),
        _ => return Err("speak MANNER [WORD]".to_owned()),
    };
    let mut outcome = Outcome::default();
    match manner {
        "brackets" => {
            many(&mut outcome, CALLER_COUNT, || line(r#"{"v":1,"kind":"x","data":["#, "[],", "[]]}\n"));
        }
        "deep" => many(&mut outcome, CALLER_COUNT, || line(r#"{"v":1,"kind":"x","data":"#, "[", "\n")),
        "endless" => many(&mut outcome, CALLER_COUNT, || line("", "x", "")),
        "flood" => many(&mut outcome, CALLER_COUNT, || {
            let event = "{\"v\":1,\"kind\":\"flood\",\"data\":{\"text\":\"\u{1b}]0;owned\u{7}\"}}\n";
            event.repeat(10_000).into_bytes()
        }),
        "mute" => callers(&mut outcome, 400),
        "forged" => forged(&mut outcome, &word.ok_or("speak forged ID")?),
        other => return Err(format!("there is no manner {other:?}")),
    }
    Ok(outcome)
}

fn path() -> io::Result<PathBuf> {
    std::env::var_os("WHARF_EVENTS")
        .map(PathBuf::from)
        .ok_or_else(|| io::Error::other("no socket for events"))
}

/// A connection that has said who it is, as a hook's would.
fn connect(id: &str, token: &str) -> io::Result<UnixStream> {
    let mut stream = UnixStream::connect(path()?)?;
    stream.set_write_timeout(Some(Duration::from_secs(2)))?;
    stream.set_read_timeout(Some(Duration::from_secs(5)))?;
    writeln!(stream, "{}", json!({ "v": 1, "session": id, "token": token }))?;
    Ok(stream)
}

fn own(name: &str) -> String {
    std::env::var(name).unwrap_or_default()
}

fn line(head: &str, piece: &str, tail: &str) -> Vec<u8> {
    [head, &piece.repeat(LONG_LINE_LEN / piece.len()), tail].concat().into_bytes()
}

/// Several connections that say the same, again and again.
fn many(outcome: &mut Outcome, count: usize, text: impl Fn() -> Vec<u8>) {
    let text = std::sync::Arc::new(text());
    for number in 0..count {
        let stream = connect(&own("WHARF_SESSION_ID"), &own("WHARF_TOKEN"));
        let text = std::sync::Arc::clone(&text);
        let began = stream.map(|mut stream| {
            std::thread::spawn(move || {
                loop {
                    // One who is cut off comes back.
                    if stream.write_all(&text).is_err() {
                        std::thread::sleep(Duration::from_millis(100));
                        match connect(&own("WHARF_SESSION_ID"), &own("WHARF_TOKEN")) {
                            Ok(again) => stream = again,
                            Err(_) => return,
                        }
                    }
                }
            });
        });
        outcome.note(format!("caller {number}"), began);
    }
}

/// Connections that say nothing.
fn callers(outcome: &mut Outcome, count: usize) {
    let connected: Vec<UnixStream> =
        (0..count).filter_map(|_| UnixStream::connect(path().ok()?).ok()).collect();
    outcome.did.push(format!("{} callers", connected.len()));
    std::mem::forget(connected);
}

/// A line of the session's own channel, where that is the way out, or a connection to the socket.
fn way_out(id: &str) -> io::Result<UnixStream> {
    let Ok(number) = std::env::var("WHARF_CHANNEL") else { return connect(id, &own("WHARF_TOKEN")) };
    let mut stream = channel_line(number.parse().map_err(io::Error::other)?)?;
    stream.set_read_timeout(Some(Duration::from_secs(5)))?;
    // Nobody asks who it is there; it says that it is another all the same.
    writeln!(stream, "{}", json!({ "v": 1, "session": id, "token": own("WHARF_TOKEN") }))?;
    Ok(stream)
}

/// Asks at the channel for a line of its own.
fn channel_line(number: i32) -> io::Result<UnixStream> {
    // SAFETY: whoever started this said that the descriptor is open, and nothing here closes it.
    #[expect(unsafe_code, reason = "a number from a variable becomes a descriptor")]
    let channel = unsafe { BorrowedFd::borrow_raw(number) };
    rustix::net::send(channel, b"connect", SendFlags::empty())?;
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut byte = [0_u8; 1];
    rustix::net::recvmsg(channel, &mut [IoSliceMut::new(&mut byte)], &mut control, RecvFlags::empty())?;
    let line = control.drain().find_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut passed) => passed.next(),
        _ => None,
    });
    line.map(UnixStream::from).ok_or_else(|| io::Error::other("the channel gives no line"))
}

/// An event in the name of another session.
fn forged(outcome: &mut Outcome, id: &str) {
    let told = || -> io::Result<()> {
        let mut stream = way_out(id)?;
        writeln!(stream, "{}", json!({ "v": 1, "session": id, "kind": "forged", "seq": 1, "ack": true }))?;
        let mut answer = String::new();
        BufReader::new(stream).read_line(&mut answer)?;
        let answer: Value = serde_json::from_str(&answer).map_err(io::Error::other)?;
        if answer["event"].is_u64() { Ok(()) } else { Err(io::Error::other(answer.to_string())) }
    };
    outcome.note(id, told());
}

//! Somebody who listens in a holder's place, and what a client makes of it.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::fs;
use std::io::{self, IoSlice, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::mpsc;
use std::time::Duration;

use wharf_holder::frame::{self, Header, Kind};
use wharf_holder::linux;
use wharf_holder::wire::{Exec, Hello};
use wharf_holder_client::client::Client;
use wharf_model::{Code, Offset};

const TEST_TIMEOUT: Duration = Duration::from_secs(20);

/// Connects to one who does this with each connection, on a thread of its own: what spins fails.
fn greeted_by(act: fn(UnixStream)) -> io::Result<()> {
    let home = tempfile::tempdir().unwrap();
    let listener = UnixListener::bind(home.path().join("sock")).unwrap();
    std::thread::spawn(move || listener.incoming().flatten().for_each(act));
    let (tell, told) = mpsc::channel();
    let dir = home.path().to_owned();
    std::thread::spawn(move || tell.send(Client::connect(&dir, "program").map(drop)));
    told.recv_timeout(TEST_TIMEOUT).expect("a greeting comes to an end")
}

#[test]
fn one_who_hangs_up_after_the_greeting_is_no_holder() {
    let error = greeted_by(|mut stream| drop(stream.read(&mut [0; 4096]))).unwrap_err();
    assert!(
        matches!(error.kind(), io::ErrorKind::UnexpectedEof | io::ErrorKind::ConnectionReset),
        "{error:?}"
    );
}

#[test]
fn one_who_says_a_byte_now_and_then_is_waited_for_no_longer_than_another() {
    let drip = |mut stream: UnixStream| {
        // The next byte comes when the last one was taken, for as long as somebody listens.
        let header = Header { kind: Kind::Welcome as u8, seq: 9, length: 0 }.encode();
        for byte in header.iter().cycle() {
            if stream.write_all(&[*byte]).is_err() {
                return;
            }
            let _ = linux::receive(&stream, &mut [0; 64], &mut Vec::new());
        }
    };
    let error = greeted_by(drip).unwrap_err();
    assert!(matches!(error.kind(), io::ErrorKind::TimedOut | io::ErrorKind::InvalidData), "{error:?}");
}

#[test]
fn one_who_says_much_and_not_who_he_is_is_not_heard_out() {
    let flood = |mut stream: UnixStream| {
        let news = frame::encode(Kind::News, 0, &[b' '; 4096]);
        while stream.write_all(&news).is_ok() {}
    };
    assert_eq!(greeted_by(flood).unwrap_err().kind(), io::ErrorKind::InvalidData);
    let long = |mut stream: UnixStream| {
        let _ = stream.write_all(&Header { kind: Kind::Exec as u8, seq: 1, length: 15 << 20 }.encode());
        let _ = stream.read_to_end(&mut Vec::new());
    };
    assert_eq!(greeted_by(long).unwrap_err().kind(), io::ErrorKind::InvalidData);
}

#[test]
fn descriptors_that_nobody_asked_for_are_not_kept() {
    let home = tempfile::tempdir().unwrap();
    let listener = UnixListener::bind(home.path().join("sock")).unwrap();
    let server = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut bytes = [0; 4096];
        let _ = stream.read(&mut bytes).unwrap();
        let seq = u32::from_le_bytes([bytes[4], bytes[5], bytes[6], bytes[7]]);
        let hello = serde_json::to_vec(&Hello::default()).unwrap();
        stream.write_all(&frame::encode(Kind::Welcome, seq, &hello)).unwrap();
        let null = fs::File::open("/dev/null").unwrap();
        let ack = frame::encode(Kind::Ack, 77, b"");
        for _ in 0..500 {
            linux::send(stream.as_fd(), &[IoSlice::new(&ack)], &[null.as_fd(); 8]).unwrap();
        }
    });
    let mut client = Client::connect(home.path(), "program").unwrap();
    let mut events = 0;
    while client.next_event().unwrap().is_some() {
        events += 1;
    }
    server.join().unwrap();
    assert_eq!(events, 500);
    let count = |path: &Path| fs::read_dir(path).unwrap().count();
    assert!(count(Path::new("/proc/self/fd")) < 200);
}

/// A client of one who says who he is and then does this, and what ends it.
fn spoken_to(speak: fn(UnixStream), listen: fn(Client) -> io::Result<()>) -> io::Result<()> {
    let home = tempfile::tempdir().unwrap();
    let listener = UnixListener::bind(home.path().join("sock")).unwrap();
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut bytes = [0; 4096];
        let _ = stream.read(&mut bytes).unwrap();
        let seq = u32::from_le_bytes([bytes[4], bytes[5], bytes[6], bytes[7]]);
        let hello = serde_json::to_vec(&Hello::default()).unwrap();
        stream.write_all(&frame::encode(Kind::Welcome, seq, &hello)).unwrap();
        speak(stream);
    });
    let (tell, told) = mpsc::channel();
    let dir = home.path().to_owned();
    std::thread::spawn(move || tell.send(Client::connect(&dir, "program").and_then(listen)));
    told.recv_timeout(TEST_TIMEOUT).expect("it comes to an end")
}

/// Says the same for as long as somebody takes it.
fn repeat(mut stream: UnixStream, frame: &[u8]) {
    while stream.write_all(frame).is_ok() {}
}

const FLOODS: &[fn(UnixStream)] = &[
    |stream| repeat(stream, &frame::encode(Kind::Output, 0, &[b'x'; 64 << 10])),
    |stream| repeat(stream, &frame::encode(Kind::News, 0, b"{}")),
    |stream| repeat(stream, &frame::encode(Kind::Ack, 4_000_000, b"")),
    |stream| repeat(stream, &frame::encode(Kind::Recall, 0, b"")),
    |stream| repeat(stream, &Header { kind: 200, seq: 0, length: 0 }.encode()),
];

#[test]
fn one_who_says_without_end_what_nobody_asked_for_is_not_heard_out() {
    for flood in FLOODS {
        let error = spoken_to(*flood, |mut client| {
            while client.next_event()?.is_some() {}
            Ok(())
        });
        assert_eq!(error.unwrap_err().kind(), io::ErrorKind::InvalidData);
    }
}

#[test]
fn a_further_command_ends_where_the_holder_talks_without_end_or_makes_no_sense() {
    let nonsense: fn(UnixStream) = |mut stream| {
        let _ = stream.write_all(&Header { kind: Kind::News as u8, seq: 0, length: u32::MAX }.encode());
        repeat(stream, &[7; 4096]);
    };
    for speak in FLOODS.iter().chain([&nonsense]) {
        let ended = spoken_to(*speak, |mut client| {
            let null = fs::File::open("/dev/null")?;
            let exec = Exec { dir: "/".into(), tty: false };
            let stdio = [null.as_fd(), null.as_fd(), null.as_fd()];
            let failure = wharf_holder_client::pumped::exec(&mut client, &["true".into()], &[], &exec, stdio);
            assert_eq!(failure.unwrap_err().code, Code::Unreachable);
            Ok(())
        });
        ended.unwrap();
    }
}

#[test]
fn output_that_was_asked_for_and_a_burst_of_news_are_heard() {
    let ended = spoken_to(
        |mut stream| {
            // What is not read when this side closes would take what was said with it.
            let _ = stream.read(&mut [0; 64]).unwrap();
            let output: Vec<u8> = [0; 9].into_iter().chain(std::iter::repeat_n(b'x', 64 << 10)).collect();
            for _ in 0..1_000 {
                stream.write_all(&frame::encode(Kind::Output, 0, &output)).unwrap();
            }
            for _ in 0..300 {
                stream.write_all(&frame::encode(Kind::News, 0, b"{}")).unwrap();
            }
        },
        |mut client| {
            client.read_from(Offset(0))?;
            let mut events = 0;
            while client.next_event()?.is_some() {
                events += 1;
            }
            assert_eq!(events, 1_300);
            Ok(())
        },
    );
    ended.unwrap();
}

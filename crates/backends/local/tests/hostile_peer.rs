//! A holder's socket under nonsense: the session does not notice.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use wharf_backend::{Backend, Launch};
use wharf_holder::frame::{self, Header, Kind};
use wharf_holder_client::client::{self, Client, Event};
use wharf_local::{LocalBackend, Options};
use wharf_model::{Code, Home, Millis, SessionId, Spec, Text};

const TEST_TIMEOUT: Duration = Duration::from_secs(20);

/// What a peer might send that is no peer of ours.
fn nonsense() -> Vec<Vec<u8>> {
    let mut cases = vec![
        b"GET / HTTP/1.1\r\nHost: x\r\n\r\n".to_vec(),
        vec![0xff; 4096],
        vec![0; 4096],
        Header { kind: 4, seq: 1, length: u32::MAX }.encode().to_vec(),
        Header { kind: 4, seq: 1, length: 1 << 20 }.encode().to_vec(),
        frame::encode(Kind::Start, 1, b"{}"),
        frame::encode(Kind::Resume, 1, &[0xff; 64]),
        frame::encode(Kind::Exec, 1, &[0, 0, 0, 0x7f]),
        frame::encode(Kind::Daemon, 1, b""),
        frame::encode(Kind::Output, 1, b"I am a holder too"),
    ];
    // Every kind that asks for something, with a payload that is too short and with one that is no JSON.
    // Input is left out: there is no nonsense that could not be typed.
    for byte in (1..=20).filter(|byte| *byte != Kind::Input as u8) {
        for payload in [&b""[..], b"\xff", b"{\"grace\":", b"[[[[[[[["] {
            // An end that is asked for in due form would be obeyed.
            cases.push(
                [&Header { kind: byte, seq: 7, length: payload.len() as u32 }.encode()[..], payload].concat(),
            );
        }
    }
    cases
}

/// How many connections a holder takes.
const MAX_PEERS: usize = 256;

#[tokio::test]
async fn a_holder_takes_so_many_connections_and_says_that_it_takes_no_more() {
    let dir = tempfile::tempdir().expect("a directory");
    let place = Home::below(dir.path());
    let backend = LocalBackend::new(Options::new(&place));
    let launch = launch(&place, "read line; echo got $line; exit 5");
    let home = launch.home.clone();
    let (ticket, connection) = backend.start(launch).await.expect("it starts");
    let knock = || Client::connect(&home, "program");
    // One of them is the backend's own.
    let mut guests: Vec<Client> = (1..MAX_PEERS).map(|_| knock().expect("there is room")).collect();
    for _ in 0..20 {
        let error = knock().expect_err("there is no room");
        let failure = client::refusal(&error).expect("it says why");
        assert_eq!(failure.code, Code::Busy, "{failure:?}");
    }
    // Those inside are told, and have it as before.
    assert!(guests[0].has("exec"));
    connection.stats().await.expect("the backend's own goes on");
    guests.pop();
    let until = std::time::Instant::now() + TEST_TIMEOUT;
    while knock().is_err() {
        assert!(std::time::Instant::now() < until, "the place that is free is not given to anybody");
    }
    drop(guests);
    connection.write(b"sense\n", TEST_TIMEOUT).await.expect("it takes input");
    let record =
        tokio::time::timeout(TEST_TIMEOUT, connection.wait()).await.expect("it ends").expect("its record");
    assert_eq!(record.code, Some(5));
    backend.sweep(&ticket).await.expect("nothing is left");
}

fn launch(place: &Home, script: &str) -> Launch {
    let id = SessionId::new(Millis(1), 77);
    Launch {
        home: place.session(&id),
        id,
        name: "hostile".parse().expect("a name"),
        run: 1,
        created: Millis(1),
        argv: ["/bin/sh", "-c", script].map(Text::from).to_vec(),
        env: vec![("PATH".into(), "/usr/bin:/bin".into())],
        token: "hostile".into(),
        spec: Spec::new(["sh"], "/"),
    }
}

#[tokio::test]
async fn nonsense_is_answered_or_cut_off_and_the_session_goes_on() {
    let dir = tempfile::tempdir().expect("a directory");
    let place = Home::below(dir.path());
    let backend = LocalBackend::new(Options::new(&place));
    let launch = launch(&place, "read line; echo got $line; exit 5");
    let home = launch.home.clone();
    let (_ticket, connection) = backend.start(launch).await.expect("it starts");
    for bytes in nonsense() {
        let mut peer = UnixStream::connect(home.join(Home::SOCKET)).expect("it listens");
        // It may be cut off in the middle.
        let _ = peer.write_all(&bytes);
        let _ = peer.shutdown(std::net::Shutdown::Write);
        peer.set_read_timeout(Some(TEST_TIMEOUT)).expect("a timeout");
        let mut answer = Vec::new();
        // It hears something or nothing, but it is not left hanging.
        let _ = peer.read_to_end(&mut answer);
    }
    let mut watcher = Client::connect(&home, "watch").expect("it welcomes");
    watcher.send_input(b"from a viewer\n", true).expect("it is sent");
    match watcher.next_event().expect("an answer").expect("an answer") {
        Event::Refused { failure, .. } => assert_eq!(failure.code, Code::Forbidden),
        other => panic!("a viewer typed: {other:?}"),
    }
    connection.write(b"sense\n", TEST_TIMEOUT).await.expect("it takes input");
    let record =
        tokio::time::timeout(TEST_TIMEOUT, connection.wait()).await.expect("it ends").expect("its record");
    assert_eq!(record.code, Some(5));
    let log = std::fs::read(home.join(Home::LOG).join("00000000000000000000.log")).expect("a log");
    assert!(String::from_utf8_lossy(&log).contains("got sense"), "{}", String::from_utf8_lossy(&log));
}

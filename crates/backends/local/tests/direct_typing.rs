//! Keys that go past the holder: in order, never into another's piece, and given up for whoever else types.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use wharf_backend::{Backend, Connection, Launch, Stop};
use wharf_holder::frame::{self, Kind};
use wharf_holder_client::client::{Client, Event};
use wharf_local::{LocalBackend, Options};
use wharf_model::{Home, Millis, Reason, SessionId, Spec, Text};

const TEST_TIMEOUT: Duration = Duration::from_secs(20);

/// A session that prints what it reads, and its directory.
async fn echo(dir: &Path) -> (PathBuf, Arc<dyn Connection>) {
    let place = Home::below(dir);
    let backend = LocalBackend::new(Options::new(&place));
    let id = SessionId::new(Millis(1), 78);
    let argv = ["/bin/sh", "-c", "stty raw -echo; echo ready; exec cat"].map(Text::from).to_vec();
    let launch = Launch {
        home: place.session(&id),
        id,
        name: "echo".parse().expect("a name"),
        run: 1,
        created: Millis(1),
        spec: Spec::new(argv.clone(), "/"),
        argv,
        env: vec![("PATH".into(), "/usr/bin:/bin".into())],
        token: "echo".into(),
    };
    let home = launch.home.clone();
    let (_ticket, connection) = backend.start(launch).await.expect("it starts");
    until(&home, |log| log.contains("ready")).await;
    (home, connection)
}

/// Waits until the log is as it should be.
async fn until(home: &Path, right: impl Fn(&str) -> bool) -> String {
    let deadline = Instant::now() + TEST_TIMEOUT;
    loop {
        let log = std::fs::read(home.join(Home::LOG).join("00000000000000000000.log")).unwrap_or_default();
        let log = String::from_utf8_lossy(&log).into_owned();
        if right(&log) {
            return log;
        }
        assert!(Instant::now() < deadline, "{log:?}");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

async fn end(connection: &dyn Connection) {
    let stop = Stop { grace: Duration::ZERO, reason: Reason::Killed, by: "a test".into() };
    connection.stop(stop).await.expect("it ends");
}

fn typist(home: &Path) -> Client {
    let mut client = Client::connect(home, "attach").expect("it welcomes");
    client.set_timeout(Some(TEST_TIMEOUT)).expect("a timeout");
    client.read_from(client.welcome().log_end).expect("it reads");
    client.type_directly();
    client
}

/// Types a key and waits for it to come back.
fn key(client: &mut Client, key: u8) {
    client.send_input(&[key], false).expect("it is sent");
    loop {
        match client.next_event().expect("an answer").expect("an answer") {
            Event::Output { bytes, .. } if bytes.contains(&key) => return,
            Event::Refused { failure, .. } => panic!("{failure}"),
            _ => {}
        }
    }
}

#[tokio::test]
async fn keys_go_past_the_holder_and_stay_in_order() {
    let dir = tempfile::tempdir().expect("a directory");
    let (home, connection) = echo(dir.path()).await;
    let mut client = typist(&home);
    let mut direct = 0;
    for letter in b'a'..=b'z' {
        key(&mut client, letter);
        direct += u32::from(client.types_directly());
    }
    // A terminal that does not take a key at once has the holder wait with it.
    assert!(direct > 13, "it has the terminal most of the time: {direct}");
    // A paste goes by the holder, and behind what was typed before it.
    let paste = "P".repeat(300);
    client.send_input(b"<", false).expect("it is sent");
    client.send_input(paste.as_bytes(), false).expect("it is sent");
    client.send_input(b">", false).expect("it is sent");
    let whole = format!("abcdefghijklmnopqrstuvwxyz<{paste}>");
    until(&home, |log| log.contains(&whole)).await;
    let typed = connection.status().borrow().last_input;
    assert!(typed.is_some_and(|at| at.0 > 0), "that somebody types is known: {typed:?}");
    end(&*connection).await;
}

#[tokio::test]
async fn two_who_type_never_mix() {
    let dir = tempfile::tempdir().expect("a directory");
    let (home, connection) = echo(dir.path()).await;
    let piece = |n: usize| format!("[{n:03}{}]", "x".repeat(200));
    let (had, has) = tokio::sync::oneshot::channel();
    let typing = {
        let home = home.clone();
        tokio::task::spawn_blocking(move || {
            let mut client = typist(&home);
            let (mut direct, mut had) = (0, Some(had));
            for n in 0..2_000_u32 {
                key(&mut client, b'a' + (n % 26) as u8);
                direct += u32::from(client.types_directly());
                if client.types_directly()
                    && let Some(had) = had.take()
                {
                    let _ = had.send(());
                }
            }
            direct
        })
    };
    has.await.expect("it gets the terminal");
    for n in 0..50 {
        connection.write(piece(n).as_bytes(), TEST_TIMEOUT).await.expect("it is typed");
    }
    let direct = typing.await.expect("it types");
    assert!((1..2_000).contains(&direct), "it has the terminal at times: {direct}");
    let log = until(&home, |log| log.matches(']').count() == 50).await;
    for n in 0..50 {
        assert!(log.contains(&piece(n)), "piece {n} is not whole");
    }
    let mut keys = log.split_once("ready").expect("it was ready").1.trim_start().to_owned();
    for n in 0..50 {
        keys = keys.replace(&piece(n), "");
    }
    let right: String = (0..2_000_u32).map(|n| char::from(b'a' + (n % 26) as u8)).collect();
    assert_eq!(keys, right, "every key once, in order");
    end(&*connection).await;
}

#[tokio::test]
async fn the_terminal_is_lent_to_one_at_a_time() {
    let dir = tempfile::tempdir().expect("a directory");
    let (home, connection) = echo(dir.path()).await;
    let mut first = borrower(&home);
    assert_eq!(borrow(&mut first), Kind::Ack as u8, "nobody has it");
    let mut second = borrower(&home);
    for who in [&mut second, &mut first] {
        assert_eq!(borrow(who), Kind::Error as u8, "the first has it");
    }
    // A second one gets it once it is back, whether it was given back or its borrower went.
    first.write_all(&frame::encode(Kind::Return, 0, &[0; 8])).expect("it is sent");
    // What is asked on the same connection is answered after that.
    assert_eq!(ask(&mut first, Kind::Status, &[]), Kind::Ack as u8);
    assert_eq!(borrow(&mut second), Kind::Ack as u8);
    assert_eq!(borrow(&mut first), Kind::Error as u8);
    drop(second);
    let until = Instant::now() + TEST_TIMEOUT;
    while borrow(&mut first) != Kind::Ack as u8 {
        assert!(Instant::now() < until, "it never comes back");
    }
    end(&*connection).await;
}

/// One that speaks by hand.
fn borrower(home: &Path) -> UnixStream {
    let mut stream = UnixStream::connect(home.join(Home::SOCKET)).expect("it listens");
    stream.set_read_timeout(Some(TEST_TIMEOUT)).expect("a timeout");
    let hello = br#"{"role":"attach"}"#;
    assert_eq!(ask(&mut stream, Kind::Hello, hello), Kind::Welcome as u8);
    stream
}

fn borrow(stream: &mut UnixStream) -> u8 {
    ask(stream, Kind::Borrow, &[])
}

/// Asks for something, and passes over what is told beside it. The kind of the answer.
fn ask(stream: &mut UnixStream, kind: Kind, payload: &[u8]) -> u8 {
    stream.write_all(&frame::encode(kind, 9, payload)).expect("it is sent");
    loop {
        let mut head = [0; frame::HEADER_LEN];
        stream.read_exact(&mut head).expect("an answer");
        let length = u32::from_le_bytes([head[8], head[9], head[10], head[11]]);
        stream.read_exact(&mut vec![0; length as usize]).expect("all of it");
        if head[4] == 9 {
            return head[0];
        }
    }
}

#[tokio::test]
async fn one_that_keeps_the_terminal_holds_nobody_up() {
    let dir = tempfile::tempdir().expect("a directory");
    let (home, connection) = echo(dir.path()).await;
    let mut silent = typist(&home);
    key(&mut silent, b'a');
    while !silent.types_directly() {
        key(&mut silent, b'b');
    }
    // It reads nothing any more, so it does not hear that the terminal is wanted back.
    connection.write(b"from another", TEST_TIMEOUT).await.expect("it is typed all the same");
    until(&home, |log| log.ends_with("from another")).await;
    // One that goes away without a word holds nobody up either.
    let mut gone = typist(&home);
    key(&mut gone, b'c');
    key(&mut gone, b'd');
    drop(gone);
    connection.write(b"and more", TEST_TIMEOUT).await.expect("it is typed");
    until(&home, |log| log.ends_with("cdand more")).await;
    end(&*connection).await;
}

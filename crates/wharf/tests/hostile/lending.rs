//! The holder's program as it runs in a container on another host: whoever has taken the holder's place there keeps it no busier
//! than whoever called it.

use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use wharf_holder::frame::{self, Kind};

/// Bytes of output in a frame.
const OUTPUT_LEN: usize = 8 << 10;
/// How long it may take to end.
const END_TIMEOUT: Duration = Duration::from_secs(30);

/// Listens in a holder's place, and says the same without end to whoever comes.
fn endless(frame: Vec<u8>) -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().expect("a directory");
    let socket = dir.path().join("sock");
    let listener = UnixListener::bind(&socket).expect("a socket");
    let talk = move |mut stream: UnixStream| while stream.write_all(&frame).is_ok() {};
    std::thread::spawn(move || listener.incoming().flatten().for_each(talk));
    (dir, socket)
}

fn program(words: &[&str], socket: &Path) -> Child {
    let mut command = Command::new(env!("CARGO_BIN_EXE_wharf-holder"));
    let [verb, rest @ ..] = words else { panic!("a verb is named first") };
    command.arg(verb).arg(socket).args(rest);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().expect("the holder's program runs")
}

/// Waits for the end, and ends it where there is none.
#[track_caller]
fn ends(child: &mut Child) {
    let until = Instant::now() + END_TIMEOUT;
    while child.try_wait().expect("a child of ours").is_none() {
        if Instant::now() >= until {
            let _ = child.kill();
            let _ = child.wait();
            panic!("it goes on for longer than {END_TIMEOUT:?}");
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    child.wait().expect("it has ended");
}

#[test]
fn a_command_is_lent_to_nobody_who_talks_without_end() {
    let said: [(Kind, &[u8]); 3] =
        [(Kind::Output, &[b'x'; OUTPUT_LEN]), (Kind::News, b"{}"), (Kind::Recall, b"")];
    for (kind, payload) in said {
        let (_dir, socket) = endless(frame::encode(kind, 0, payload));
        let mut child = program(&["lend", "the-mark"], &socket);
        let asked = frame::encode(Kind::Exec, 1, b"{}");
        child.stdin.as_mut().expect("a pipe").write_all(&asked).expect("it reads the frame");
        ends(&mut child);
        let mut why = String::new();
        child.stderr.take().expect("a pipe").read_to_string(&mut why).expect("text");
        assert!(why.starts_with("the-mark{") && why.contains("talks without end"), "{kind:?}: {why}");
    }
}

#[test]
fn a_relay_ends_with_its_caller_though_the_other_side_talks_without_end() {
    let (_dir, socket) = endless(frame::encode(Kind::Output, 0, &[b'x'; OUTPUT_LEN]));
    let mut child = program(&["relay"], &socket);
    let mut first = [0; 16];
    child.stdout.as_mut().expect("a pipe").read_exact(&mut first).expect("it passes on what is said");
    // The caller goes away.
    drop((child.stdin.take(), child.stdout.take()));
    ends(&mut child);
}

#[test]
fn a_relay_ends_some_time_after_its_input_though_somebody_takes_all_that_it_says() {
    let (_dir, socket) = endless(frame::encode(Kind::Output, 0, &[b'x'; OUTPUT_LEN]));
    let mut child = program(&["relay"], &socket);
    // An engine goes on taking what nobody hears any more.
    let mut output = child.stdout.take().expect("a pipe");
    std::thread::spawn(move || std::io::copy(&mut output, &mut std::io::sink()));
    drop(child.stdin.take());
    ends(&mut child);
}

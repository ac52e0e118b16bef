//! A holder that is killed is replaced: the session goes on, and not a byte is lost or doubled.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::Arc;
use std::time::Duration;

use tempfile::TempDir;
use wharf_backend::{Adoption, Backend, Connection, Launch, OutputChunk, Stop, Stream};
use wharf_local::{LocalBackend, Options};
use wharf_model::{Code, Home, Millis, Offset, Reason, SessionId, Spec, Text, Ticket};

const TEST_TIMEOUT: Duration = Duration::from_secs(30);

struct Session {
    _dir: TempDir,
    home: std::path::PathBuf,
    connection: Arc<dyn Connection>,
    backend: LocalBackend,
}

async fn start(script: &str, tty: bool) -> Session {
    let dir = tempfile::tempdir().unwrap();
    let place = Home::below(dir.path());
    let backend = LocalBackend::new(Options::new(&place));
    let id = SessionId::new(Millis(1), u64::from(std::process::id()));
    let token = format!("replacement-{}-{}", std::process::id(), script.len());
    let mut spec = Spec::new(["sh"], "/");
    spec.tty = tty;
    let launch = Launch {
        home: place.session(&id),
        id,
        name: "replaced".parse().unwrap(),
        run: 1,
        created: Millis(1),
        argv: ["/bin/sh", "-c", script].map(Text::from).to_vec(),
        env: vec![("PATH".into(), "/usr/bin:/bin".into()), ("WHARF_TOKEN".into(), token.as_str().into())],
        token,
        spec,
    };
    let home = launch.home.clone();
    let (_ticket, connection) = backend.start(launch).await.unwrap();
    Session { _dir: dir, home, connection, backend }
}

impl Session {
    fn ticket(&self) -> Ticket {
        serde_json::from_slice(&std::fs::read(self.home.join(Home::TICKET)).unwrap()).unwrap()
    }

    /// Kills the holder, and waits until another has signed the ticket.
    async fn kill_holder(&self) {
        let before = self.ticket().holder.unwrap();
        let pidfd = wharf_holder::linux::proc::open(&before).unwrap().expect("the holder lives");
        wharf_holder::linux::proc::signal(&pidfd, 9).unwrap();
        tokio::time::timeout(TEST_TIMEOUT, async {
            while self.ticket().holder.as_ref() == Some(&before) {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        })
        .await
        .expect("another holder takes its place");
    }

    async fn output(&self) -> Vec<u8> {
        let mut output = self.connection.output(Offset(0)).await.unwrap();
        let mut all = Vec::new();
        while let Some(chunk) =
            tokio::time::timeout(TEST_TIMEOUT, output.next()).await.expect("output ends").unwrap()
        {
            match chunk {
                OutputChunk::Data { offset, bytes, .. } => {
                    assert_eq!(offset, Offset(all.len() as u64));
                    all.extend(bytes);
                }
                OutputChunk::Gap { from, to } => panic!("a gap from {from} to {to}"),
            }
        }
        all
    }
}

async fn nothing_is_lost(tty: bool, kills: usize) {
    const LINES: usize = 200_000;
    let script = format!("stty -opost -echo 2>/dev/null; seq 1 {LINES}; read word; echo $word; exit 7");
    let session = start(&script, tty).await;
    for _ in 0..kills {
        session.kill_holder().await;
    }
    session.connection.write(b"still here\n", TEST_TIMEOUT).await.unwrap();
    let record =
        tokio::time::timeout(TEST_TIMEOUT, session.connection.wait()).await.expect("it ends").unwrap();
    assert_eq!((record.code, record.signal), (Some(7), None));
    let expected: Vec<u8> = (1..=LINES)
        .map(|n| n.to_string())
        .chain(["still here".into()])
        .flat_map(|line| (line + "\n").into_bytes())
        .collect();
    let output = session.output().await;
    let differs = output.iter().zip(&expected).position(|(a, b)| a != b);
    assert_eq!((output.len(), differs), (expected.len(), None), "every line once and in order");
}

#[tokio::test]
async fn a_terminal_survives_its_holders() {
    nothing_is_lost(true, 20).await;
}

#[tokio::test]
async fn pipes_survive_their_holders() {
    nothing_is_lost(false, 20).await;
}

#[tokio::test]
async fn a_replaced_holder_still_ends_the_whole_tree() {
    let session =
        start("setsid sh -c 'trap \"\" TERM HUP; while :; do sleep 1; done' & sleep 1000", true).await;
    let token = session.ticket().token;
    session.kill_holder().await;
    let stop = Stop { grace: Duration::from_millis(200), reason: Reason::Stopped, by: "the test".into() };
    let record =
        tokio::time::timeout(TEST_TIMEOUT, session.connection.stop(stop)).await.expect("it stops").unwrap();
    assert_eq!((record.reason, record.survivors), (Reason::Stopped, 0));
    let pids = wharf_holder::linux::proc::pids().unwrap();
    let left: Vec<i32> =
        pids.into_iter().filter(|pid| wharf_holder::linux::proc::carries(*pid, &token)).collect();
    assert_eq!(left, Vec::<i32>::new());
}

#[tokio::test]
async fn a_stop_that_its_holder_does_not_live_to_see_is_carried_out_by_the_next() {
    let session = start("trap '' TERM HUP; while :; do sleep 1; done", true).await;
    let token = session.ticket().token;
    let stop = Stop { grace: Duration::from_secs(2), reason: Reason::Stopped, by: "the test".into() };
    let connection = Arc::clone(&session.connection);
    let stopping = tokio::spawn(async move { connection.stop(stop).await });
    // The holder has it once TERM is on its way: nothing tells that, so it is killed at several moments.
    for _ in 0..3 {
        session.kill_holder().await;
    }
    let record = tokio::time::timeout(TEST_TIMEOUT, stopping).await.expect("it stops").unwrap().unwrap();
    assert_eq!((record.reason, record.survivors), (Reason::Stopped, 0));
    let pids = wharf_holder::linux::proc::pids().unwrap();
    assert!(!pids.into_iter().any(|pid| wharf_holder::linux::proc::carries(pid, &token)), "nothing is left");
}

#[tokio::test]
async fn closing_the_backend_answers_those_who_wait_and_leaves_the_session() {
    let session = start("sleep 1000", true).await;
    let waiting = session.connection.wait();
    session.backend.close().await;
    let answer = tokio::time::timeout(TEST_TIMEOUT, waiting).await.expect("an answer");
    assert_eq!(answer.unwrap_err().code, Code::Unreachable);
    let Adoption::Alive(again) = session.backend.adopt(&session.ticket()).await.unwrap() else {
        panic!("the session does not live");
    };
    let stop = Stop { grace: Duration::ZERO, reason: Reason::Killed, by: "the test".into() };
    again.stop(stop).await.unwrap();
}

#[tokio::test]
async fn streams_are_told_apart_across_holders() {
    let session = start("echo oops >&2; read go; echo fine; read go; echo again >&2", false).await;
    let mut output = session.connection.output(Offset(0)).await.unwrap();
    let mut seen = Vec::new();
    for turn in 0..3 {
        match tokio::time::timeout(TEST_TIMEOUT, output.next()).await.expect("output").unwrap().expect("more")
        {
            OutputChunk::Data { stream, bytes, .. } => seen.push((stream, String::from_utf8(bytes).unwrap())),
            OutputChunk::Gap { from, to } => panic!("a gap from {from} to {to}"),
        }
        if turn < 2 {
            session.kill_holder().await;
            session.connection.write(b"go\n", TEST_TIMEOUT).await.unwrap();
        }
    }
    tokio::time::timeout(TEST_TIMEOUT, session.connection.wait()).await.expect("it ends").unwrap();
    let seen: Vec<_> = seen.iter().map(|(stream, text)| (*stream, text.as_str())).collect();
    assert_eq!(seen, [(Stream::Err, "oops\n"), (Stream::Out, "fine\n"), (Stream::Err, "again\n")]);
}

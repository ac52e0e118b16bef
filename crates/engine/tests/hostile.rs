//! Sessions whose holders and files do everything at once that they should not, while others are served as ever.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on shall say where")]

use std::fs::{self, File};
use std::io::{IoSlice, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::symlink;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use wharf_engine::{Config, Engine, Filter};
use wharf_holder::frame::{self, Kind};
use wharf_holder::linux::{self, proc};
use wharf_holder::wire::{Hello, HolderStatus};
use wharf_local::{LocalBackend, Options};
use wharf_model::{Home, Manner, Millis, SessionId, Size, Spec, Ticket};

/// What the issue allows.
const SECOND: Duration = Duration::from_secs(1);

/// A way to misbehave on a connection.
type Misbehave = fn(UnixStream);

fn welcome(stream: &mut UnixStream) -> bool {
    let mut bytes = [0; 4096];
    let Ok(read) = stream.read(&mut bytes) else { return false };
    if read == 0 {
        return false;
    }
    let hello = Hello { status: Some(HolderStatus::default()), ..Hello::default() };
    let seq = u32::from_le_bytes([bytes[4], bytes[5], bytes[6], bytes[7]]);
    stream.write_all(&frame::encode(Kind::Welcome, seq, &serde_json::to_vec(&hello).unwrap())).is_ok()
}

/// Hangs up as soon as it has answered.
fn hang_up(mut stream: UnixStream) {
    welcome(&mut stream);
}

/// Has news without end, each another.
fn flood(mut stream: UnixStream) {
    if !welcome(&mut stream) {
        return;
    }
    let news = |number: u16| {
        let status = HolderStatus { size: Size { cols: u16::MAX, rows: number }, ..HolderStatus::default() };
        frame::encode(Kind::News, 0, &serde_json::to_vec(&status).unwrap())
    };
    let all: Vec<u8> = (0..500).flat_map(news).collect();
    while stream.write_all(&all).is_ok() {}
}

/// Passes descriptors with everything it says.
fn pass(mut stream: UnixStream) {
    if !welcome(&mut stream) {
        return;
    }
    let null = File::open("/dev/null").unwrap();
    let ack = frame::encode(Kind::Ack, 4_000_000, b"{}");
    while linux::send(stream.as_fd(), &[IoSlice::new(&ack)], &[null.as_fd(); 8]).is_ok() {}
}

/// Says that a lot is to come, and sends it slowly; says what is no frame.
fn garble(mut stream: UnixStream) {
    let _ = stream.write_all(&frame::Header { kind: 14, seq: 1, length: 15 << 20 }.encode());
    while stream.write_all(&[7; 4096]).is_ok() {}
}

/// Says nothing at all.
fn hush(mut stream: UnixStream) {
    welcome(&mut stream);
    let _ = stream.read_to_end(&mut Vec::new());
}

fn ticket(home: &Home, number: u64) -> Ticket {
    let id = SessionId::new(Millis(1), number);
    let dir = home.session(&id);
    fs::create_dir_all(dir.join("log")).unwrap();
    let us = proc::identity(std::process::id() as i32, &proc::boot().unwrap()).unwrap();
    let name = format!("evil{number}").parse().unwrap();
    let first = Ticket::new(id, Millis(1), name, "local", dir.as_path(), "t", Spec::new(["sh"], "/"));
    let ticket = Ticket { started: Millis(1), command: Some(us.clone()), holder: Some(us), ..first };
    fs::write(dir.join("ticket.json"), serde_json::to_vec(&ticket).unwrap()).unwrap();
    fs::create_dir_all(home.names()).unwrap();
    symlink(format!("../sessions/{}", ticket.id), home.name(&ticket.name)).unwrap();
    ticket
}

fn listen(dir: &Path, misbehave: Misbehave) {
    let listener = UnixListener::bind(dir.join("sock")).unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            std::thread::spawn(move || misbehave(stream));
        }
    });
}

fn fifo(path: &Path) {
    let _ = fs::remove_file(path);
    assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
}

/// An instance's directory with one session of every kind of misbehaviour.
fn furnish(home: &Home) -> Vec<UnixStream> {
    let mut number = 0;
    let mut session = || {
        number += 1;
        ticket(home, number).dir.as_path().to_owned()
    };
    for misbehave in [hang_up, flood, pass, garble, hush] {
        listen(&session(), misbehave);
    }
    // A pipe in the place of each file.
    for name in ["exit.json", "log/00000000000000000000.log", "log/00000000000000000000.idx", "screen"] {
        let dir = session();
        fs::write(dir.join("log/00000000000000000000.log"), "bytes").unwrap();
        fifo(&dir.join(name));
        listen(&dir, hush);
    }
    let dir = session();
    File::create(dir.join("exit.json")).unwrap().set_len(6 << 30).unwrap();
    listen(&dir, hush);
    // A segment and an index that have no end.
    let dir = session();
    for kind in ["log", "idx"] {
        let name = format!("log/00000000000000000000.{kind}");
        File::create(dir.join(name)).unwrap().set_len(1 << 42).unwrap();
    }
    listen(&dir, hush);
    // A socket that accepts nobody, and one that is another's.
    let dir = session();
    let listener = UnixListener::bind(dir.join("sock")).unwrap();
    let mut waiting = Vec::new();
    let held = wharf_boundary::Dir::open(&dir).unwrap();
    while let Ok(stream) = held.connect_now("sock") {
        waiting.push(stream);
    }
    std::mem::forget(listener);
    symlink("../nowhere/sock", session().join("sock")).unwrap();
    waiting
}

fn descriptors() -> usize {
    fs::read_dir("/proc/self/fd").unwrap().count()
}

async fn within<T>(what: &str, done: impl Future<Output = T>) -> T {
    let begun = Instant::now();
    let done = done.await;
    assert!(begun.elapsed() < SECOND, "{what} took {:?}", begun.elapsed());
    done
}

#[tokio::test]
async fn others_are_served_within_a_second_whatever_some_sessions_do() {
    let root = tempfile::tempdir().unwrap();
    let home = Home::below(root.path());
    let _waiting = furnish(&home);
    let before = descriptors();
    let evil = fs::read_dir(home.sessions()).unwrap().count();
    let backend = Arc::new(LocalBackend::new(Options::new(&home)));
    let opened =
        tokio::time::timeout(Duration::from_secs(20), Engine::open(Config::new(home, vec![backend])));
    let engine = opened.await.expect("an engine opens beside them").unwrap();
    let mut spec = Spec::new(["/bin/cat"], "/");
    spec.name = Some("good".parse().unwrap());
    engine.start(spec).await.unwrap();
    let begun = Instant::now();
    // For as long as it takes them all to misbehave.
    while begun.elapsed() < Duration::from_secs(4) {
        let listed = within("ls", async { engine.list(&Filter::default()) }).await;
        assert!(listed.len() > evil, "{} of {evil}", listed.len());
        within("write", engine.session("good").await.unwrap().write(b"text\n", SECOND)).await.unwrap();
        let sent = within("send", engine.session("good").await.unwrap().send("text", Manner::default()))
            .await
            .unwrap();
        within("cancel", engine.session_of_message(&sent.id).await.unwrap().cancel(&sent.id)).await.unwrap();
    }
    within("kill", engine.session("good").await.unwrap().kill("test")).await.unwrap();
    let more = descriptors().saturating_sub(before);
    assert!(more < 500, "{more} descriptors more");
    for session in engine.list(&Filter::default()) {
        assert!(session.size.cols <= 4096, "{:?}", session.size);
    }
    engine.close().await;
}

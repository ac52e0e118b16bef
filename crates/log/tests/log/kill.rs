//! A writer that is killed at any moment, and the next one that goes on.

use std::io::Write;
use std::os::fd::AsFd;
use std::path::Path;
use std::process::Child;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use rustix::event::{PollFd, PollFlags, poll};
use wharf_log::{Chunk, Follower, Mark, Reader, Stream, Writer, marks};
use wharf_model::{Offset, Size};

use crate::support::{Deadline, Numbers, child, child_dir, keep_all, place};

const KILLS: u64 = 60;

/// The process that is killed: moves its standard input to the log until it ends.
fn writer(dir: &Path) {
    let stdin = std::io::stdin();
    let mut writer = Writer::open(dir, keep_all(16 << 10)).unwrap();
    let mut numbers = Numbers(u64::from(std::process::id()));
    loop {
        poll(&mut [PollFd::new(&stdin, PollFlags::IN)], None).unwrap();
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_micros() as u64;
        let stream = [Stream::Stdout, Stream::Stderr][numbers.below(2) as usize];
        writer.mark(Mark::Stream(stream), now).unwrap();
        writer.mark(Mark::Resize(Size { cols: numbers.below(9) as u16, rows: 1 }), now).unwrap();
        match writer.splice_from(stdin.as_fd(), 1 + numbers.below(9000) as usize) {
            Ok(0) => return,
            Ok(_) => writer.tick(now).unwrap(),
            Err(error) => assert_eq!(error.kind(), std::io::ErrorKind::WouldBlock),
        }
    }
}

fn spawn(dir: &Path, pipe: &std::io::PipeReader) -> Child {
    child("kill::no_byte_is_lost_or_doubled_when_writers_are_killed", dir)
        .stdin(pipe.try_clone().unwrap())
        .spawn()
        .unwrap()
}

#[test]
fn no_byte_is_lost_or_doubled_when_writers_are_killed() {
    if let Some(dir) = child_dir() {
        return writer(&dir);
    }
    let (_home, dir) = place();
    let (pipe, mut end) = std::io::pipe().unwrap();
    drop(Writer::open(&dir, keep_all(16 << 10)).unwrap());
    let enough = AtomicBool::new(false);
    let done = AtomicBool::new(false);
    let (sent, heard) = std::thread::scope(|scope| {
        let session = scope.spawn(|| {
            // Lines of the kind that a session prints, until there were enough kills. The pipe holds it back.
            let mut sent = Vec::new();
            let mut line = 0u64;
            while !enough.load(Ordering::Acquire) {
                let before = sent.len();
                for _ in 0..20 {
                    writeln!(sent, "line {line} \0\u{1b}[1m\u{20ac}").unwrap();
                    line += 1;
                }
                end.write_all(&sent[before..]).unwrap();
            }
            drop(end);
            sent
        });
        // One who listens throughout.
        let listener = scope.spawn(|| listen(&dir, &done));

        let deadline = Deadline::new();
        let mut numbers = Numbers(7);
        let mut follower = Follower::new(&dir).unwrap();
        for kill in 0..KILLS {
            let before = Reader::bounds(&dir).unwrap().1;
            // Some die before they wrote anything, most in the midst of it.
            let target = before + numbers.below(60_000) * (kill % 4).min(1);
            let mut child = spawn(&dir, &pipe);
            while Reader::bounds(&dir).unwrap().1 < target {
                follower.wait(deadline.left("a writer to write")).unwrap();
            }
            child.kill().unwrap();
            child.wait().unwrap();
        }
        enough.store(true, Ordering::Release);
        let mut child = spawn(&dir, &pipe);
        let sent = session.join().unwrap();
        assert!(child.wait().unwrap().success());
        done.store(true, Ordering::Release);
        // So that the listener wakes and looks.
        std::fs::write(dir.with_file_name("exit.json"), "{}").unwrap();
        (sent, listener.join().unwrap())
    });
    assert!(sent == heard, "{} bytes sent, {} heard", sent.len(), heard.len());
    let (bytes, gaps) = crate::support::read_all(&dir, 0);
    assert!(sent == bytes, "{} bytes sent, {} logged", sent.len(), bytes.len());
    assert_eq!(gaps, []);
    let records: Vec<_> = marks(&dir, Offset(0)..Offset(u64::MAX)).unwrap().map(Result::unwrap).collect();
    assert!(records.is_sorted_by_key(|record| record.offset));
    assert!(records.len() > KILLS as usize);
}

fn listen(dir: &Path, done: &AtomicBool) -> Vec<u8> {
    let deadline = Deadline::new();
    let mut follower = Follower::new(dir).unwrap();
    let mut reader = Reader::open(dir, Offset(0)).unwrap();
    let mut heard = Vec::new();
    let mut buf = vec![0; 5000];
    loop {
        let last = done.load(Ordering::Acquire);
        loop {
            match reader.read(&mut buf).unwrap() {
                Chunk::Data { len, .. } => heard.extend_from_slice(&buf[..len]),
                Chunk::Gap { from, to } => panic!("a gap from {from} to {to}"),
                Chunk::End => break,
            }
        }
        if last {
            return heard;
        }
        follower.wait(deadline.left("a writer to write")).unwrap();
    }
}

//! A log in a directory whose writer wants to be read by somebody with more rights, or not to be read to an end.

use std::fs::{self, File};
use std::os::unix::fs::{FileExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::mpsc;
use std::time::Duration;

use wharf_log::{Chunk, Follower, Reader, Retention, Streams, Writer, lines_back, marks, since};
use wharf_model::Offset;

const TEST_TIMEOUT: Duration = Duration::from_secs(20);

/// Everything that can be asked of a log, on a thread of its own, so that a test fails that would hang.
fn read_all(log: &Path) -> Vec<u8> {
    let (tell, told) = mpsc::channel();
    let log = log.to_owned();
    std::thread::spawn(move || {
        let _ = Reader::bounds(&log);
        let _ = Reader::is_unwritten(&log);
        // One line is found without a look at all of it; more may be asked of the user's own patience.
        let _ = lines_back(&log, 0);
        let _ = since(&log, 1);
        let _ = wharf_log::last_written(&log);
        let _ = marks(&log, Offset(0)..Offset(u64::MAX)).map(Iterator::count);
        let mut seen = Vec::new();
        if let Ok(mut reader) = Reader::open(&log, Offset(0)) {
            let (mut streams, mut buffer) = (Streams::new(), vec![0; 64]);
            for _ in 0..1_000 {
                match reader.read(&mut buffer) {
                    Ok(Chunk::Data { offset, len }) => {
                        let _ = streams.split(&reader, offset, len);
                        seen.extend_from_slice(&buffer[..len]);
                    }
                    Ok(Chunk::Gap { .. }) => {}
                    Ok(Chunk::End) | Err(_) => break,
                }
            }
        }
        let _ = tell.send(seen);
    });
    told.recv_timeout(TEST_TIMEOUT).expect("reading a hostile log comes to an end")
}

fn named(log: &Path, first: u64, kind: &str) -> PathBuf {
    log.join(format!("{first:020}.{kind}"))
}

fn fifo(path: &Path) {
    assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
}

#[test]
fn a_link_as_a_segment_is_not_read() {
    let home = tempfile::tempdir().unwrap();
    let log = home.path().join("log");
    fs::create_dir(&log).unwrap();
    fs::write(home.path().join("secret"), "the operator's key").unwrap();
    symlink(home.path().join("secret"), named(&log, 0, "log")).unwrap();
    symlink(home.path().join("secret"), named(&log, 5, "log")).unwrap();
    symlink(home.path().join("secret"), named(&log, 0, "idx")).unwrap();
    assert_eq!(read_all(&log), b"");
    let error = Reader::open(&log, Offset(0)).unwrap().read(&mut [0; 9]).unwrap_err();
    assert!(error.to_string().contains("00000000000000000000"), "{error}");
}

#[test]
fn a_link_as_the_log_itself_is_not_read() {
    let home = tempfile::tempdir().unwrap();
    let other = home.path().join("other/log");
    Writer::open(&other, Retention::default()).unwrap().append(b"another session's").unwrap();
    fs::create_dir(home.path().join("evil")).unwrap();
    let log = home.path().join("evil/log");
    symlink("../other/log", &log).unwrap();
    assert_eq!(read_all(&log), b"");
    Follower::new(&log).unwrap_err();
    // Where Wharf itself put a link into the room, and the container one behind it.
    fs::remove_file(&log).unwrap();
    fs::create_dir(home.path().join("evil/room")).unwrap();
    symlink("room/log", &log).unwrap();
    symlink("../../other/log", home.path().join("evil/room/log")).unwrap();
    assert_eq!(read_all(&log), b"");
    Follower::new(&log).unwrap_err();
}

#[test]
fn nothing_in_the_place_of_a_file_is_waited_for() {
    type Put = fn(&Path);
    let places: [(&str, Put); 4] = [
        ("a pipe", fifo),
        ("a dangling link", |path| symlink("nowhere", path).unwrap()),
        ("a directory", |path| fs::create_dir(path).unwrap()),
        ("a link to itself", |path| symlink(path.file_name().unwrap(), path).unwrap()),
    ];
    for (what, place) in places {
        for kind in ["log", "idx"] {
            let home = tempfile::tempdir().unwrap();
            let log = home.path().join("log");
            Writer::open(&log, Retention::default()).unwrap().append(b"bytes").unwrap();
            let path = named(&log, 0, kind);
            fs::remove_file(&path).unwrap();
            place(&path);
            assert_eq!(read_all(&log), b"", "{what} as {kind}");
        }
    }
}

#[test]
fn what_has_no_end_is_not_read_to_it() {
    let home = tempfile::tempdir().unwrap();
    let log = home.path().join("log");
    fs::create_dir(&log).unwrap();
    // An index of holes, segments of holes, and some that begin where a sum overflows.
    for first in [0, 1 << 40, u64::MAX - 1, u64::MAX, i64::MAX as u64] {
        let bytes = File::create(named(&log, first, "log")).unwrap();
        bytes.set_len(1 << 42).unwrap();
        let index = File::create(named(&log, first, "idx")).unwrap();
        let mut header = b"WHARFIX1".to_vec();
        header.extend_from_slice(&first.to_le_bytes());
        header.extend_from_slice(&[1, 0, 0, 0, 0, 0, 0, 0]);
        index.write_all_at(&header, 0).unwrap();
        index.set_len(1 << 42).unwrap();
    }
    assert_eq!(read_all(&log), vec![0; 64_000]);
    assert_eq!(Reader::bounds(&log).unwrap().0, Offset(0));
}

#[test]
fn an_index_that_lies_breaks_nothing() {
    let home = tempfile::tempdir().unwrap();
    let log = home.path().join("log");
    Writer::open(&log, Retention::default()).unwrap().append(&[b'x'; 1_000]).unwrap();
    let index = File::options().write(true).open(named(&log, 0, "idx")).unwrap();
    let offsets = [900, 3, u64::MAX, 0, 700, u64::MAX - 1, 701, 2];
    for (number, offset) in offsets.into_iter().enumerate() {
        let mut record = [0; 24];
        record[..8].copy_from_slice(&u64::to_le_bytes(offset));
        record[8..16].copy_from_slice(&u64::MAX.to_le_bytes());
        record[16] = 2;
        record[18] = (number % 2) as u8;
        index.write_all_at(&record, (number as u64 + 1) * 24).unwrap();
    }
    assert_eq!(read_all(&log), vec![b'x'; 1_000]);
}

#[test]
fn a_log_that_changes_all_the_time_does_not_hold_its_reader() {
    let home = tempfile::tempdir().unwrap();
    let log = home.path().join("log");
    fs::create_dir(&log).unwrap();
    let stop = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for first in (0_u64..).take_while(|_| !stop.load(std::sync::atomic::Ordering::Relaxed)) {
                fs::write(named(&log, first + 1, "log"), "").unwrap();
                let _ = fs::remove_file(named(&log, first, "log"));
            }
        });
        assert_eq!(read_all(&log), b"");
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
    });
}

//! A disk without room.

use std::io::{ErrorKind, Read, Write};
use std::os::fd::AsFd;
use std::path::Path;

use wharf_log::{Reader, Writer};
use wharf_model::Offset;

use crate::support::{child_dir, child_through, keep_all, pattern, place, read_all};

fn bytes(from: u64, len: u64) -> Vec<u8> {
    (from..from + len).map(pattern).collect()
}

fn assert_full(kind: ErrorKind) {
    // The second is what a limit on the size of files gives.
    assert!(matches!(kind, ErrorKind::StorageFull | ErrorKind::FileTooLarge), "{kind:?}");
}

/// What has to be in the log: the bytes of the session without those that were skipped.
fn assert_log(dir: &Path, end: u64, lost: &[(u64, u64)]) {
    let gone = |at: &u64| lost.iter().any(|(from, to)| (from..to).contains(&at));
    let expected: Vec<u8> = (0..end).filter(|at| !gone(at)).map(pattern).collect();
    let (found, gaps) = read_all(dir, 0);
    assert_eq!(gaps, lost);
    assert!(found == expected, "{} of {} bytes", found.len(), expected.len());
    assert_eq!(Reader::bounds(dir).unwrap().1, Offset(end));
}

/// Appends until it fails, says what is lost, and goes on; then the same with a pipe.
fn session(dir: &Path) {
    // Room that the test on a full file system lets us free; the other has room in each new file.
    let free = |ballast: &str| drop(std::fs::remove_file(dir.with_file_name(ballast)));
    let mut writer = Writer::open(dir, keep_all(u64::MAX)).unwrap();
    let mut lost = Vec::new();

    let error = loop {
        if let Err(error) = writer.append(&bytes(writer.end().0, 5000)) {
            break error;
        }
    };
    assert_full(error.kind());
    // The holder knows from the end how much of its chunk is in the log.
    let written = writer.end().0;
    writer.skip(5000 - written % 5000);
    let end = writer.end().0;
    assert_eq!(end % 5000, 0);
    lost.push((written, end));
    free("ballast");
    writer.append(&bytes(end, 5000)).unwrap();
    assert_log(dir, end + 5000, &lost);

    let (mut pipe, mut input) = std::io::pipe().unwrap();
    let (error, left) = loop {
        let (from, chunk) = (writer.end().0, 5000);
        input.write_all(&bytes(from, chunk)).unwrap();
        let mut moved = 0;
        let error = loop {
            match writer.splice_from(pipe.as_fd(), 5000) {
                Ok(len) => moved += len as u64,
                Err(error) => break error,
            }
        };
        assert_eq!(writer.end().0, from + moved);
        if error.kind() != ErrorKind::WouldBlock {
            break (error, chunk - moved);
        }
    };
    assert_full(error.kind());
    // All that is not in the log is still in the pipe.
    let from = writer.end().0;
    let mut rest = vec![0; left as usize];
    pipe.read_exact(&mut rest).unwrap();
    assert_eq!(rest, bytes(from, left));
    assert_eq!(writer.splice_from(pipe.as_fd(), 1).unwrap_err().kind(), ErrorKind::WouldBlock);
    writer.skip(left);
    lost.push((from, from + left));
    free("ballast2");
    writer.append(&bytes(from + left, 100)).unwrap();
    assert_log(dir, from + left + 100, &lost);
}

#[test]
fn what_does_not_fit_is_a_gap() {
    if let Some(dir) = child_dir() {
        return session(&dir);
    }
    let (_home, dir) = place();
    // Without rights one can still be short of room, by a limit on each file.
    let setup = "trap '' XFSZ; ulimit -f 64";
    assert!(child_through(setup, "full::what_does_not_fit_is_a_gap", &dir).status().unwrap().success());
}

#[test]
fn a_full_file_system_is_a_gap() {
    if let Some(dir) = child_dir() {
        return session(&dir);
    }
    let (home, dir) = place();
    let mount = "mount -t tmpfs -o size=400k tmpfs \"$HOME\"";
    let inside = |command: &str| {
        let mut unshare = std::process::Command::new("unshare");
        unshare.args(["--user", "--map-root-user", "--mount", "sh", "-ec", command]).env("HOME", home.path());
        unshare
    };
    if !inside(mount).output().is_ok_and(|output| output.status.success()) {
        drop(home);
        wharf_boundary::left_out("this user may not mount a file system of its own");
    }
    let fill = "head -c 100000 /dev/zero > \"$HOME/ballast\"; head -c 100000 /dev/zero > \"$HOME/ballast2\"";
    let session = child_through("true", "full::a_full_file_system_is_a_gap", &dir);
    let status = inside(&format!(r#"{mount}; {fill}; exec "$0" "$@""#))
        .arg(session.get_program())
        .args(session.get_args())
        .envs(session.get_envs().filter_map(|(name, value)| Some((name, value?))))
        .status()
        .unwrap();
    assert!(status.success());
}

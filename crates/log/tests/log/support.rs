//! What several subjects need.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;
use wharf_log::{Chunk, Reader, Retention};
use wharf_model::Offset;

/// Nothing is ever dropped, and segments are of this size.
pub(crate) fn keep_all(segment: u64) -> Retention {
    Retention { total: u64::MAX, segment }
}

/// A place for a log, as it lies in a session's directory.
pub(crate) fn place() -> (TempDir, PathBuf) {
    let home = tempfile::tempdir().unwrap();
    let dir = home.path().join("log");
    (home, dir)
}

/// All that there is to read, and the gaps that were told.
pub(crate) fn read_all(dir: &Path, from: u64) -> (Vec<u8>, Vec<(u64, u64)>) {
    let mut reader = Reader::open(dir, Offset(from)).unwrap();
    let (mut bytes, mut gaps, mut at) = (Vec::new(), Vec::new(), Offset(from));
    let mut buf = [0; 777];
    loop {
        match reader.read(&mut buf).unwrap() {
            Chunk::Data { offset, len } => {
                assert_eq!(offset, at);
                bytes.extend_from_slice(&buf[..len]);
                at = offset + len as u64;
            }
            Chunk::Gap { from, to } => {
                assert_eq!(from, at);
                gaps.push((from.0, to.0));
                at = to;
            }
            Chunk::End => return (bytes, gaps),
        }
        assert_eq!(reader.position(), at);
    }
}

/// The names of the files of a log, in order.
pub(crate) fn files(dir: &Path) -> Vec<String> {
    let mut names: Vec<_> = std::fs::read_dir(dir)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

/// The byte that tests write at an offset, so that a reader knows it wherever it starts.
pub(crate) fn pattern(offset: u64) -> u8 {
    (offset.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) as u8
}

/// Numbers that look random and are the same in every run.
pub(crate) struct Numbers(pub(crate) u64);

impl Numbers {
    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }
}

/// A time by which a test must have got on.
pub(crate) struct Deadline(Instant);

impl Deadline {
    pub(crate) fn new() -> Self {
        Self(Instant::now() + Duration::from_secs(60))
    }

    /// What is left of it.
    pub(crate) fn left(&self, what: &str) -> Duration {
        let left = self.0.saturating_duration_since(Instant::now());
        assert!(!left.is_zero(), "timed out: {what}");
        left
    }
}

const CHILD_DIR: &str = "WHARF_LOG_TEST_DIR";

/// The log that a test gave its child; none if this is not one. A child is the same test, which then plays that part.
pub(crate) fn child_dir() -> Option<PathBuf> {
    std::env::var_os(CHILD_DIR).map(PathBuf::from)
}

/// This program again, running this test as a child.
pub(crate) fn child(test: &str, dir: &Path) -> Command {
    child_through("true", test, dir)
}

/// The same, in what some shell commands have made of the process.
pub(crate) fn child_through(setup: &str, test: &str, dir: &Path) -> Command {
    let mut command = Command::new("sh");
    command.args(["-ec", &format!(r#"{setup}; exec "$0" "$@""#)]);
    command.arg(std::env::current_exe().unwrap()).args([test, "--exact", "--nocapture"]);
    command.env(CHILD_DIR, dir).stdout(Stdio::null());
    command
}

//! The same names as on Linux, with what every system has.

use std::fs::File;
use std::io;
use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use crate::files::Files;

/// How often we look.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// Cannot be done here: the writer copies instead.
#[expect(clippy::unnecessary_wraps, reason = "the same signature as on Linux")]
#[cfg_attr(target_os = "linux", expect(dead_code, reason = "only other systems use it"))]
pub(crate) fn splice(_: BorrowedFd<'_>, _: &File, _: u64, _: usize) -> io::Result<Option<usize>> {
    Ok(None)
}

/// Looks at times and sizes, ten times a second.
#[derive(Debug)]
pub(crate) struct Watch {
    dir: PathBuf,
    seen: Vec<(PathBuf, Option<SystemTime>, u64)>,
}

impl Watch {
    pub(crate) fn new(files: &Files) -> io::Result<Self> {
        let dir = files.path().to_owned();
        Ok(Self { seen: look(&dir)?, dir })
    }

    pub(crate) fn wait(&mut self, timeout: Duration) -> io::Result<bool> {
        let begin = Instant::now();
        loop {
            if self.drain()? {
                return Ok(true);
            }
            let left = timeout.saturating_sub(begin.elapsed());
            if left.is_zero() {
                return Ok(false);
            }
            std::thread::sleep(left.min(POLL_INTERVAL));
        }
    }

    pub(crate) fn drain(&mut self) -> io::Result<bool> {
        let seen = match look(&self.dir) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
            other => other?,
        };
        let changed = seen != self.seen;
        self.seen = seen;
        Ok(changed)
    }
}

/// The files of a log and the directory above it, with what changes when they do.
fn look(dir: &Path) -> io::Result<Vec<(PathBuf, Option<SystemTime>, u64)>> {
    let mut seen = Vec::new();
    let mut add = |path: PathBuf| {
        if let Ok(data) = path.symlink_metadata() {
            // A directory's own time changes with its entries, which is what we want of the one above.
            seen.push((path, data.modified().ok(), data.len()));
        }
    };
    for entry in std::fs::read_dir(dir)? {
        add(entry?.path());
    }
    if let Some(parent) = dir.parent() {
        add(parent.join("exit.json"));
    }
    seen.sort();
    Ok(seen)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_is_seen_once() {
        let home = tempfile::tempdir().unwrap();
        let dir = home.path().join("log");
        std::fs::create_dir(&dir).unwrap();
        let mut watch = Watch::new(&Files::open(&dir).unwrap()).unwrap();
        assert!(!watch.drain().unwrap());
        std::fs::write(dir.join("a"), "1").unwrap();
        assert!(watch.wait(Duration::from_secs(10)).unwrap());
        std::fs::write(dir.join("a"), "12").unwrap();
        assert!(watch.wait(Duration::from_secs(10)).unwrap());
        assert!(!watch.drain().unwrap());
        std::fs::write(home.path().join("exit.json"), "{}").unwrap();
        assert!(watch.wait(Duration::from_secs(10)).unwrap());
    }
}

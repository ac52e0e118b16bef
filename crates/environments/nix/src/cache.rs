//! Captured shells on disk.

use std::fs::{self, File, TryLockError};
use std::io;
use std::os::unix::fs::{DirBuilderExt, symlink};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use wharf_backend::Progress;
use wharf_boundary::{Dir, MAX_RECORD_LEN};
use wharf_model::{Code, Failure, Home, SessionId};

use crate::Result;
use crate::dev_shell::DevShell;
use crate::hook;

/// The shell as nix printed it; there once everything else is.
const SHELL: &str = "shell.json";
/// What bash reads where the hook is asked for.
const HOOK: &str = "hook.bash";
/// The root that keeps nix from collecting the shell.
const PROFILE: &str = "profile";
/// Held by whoever captures.
const LOCK: &str = "lock";
/// A link for each session that runs in the shell.
const USERS: &str = "users";
/// How often a capture that another process has under way is asked after.
const POLL_INTERVAL: Duration = Duration::from_millis(50);
/// How long a shell is kept that nobody uses.
const MAX_UNUSED_TIME: Duration = Duration::from_secs(30 * 24 * 3600);

/// The place of one captured shell.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    pub(crate) dir: PathBuf,
}

impl Entry {
    /// The place of a key, which is made where it is not there.
    pub(crate) fn of(cache: &Path, key: &str) -> Result<Self> {
        let dir = cache.join(key);
        fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&dir)
            .map_err(|error| Failure::system(format!("cannot make {}", dir.display()), &error))?;
        Ok(Self { dir })
    }

    /// The shell that was captured here, where nix still has it.
    pub(crate) fn load(&self) -> Option<DevShell> {
        let dir = Dir::open(&self.dir).ok()?;
        let shell = dir.read(SHELL, MAX_RECORD_LEN).ok()?;
        // Follows the links to the store: a shell that was collected all the same is captured again.
        self.profile().metadata().ok()?;
        let shell = serde_json::from_slice(&shell).ok()?;
        let file = dir.open_file(SHELL).ok()?;
        // Only for the time of its last use, and a read-only cache is one that nobody clears up.
        let _ = file.set_modified(SystemTime::now());
        Some(shell)
    }

    /// The link that keeps nix from collecting the shell.
    pub(crate) fn profile(&self) -> PathBuf {
        self.dir.join(PROFILE)
    }

    /// Keeps what nix printed.
    pub(crate) fn save(&self, json: &[u8], shell: &DevShell) -> Result<()> {
        let write = || -> io::Result<()> {
            let dir = Dir::open(&self.dir)?;
            if let Some(text) = hook::file(shell) {
                dir.replace(HOOK, text.as_bytes(), 0o600)?;
            }
            dir.replace(SHELL, json, 0o600)
        };
        write().map_err(|error| Failure::system(format!("cannot write in {}", self.dir.display()), &error))
    }

    /// What bash reads to run the shell's hook; none where it has none.
    pub(crate) fn hook(&self) -> Option<PathBuf> {
        Some(self.dir.join(HOOK)).filter(|file| file.is_file())
    }

    /// Waits for the turn to capture: one at a time, also among processes that share the cache.
    pub(crate) async fn turn(&self, progress: &Progress) -> Result<File> {
        let path = self.dir.join(LOCK);
        let cannot = |error: io::Error| Failure::system(format!("cannot lock {}", path.display()), &error);
        let (file, aside) = Dir::open(&self.dir).and_then(|dir| dir.open_own(LOCK, 0o600)).map_err(cannot)?;
        if let Some(aside) = aside {
            progress.tell(format!("{}: {aside}", self.dir.display()));
        }
        let mut told = false;
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(file),
                Err(TryLockError::WouldBlock) => {}
                Err(TryLockError::Error(error)) => return Err(cannot(error)),
            }
            if !std::mem::replace(&mut told, true) {
                progress.tell("the same shell is being captured already: waiting for it");
            }
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    }

    /// Notes that a session runs in the shell, so that it is kept for as long.
    pub(crate) fn used_by(&self, id: &SessionId, home: &Path) -> Result<()> {
        let (users, link) = (self.dir.join(USERS), self.dir.join(USERS).join(id.as_str()));
        let note = || -> io::Result<()> {
            fs::create_dir_all(&users)?;
            match symlink(home, &link) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
                done => done,
            }
        };
        note().map_err(|error| Failure::system(format!("cannot write {}", link.display()), &error))
    }

    /// Whether a session that is not over runs in the shell. Links of those that are over are taken away.
    fn is_used(&self) -> bool {
        let Ok(users) = fs::read_dir(self.dir.join(USERS)) else { return false };
        let mut used = false;
        for link in users.filter_map(std::result::Result::ok).map(|entry| entry.path()) {
            // A session's directory may be on its way into the world: only an end or an absence counts.
            if link.join(Home::EXIT).exists() || !link.exists() {
                let _ = fs::remove_file(link);
            } else {
                used = true;
            }
        }
        used
    }
}

/// Takes away shells that nobody has used for a month and nobody runs in.
pub(crate) fn clear(cache: &Path) {
    let Ok(entries) = fs::read_dir(cache) else { return };
    for dir in entries.filter_map(std::result::Result::ok).map(|entry| entry.path()) {
        let used = dir.join(SHELL).metadata().and_then(|meta| meta.modified());
        let old = used.is_ok_and(|used| used.elapsed().is_ok_and(|since| since > MAX_UNUSED_TIME));
        let entry = Entry { dir };
        if !old || entry.is_used() {
            continue;
        }
        let lock = Dir::open(&entry.dir).and_then(|dir| dir.open_file_for_writing(LOCK));
        if lock.is_ok_and(|lock| lock.try_lock().is_ok()) {
            // The next one clears up what this one could not.
            let _ = fs::remove_dir_all(&entry.dir);
        }
    }
}

/// Takes away the notes that a session runs in a shell.
pub(crate) fn release(cache: &Path, id: &SessionId) {
    let Ok(entries) = fs::read_dir(cache) else { return };
    for entry in entries.filter_map(std::result::Result::ok) {
        // There is one in the shell that it ran in, and none elsewhere.
        let _ = fs::remove_file(entry.path().join(USERS).join(id.as_str()));
    }
}

/// Whether there is a cache to be had at this path.
pub(crate) fn checked(path: &Path) -> Result<()> {
    if path.is_absolute() {
        return Ok(());
    }
    Err(Failure::new(Code::Invalid, format!("{} is not an absolute path", path.display()))
        .hint("the directory of captured shells must start with /"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_used_is_kept() {
        let root = tempfile::tempdir().unwrap();
        let long_ago = SystemTime::now() - MAX_UNUSED_TIME * 2;
        let entry = |key: &str| {
            let entry = Entry::of(root.path(), key).unwrap();
            for name in [SHELL, LOCK] {
                fs::write(entry.dir.join(name), "{}").unwrap();
            }
            File::options().append(true).open(entry.dir.join(SHELL)).unwrap().set_modified(long_ago).unwrap();
            entry
        };
        let (old, live, over, fresh) = (entry("old"), entry("live"), entry("over"), entry("fresh"));
        let session = |name: &str| {
            let home = root.path().join("..").join(root.path().file_name().unwrap()).join(name);
            fs::create_dir(&home).unwrap();
            home
        };
        let id = |n| SessionId::new(wharf_model::Millis(1), n);
        live.used_by(&id(1), &session("s1")).unwrap();
        live.used_by(&id(1), &session("s1-again")).unwrap();
        let ended = session("s2");
        fs::write(ended.join(Home::EXIT), "{}").unwrap();
        over.used_by(&id(2), &ended).unwrap();
        File::options()
            .append(true)
            .open(fresh.dir.join(SHELL))
            .unwrap()
            .set_modified(SystemTime::now())
            .unwrap();
        clear(root.path());
        let there = [&old, &live, &over, &fresh].map(|entry| entry.dir.exists());
        assert_eq!(there, [false, true, false, true]);
    }

    #[test]
    fn a_session_that_goes_leaves_no_note() {
        let root = tempfile::tempdir().unwrap();
        let entry = Entry::of(root.path(), "key").unwrap();
        let ids = [1, 2].map(|number| SessionId::new(wharf_model::Millis(number), number));
        for id in &ids {
            entry.used_by(id, root.path()).unwrap();
        }
        release(root.path(), &ids[0]);
        assert!(!entry.dir.join(USERS).join(ids[0].as_str()).is_symlink());
        assert!(entry.dir.join(USERS).join(ids[1].as_str()).is_symlink(), "the other one's stays");
    }

    /// What may stand in the place of a file of ours, with the file that must not notice.
    type Plant = fn(&Path, &Path);

    const WAYS: [(&str, Plant); 4] = [
        ("a link", |path, victim| symlink(victim, path).unwrap()),
        ("a second name", |path, victim| fs::hard_link(victim, path).unwrap()),
        ("a directory", |path, _| fs::create_dir(path).unwrap()),
        ("a pipe", |path, _| {
            let made = std::process::Command::new("mkfifo").arg(path).status().unwrap();
            assert!(made.success());
        }),
    ];

    #[tokio::test]
    async fn what_stands_in_the_place_of_a_file_of_the_cache_is_not_opened() {
        let progress = Progress::default();
        for (how, plant) in WAYS {
            let root = tempfile::tempdir().unwrap();
            let (entry, victim) = (Entry::of(root.path(), "key").unwrap(), root.path().join("victim"));
            fs::write(&victim, "precious").unwrap();
            plant(&entry.dir.join(LOCK), &victim);
            let held = entry.turn(&progress).await.unwrap();
            assert!(fs::symlink_metadata(entry.dir.join(LOCK)).unwrap().is_file(), "{how} was opened");
            drop(held);
            // The name under which a file is made before it stands in its place.
            let shell: DevShell = serde_json::from_str("{\"variables\":{}}").unwrap();
            let _ = fs::remove_file(entry.dir.join("shell.json.new"));
            plant(&entry.dir.join("shell.new"), &victim);
            plant(&entry.dir.join("shell.json.new"), &victim);
            let saved = entry.save(b"{}", &shell);
            assert!(saved.is_ok() || how == "a directory", "{how}: {saved:?}");
            assert_eq!(fs::read_to_string(&victim).unwrap(), "precious", "{how}");
        }
    }

    #[test]
    fn a_pipe_in_the_place_of_the_lock_is_not_waited_for() {
        let root = tempfile::tempdir().unwrap();
        let entry = Entry::of(root.path(), "key").unwrap();
        fs::write(entry.dir.join(SHELL), "{}").unwrap();
        let long_ago = SystemTime::now() - MAX_UNUSED_TIME * 2;
        File::options().append(true).open(entry.dir.join(SHELL)).unwrap().set_modified(long_ago).unwrap();
        let made = std::process::Command::new("mkfifo").arg(entry.dir.join(LOCK)).status().unwrap();
        assert!(made.success());
        clear(root.path());
        assert!(entry.dir.exists(), "nobody holds a lock there, so it is left alone");
    }
}

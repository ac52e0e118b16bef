//! A HOME and a temporary directory of a test run's own: nothing of the user's is read or written, and nothing is left.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use tempfile::TempDir;
use wharf_tool_support::process;

/// How long what a run started may take to go after the last test: an engine that the tests share waits for the next
/// one, and then ends with all that it made.
const LEFTOVERS_TIMEOUT: Duration = Duration::from_secs(60);

/// Where a program writes that asks nobody where to.
const SHARED: [&str; 3] = ["/tmp", "/var/tmp", "/dev/shm"];

/// The program that holds sessions, as the kernel names its processes.
const HOLDER: &str = "wharf-holder";

/// Where cgroups are, and how deep below it a session's may be.
const CGROUPS: &str = "/sys/fs/cgroup";
const MAX_CGROUP_DEPTH: usize = 6;

/// The directory.
pub(crate) struct TestHome {
    dir: TempDir,
    /// What was there before the first test.
    before: Machine,
}

/// What the machine holds that tests may add to.
struct Machine {
    /// What is in the user's home and in the directories that all share.
    paths: BTreeSet<PathBuf>,
    /// The places where something is mounted.
    mounts: BTreeSet<PathBuf>,
    /// The cgroups of sessions.
    cgroups: BTreeSet<PathBuf>,
}

/// What a run left.
pub(crate) struct Left {
    /// What is the run's own beyond doubt, and had to be ended or removed: a test left it.
    pub(crate) inside: Vec<String>,
    /// What programs left in the home that they were given: caches and settings.
    pub(crate) in_home: Vec<String>,
    /// What is new on the machine. It need not be the tests': others use it too.
    pub(crate) outside: Vec<String>,
}

impl TestHome {
    pub(crate) fn new() -> Result<Self> {
        // Short, because sockets live below it.
        let dir = tempfile::Builder::new().prefix("wt").tempdir().context("a temporary directory")?;
        // Some tests become another user, who must get through to what is theirs.
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755))?;
        let home = Self { before: Machine::look(), dir };
        fs::create_dir(home.home())?;
        Ok(home)
    }

    fn home(&self) -> PathBuf {
        self.dir.path().join("home")
    }

    /// Where tests note what they leave out.
    pub(crate) fn left_out(&self) -> PathBuf {
        self.dir.path().join("left-out")
    }

    /// Gives a command this home in place of the user's. What builds keeps its place: toolchain and registry are the user's.
    pub(crate) fn settle<'a>(&self, command: &'a mut Command) -> &'a mut Command {
        let user = std::env::var_os("HOME").map(PathBuf::from);
        let theirs: [(&str, &str); 4] = [
            ("CARGO_HOME", ".cargo"),
            ("RUSTUP_HOME", ".rustup"),
            ("NPM_CONFIG_USERCONFIG", ".npmrc"),
            ("PIP_CONFIG_FILE", ".config/pip/pip.conf"),
        ];
        for (variable, place) in theirs {
            let path = user.as_ref().map(|home| home.join(place)).filter(|path| path.exists());
            if let (None, Some(path)) = (std::env::var_os(variable), path) {
                command.env(variable, path);
            }
        }
        for (variable, _) in std::env::vars_os() {
            if variable.as_bytes().starts_with(b"XDG_") {
                command.env_remove(variable);
            }
        }
        command.env("HOME", self.home()).env("TMPDIR", self.dir.path());
        command.env("WHARF_TEST_LEFT_OUT", self.left_out())
    }

    /// What the tests left out, each reason once, with how many tests gave it.
    pub(crate) fn reasons(&self) -> Vec<(String, usize)> {
        let text = fs::read_to_string(self.left_out()).unwrap_or_default();
        let mut reasons: Vec<(String, usize)> = Vec::new();
        for line in text.lines() {
            match reasons.iter_mut().find(|(reason, _)| reason == line) {
                Some((_, count)) => *count += 1,
                None => reasons.push((line.to_owned(), 1)),
            }
        }
        reasons
    }

    /// Waits until all that the run started has gone, and removes the directory.
    pub(crate) fn clear(self) -> Left {
        let deadline = Instant::now() + LEFTOVERS_TIMEOUT;
        let mark = self.dir.path().as_os_str().to_owned();
        let mut pids = process::mentioning(&mark);
        let mut new = Machine::look().since(&self.before);
        // A session's cgroup does not say which run it is of. Who still holds sessions then is somebody else.
        let alone = || process::named(HOLDER).is_empty();
        while !(pids.is_empty() && (new.cgroups.is_empty() || !alone())) && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(200));
            pids = process::mentioning(&mark);
            new = Machine::look().since(&self.before);
        }
        let mut left = Vec::new();
        for pid in pids {
            left.push(format!("process {pid}: {}", process::command_line(pid)));
            process::kill_if_mentioning(pid, &mark);
        }
        let named = |what: &str, path: &Path| format!("{what} {}", path.display());
        let (own, others): (Vec<&PathBuf>, Vec<_>) =
            new.mounts.iter().partition(|at| at.starts_with(self.dir.path()));
        for at in own {
            left.push(named("mount", at));
            let _ = Command::new("umount").arg("-l").arg(at).stderr(Stdio::null()).status();
        }
        let mut outside: Vec<String> = others.into_iter().map(|at| named("mount", at)).collect();
        let groups = new.cgroups.iter().map(|group| named("cgroup", group));
        if alone() {
            left.extend(groups);
        } else {
            outside.extend(groups);
        }
        left.extend(files(self.dir.path(), &["left-out", "home"]));
        let in_home = files(&self.home(), &[]);
        if let Err(error) = remove(self.dir) {
            left.push(format!("the directory itself: {error}"));
        }
        let paths = Machine::look().since(&self.before).paths;
        outside.extend(paths.iter().map(|path| path.display().to_string()));
        Left { inside: left, in_home, outside }
    }
}

impl Machine {
    fn look() -> Self {
        let home = std::env::var_os("HOME").map(PathBuf::from);
        let dirs = SHARED.into_iter().map(PathBuf::from).chain(home);
        let paths = dirs.filter_map(|dir| fs::read_dir(dir).ok()).flatten().flatten();
        let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
        let mut cgroups = BTreeSet::new();
        session_cgroups(Path::new(CGROUPS), MAX_CGROUP_DEPTH, &mut cgroups);
        Self {
            paths: paths.map(|entry| entry.path()).collect(),
            mounts: mounts.lines().filter_map(|line| line.split(' ').nth(4)).map(PathBuf::from).collect(),
            cgroups,
        }
    }

    /// What is here and was not there.
    fn since(self, before: &Self) -> Self {
        let new = |here: BTreeSet<PathBuf>, there: &BTreeSet<PathBuf>| &here - there;
        Self {
            paths: new(self.paths, &before.paths),
            mounts: new(self.mounts, &before.mounts),
            cgroups: new(self.cgroups, &before.cgroups),
        }
    }
}

/// Finds the cgroups that holders made for sessions, by what they call them.
fn session_cgroups(dir: &Path, depth: usize, found: &mut BTreeSet<PathBuf>) {
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        if !entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            continue;
        }
        if entry.file_name().as_bytes().starts_with(b"wharf-") {
            found.insert(entry.path());
        } else if depth > 0 {
            session_cgroups(&entry.path(), depth - 1, found);
        }
    }
}

/// Removes it, also where a test took rights away from an ordinary user.
fn remove(dir: TempDir) -> std::io::Result<()> {
    let path = dir.keep();
    if fs::remove_dir_all(&path).is_ok() {
        return Ok(());
    }
    let _ = Command::new("chmod").args(["-R", "u+rwX", "--"]).arg(&path).stderr(Stdio::null()).status();
    fs::remove_dir_all(&path)
}

/// The entries of a directory but for these.
fn files(dir: &Path, except: &[&str]) -> Vec<String> {
    let Ok(entries) = fs::read_dir(dir) else { return Vec::new() };
    let names = entries.flatten().map(|entry| entry.file_name());
    let others = names.filter(|name: &OsString| !except.iter().any(|known| name == known));
    others.map(|name| dir.join(name).display().to_string()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_is_named_ended_and_removed() {
        let home = TestHome::new().unwrap();
        let dir = home.dir.path().to_owned();
        let mut command = Command::new("sh");
        let script = "echo x >\"$HOME/file\"; mkdir -p \"$TMPDIR/dir/below\"; chmod 0 \"$TMPDIR/dir\"; echo 'no nix' >>\"$WHARF_TEST_LEFT_OUT\"; exec sleep 600";
        let mut child = home.settle(command.args(["-c", script])).spawn().unwrap();
        let deadline = Instant::now() + Duration::from_secs(30);
        while home.reasons().is_empty() {
            assert!(Instant::now() < deadline, "the shell never got that far");
            std::thread::yield_now();
        }
        assert_eq!(home.reasons(), [("no nix".to_owned(), 1)]);
        assert!(process::mentioning(dir.as_os_str()).contains(&(child.id() as i32)));
        child.kill().unwrap();
        child.wait().unwrap();
        let left = home.clear();
        // Cgroups may be those of tests that run beside this one.
        let inside: Vec<_> = left.inside.iter().filter(|left| !left.starts_with("cgroup ")).collect();
        assert_eq!(inside, [&dir.join("dir").display().to_string()]);
        assert_eq!(left.in_home, [dir.join("home/file").display().to_string()]);
        assert!(!dir.exists());
    }

    #[test]
    fn a_mount_and_a_cgroup_that_are_left_are_named() {
        let before = Machine {
            paths: BTreeSet::new(),
            mounts: ["/", "/proc"].into_iter().map(PathBuf::from).collect(),
            cgroups: BTreeSet::new(),
        };
        let now = Machine::look();
        assert!(now.mounts.contains(Path::new("/proc")), "{:?}", now.mounts);
        let new = now.since(&before).mounts;
        assert!(!new.contains(Path::new("/proc")) && !new.contains(Path::new("/")), "{new:?}");
        let root = tempfile::tempdir().unwrap();
        fs::create_dir_all(root.path().join("freezer/below/wharf-1-1-1")).unwrap();
        fs::create_dir_all(root.path().join("freezer/docker/1")).unwrap();
        let mut found = BTreeSet::new();
        session_cgroups(root.path(), MAX_CGROUP_DEPTH, &mut found);
        assert_eq!(found, BTreeSet::from([root.path().join("freezer/below/wharf-1-1-1")]));
    }

    #[test]
    fn what_is_written_beside_it_is_seen() {
        let home = TestHome::new().unwrap();
        let beside = tempfile::Builder::new().prefix("wt-beside").tempfile_in("/var/tmp").unwrap();
        let own = home.dir.path().display().to_string();
        let new = home.clear().outside;
        assert!(new.contains(&beside.path().display().to_string()), "{new:?}");
        assert!(!new.contains(&own), "its own place is no news");
    }
}

//! State that is another's, or that others could replace.

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use wharf_backend::conformance::left_out;

use crate::ground::Ground;
use crate::support::{Wharf, until};

/// Somebody else. Nobody of this machine needs to have the number.
const OTHER_UID: u32 = 4_242;

fn chmod(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

fn refused(wharf: &Wharf, place: &Path, hint: &str) {
    for args in [
        &["ls"][..],
        &["run", "-d", "--", "true"],
        &["logs", "x"],
        &["daemon", "status"],
        &["daemon", "start"],
        &["daemon", "run"],
    ] {
        let ran = wharf.run(args);
        assert!(ran.code != 0, "{args:?}: {ran:#?}");
        assert!(ran.err.contains(&place.display().to_string()), "{args:?}: {ran:#?}");
        assert!(ran.err.contains(hint), "{args:?}: {ran:#?}");
    }
    let looked = wharf.run(&["doctor"]);
    assert!(looked.code == 1 && looked.out.contains(&place.display().to_string()), "{looked:#?}");
}

#[test]
fn root_with_the_home_of_another_is_refused_and_makes_nothing_there() {
    if !rustix::process::geteuid().is_root() {
        left_out("only root can become another user");
    }
    let root = tempfile::tempdir().unwrap();
    let home = root.path().join("home");
    fs::create_dir(&home).unwrap();
    chown(&home, Some(OTHER_UID), Some(OTHER_UID)).unwrap();
    let wharf = Wharf::at(&home);
    refused(&wharf, &home, "sudo -H");
    assert_eq!(fs::read_dir(&home).unwrap().count(), 0, "something was made");
    // Also where that one has an instance already.
    fs::create_dir_all(wharf.state()).unwrap();
    for part in [".local", ".local/state", ".local/state/wharf"] {
        chown(home.join(part), Some(OTHER_UID), Some(OTHER_UID)).unwrap();
    }
    refused(&wharf, &home, "sudo -H");
    assert_eq!(fs::read_dir(wharf.state()).unwrap().count(), 0, "something was made");
}

#[test]
fn a_place_that_others_can_replace_is_refused() {
    let root = tempfile::tempdir().unwrap();
    let shared = root.path().join("shared");
    fs::create_dir_all(shared.join("home")).unwrap();
    chmod(&shared, 0o777);
    let wharf = Wharf::at(&shared.join("home"));
    refused(&wharf, &shared, "chmod");
    assert_eq!(fs::read_dir(shared.join("home")).unwrap().count(), 0, "something was made");
    // As in /tmp, where nobody can touch what is another's.
    chmod(&shared, 0o1777);
    let ground = Ground::at(&shared.join("home"));
    ground.start("one", &[], &["cat"]);
}

/// Holds a lock as somebody else.
struct Stranger(Child);

impl Stranger {
    fn lock(path: &Path) -> Self {
        let mut command = Command::new("flock");
        command.arg(path).args(["sh", "-c", "echo locked; exec sleep 600"]).uid(OTHER_UID).gid(OTHER_UID);
        let mut child = command.stdout(Stdio::piped()).process_group(0).spawn().unwrap();
        let mut line = String::new();
        let out = child.stdout.take().unwrap();
        std::io::BufRead::read_line(&mut std::io::BufReader::new(out), &mut line).unwrap();
        assert_eq!(line, "locked\n");
        Self(child)
    }
}

impl Drop for Stranger {
    fn drop(&mut self) {
        let group = rustix::process::Pid::from_child(&self.0);
        let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
        let _ = self.0.wait();
    }
}

#[test]
fn a_lock_of_another_user_stops_nobody() {
    if !rustix::process::geteuid().is_root() {
        left_out("only root can become another user");
    }
    let root = tempfile::tempdir().unwrap();
    chmod(root.path(), 0o755);
    let ground = Ground::at(root.path());
    let above = ground.state().parent().unwrap().to_owned();
    fs::create_dir_all(&above).unwrap();
    for part in [".local", ".local/state"] {
        chmod(&root.path().join(part), 0o755);
    }
    let _stranger = Stranger::lock(&above);
    ground.start("one", &[], &["cat"]);
    let log = || fs::read_to_string(ground.state().join("daemon.log")).unwrap();
    assert!(until(|| log().contains("another user has locked")), "{}", log());
}

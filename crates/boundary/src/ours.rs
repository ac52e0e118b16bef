//! Whose a directory is: it, and all above it that decides what stands at its path.

use std::ffi::OsString;
use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};

use crate::platform;

/// How many links a path may lead through; the kernel's own number.
const MAX_LINKS: u32 = 40;

/// Why a directory is not taken for ours.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Distrust {
    /// What is wrong, with the directory that it is about.
    pub message: String,
    /// The way out.
    pub hint: String,
}

/// Looks whether a directory is the user's own, and whether nobody else but root can put another one in its place. What
/// is not there yet is no reason to distrust: what is made is looked at again.
///
/// One look at each part of the path, and at each link that the path leads through.
pub fn check_ours(path: &Path) -> Result<(), Distrust> {
    let us = rustix::process::geteuid().as_raw();
    let mut rest = parts(path);
    let mut at = PathBuf::from("/");
    let mut links = 0;
    check_above(us, &at, fs::symlink_metadata(&at).ok().as_ref())?;
    while let Some(name) = rest.pop() {
        if name == ".." {
            at.pop();
            continue;
        }
        let here = at.join(&name);
        // Whoever opens it hears what the system says.
        let Ok(meta) = fs::symlink_metadata(&here) else { return Ok(()) };
        if meta.is_symlink() {
            // In a directory such as /tmp, a link is whoever's made it.
            check_owner(us, &here, meta.uid())?;
            links += 1;
            let Ok(target) = fs::read_link(&here) else { return Ok(()) };
            if links > MAX_LINKS {
                return Ok(());
            }
            if target.is_absolute() {
                at = PathBuf::from("/");
            }
            rest.extend(parts(&target));
        } else if rest.is_empty() {
            return if meta.uid() == us { Ok(()) } else { Err(not_ours(us, &here, meta.uid())) };
        } else {
            check_above(us, &here, Some(&meta))?;
            at = here;
        }
    }
    Ok(())
}

/// The parts of a path, the last one first.
fn parts(path: &Path) -> Vec<OsString> {
    let mut parts: Vec<OsString> = path
        .components()
        .filter(|part| matches!(part, Component::Normal(_) | Component::ParentDir))
        .map(|part| part.as_os_str().to_owned())
        .collect();
    parts.reverse();
    parts
}

fn check_above(us: u32, path: &Path, meta: Option<&Metadata>) -> Result<(), Distrust> {
    let Some(meta) = meta else { return Ok(()) };
    check_owner(us, path, meta.uid())?;
    let mode = meta.mode();
    // With the sticky bit others may add names, and not touch ours.
    let open_to_others = mode & 0o1002 == 0o002;
    let open_to_group = mode & 0o1020 == 0o020 && !group_is_ours_alone(us, path, meta.gid());
    if !open_to_others && !open_to_group {
        return Ok(());
    }
    let who = if open_to_others { "everybody" } else { "its group" };
    let right = if open_to_others { "o-w" } else { "g-w" };
    Err(Distrust {
        message: format!(
            "{} is above Wharf's state, and {who} can write to it (mode {:03o})",
            path.display(),
            mode & 0o7777
        ),
        hint: format!("`chmod {right} {}`, or set XDG_STATE_HOME to a place of your own", path.display()),
    })
}

/// Root can do anything anyway; anybody else who owns a directory can put another in the place of what is in it.
fn check_owner(us: u32, path: &Path, owner: u32) -> Result<(), Distrust> {
    if owner == us || owner == 0 || platform::is_unmapped(owner) {
        return Ok(());
    }
    let message = format!("{} is above Wharf's state, and belongs to user {owner}", path.display());
    Err(Distrust { message, ..not_ours(us, path, owner) })
}

fn not_ours(us: u32, path: &Path, owner: u32) -> Distrust {
    let hint = if us == 0 {
        "as root with another user's HOME? `sudo -H wharf …` has a state of its own; else run it as that user"
    } else {
        "HOME and XDG_STATE_HOME decide where Wharf keeps its state: set them to a place of your own"
    };
    Distrust {
        message: format!("{} belongs to user {owner}, and you are user {us}", path.display()),
        hint: hint.to_owned(),
    }
}

/// Whether a group has no other member than us and root, as where each user has a group of the same name. Groups that
/// this host does not list, and directories with further rights in a list, count as somebody else's.
fn group_is_ours_alone(us: u32, path: &Path, gid: u32) -> bool {
    let mut none = [0_u8; 0];
    if rustix::fs::getxattr(path, c"system.posix_acl_access", &mut none).is_ok() {
        return false;
    }
    let (Ok(groups), Ok(users)) = (fs::read("/etc/group"), fs::read("/etc/passwd")) else { return false };
    let (groups, users) = (String::from_utf8_lossy(&groups), String::from_utf8_lossy(&users));
    let field = |line: &str, at: usize| line.split(':').nth(at).unwrap_or_default().to_owned();
    let is = |text: String, number: u32| text.parse() == Ok(number);
    let ours = |name: &str| {
        users.lines().any(|line| field(line, 0) == name && (is(field(line, 2), us) || is(field(line, 2), 0)))
    };
    let mut listed = groups.lines().filter(|line| is(field(line, 2), gid)).peekable();
    listed.peek().is_some()
        && listed.all(|line| field(line, 3).split(',').filter(|name| !name.is_empty()).all(ours))
        && users.lines().filter(|line| is(field(line, 3), gid)).all(|line| ours(&field(line, 0)))
}

/// Whether a process of ours holds the lock of a file or directory. Another user can lock whatever he can read, and that
/// stops nobody of us.
pub fn is_locked_by_us(device: u64, inode: u64) -> bool {
    platform::is_locked_by_us(device, inode)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    fn chmod(path: &Path, mode: u32) {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn what_others_can_replace_is_not_ours() {
        let root = tempfile::tempdir().unwrap();
        let state = root.path().join("shared/home/state");
        fs::create_dir_all(&state).unwrap();
        check_ours(&state).unwrap();
        check_ours(&root.path().join("shared/not/yet")).unwrap();
        let shared = root.path().join("shared");
        chmod(&shared, 0o777);
        let distrust = check_ours(&state).unwrap_err();
        assert!(distrust.message.starts_with(&format!("{} is above", shared.display())), "{distrust:?}");
        check_ours(&shared.join("not/yet")).unwrap_err();
        chmod(&shared, 0o1777);
        check_ours(&state).unwrap();
        // The way over a link counts as well, and so does its own directory.
        chmod(&shared, 0o755);
        let open = root.path().join("open");
        fs::create_dir(&open).unwrap();
        symlink(&state, open.join("link")).unwrap();
        check_ours(&open.join("link")).unwrap();
        chmod(&open, 0o777);
        check_ours(&open.join("link")).unwrap_err();
    }

    #[test]
    fn what_is_anothers_is_not_ours() {
        if !rustix::process::geteuid().is_root() {
            return;
        }
        let root = tempfile::tempdir().unwrap();
        let home = root.path().join("home");
        let state = home.join("state");
        fs::create_dir_all(&state).unwrap();
        std::os::unix::fs::chown(&state, Some(4242), None).unwrap();
        let distrust = check_ours(&state).unwrap_err();
        assert!(distrust.message.contains("belongs to user 4242"), "{distrust:?}");
        assert!(distrust.hint.contains("sudo"), "{distrust:?}");
        std::os::unix::fs::chown(&state, Some(0), None).unwrap();
        std::os::unix::fs::chown(&home, Some(4242), None).unwrap();
        check_ours(&state).unwrap_err();
        check_ours(&home.join("not-yet")).unwrap_err();
        // A link of another in a directory such as /tmp.
        chmod(root.path(), 0o1777);
        let real = root.path().join("real");
        fs::create_dir(&real).unwrap();
        let link = root.path().join("link");
        symlink(&real, &link).unwrap();
        check_ours(&link).unwrap();
        std::os::unix::fs::lchown(&link, Some(4242), None).unwrap();
        check_ours(&link).unwrap_err();
    }

    #[test]
    fn a_lock_of_ours_is_known() {
        let root = tempfile::tempdir().unwrap();
        let held = fs::File::open(root.path()).unwrap();
        let meta = held.metadata().unwrap();
        assert!(!is_locked_by_us(meta.dev(), meta.ino()));
        rustix::fs::flock(&held, rustix::fs::FlockOperation::LockExclusive).unwrap();
        assert!(is_locked_by_us(meta.dev(), meta.ino()));
        assert!(!is_locked_by_us(meta.dev(), meta.ino() + 1));
    }
}

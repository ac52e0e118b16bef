//! A `/dev` of its own: devices that hold nothing of anybody, and terminals that nobody else has.

use std::fs::{self, File, Metadata};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt, symlink};
use std::path::{Path, PathBuf};

use super::mounts::{attach, clone_tree, mount_new, set_read_only};
use crate::rules::DEVICES;

/// What programs expect there beside devices.
const LINKS: &[(&str, &str)] = &[
    ("/dev/fd", "/proc/self/fd"),
    ("/dev/stdin", "/proc/self/fd/0"),
    ("/dev/stdout", "/proc/self/fd/1"),
    ("/dev/stderr", "/proc/self/fd/2"),
    ("/dev/ptmx", "pts/ptmx"),
];

/// The name of the terminal that it was started on. Its own name is one of the host's, where those of others are.
const CONSOLE: &str = "/dev/console";

/// Puts it in the place of the host's.
pub(super) fn make() -> io::Result<()> {
    let mut devices: Vec<(PathBuf, OwnedFd)> = Vec::new();
    for path in DEVICES.iter().map(Path::new).filter(|path| path.exists()) {
        devices.push((path.to_owned(), clone_tree(path)?));
    }
    if let Some(terminal) = terminal() {
        devices.push((CONSOLE.into(), clone_tree(&terminal)?));
    }
    let dev = Path::new("/dev");
    mount_new(c"tmpfs", dev, libc::MS_NOSUID | libc::MS_NOEXEC, c"mode=0755,size=64k")?;
    for (path, device) in &devices {
        File::create(path)?;
        attach(device, path)?;
    }
    for (path, target) in LINKS {
        symlink(target, path)?;
    }
    let pts = dev.join("pts");
    fs::create_dir(&pts)?;
    let flags = libc::MS_NOSUID | libc::MS_NOEXEC;
    mount_new(c"devpts", &pts, flags, c"newinstance,ptmxmode=0666,mode=0620")?;
    set_read_only(dev, false)
}

/// The path of the terminal that we were started on, where there is one.
pub(super) fn terminal() -> Option<PathBuf> {
    (0..3).find_map(|number| {
        let link = PathBuf::from(format!("/proc/self/fd/{number}"));
        let (ours, path) = (fs::metadata(&link).ok()?, fs::read_link(&link).ok()?);
        let there = fs::symlink_metadata(&path).ok()?;
        (is_terminal(number) && is_same(&ours, &there)).then_some(path)
    })
}

fn is_terminal(number: i32) -> bool {
    match number {
        0 => rustix::termios::isatty(rustix::stdio::stdin()),
        1 => rustix::termios::isatty(rustix::stdio::stdout()),
        _ => rustix::termios::isatty(rustix::stdio::stderr()),
    }
}

fn is_same(one: &Metadata, other: &Metadata) -> bool {
    other.file_type().is_char_device() && (one.dev(), one.ino()) == (other.dev(), other.ino())
}

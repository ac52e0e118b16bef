//! Paths of the rules as descriptors: what is looked at is what is given.

use std::io;
use std::os::fd::{AsRawFd, IntoRawFd, OwnedFd};
use std::path::Path;

use rustix::fs::{CWD, Mode, OFlags, ResolveFlags};
use wharf_model::{Code, Expected, Failure, Text, device_words};

use crate::{Result, Rules};

/// The rules with a descriptor in the place of each path of which it is known what must be there. Whoever swaps the path
/// from here on changes nothing. The descriptors stay open until the command is run.
pub(super) fn held(rules: &Rules) -> Result<Rules> {
    // What is below something that it may change is given with that, and is the session's to change.
    let below = |path: &Text| {
        rules.write.iter().any(|other| other != path && path.as_path().starts_with(other.as_path()))
    };
    let hold = |paths: &[Text]| -> Result<Vec<Text>> {
        let outer = paths.iter().filter(|path| !below(path));
        outer
            .map(|path| match rules.expected.iter().find(|expected| expected.path == *path) {
                Some(expected) => open(expected),
                None => Ok(path.clone()),
            })
            .collect()
    };
    Ok(Rules { read: hold(&rules.read)?, write: hold(&rules.write)?, ..rules.clone() })
}

fn open(expected: &Expected) -> Result<Text> {
    let path = expected.path.as_path();
    let refused = |found: String| {
        let message = format!(
            "{} is not what the sandbox was to have: inode {} on device {} was to be there, found was {found}",
            path.display(),
            expected.inode,
            device_words(expected.device)
        );
        Failure::new(Code::Forbidden, message)
    };
    let fd = open_plain(path).map_err(|error| refused(error.to_string()))?;
    let stat = rustix::fs::fstat(&fd).map_err(|error| refused(error.to_string()))?;
    if (stat.st_dev, stat.st_ino) != (expected.device, expected.inode) {
        return Err(refused(format!("inode {} on device {}", stat.st_ino, device_words(stat.st_dev))));
    }
    let text = format!("/proc/self/fd/{}", fd.as_raw_fd());
    // It is closed by the exec.
    let _ = fd.into_raw_fd();
    Ok(text.into())
}

/// Opens a path no part of which is a link.
fn open_plain(path: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    let how = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    Ok(rustix::fs::openat2(CWD, path, flags, Mode::empty(), how)?)
}

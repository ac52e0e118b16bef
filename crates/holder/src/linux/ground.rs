//! Where a file system puts what is made in a directory.

use std::io;
use std::path::Path;

use rustix::fs::{IFlags, Mode, OFlags, ioctl_getflags, ioctl_setflags};

/// Says that what is made in a directory has nothing to do with its neighbours, as the homes of users do not.
///
/// ext4 then puts each somewhere else. Side by side, a file system without a journal would look past all files that
/// were deleted there in the last minutes for each new one, which costs more than all else of a start. Others know no
/// such thing, and say so.
pub fn spread(dir: &Path) -> io::Result<()> {
    let dir = rustix::fs::open(dir, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
    let flags = ioctl_getflags(&dir)?;
    if flags.contains(IFlags::TOPDIR) {
        return Ok(());
    }
    Ok(ioctl_setflags(&dir, flags | IFlags::TOPDIR)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_is_spread_where_its_file_system_can_do_that() {
        let dir = tempfile::tempdir().unwrap();
        for _ in 0..2 {
            match spread(dir.path()) {
                Ok(()) => {
                    let open = std::fs::File::open(dir.path()).unwrap();
                    assert!(ioctl_getflags(&open).unwrap().contains(IFlags::TOPDIR));
                }
                Err(error) => {
                    let known = [libc::ENOTTY, libc::EOPNOTSUPP, libc::ENOSYS, libc::EINVAL];
                    assert!(known.iter().any(|code| error.raw_os_error() == Some(*code)), "{error}");
                }
            }
            std::fs::write(dir.path().join("file"), "").unwrap();
        }
        assert_eq!(spread(&dir.path().join("none")).unwrap_err().kind(), io::ErrorKind::NotFound);
    }
}

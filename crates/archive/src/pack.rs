use std::ffi::OsStr;
use std::fs::{self, File, Metadata};
use std::io::{self, Read, Write};
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;
use tar::{Builder, EntryType, Header};
use wharf_model::Failure;

use crate::Moved;
use crate::fault::fault;

/// How a tree is packed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct How {
    /// What a link at the end of the path points to is packed, and not the link.
    pub follow: bool,
    /// Whose everything is said to be, as user and group; whose it is when absent.
    pub owner: Option<(u32, u32)>,
}

/// Writes a file, or a directory with all that is below it, as an archive in which all names begin with `name`; with
/// an empty one, only what is in the directory. Links in a directory are packed as what
/// they are. `tell` hears how many bytes of files went in, again and again.
pub fn pack<W: Write>(
    archive: W,
    path: &Path,
    name: &OsStr,
    how: How,
    tell: impl FnMut(u64),
) -> Result<Moved, Failure> {
    let How { follow, owner } = how;
    let meta = if follow { fs::metadata(path) } else { fs::symlink_metadata(path) };
    let meta = meta.map_err(|error| fault(format!("cannot read {}", path.display()), &error))?;
    let mut packing =
        Packing { archive: Builder::new(archive), moved: Moved::default(), follow, owner, tell };
    // Depth by a list: a tree may be deeper than a stack is.
    let mut open = vec![(path.to_owned(), PathBuf::from(name), meta)];
    while let Some((path, name, meta)) = open.pop() {
        packing
            .entry(&path, &name, &meta)
            .map_err(|error| fault(format!("cannot pack {}", path.display()), &error))?;
        if !meta.is_dir() {
            continue;
        }
        let listed =
            children(&path).map_err(|error| fault(format!("cannot read {}", path.display()), &error))?;
        for (child, meta) in listed {
            open.push((path.join(&child), name.join(&child), meta));
        }
    }
    let done = packing.archive.into_inner().and_then(|mut archive| archive.flush());
    done.map_err(|error| fault("cannot end the archive", &error))?;
    Ok(packing.moved)
}

/// What is in a directory, the last first. What went meanwhile is left out.
fn children(dir: &Path) -> io::Result<Vec<(std::ffi::OsString, Metadata)>> {
    let mut listed = Vec::new();
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        match fs::symlink_metadata(entry.path()) {
            Ok(meta) => listed.push((entry.file_name(), meta)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    listed.sort_by(|one, other| other.0.cmp(&one.0));
    Ok(listed)
}

struct Packing<W: Write, F> {
    archive: Builder<W>,
    moved: Moved,
    /// Whether the next file may be reached by a link: the first alone.
    follow: bool,
    owner: Option<(u32, u32)>,
    tell: F,
}

impl<W: Write, F: FnMut(u64)> Packing<W, F> {
    fn entry(&mut self, path: &Path, name: &Path, meta: &Metadata) -> io::Result<()> {
        let follow = std::mem::take(&mut self.follow);
        if name.as_os_str().is_empty() {
            return Ok(());
        }
        let mut header = Header::new_gnu();
        header.set_mode(meta.mode() & 0o7777);
        let (user, group) = self.owner.unwrap_or_else(|| (meta.uid(), meta.gid()));
        header.set_uid(u64::from(user));
        header.set_gid(u64::from(group));
        header.set_mtime(u64::try_from(meta.mtime()).unwrap_or(0));
        header.set_size(0);
        let kind = meta.file_type();
        if kind.is_dir() {
            header.set_entry_type(EntryType::Directory);
            self.archive.append_data(&mut header, name, io::empty())?;
        } else if kind.is_symlink() {
            header.set_entry_type(EntryType::Symlink);
            self.archive.append_link(&mut header, name, fs::read_link(path)?)?;
        } else if kind.is_file() {
            self.file(path, name, header, follow)?;
        } else {
            debug_assert!(
                kind.is_fifo() || kind.is_socket() || kind.is_block_device() || kind.is_char_device()
            );
            self.moved.left_out += 1;
            return Ok(());
        }
        self.moved.entries += 1;
        Ok(())
    }

    fn file(&mut self, path: &Path, name: &Path, mut header: Header, follow: bool) -> io::Result<()> {
        // It may have become something else since it was looked at: a link is not followed, a pipe not waited for.
        let link = if follow { OFlags::empty() } else { OFlags::NOFOLLOW };
        let flags = (OFlags::NONBLOCK | OFlags::CLOEXEC | link).bits();
        let file = File::options().read(true).custom_flags(flags as i32).open(path)?;
        let meta = file.metadata()?;
        if !meta.is_file() {
            self.moved.left_out += 1;
            return Ok(());
        }
        let size = meta.len();
        header.set_entry_type(EntryType::Regular);
        header.set_size(size);
        // A file that changes under our eyes still has the size that was said.
        let data = file.take(size).chain(io::repeat(0)).take(size);
        let (before, tell) = (self.moved.bytes, &mut self.tell);
        let mut done = before;
        let counted = Counted {
            reader: data,
            tell: |got| {
                done += got;
                tell(done);
            },
        };
        self.archive.append_data(&mut header, name, counted)?;
        self.moved.bytes = before + size;
        Ok(())
    }
}

struct Counted<R, F> {
    reader: R,
    tell: F,
}

impl<R: Read, F: FnMut(u64)> Read for Counted<R, F> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let got = self.reader.read(buffer)?;
        (self.tell)(got as u64);
        Ok(got)
    }
}

//! The files of a session on this host: the user's own, seen from the session's directory.

use std::ffi::OsString;
use std::fs::Metadata;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use async_trait::async_trait;
use rustix::fs::{Mode, OFlags, ResolveFlags};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use wharf_archive::{Drain, Feed, How, Moved, Names, pack, pipe, unpack};
use wharf_backend::{Archive, Files, Result};
use wharf_model::{Code, Failure, FileKind, FileStat, Millis, Text, Ticket};

/// The files of this host.
pub(crate) struct HostFiles;

/// Where a path leads.
struct Found {
    path: PathBuf,
    /// What keeps it from leading elsewhere meanwhile.
    pin: Option<OwnedFd>,
    /// Whether a link at its end may be followed.
    free: bool,
}

impl Found {
    /// A path of a session: from its directory on. With `inside` it is that of a directory to go into.
    fn of(ticket: &Ticket, path: &Text, inside: bool) -> Result<Self> {
        let dir = ticket.spec.dir.as_path();
        let whole = dir.join(path.as_path());
        if ticket.spec.sandbox.is_none() {
            return Ok(Self { path: whole, pin: None, free: true });
        }
        // What runs in a sandbox may put links in its directory, and must not have us follow them out of it.
        let outside = || {
            Failure::new(Code::Forbidden, format!("{} is not in the sandbox's directory", path.lossy()))
                .hint("a file of this host is copied with `cp`")
        };
        let below = whole.strip_prefix(dir).map_err(|_| outside())?;
        let (parent, name) = match (below.parent(), below.file_name()) {
            (Some(parent), Some(name)) if !inside => (parent, Some(name)),
            _ => (below, None),
        };
        let parent = if parent.as_os_str().is_empty() { Path::new(".") } else { parent };
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let base = rustix::fs::open(dir, flags, Mode::empty())
            .map_err(|error| fault("cannot open", dir, &error.into()))?;
        let how = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
        let pin = match rustix::fs::openat2(&base, parent, flags, Mode::empty(), how) {
            Err(rustix::io::Errno::XDEV) => return Err(outside()),
            opened => opened.map_err(|error| fault("cannot open", &whole, &error.into()))?,
        };
        let held = PathBuf::from(format!("/proc/self/fd/{}", pin.as_raw_fd()));
        let path = name.map_or_else(|| held.join("."), |name| held.join(name));
        Ok(Self { path, pin: Some(pin), free: false })
    }

    fn metadata(&self, follow: bool) -> io::Result<Metadata> {
        if follow && self.free {
            std::fs::metadata(&self.path)
        } else {
            std::fs::symlink_metadata(&self.path)
        }
    }

    fn name(&self) -> OsString {
        let text = self.path.as_os_str().as_bytes();
        let real = || self.path.canonicalize().ok().and_then(|real| real.file_name().map(OsString::from));
        // The last of "a/." is "." and not "a".
        let dots = [&b"/."[..], b"/..", b"/"].iter().any(|end| text.ends_with(end));
        let plain = || self.path.file_name().map(OsString::from);
        if dots { real() } else { plain().or_else(real) }.unwrap_or_else(|| "root".into())
    }
}

#[async_trait]
impl Files for HostFiles {
    async fn look(&self, ticket: &Ticket, path: &Text, follow: bool) -> Result<Option<FileStat>> {
        let (ticket, path) = (ticket.clone(), path.clone());
        apart(move || {
            let found = match Found::of(&ticket, &path, false) {
                Err(failure) if failure.code == Code::NotFound => return Ok(None),
                found => found?,
            };
            let meta = match found.metadata(follow) {
                Ok(meta) => meta,
                Err(error) if absent(&error) => return Ok(None),
                Err(error) => return Err(fault("cannot read", path.as_path(), &error)),
            };
            let link = meta.is_symlink().then(|| std::fs::read_link(&found.path).ok()).flatten();
            Ok(Some(FileStat {
                name: found.name().into(),
                kind: kind(&meta),
                size: meta.len(),
                mode: meta.mode() & 0o7777,
                modified: Millis(u64::try_from(meta.mtime()).unwrap_or(0) * 1000),
                owner: None,
                target: link.map(Text::from),
            }))
        })
        .await
    }

    async fn take(&self, ticket: &Ticket, path: &Text, follow: bool) -> Result<Box<dyn Archive>> {
        let (ticket, path) = (ticket.clone(), path.clone());
        let (found, follow) = apart(move || {
            let found = Found::of(&ticket, &path, false)?;
            let meta =
                found.metadata(follow).map_err(|error| fault("cannot read", path.as_path(), &error))?;
            // What was found to be no link is not followed later either.
            Ok((found, !meta.is_symlink() && follow))
        })
        .await?;
        let (sender, pieces) = pipe();
        let packing = tokio::task::spawn_blocking(move || {
            let packed =
                pack(Drain::new(sender), &found.path, &found.name(), How { follow, owner: None }, |_| ());
            drop(found.pin);
            packed
        });
        Ok(Box::new(Packed { pieces, packing: Some(packing) }))
    }

    async fn put(&self, ticket: &Ticket, dir: &Text, mut archive: Box<dyn Archive>) -> Result<()> {
        let (ticket, dir) = (ticket.clone(), dir.clone());
        let (sender, pieces) = pipe();
        let unpacking = tokio::task::spawn_blocking(move || {
            let found = Found::of(&ticket, &dir, true)?;
            let unpacked = unpack(Feed::new(pieces), &found.path, Names::Kept, |_| ());
            drop(found.pin);
            unpacked
        });
        let sent = loop {
            match archive.next().await {
                Ok(Some(piece)) => {
                    // Whoever unpacks has failed, and says why.
                    if sender.send(piece).await.is_err() {
                        break Ok(());
                    }
                }
                Ok(None) => break Ok(()),
                Err(failure) => break Err(failure),
            }
        };
        drop(sender);
        let unpacked = joined(unpacking.await);
        sent.and(unpacked.map(drop))
    }
}

/// An archive that is being packed.
struct Packed {
    pieces: mpsc::Receiver<Vec<u8>>,
    packing: Option<JoinHandle<Result<Moved>>>,
}

#[async_trait]
impl Archive for Packed {
    async fn next(&mut self) -> Result<Option<Vec<u8>>> {
        if let Some(piece) = self.pieces.recv().await {
            return Ok(Some(piece));
        }
        match self.packing.take() {
            Some(packing) => joined(packing.await).map(|_| None),
            None => Ok(None),
        }
    }
}

fn kind(meta: &Metadata) -> FileKind {
    match meta.file_type() {
        kind if kind.is_dir() => FileKind::Directory,
        kind if kind.is_symlink() => FileKind::Link,
        kind if kind.is_file() => FileKind::File,
        _ => FileKind::Other,
    }
}

/// Nothing is there, or what would have to be a directory is none.
fn absent(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

fn fault(what: &str, path: &Path, error: &io::Error) -> Failure {
    let what = format!("{what} {}", path.display());
    match error.kind() {
        _ if absent(error) => Failure::new(Code::NotFound, format!("{what}: {error}")),
        io::ErrorKind::PermissionDenied => Failure::new(Code::Forbidden, format!("{what}: {error}")),
        _ => Failure::system(what, error),
    }
}

/// Off the tasks: a disk may be slow.
async fn apart<T: Send + 'static>(work: impl FnOnce() -> Result<T> + Send + 'static) -> Result<T> {
    joined(tokio::task::spawn_blocking(work).await)
}

fn joined<T>(done: std::result::Result<Result<T>, tokio::task::JoinError>) -> Result<T> {
    done.map_err(|error| Failure::new(Code::Internal, format!("a copy failed by a fault: {error}")))?
}

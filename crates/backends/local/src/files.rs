//! The files of a session on this host: the user's own, seen from the session's directory.

use std::fs::Metadata;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

use async_trait::async_trait;
use rustix::fs::OFlags;
use rustix::io::Errno;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use wharf_archive::{Drain, EntryNames, Feed, How, Moved, PackSource, pack, pipe, unpack};
use wharf_backend::{Archive, Files, Result, open_pinned};
use wharf_boundary::Dir;
use wharf_model::{Code, Failure, FileKind, FileStat, Millis, PinKind, Text, Ticket};

/// The files of this host.
pub(crate) struct HostFiles;

/// What a path of a session leads to, from its directory on.
fn find(ticket: &Ticket, path: &Text, follow: bool) -> Result<io::Result<PackSource>> {
    Ok(match sandboxed(ticket, path)? {
        Some((dir, below)) => PackSource::open_beneath(&dir, &below, follow),
        None => PackSource::open(&ticket.spec.dir.as_path().join(path.as_path()), follow),
    })
}

/// The directory that a path of a session leads to, to write in it.
fn directory(ticket: &Ticket, path: &Text) -> Result<io::Result<Dir>> {
    Ok(match sandboxed(ticket, path)? {
        Some((dir, below)) => {
            dir.open_beneath(below, OFlags::PATH | OFlags::DIRECTORY).and_then(Dir::from_fd)
        }
        None => Dir::open(&ticket.spec.dir.as_path().join(path.as_path())),
    })
}

/// Of a session in a sandbox, its directory and the way from there: it may put links in it, and another directory or a
/// link in its place where it can write above it, and must not have us follow them out.
fn sandboxed(ticket: &Ticket, path: &Text) -> Result<Option<(Dir, PathBuf)>> {
    let spec = &ticket.spec;
    if spec.sandbox.is_none() {
        return Ok(None);
    }
    let dir = spec.dir.as_path();
    let whole = dir.join(path.as_path());
    let below = whole.strip_prefix(dir).map_err(|_| fault("cannot open", path, &Errno::XDEV.into()))?;
    let pin = spec.pins.iter().find(|pin| pin.kind == PinKind::Sandbox && pin.given == spec.dir);
    let pin = pin.ok_or_else(|| {
        let message = format!("which directory {} meant is not known", dir.display());
        Failure::new(Code::Forbidden, message)
            .hint(format!("`wharf restart {} --repin` writes it down", ticket.name))
    })?;
    Ok(Some((open_pinned(&ticket.name, pin)?, below.to_owned())))
}

#[async_trait]
impl Files for HostFiles {
    async fn look(&self, ticket: &Ticket, path: &Text, follow: bool) -> Result<Option<FileStat>> {
        let (ticket, path) = (ticket.clone(), path.clone());
        apart(move || {
            let found = match find(&ticket, &path, follow)? {
                Ok(found) => found,
                Err(error) if absent(&error) => return Ok(None),
                Err(error) => return Err(fault("cannot read", &path, &error)),
            };
            let failed = |error: io::Error| fault("cannot read", &path, &error);
            let meta = found.metadata().map_err(failed)?;
            let target = meta.is_symlink().then(|| found.target()).transpose().map_err(failed)?;
            Ok(Some(FileStat {
                name: found.name().into(),
                kind: kind(&meta),
                size: meta.len(),
                mode: meta.mode() & 0o7777,
                modified: Millis(u64::try_from(meta.mtime()).unwrap_or(0) * 1000),
                owner: None,
                target: target.map(Text::from),
            }))
        })
        .await
    }

    async fn take(&self, ticket: &Ticket, path: &Text, follow: bool) -> Result<Box<dyn Archive>> {
        let (ticket, path) = (ticket.clone(), path.clone());
        let found =
            apart(move || find(&ticket, &path, follow)?.map_err(|error| fault("cannot read", &path, &error)))
                .await?;
        let (sender, pieces) = pipe();
        let packing = tokio::task::spawn_blocking(move || {
            pack(Drain::new(sender), &found, &found.name(), How::default(), |_| ())
        });
        Ok(Box::new(Packed { pieces, packing: Some(packing) }))
    }

    async fn put(&self, ticket: &Ticket, dir: &Text, mut archive: Box<dyn Archive>) -> Result<()> {
        let (ticket, dir) = (ticket.clone(), dir.clone());
        let (sender, pieces) = pipe();
        let unpacking = tokio::task::spawn_blocking(move || {
            let held = directory(&ticket, &dir)?.map_err(|error| fault("cannot open", &dir, &error))?;
            unpack(Feed::new(pieces), held, dir.as_path(), EntryNames::Kept, |_| ())
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

fn fault(what: &str, path: &Text, error: &io::Error) -> Failure {
    let what = format!("{what} {}", path.lossy());
    match error.kind() {
        _ if absent(error) => Failure::new(Code::NotFound, format!("{what}: {error}")),
        io::ErrorKind::PermissionDenied => Failure::new(Code::Forbidden, format!("{what}: {error}")),
        _ if Errno::from_io_error(error) == Some(Errno::XDEV) => {
            Failure::new(Code::Forbidden, format!("{} is not in the sandbox's directory", path.lossy()))
                .hint("a file of this host is copied with `cp`")
        }
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

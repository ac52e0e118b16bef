//! From a session to here.

use std::io::{self, IsTerminal, Write};

use wharf_api::{ArchiveReader, Client, FileRequest};
use wharf_archive::{EntryNames, Feed, Moved, pipe, unpack};
use wharf_boundary::Dir;
use wharf_model::{Code, Failure, FileKind, FileStat};

use super::side::Place;
use super::target::{Source, Target, target};
use crate::progress::Counter;
use crate::trouble::invalid;

/// Copies a file or a directory of a session to a path of this host.
pub(crate) async fn to_here(
    client: &Client,
    name: &str,
    from: &Place,
    to: &Place,
    follow: bool,
    counter: &Counter,
) -> Result<Moved, Failure> {
    let (stat, request) = source(client, name, from, follow).await?;
    let mut to = to.clone();
    let there = match std::fs::metadata(to.path.as_path()) {
        Ok(meta) if meta.is_dir() => Some(FileKind::Directory),
        Ok(_) => {
            // A link is followed: what it points to is what is replaced.
            let real = to.path.as_path().canonicalize();
            to.path = real.map_err(|error| unreadable(&to, &error))?.into();
            Some(FileKind::File)
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(unreadable(&to, &error)),
    };
    let source = Source { name: &stat.name, kind: stat.kind, inside: from.inside };
    let (dir, names) = match target(&source, &to, there)? {
        Target::As(dir, name) => (dir, EntryNames::Become(name.as_os_str().to_owned())),
        Target::Into(dir) => (dir, EntryNames::Inside),
    };
    // Held from here on, whatever becomes of its name meanwhile.
    let held = Dir::open(dir.as_path()).map_err(|error| {
        Failure::new(Code::NotFound, format!("there is no directory {}: {error}", dir.lossy()))
    })?;
    let archive = client.take(name, &request).await?;
    let (sender, pieces) = pipe();
    let told = counter.clone();
    let unpacking = tokio::task::spawn_blocking(move || {
        unpack(Feed::new(pieces), held, dir.as_path(), names, |bytes| told.set(bytes))
    });
    let received = receive(archive, async |piece| sender.send(piece).await.is_ok()).await;
    drop(sender);
    let unpacked = unpacking.await;
    let unpacked =
        unpacked.map_err(|error| Failure::new(Code::Internal, format!("a copy failed: {error}")))?;
    // Where both failed, what went wrong with the files is what the user can do something about.
    match (unpacked, received) {
        (Ok(moved), Ok(true)) => Ok(moved),
        (Err(failure), _) | (Ok(_), Err(failure)) => Err(failure),
        (Ok(_), Ok(false)) => Err(Failure::new(Code::Internal, "more came than the archive's end")),
    }
}

/// Writes a file or a directory of a session to standard output, as an archive.
pub(crate) async fn to_archive(
    client: &Client,
    name: &str,
    from: &Place,
    follow: bool,
) -> Result<Moved, Failure> {
    if io::stdout().is_terminal() {
        return Err(invalid("standard output is a terminal, and an archive is no text")
            .hint(format!("send it on: wharf cp {name}:{} - | tar -t", from.path.lossy())));
    }
    let (_, request) = source(client, name, from, follow).await?;
    let archive = client.take(name, &request).await?;
    let mut moved = Moved::default();
    let mut failed = None;
    receive(archive, async |piece| {
        let mut out = io::stdout().lock();
        moved.bytes += piece.len() as u64;
        match out.write_all(&piece).and_then(|()| out.flush()) {
            Ok(()) => true,
            Err(error) => {
                failed = Some(error);
                false
            }
        }
    })
    .await?;
    match failed {
        // Whoever reads has enough.
        Some(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(moved),
        Some(error) => Err(Failure::system("cannot write to standard output", &error)),
        None => Ok(moved),
    }
}

/// Hands pieces on for as long as they are taken. False where they were not to the end.
async fn receive(
    mut archive: ArchiveReader,
    mut take: impl AsyncFnMut(Vec<u8>) -> bool,
) -> Result<bool, Failure> {
    let mut taken = true;
    while let Some(piece) = archive.next().await? {
        taken = taken && take(piece.into()).await;
        if !taken {
            // The padding behind an archive's end is nobody's; anything else has failed, and says so itself.
            return Ok(true);
        }
    }
    Ok(taken)
}

/// What is to be copied, which must be there.
async fn source(
    client: &Client,
    name: &str,
    from: &Place,
    follow: bool,
) -> Result<(FileStat, FileRequest), Failure> {
    let request = FileRequest { path: from.path.clone(), follow: follow || from.directory };
    let path = from.path.lossy();
    let stat = client.file(name, &request).await?;
    let stat =
        stat.ok_or_else(|| Failure::new(Code::NotFound, format!("there is no {path} in session {name}")))?;
    match stat.kind {
        FileKind::Directory => Ok((stat, request)),
        _ if from.directory => Err(invalid(format!("{path} is no directory of session {name}"))),
        FileKind::Other => {
            Err(invalid(format!("{path} is a device, a pipe or a socket, and cannot be copied")))
        }
        _ => Ok((stat, request)),
    }
}

fn unreadable(to: &Place, error: &io::Error) -> Failure {
    Failure::system(format!("cannot read {}", to.path.lossy()), error)
}

//! From here to a session.

use std::io::{self, IsTerminal, Read};
use std::path::Path;

use bytes::Bytes;
use tokio::sync::mpsc;
use wharf_api::{Client, FileRequest};
use wharf_archive::{Drain, How, Moved, PackSource, pack, pipe};
use wharf_model::{Code, Failure, FileKind, Text};

use super::side::Place;
use super::target::{Source, Target, target};
use crate::progress::Counter;
use crate::trouble::invalid;

/// How many pieces wait for the daemon.
const MAX_QUEUED_CHUNKS: usize = 4;
/// How much is read at once.
const CHUNK_LEN: usize = 64 << 10;

/// Copies a file or a directory of this host to a path of a session.
pub(crate) async fn from_here(
    client: &Client,
    from: &Place,
    name: &str,
    to: &Place,
    follow: bool,
    counter: &Counter,
) -> Result<Moved, Failure> {
    let path = from.here();
    // Held from here on: what is asked about below is what is packed.
    let packed =
        PackSource::open(&path, follow || from.directory).map_err(|error| unreadable(&path, &error))?;
    let kind = kind(&packed)?;
    if from.directory && kind != FileKind::Directory {
        return Err(invalid(format!("{} is no directory", path.display())));
    }
    let own = Text::from(packed.name());
    let request = FileRequest { path: to.path.clone(), follow: true };
    let found = client.file(name, &request).await?;
    let there = found.as_ref().map(|stat| stat.kind);
    let source = Source { name: &own, kind, inside: from.inside };
    let (dir, entry) = match target(&source, to, there)? {
        Target::As(dir, entry) => (dir, entry),
        // Without a name of its own, only what is in it goes.
        Target::Into(dir) => (dir, Text::default()),
    };
    // Where nothing is, its directory says whose it will be.
    let around = match found {
        Some(found) => Some(found),
        None => client.file(name, &FileRequest { path: dir.clone(), follow: true }).await?,
    };
    let owner = around.and_then(|around| around.owner);
    let told = counter.clone();
    send(client, name, &dir, move |pieces| {
        pack(Drain::new(pieces), &packed, entry.as_os_str(), How { owner }, |bytes| told.set(bytes))
    })
    .await
}

/// Unpacks an archive from standard input into a directory of a session.
pub(crate) async fn from_archive(
    client: &Client,
    name: &str,
    to: &Place,
    counter: &Counter,
) -> Result<Moved, Failure> {
    if io::stdin().is_terminal() {
        return Err(invalid("standard input is a terminal, and no archive comes from it")
            .hint(format!("give it one: tar -c FILES | wharf cp - {name}:{}", to.path.lossy())));
    }
    let request = FileRequest { path: to.path.clone(), follow: true };
    let there = client.file(name, &request).await?.map(|stat| stat.kind);
    if there != Some(FileKind::Directory) {
        let message = format!("there is no directory {} in session {name}", to.path.lossy());
        return Err(Failure::new(Code::NotFound, message).hint("an archive is unpacked into a directory"));
    }
    let told = counter.clone();
    send(client, name, &to.path, move |pieces| {
        let mut moved = Moved::default();
        loop {
            let mut piece = vec![0; CHUNK_LEN];
            let got = match io::stdin().lock().read(&mut piece) {
                Ok(0) => return Ok(moved),
                Ok(got) => got,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(Failure::system("cannot read standard input", &error)),
            };
            piece.truncate(got);
            moved.bytes += got as u64;
            told.set(moved.bytes);
            if pieces.blocking_send(piece).is_err() {
                return Ok(moved);
            }
        }
    })
    .await
}

/// Sends what a thread makes to a session.
async fn send(
    client: &Client,
    name: &str,
    dir: &Text,
    make: impl FnOnce(mpsc::Sender<Vec<u8>>) -> Result<Moved, Failure> + Send + 'static,
) -> Result<Moved, Failure> {
    let (sender, mut pieces) = pipe();
    let making = tokio::task::spawn_blocking(move || make(sender));
    let (give, given) = mpsc::channel(MAX_QUEUED_CHUNKS);
    let hand_on = async move {
        let mut taken = true;
        while let Some(piece) = pieces.recv().await {
            taken = give.send(Ok(Bytes::from(piece))).await.is_ok();
            if !taken {
                break;
            }
        }
        drop(pieces);
        let made = making.await;
        let made =
            made.unwrap_or_else(|error| Err(Failure::new(Code::Internal, format!("a copy failed: {error}"))));
        if let Err(failure) = &made {
            // Half an archive must not be taken for a whole one.
            let _ = give.send(Err(failure.clone())).await;
        }
        (taken, made)
    };
    let ((taken, made), put) = tokio::join!(hand_on, client.put(name, dir, given));
    match (made, put) {
        (Ok(moved), Ok(())) => Ok(moved),
        // What could not be read here is the reason, unless it was the other side that stopped.
        (Err(failure), _) if taken => Err(failure),
        (_, Err(failure)) | (Err(failure), Ok(())) => Err(failure),
    }
}

fn kind(packed: &PackSource) -> Result<FileKind, Failure> {
    let path = packed.path();
    let meta = packed.metadata().map_err(|error| unreadable(path, &error))?;
    match meta.file_type() {
        kind if kind.is_dir() => Ok(FileKind::Directory),
        kind if kind.is_symlink() => Ok(FileKind::Link),
        kind if kind.is_file() => Ok(FileKind::File),
        _ => {
            Err(invalid(format!("{} is a device, a pipe or a socket, and cannot be copied", path.display())))
        }
    }
}

fn unreadable(path: &Path, error: &io::Error) -> Failure {
    let message = format!("cannot read {}", path.display());
    if error.kind() == io::ErrorKind::NotFound {
        Failure::new(Code::NotFound, format!("{message}: {error}"))
    } else {
        Failure::system(message, error)
    }
}

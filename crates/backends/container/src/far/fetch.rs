//! What a session left in a container that does not run any more: its record, and the end of its log.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use bollard::errors::Error;
use bollard::query_parameters::DownloadFromContainerOptionsBuilder;
use futures_util::StreamExt;
use wharf_log::{Chunk, Reader, Streams};
use wharf_model::{ExitRecord, Home};

use super::mirror::Mirror;
use super::site::Site;

/// How long one piece of it may take.
const PIECE: Duration = Duration::from_secs(30);
/// Where it is put on this side, in the session's directory, until it is taken over.
const BAGGAGE: &str = "fetched";
/// The most that there can be: a log as large as anybody wants one.
const MOST: u64 = 16 << 30;

/// Brings home what is left, and the record where there is one.
pub(super) async fn rest(site: &Site, mirror: &mut Mirror) -> io::Result<Option<ExitRecord>> {
    let dir = site.home().join(BAGGAGE);
    let _ = fs::remove_dir_all(&dir);
    fs::create_dir(&dir)?;
    let brought = async {
        if !download(site, &dir.join("tar")).await? {
            return Ok(None);
        }
        let inner = dir.clone();
        let unpacked = tokio::task::spawn_blocking(move || unpack(&inner)).await;
        unpacked.map_err(io::Error::other)??;
        copy(&dir.join(Home::LOG), mirror)?;
        let record = fs::read(dir.join(Home::EXIT)).ok();
        Ok(record.and_then(|bytes| serde_json::from_slice(&bytes).ok()))
    };
    let brought = brought.await;
    let _ = fs::remove_dir_all(&dir);
    brought
}

/// Writes the room to a file, as the engine packs it. False where there is none.
async fn download(site: &Site, to: &Path) -> io::Result<bool> {
    let options = DownloadFromContainerOptionsBuilder::default().path(Site::room()).build();
    let mut pieces = Box::pin(site.engine.docker.download_from_container(&site.container, Some(options)));
    let (mut file, mut size) = (fs::File::create(to)?, 0);
    loop {
        match tokio::time::timeout(PIECE, pieces.next()).await {
            Err(_) => return Err(io::ErrorKind::TimedOut.into()),
            Ok(None) => return Ok(true),
            Ok(Some(Ok(piece))) => {
                size += piece.len() as u64;
                if size > MOST {
                    return Err(io::Error::other("the engine sends no end of it"));
                }
                file.write_all(&piece)?;
            }
            Ok(Some(Err(Error::DockerResponseServerError { status_code: 404, .. }))) => return Ok(false),
            Ok(Some(Err(error))) => return Err(io::Error::other(error)),
        }
    }
}

/// Takes out the files that we know, by their plain names: whatever else is packed stays there.
fn unpack(dir: &Path) -> io::Result<()> {
    let log = dir.join(Home::LOG);
    fs::create_dir(&log)?;
    let mut archive = tar::Archive::new(fs::File::open(dir.join("tar"))?);
    for entry in archive.entries()? {
        let mut entry = entry?;
        if !entry.header().entry_type().is_file() {
            continue;
        }
        let path = entry.path()?.into_owned();
        let Some(target) = place(&path, dir) else { continue };
        io::copy(&mut entry, &mut fs::File::create(target)?)?;
    }
    Ok(())
}

/// Where a packed file goes: `room/exit.json`, and the segments of `room/log`.
fn place(path: &Path, dir: &Path) -> Option<PathBuf> {
    let parts: Vec<&str> = path.iter().map(|part| part.to_str()).collect::<Option<_>>()?;
    match parts.as_slice() {
        ["room", name] if *name == Home::EXIT => Some(dir.join(Home::EXIT)),
        ["room", log, name] if *log == Home::LOG => {
            let (number, kind) = name.split_once('.')?;
            let plain = number.len() == 20 && number.bytes().all(|b| b.is_ascii_digit());
            (plain && matches!(kind, "log" | "idx")).then(|| dir.join(Home::LOG).join(name))
        }
        _ => None,
    }
}

/// Copies what the mirror lacks.
fn copy(log: &Path, mirror: &mut Mirror) -> io::Result<()> {
    let mut reader = Reader::open(log, mirror.end())?;
    let (mut streams, mut buffer) = (Streams::new(), vec![0; 256 << 10]);
    loop {
        match reader.read(&mut buffer)? {
            Chunk::Data { offset, len } => {
                for (stream, range) in streams.split(&reader, offset, len)? {
                    mirror.take(offset + range.start as u64, stream, &buffer[range])?;
                }
            }
            Chunk::Gap { to, .. } => mirror.skip_to(to),
            Chunk::End => return Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_known_is_taken_and_nothing_leaves_the_directory() {
        let dir = Path::new("/d");
        let at = |path: &str| place(Path::new(path), dir);
        assert_eq!(at("room/exit.json"), Some("/d/exit.json".into()));
        assert_eq!(at("room/log/00000000000000000000.log"), Some("/d/log/00000000000000000000.log".into()));
        for odd in [
            "room/ticket.json",
            "../exit.json",
            "room/../../exit.json",
            "/room/exit.json",
            "room/log/../exit.json",
            "room/log/0.log",
            "room/log/00000000000000000000.sh",
        ] {
            assert_eq!(at(odd), None, "{odd}");
        }
    }
}

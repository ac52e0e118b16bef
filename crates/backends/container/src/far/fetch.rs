//! What a session left in a container that does not run any more: its record, and the end of its log.

use std::fs;
use std::io::{self, Read, Write};
use std::path::Path;
use std::time::Duration;

use bollard::errors::Error;
use bollard::query_parameters::DownloadFromContainerOptionsBuilder;
use futures_util::StreamExt;
use wharf_boundary::{Dir, MAX_EXIT_LEN};
use wharf_log::{Chunk, Reader, Streams};
use wharf_model::{ExitRecord, Home};

use super::mirror::Mirror;
use super::site::Site;
use super::starting::MIN_REMOTE_LOG_LEN;

/// How long one piece of it may take.
const CHUNK_TIMEOUT: Duration = Duration::from_secs(30);
/// Where it is put on this side, in the session's directory, until it is taken over.
const BAGGAGE: &str = "fetched";
/// The archive in there.
const ARCHIVE: &str = "tar";
/// What a log may be longer than it should, and the heads of its archive.
const SLACK_LEN: u64 = 64 << 20;
/// What an archive has beside a record.
const HEADERS_LEN: u64 = 16 << 10;
/// The most files that are looked at.
const MAX_ENTRIES: usize = 100_000;

/// Brings home what is left, and the record where there is one. Each by its own path: whatever else the container has put
/// into its room, however large or deep, is not asked for. What is more than there can be is not brought, and what makes no
/// sense is left out: the container has written it, and costs nobody else anything.
pub(super) async fn rest(site: &Site, mirror: &mut Mirror) -> io::Result<Option<ExitRecord>> {
    let own = Dir::open(site.home())?;
    own.remove_tree(BAGGAGE)?;
    let dir = own.make_dir(BAGGAGE, 0o700)?;
    let brought = async {
        dir.make_dir(Home::LOG, 0o700)?;
        if bring(site, &dir, Home::LOG, most(site.ticket.spec.log_size)).await? {
            let copied = copy(&site.home().join(BAGGAGE).join(Home::LOG), mirror).await;
            copied.or_else(|error| spoiled(site, error))?;
        }
        bring(site, &dir, Home::EXIT, MAX_EXIT_LEN + HEADERS_LEN).await?;
        let record = dir.read(Home::EXIT, MAX_EXIT_LEN).ok();
        let record = record.and_then(|bytes| serde_json::from_slice::<ExitRecord>(&bytes).ok());
        // Nobody shall wait for output that will never be here.
        Ok(record.map(|record| ExitRecord { log_end: record.log_end.min(mirror.end()), ..record }))
    };
    let brought = brought.await;
    let _ = tokio::task::spawn_blocking(move || own.remove_tree(BAGGAGE)).await;
    brought
}

/// Brings one thing of the room. False where it is not there, or more than it can be.
async fn bring(site: &Site, dir: &Dir, name: &str, most: u64) -> io::Result<bool> {
    let there =
        download(site, &format!("{}/{name}", Site::room()), dir.make_file(ARCHIVE, 0o600)?, most).await?;
    let inner = dir.try_clone()?;
    let unpacked = tokio::task::spawn_blocking(move || {
        let unpacked = if there { unpack(&inner) } else { Ok(()) };
        inner.remove(ARCHIVE).and(unpacked)
    });
    unpacked.await.map_err(io::Error::other)?.or_else(|error| spoiled(site, error))?;
    Ok(there)
}

/// What the container has spoiled is left out. What this side cannot do is an error, and may be possible later.
fn spoiled(site: &Site, error: io::Error) -> io::Result<()> {
    if error.raw_os_error().is_some() {
        return Err(error);
    }
    tracing::warn!(session = %site.ticket.id, %error, "what its container left makes no sense");
    Ok(())
}

/// The most that a container may have left, as its log is limited.
fn most(log_size: Option<u64>) -> u64 {
    log_size.unwrap_or_default().max(MIN_REMOTE_LOG_LEN).saturating_mul(2).saturating_add(SLACK_LEN)
}

/// Writes what stands at a path to a file, as the engine packs it. False where there is none, or more than there can be.
async fn download(site: &Site, path: &str, mut file: fs::File, most: u64) -> io::Result<bool> {
    let options = DownloadFromContainerOptionsBuilder::default().path(path).build();
    let (docker, allowance) = site.engine.stream().map_err(io::Error::other)?;
    let mut pieces = Box::pin(docker.download_from_container(&site.container, Some(options)));
    let mut size = 0;
    loop {
        match tokio::time::timeout(CHUNK_TIMEOUT, pieces.next()).await {
            Err(_) => return Err(io::ErrorKind::TimedOut.into()),
            Ok(None) => return Ok(true),
            Ok(Some(Ok(piece))) => {
                allowance.renew();
                size += piece.len() as u64;
                if size > most {
                    tracing::warn!(session = %site.ticket.id, path, most, "its container left more than it can have");
                    return Ok(false);
                }
                file.write_all(&piece)?;
            }
            Ok(Some(Err(Error::DockerResponseServerError { status_code: 404, .. }))) => return Ok(false),
            Ok(Some(Err(error))) => return Err(io::Error::other(error)),
        }
    }
}

/// Takes out the files that we know, by their plain names and each once: whatever else is packed stays there.
fn unpack(dir: &Dir) -> io::Result<()> {
    let log = dir.dir(Home::LOG)?;
    let mut archive = tar::Archive::new(dir.open_file(ARCHIVE)?);
    for entry in archive.entries()?.take(MAX_ENTRIES) {
        let entry = entry?;
        if !entry.header().entry_type().is_file() {
            continue;
        }
        let path = entry.path()?.into_owned();
        let Some((in_log, name)) = place(&path) else { continue };
        let made = if in_log { log.make_file(name, 0o600) } else { dir.make_file(name, 0o600) };
        let mut file = match made {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
            made => made?,
        };
        // A head may name any size; there is not more than was sent.
        let size = entry.size();
        io::copy(&mut entry.take(size), &mut file)?;
    }
    Ok(())
}

/// What a packed file is called here, and whether it is one of the log's: `exit.json`, and the segments of `log`.
fn place(path: &Path) -> Option<(bool, &str)> {
    let parts: Vec<&str> = path.iter().map(|part| part.to_str()).collect::<Option<_>>()?;
    match parts.as_slice() {
        [name] if *name == Home::EXIT => Some((false, Home::EXIT)),
        [log, name] if *log == Home::LOG => {
            let (number, kind) = name.split_once('.')?;
            let plain = number.len() == 20 && number.bytes().all(|b| b.is_ascii_digit());
            (plain && matches!(kind, "log" | "idx")).then_some((true, *name))
        }
        _ => None,
    }
}

/// Copies what the mirror lacks, and lets others have their turn meanwhile.
async fn copy(log: &Path, mirror: &mut Mirror) -> io::Result<()> {
    let mut reader = Reader::open(log, mirror.end())?;
    let (mut streams, mut buffer) = (Streams::new(), vec![0; 256 << 10]);
    loop {
        match reader.read(&mut buffer)? {
            Chunk::Data { offset, len } => {
                for (stream, range) in streams.split(&reader, offset, len)? {
                    mirror.take(offset + range.start as u64, stream, &buffer[range])?;
                }
            }
            Chunk::Gap { to, .. } => mirror.skip_to(to)?,
            Chunk::End => return Ok(()),
        }
        tokio::task::yield_now().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_known_is_taken_and_nothing_leaves_the_directory() {
        let at = |path: &'static str| place(Path::new(path));
        assert_eq!(at("exit.json"), Some((false, "exit.json")));
        let segment = "00000000000000000000.log";
        assert_eq!(at("log/00000000000000000000.log"), Some((true, segment)));
        for odd in [
            "ticket.json",
            "../exit.json",
            "log/../../exit.json",
            "/exit.json",
            "log/../exit.json",
            "log/0.log",
            "log/00000000000000000000.sh",
        ] {
            assert_eq!(at(odd), None, "{odd}");
        }
    }

    #[test]
    fn a_link_in_an_archive_is_left_out_and_so_is_what_comes_twice() {
        let home = tempfile::tempdir().unwrap();
        let dir = Dir::open(home.path()).unwrap();
        dir.make_dir(Home::LOG, 0o700).unwrap();
        let mut builder = tar::Builder::new(Vec::new());
        let mut link = tar::Header::new_gnu();
        link.set_entry_type(tar::EntryType::Symlink);
        link.set_size(0);
        builder.append_link(&mut link, "exit.json", "/etc/passwd").unwrap();
        let mut pipe = tar::Header::new_gnu();
        pipe.set_entry_type(tar::EntryType::Fifo);
        pipe.set_size(0);
        builder.append_data(&mut pipe, "log/00000000000000000000.idx", io::empty()).unwrap();
        for text in ["{}", "[]"] {
            let mut file = tar::Header::new_gnu();
            file.set_size(2);
            builder.append_data(&mut file, "exit.json", text.as_bytes()).unwrap();
        }
        dir.make_file(ARCHIVE, 0o600).unwrap().write_all(&builder.into_inner().unwrap()).unwrap();
        unpack(&dir).unwrap();
        assert_eq!(dir.read(Home::EXIT, 10).unwrap(), b"{}");
        assert_eq!(dir.dir(Home::LOG).unwrap().names(10).unwrap().len(), 0);
    }

    #[test]
    fn a_container_leaves_no_more_than_its_log_may_have() {
        assert_eq!(most(None), 2 * MIN_REMOTE_LOG_LEN + SLACK_LEN);
        assert_eq!(most(Some(1)), 2 * MIN_REMOTE_LOG_LEN + SLACK_LEN);
        assert_eq!(most(Some(1 << 30)), (2 << 30) + SLACK_LEN);
        assert_eq!(most(Some(u64::MAX)), u64::MAX);
    }
}

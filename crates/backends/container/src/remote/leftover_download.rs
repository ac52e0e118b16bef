//! Downloads what a session left in a container that does not run any more: its exit record, and the end of its log.

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

use super::container::RemoteContainer;
use super::log_mirror::LogMirror;
use super::start_session::MIN_REMOTE_LOG_LEN;

/// How long the engine may take for one chunk of a download.
const CHUNK_TIMEOUT: Duration = Duration::from_secs(30);
/// The directory, in the session's own, that keeps a download until it is checked. The name on disk is older.
const DOWNLOAD_DIR: &str = "fetched";
/// The archive's name in that directory.
const ARCHIVE: &str = "tar";
/// By how much a log may exceed its limit, with the headers of its archive, in bytes.
const SLACK_LEN: u64 = 64 << 20;
/// The length of an archive's headers around a record, in bytes.
const HEADERS_LEN: u64 = 16 << 10;
/// How many entries of an archive are read.
const MAX_ENTRIES: usize = 100_000;

/// Downloads the log's end and the exit record, if there is one. Each is downloaded by its own path, so that whatever
/// else the container put into its room, however large or deep, is never transferred. What exceeds its limit is not
/// downloaded, and what is malformed is skipped: the container wrote it, and only its own session suffers.
pub(super) async fn download_leftovers(
    remote: &RemoteContainer,
    mirror: &mut LogMirror,
) -> io::Result<Option<ExitRecord>> {
    let own = Dir::open(remote.home())?;
    own.remove_tree(DOWNLOAD_DIR)?;
    let dir = own.make_dir(DOWNLOAD_DIR, 0o700)?;
    let downloaded = async {
        dir.make_dir(Home::LOG, 0o700)?;
        if download_and_unpack(remote, &dir, Home::LOG, max_log_archive_len(remote.ticket.spec.log_size))
            .await?
        {
            let copied = copy(&remote.home().join(DOWNLOAD_DIR).join(Home::LOG), mirror).await;
            copied.or_else(|error| skip_malformed(remote, error))?;
        }
        download_and_unpack(remote, &dir, Home::EXIT, MAX_EXIT_LEN + HEADERS_LEN).await?;
        let record = dir.read(Home::EXIT, MAX_EXIT_LEN).ok();
        let record = record.and_then(|bytes| serde_json::from_slice::<ExitRecord>(&bytes).ok());
        // Readers wait until `log_end`: limit it to the output that is here.
        Ok(record.map(|record| ExitRecord { log_end: record.log_end.min(mirror.end()), ..record }))
    };
    let downloaded = downloaded.await;
    let _ = tokio::task::spawn_blocking(move || own.remove_tree(DOWNLOAD_DIR)).await;
    downloaded
}

/// Downloads one file or directory of the room. False where it does not exist or exceeds `most` bytes.
async fn download_and_unpack(remote: &RemoteContainer, dir: &Dir, name: &str, most: u64) -> io::Result<bool> {
    let there = download(
        remote,
        &format!("{}/{name}", RemoteContainer::room()),
        dir.make_file(ARCHIVE, 0o600)?,
        most,
    )
    .await?;
    let inner = dir.try_clone()?;
    let unpacked = tokio::task::spawn_blocking(move || {
        let unpacked = if there { unpack(&inner) } else { Ok(()) };
        inner.remove(ARCHIVE).and(unpacked)
    });
    unpacked.await.map_err(io::Error::other)?.or_else(|error| skip_malformed(remote, error))?;
    Ok(there)
}

/// Skips what the container malformed. An error of this host's system is returned, and may pass later.
fn skip_malformed(remote: &RemoteContainer, error: io::Error) -> io::Result<()> {
    if error.raw_os_error().is_some() {
        return Err(error);
    }
    tracing::warn!(session = %remote.ticket.id, %error, "what its container left makes no sense");
    Ok(())
}

/// The largest archive of a log whose size is limited to this, in bytes.
fn max_log_archive_len(log_size: Option<u64>) -> u64 {
    log_size.unwrap_or_default().max(MIN_REMOTE_LOG_LEN).saturating_mul(2).saturating_add(SLACK_LEN)
}

/// Writes the engine's archive of a path to a file. False where the path does not exist or the archive exceeds `most`
/// bytes.
async fn download(remote: &RemoteContainer, path: &str, mut file: fs::File, most: u64) -> io::Result<bool> {
    let options = DownloadFromContainerOptionsBuilder::default().path(path).build();
    let (docker, allowance) = remote.engine.stream().map_err(io::Error::other)?;
    let mut pieces = Box::pin(docker.download_from_container(&remote.id, Some(options)));
    let mut size = 0;
    loop {
        match tokio::time::timeout(CHUNK_TIMEOUT, pieces.next()).await {
            Err(_) => return Err(io::ErrorKind::TimedOut.into()),
            Ok(None) => return Ok(true),
            Ok(Some(Ok(piece))) => {
                allowance.renew();
                size += piece.len() as u64;
                if size > most {
                    tracing::warn!(session = %remote.ticket.id, path, most, "its container left more than it can have");
                    return Ok(false);
                }
                file.write_all(&piece)?;
            }
            Ok(Some(Err(Error::DockerResponseServerError { status_code: 404, .. }))) => return Ok(false),
            Ok(Some(Err(error))) => return Err(io::Error::other(error)),
        }
    }
}

/// Unpacks the files that are expected, each once and by its plain name; skips everything else in the archive.
fn unpack(dir: &Dir) -> io::Result<()> {
    let log = dir.dir(Home::LOG)?;
    let mut archive = tar::Archive::new(dir.open_file(ARCHIVE)?);
    for entry in archive.entries()?.take(MAX_ENTRIES) {
        let entry = entry?;
        if !entry.header().entry_type().is_file() {
            continue;
        }
        let path = entry.path()?.into_owned();
        let Some((in_log, name)) = known_entry(&path) else { continue };
        let made = if in_log { log.make_file(name, 0o600) } else { dir.make_file(name, 0o600) };
        let mut file = match made {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
            made => made?,
        };
        // A header may claim any size; the entry ends with the archive.
        let size = entry.size();
        io::copy(&mut entry.take(size), &mut file)?;
    }
    Ok(())
}

/// The name of an expected entry, and whether it belongs to the log: `exit.json`, and the segments of `log`.
fn known_entry(path: &Path) -> Option<(bool, &str)> {
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

/// Copies the output that the mirror lacks, and yields between chunks so that other tasks run.
async fn copy(log: &Path, mirror: &mut LogMirror) -> io::Result<()> {
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
        let at = |path: &'static str| known_entry(Path::new(path));
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
        assert_eq!(max_log_archive_len(None), 2 * MIN_REMOTE_LOG_LEN + SLACK_LEN);
        assert_eq!(max_log_archive_len(Some(1)), 2 * MIN_REMOTE_LOG_LEN + SLACK_LEN);
        assert_eq!(max_log_archive_len(Some(1 << 30)), (2 << 30) + SLACK_LEN);
        assert_eq!(max_log_archive_len(Some(u64::MAX)), u64::MAX);
    }
}

//! Copies files into and out of containers by the engine's archives, which resolve links as the container would, and
//! not on this host.

use std::io::Read as _;
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use bollard::container::PathStatResponse;
use bollard::errors::Error;
use bollard::query_parameters::{
    ContainerArchiveInfoOptionsBuilder, DownloadFromContainerOptionsBuilder, UploadToContainerOptionsBuilder,
};
use bytes::Bytes;
use futures_util::stream::BoxStream;
use futures_util::{StreamExt, stream};
use wharf_backend::{Archive, Files, Result};
use wharf_model::{Code, Failure, FileKind, FileStat, Millis, Text, Ticket};

use crate::containers::Containers;
use crate::create_body::user_ids;
use crate::engine::allowance::Allowance;
use crate::engine::inspect::Found;
use crate::engine::{Engine, QUERY_TIMEOUT};

/// How long an engine may be silent while it hands files over.
const SILENCE_TIMEOUT: Duration = Duration::from_secs(60);
/// How long a copy into a container may take at most.
const COPY_TIMEOUT: Duration = Duration::from_secs(24 * 3600);
/// The most that is read of a file that says who is who.
const MAX_ACCOUNT_FILE_LEN: usize = 1 << 20;
/// How many links a path may lead through.
const MAX_LINKS: u32 = 16;

/// Bits of a mode as engines write them.
const DIRECTORY_BIT: u32 = 1 << 31;
const LINK_BIT: u32 = 1 << 27;
const OTHER_KIND_BITS: u32 = (1 << 26) | (1 << 25) | (1 << 24) | (1 << 21) | (1 << 19);

/// The files of one session's container.
struct ContainerFiles {
    engine: Engine,
    id: String,
    base: PathBuf,
    user: String,
}

impl ContainerFiles {
    async fn of(containers: &Containers, ticket: &Ticket) -> Result<Self> {
        let (engine, found) = containers.running(ticket).await?;
        let base = base(ticket, &found);
        Ok(Self { engine, id: found.id, base, user: found.config.user })
    }

    fn path(&self, path: &Text) -> Result<String> {
        let whole = plain(&self.base.join(path.as_path()));
        whole.to_str().map(str::to_owned).ok_or_else(|| {
            Failure::new(
                Code::Invalid,
                format!("{} is not UTF-8, and engines take nothing else", whole.display()),
            )
        })
    }

    /// What stands at a path. A link at its end is followed where that is asked for: then the path is another one.
    async fn look(&self, path: &Text, follow: bool) -> Result<Option<(FileStat, String)>> {
        let mut path = self.path(path)?;
        for _ in 0..MAX_LINKS {
            let options = ContainerArchiveInfoOptionsBuilder::default().path(&path).build();
            let asked = self.engine.docker.get_container_archive_info(&self.id, Some(options));
            let asked = tokio::time::timeout(QUERY_TIMEOUT, asked).await;
            let asked = asked.map_err(|_| {
                Failure::new(
                    Code::Unreachable,
                    format!("the engine did not tell of {path} within {QUERY_TIMEOUT:?}"),
                )
            })?;
            let stat = match asked {
                Ok(stat) => read(stat, &path),
                Err(Error::DockerResponseServerError { status_code: 404, .. }) => return Ok(None),
                Err(error) => return Err(self.engine.failure(&format!("a look at {path}"), &error)),
            };
            match &stat.target {
                Some(target) if follow && stat.kind == FileKind::Link => {
                    let around = Path::new(&path).parent().unwrap_or(Path::new("/"));
                    path = self.path(&Text::from(around.join(target.as_path())))?;
                }
                _ => return Ok(Some((stat, path))),
            }
        }
        Err(Failure::new(Code::Invalid, format!("{path} leads through too many links")))
    }

    /// Whom the command runs as; none where the image does not say who that is.
    async fn owner(&self) -> Result<Option<(u32, u32)>> {
        if let Some(known) = user_ids::numbers(&self.user) {
            return Ok(Some(known));
        }
        let passwd = self.text("/etc/passwd").await?;
        let group = self.text("/etc/group").await?;
        Ok(user_ids::find(&self.user, &passwd, &group))
    }

    /// A small file; empty where there is none.
    async fn text(&self, path: &str) -> Result<String> {
        let Some((FileStat { kind: FileKind::File, .. }, path)) = self.look(&path.into(), true).await? else {
            return Ok(String::new());
        };
        let mut archive = self.take(path)?;
        let mut bytes = Vec::new();
        while let Some(piece) = archive.next().await? {
            bytes.extend_from_slice(&piece);
            if bytes.len() > MAX_ACCOUNT_FILE_LEN {
                break;
            }
        }
        let mut text = String::new();
        if let Some(Ok(entry)) =
            tar::Archive::new(&bytes[..]).entries().ok().and_then(|mut entries| entries.next())
        {
            // What is cut off, or no text, says nothing.
            let _ = entry.take(MAX_ACCOUNT_FILE_LEN as u64).read_to_string(&mut text);
        }
        Ok(text)
    }

    fn take(&self, path: String) -> Result<Download> {
        let options = DownloadFromContainerOptionsBuilder::default().path(&path).build();
        let engine = self.engine.clone();
        let (docker, allowance) = engine.stream()?;
        let pieces = docker.download_from_container(&self.id, Some(options)).boxed();
        Ok(Download { engine, path, pieces, allowance })
    }

    async fn there(&self, path: &Text, follow: bool) -> Result<(FileStat, String)> {
        let missing =
            || Failure::new(Code::NotFound, format!("there is no {} in the container", path.lossy()));
        self.look(path, follow).await?.ok_or_else(missing)
    }
}

#[async_trait]
impl Files for Containers {
    async fn look(&self, ticket: &Ticket, path: &Text, follow: bool) -> Result<Option<FileStat>> {
        let files = ContainerFiles::of(self, ticket).await?;
        let Some((stat, _)) = files.look(path, follow).await? else { return Ok(None) };
        Ok(Some(FileStat { owner: files.owner().await?, ..stat }))
    }

    async fn take(&self, ticket: &Ticket, path: &Text, follow: bool) -> Result<Box<dyn Archive>> {
        let files = ContainerFiles::of(self, ticket).await?;
        let (_, path) = files.there(path, follow).await?;
        Ok(Box::new(files.take(path)?))
    }

    async fn put(&self, ticket: &Ticket, dir: &Text, archive: Box<dyn Archive>) -> Result<()> {
        let files = ContainerFiles::of(self, ticket).await?;
        let (stat, path) = files.there(dir, true).await?;
        if stat.kind != FileKind::Directory {
            return Err(Failure::new(Code::Invalid, format!("{path} is no directory of the container")));
        }
        let options =
            UploadToContainerOptionsBuilder::default().path(&path).no_overwrite_dir_non_dir("true").build();
        let broken = Arc::new(Mutex::new(None));
        let body = bollard::body_try_stream(given(archive, Arc::clone(&broken)));
        // It is answered once all of it has come.
        let docker = files.engine.docker.clone().with_timeout(COPY_TIMEOUT);
        let put = docker.upload_to_container(&files.id, Some(options), body).await;
        // What broke on this side is the reason, whatever the engine made of it.
        if let Some(failure) = broken.lock().unwrap_or_else(PoisonError::into_inner).take() {
            return Err(failure);
        }
        put.map_err(|error| match error {
            Error::DockerResponseServerError { status_code: 403, .. } => {
                let failure = files.engine.failure(&format!("a copy to {path}"), &error);
                Failure { code: Code::Forbidden, ..failure }.hint("the container's own files are read-only")
            }
            error => files.engine.failure(&format!("a copy to {path}"), &error),
        })
    }
}

/// An archive on its way to an engine. What breaks it is kept for whoever asked.
fn given(
    archive: Box<dyn Archive>,
    broken: Arc<Mutex<Option<Failure>>>,
) -> BoxStream<'static, std::result::Result<Bytes, std::io::Error>> {
    stream::unfold((archive, broken), |(mut archive, broken)| async move {
        match archive.next().await {
            Ok(Some(piece)) => Some((Ok(Bytes::from(piece)), (archive, broken))),
            Ok(None) => None,
            Err(failure) => {
                let error = std::io::Error::other(failure.message.clone());
                *broken.lock().unwrap_or_else(PoisonError::into_inner) = Some(failure);
                Some((Err(error), (archive, broken)))
            }
        }
    })
    .boxed()
}

/// An archive on its way from an engine.
struct Download {
    engine: Engine,
    path: String,
    pieces: BoxStream<'static, std::result::Result<Bytes, Error>>,
    allowance: Allowance,
}

#[async_trait]
impl Archive for Download {
    async fn next(&mut self) -> Result<Option<Vec<u8>>> {
        let next = tokio::time::timeout(SILENCE_TIMEOUT, self.pieces.next()).await;
        let next = next.map_err(|_| {
            Failure::new(
                Code::Timeout,
                format!("the engine was silent for {SILENCE_TIMEOUT:?} while {} was copied", self.path),
            )
        })?;
        match next {
            None => Ok(None),
            Some(Ok(piece)) => {
                self.allowance.renew();
                Ok(Some(piece.into()))
            }
            Some(Err(error)) => Err(self.engine.failure(&format!("a copy of {}", self.path), &error)),
        }
    }
}

/// Where a relative path begins: where the command runs.
fn base(ticket: &Ticket, found: &Found) -> PathBuf {
    if ticket.spec.adopt.is_some() {
        return Path::new("/").join(&found.config.working_dir);
    }
    ticket.spec.runs_in().as_path().to_owned()
}

/// The path without dots. Nothing is above the root of a container.
fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::from("/");
    for part in path.components() {
        match part {
            Component::ParentDir => drop(plain.pop()),
            Component::Normal(part) => plain.push(part),
            _ => {}
        }
    }
    plain
}

fn read(stat: PathStatResponse, path: &str) -> FileStat {
    let mode = stat.file_mode;
    let kind = match mode {
        mode if mode & DIRECTORY_BIT != 0 => FileKind::Directory,
        mode if mode & LINK_BIT != 0 => FileKind::Link,
        mode if mode & OTHER_KIND_BITS != 0 => FileKind::Other,
        _ => FileKind::File,
    };
    // The last of the path that was asked for: engines differ in what they say of a link.
    let name = Path::new(path).file_name().map_or_else(|| Text::from("root"), Text::from);
    let target = (kind == FileKind::Link && !stat.link_target.is_empty()).then(|| stat.link_target.into());
    let size = u64::try_from(stat.size).unwrap_or(0);
    FileStat { name, kind, size, mode: mode & 0o777, modified: Millis(0), owner: None, target }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_made_plain_and_stay_within() {
        for (path, made) in [("/a/./b/../c", "/a/c"), ("/../../x", "/x"), ("/", "/"), ("/a/", "/a")] {
            assert_eq!(plain(Path::new(path)), Path::new(made), "{path}");
        }
    }

    #[test]
    fn modes_are_read_as_engines_write_them() {
        let stat = |file_mode, link_target: &str| PathStatResponse {
            name: "engine's own".to_owned(),
            size: 3,
            file_mode,
            modification_time: None,
            link_target: link_target.to_owned(),
        };
        assert_eq!(read(stat(0o644, ""), "/a/b").kind, FileKind::File);
        assert_eq!(read(stat(DIRECTORY_BIT | 0o755, ""), "/a/b").kind, FileKind::Directory);
        assert_eq!(read(stat((1 << 26) | (1 << 21), ""), "/dev/tty").kind, FileKind::Other);
        let link = read(stat(LINK_BIT | 0o777, "/x"), "/a/l");
        assert_eq!((link.kind, link.target, link.name), (FileKind::Link, Some("/x".into()), "l".into()));
    }
}

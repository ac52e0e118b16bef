//! Reads the directory that an image is built from as one stream, without what its `.dockerignore` names.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

use futures_util::Stream;
use rustix::fs::OFlags;
use tokio::sync::mpsc;
use wharf_boundary::{Dir, Kind};
use wharf_model::{Code, Failure};

use crate::image::ignored::Ignored;

/// How many pieces of the stream wait for the engine at most.
const MAX_QUEUED_CHUNKS: usize = 16;
/// How large a piece is.
const CHUNK_LEN: usize = 64 << 10;

/// How many entries a directory may have.
const MAX_DIR_ENTRIES: usize = 1 << 20;

/// A directory to build from, and the file in it that says how.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Context {
    dir: PathBuf,
    /// The name of the Dockerfile below it.
    pub(crate) file: String,
}

impl Context {
    /// The context that a path names: a directory with a Dockerfile, or a Dockerfile in a directory.
    pub(crate) fn of(path: &Path) -> Result<Self, Failure> {
        let missing = |why: &str| {
            Failure::new(Code::NotFound, format!("cannot build from {}: {why}", path.display()))
                .hint("name a directory with a Dockerfile, or the Dockerfile")
        };
        let found = path.canonicalize().map_err(|error| missing(&error.to_string()))?;
        let file = if found.is_dir() { found.join("Dockerfile") } else { found };
        let name = file
            .file_name()
            .and_then(|name| name.to_str())
            .ok_or_else(|| missing("its name is not UTF-8"))?;
        let dir = file.parent().ok_or_else(|| missing("it is in no directory"))?;
        if !file.is_file() {
            return Err(missing("there is no Dockerfile"));
        }
        Ok(Self { dir: dir.to_owned(), file: name.to_owned() })
    }

    /// The stream. It is made as it is read.
    pub(crate) fn stream(&self) -> impl Stream<Item = io::Result<bytes::Bytes>> + Send + 'static {
        let (pieces, stream) = mpsc::channel(MAX_QUEUED_CHUNKS);
        let (dir, file) = (self.dir.clone(), self.file.clone());
        tokio::task::spawn_blocking(move || {
            let mut out = io::BufWriter::with_capacity(CHUNK_LEN, Pieces(pieces.clone()));
            let over = || pieces.is_closed();
            if let Err(error) = pack(&dir, &file, &mut out, &over).and_then(|()| out.flush()) {
                // Whoever reads is gone, or is told.
                let _ = pieces.blocking_send(Err(error));
            }
        });
        futures_util::stream::unfold(stream, async |mut stream: mpsc::Receiver<_>| {
            stream.recv().await.map(|piece| (piece, stream))
        })
    }
}

struct Pieces(mpsc::Sender<io::Result<bytes::Bytes>>);

impl Write for Pieces {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let sent = self.0.blocking_send(Ok(bytes::Bytes::copy_from_slice(bytes)));
        sent.map(|()| bytes.len()).map_err(|_| io::ErrorKind::BrokenPipe.into())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Packs a directory until nobody wants it any more. Links stay links: nothing outside of it is read, and nothing but regular files is opened.
fn pack(dir: &Path, file: &str, out: impl Write, over: &dyn Fn() -> bool) -> io::Result<()> {
    let top = Dir::open(dir)?;
    let ignored = Ignored::read(&top)?;
    let mut tar = tar::Builder::new(out);
    tar.follow_symlinks(false);
    let mut open = vec![PathBuf::new()];
    while let Some(below) = open.pop() {
        let here = if below.as_os_str().is_empty() { top.try_clone()? } else { top.dir(&below)? };
        let named = |path: &Path, error: io::Error| {
            io::Error::new(error.kind(), format!("cannot pack {}: {error}", path.display()))
        };
        let entries = here.entries(MAX_DIR_ENTRIES + 1)?;
        if entries.len() > MAX_DIR_ENTRIES {
            return Err(named(&below, io::ErrorKind::FileTooLarge.into()));
        }
        for (name, kind) in entries {
            // Nothing is written of what stays out, so only this tells that the reader is gone.
            if over() {
                return Err(io::ErrorKind::BrokenPipe.into());
            }
            let path = below.join(&name);
            if ignored.has(&path) && path != Path::new(file) {
                // What is taken back in may be deeper.
                if kind == Kind::Directory && ignored.takes_back() {
                    open.push(path);
                }
                continue;
            }
            let packed = match kind {
                Kind::Directory => {
                    open.push(path.clone());
                    here.dir(&name).and_then(|inner| append_dir(&mut tar, &path, &inner))
                }
                Kind::File => here.open_file(&name).and_then(|mut file| tar.append_file(&path, &mut file)),
                // The archive reads a link, and nothing behind it.
                Kind::Link => append_link(&mut tar, &path, &here, &name),
                Kind::Socket | Kind::Other => Ok(()),
            };
            packed.map_err(|error| named(&path, error))?;
        }
    }
    tar.finish()
}

fn append_dir(tar: &mut tar::Builder<impl Write>, path: &Path, dir: &Dir) -> io::Result<()> {
    let mut header = tar::Header::new_gnu();
    header.set_metadata(&File::from(dir.as_fd().try_clone_to_owned()?).metadata()?);
    tar.append_data(&mut header, path, io::empty())
}

fn append_link(tar: &mut tar::Builder<impl Write>, path: &Path, dir: &Dir, name: &OsStr) -> io::Result<()> {
    let mut header = tar::Header::new_gnu();
    let link = dir.open_beneath(name, OFlags::PATH | OFlags::NOFOLLOW)?;
    header.set_metadata(&File::from(link).metadata()?);
    tar.append_link(&mut header, path, Path::new(&dir.link_target(name)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_context_is_a_directory_or_a_file_in_it() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        assert_eq!(Context::of(&root).unwrap_err().code, Code::NotFound);
        std::fs::write(root.join("Dockerfile"), "FROM scratch\n").unwrap();
        std::fs::write(root.join("other.docker"), "FROM scratch\n").unwrap();
        assert_eq!(Context::of(&root).unwrap().file, "Dockerfile");
        assert_eq!(Context::of(&root.join("other.docker")).unwrap().file, "other.docker");
    }

    /// What comes of packing a directory within a deadline: what waits for ever, or reads without end, fails.
    fn packed(root: &Path) -> io::Result<Vec<u8>> {
        let (done, answer) = std::sync::mpsc::channel();
        let root = root.to_owned();
        std::thread::spawn(move || {
            let mut packed = Vec::new();
            let _ = done.send(pack(&root, "Dockerfile", &mut packed, &|| false).map(|()| packed));
        });
        answer.recv_timeout(std::time::Duration::from_secs(20)).expect("it waits for ever")
    }

    #[test]
    fn a_list_of_what_stays_out_is_a_file_of_the_project() {
        let (dir, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let (root, list) = (dir.path(), dir.path().join(".dockerignore"));
        for file in ["Dockerfile", "secret", "list"] {
            std::fs::write(root.join(file), "secret\n").unwrap();
        }
        std::fs::write(elsewhere.path().join("list"), "secret\n").unwrap();
        // Without the list what must stay out would go to the engine.
        assert!(std::process::Command::new("mkfifo").arg(&list).status().unwrap().success());
        packed(root).unwrap_err();
        for target in [elsewhere.path().join("list"), "/dev/zero".into(), "/dev/tty".into(), "..".into()] {
            std::fs::remove_file(&list).unwrap();
            std::os::unix::fs::symlink(&target, &list).unwrap();
            packed(root).unwrap_err();
        }
        std::fs::remove_file(&list).unwrap();
        std::fs::File::create(&list).unwrap().set_len(1 << 40).unwrap();
        packed(root).unwrap_err();
        std::fs::remove_file(&list).unwrap();
        std::os::unix::fs::symlink("list", &list).unwrap();
        let bytes = packed(root).unwrap();
        let mut archive = tar::Archive::new(bytes.as_slice());
        let mut names: Vec<String> = archive
            .entries()
            .unwrap()
            .map(|entry| entry.unwrap().path().unwrap().display().to_string())
            .collect();
        names.sort();
        assert_eq!(names, [".dockerignore", "Dockerfile", "list"], "a link inside the project is followed");
    }

    #[test]
    fn a_directory_that_nobody_reads_any_more_is_not_packed_to_its_end() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join(".dockerignore"), "**\n").unwrap();
        std::fs::write(dir.path().join("Dockerfile"), "FROM scratch\n").unwrap();
        let error = pack(dir.path(), "Dockerfile", io::sink(), &|| true).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::BrokenPipe);
    }

    #[test]
    fn what_is_packed_is_what_is_there() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path();
        std::fs::create_dir_all(root.join("src/deep")).unwrap();
        for file in ["Dockerfile", "src/deep/a", "secret", ".dockerignore"] {
            std::fs::write(root.join(file), "secret\n").unwrap();
        }
        std::os::unix::fs::symlink("/etc/passwd", root.join("link")).unwrap();
        let mut packed = Vec::new();
        pack(root, "Dockerfile", &mut packed, &|| false).unwrap();
        let mut archive = tar::Archive::new(packed.as_slice());
        let mut names: Vec<(String, u64)> = archive
            .entries()
            .unwrap()
            .map(|entry| {
                let entry = entry.unwrap();
                (entry.path().unwrap().display().to_string(), entry.size())
            })
            .collect();
        names.sort();
        let expected = [
            (".dockerignore", 7),
            ("Dockerfile", 7),
            ("link", 0),
            ("src/", 0),
            ("src/deep/", 0),
            ("src/deep/a", 7),
        ];
        let expected: Vec<_> = expected.iter().map(|(name, size)| ((*name).to_owned(), *size)).collect();
        let trimmed = |all: &[(String, u64)]| -> Vec<(String, u64)> {
            all.iter().map(|(name, size)| (name.trim_end_matches('/').to_owned(), *size)).collect()
        };
        assert_eq!(trimmed(&names), trimmed(&expected));
    }
}

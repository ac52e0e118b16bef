//! Packs the files that a container on another host gets before it starts: what a container of this host would have
//! mounted.

use std::io;
use std::path::Path;

use wharf_boundary::{Dir, MAX_RECORD_LEN};
use wharf_model::{Container, Failure, Home, Offset};

use crate::create_body::checked_paths::{CheckedPaths, read_secret};

/// An archive of files, and the directory in the container that it is unpacked to.
pub(crate) struct Upload {
    pub(crate) at: &'static str,
    pub(crate) tar: Vec<u8>,
}

impl Upload {
    /// The holder and its room. The log there begins where the log on this side ends, so that every byte keeps its
    /// offset.
    pub(crate) fn holder(program: &Path, end: Offset) -> Result<Self, Failure> {
        let pack = || -> io::Result<Vec<u8>> {
            let mut tar = tar::Builder::new(Vec::new());
            file(&mut tar, "holder", 0o755, &std::fs::read(program)?)?;
            // World-writable: the holder may run as any user, and only the session is in the container.
            dir(&mut tar, "room/")?;
            if end.0 > 0 {
                dir(&mut tar, "room/log/")?;
                file(&mut tar, &format!("room/{}/{:020}.log", Home::LOG, end.0), 0o666, b"")?;
            }
            tar.into_inner()
        };
        let tar =
            pack().map_err(|error| Failure::system(format!("cannot read {}", program.display()), &error))?;
        Ok(Self { at: "/run/wharf", tar })
    }

    /// The secrets; none where the spec names none.
    pub(crate) fn secrets(container: &Container, paths: &CheckedPaths) -> Result<Option<Self>, Failure> {
        if container.secrets.is_empty() {
            return Ok(None);
        }
        let mut tar = tar::Builder::new(Vec::new());
        let failed = |error: io::Error| Failure::system("cannot pack the secrets", &error);
        for (secret, sure) in container.secrets.iter().zip(&paths.secrets) {
            file(&mut tar, &secret.name, 0o444, &read_secret(sure)?).map_err(failed)?;
        }
        Ok(Some(Self { at: "/run/secrets", tar: tar.into_inner().map_err(failed)? }))
    }

    /// The prompt at its own path; none where there is no prompt.
    pub(crate) fn prompt(path: Option<&Path>) -> Result<Option<Self>, Failure> {
        let Some(path) = path else { return Ok(None) };
        let pack = || -> io::Result<Vec<u8>> {
            let mut tar = tar::Builder::new(Vec::new());
            let name = path.strip_prefix("/").unwrap_or(path);
            let (dir, own) = path.parent().zip(path.file_name()).ok_or(io::ErrorKind::InvalidInput)?;
            let prompt = Dir::open(dir)?.read(own, MAX_RECORD_LEN)?;
            file(&mut tar, &name.to_string_lossy(), 0o444, &prompt)?;
            tar.into_inner()
        };
        let tar =
            pack().map_err(|error| Failure::system(format!("cannot read {}", path.display()), &error))?;
        Ok(Some(Self { at: "/", tar }))
    }
}

fn file(tar: &mut tar::Builder<Vec<u8>>, name: &str, mode: u32, bytes: &[u8]) -> io::Result<()> {
    let mut header = tar::Header::new_gnu();
    header.set_mode(mode);
    header.set_size(bytes.len() as u64);
    header.set_mtime(1);
    tar.append_data(&mut header, name, bytes)
}

fn dir(tar: &mut tar::Builder<Vec<u8>>, name: &str) -> io::Result<()> {
    let mut header = tar::Header::new_gnu();
    header.set_entry_type(tar::EntryType::Directory);
    header.set_mode(0o777);
    header.set_size(0);
    header.set_mtime(1);
    tar.append_data(&mut header, name, io::empty())
}

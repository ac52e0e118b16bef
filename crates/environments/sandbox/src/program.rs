//! The program that a command means, found before a step stands between it and whoever asks.

use std::ffi::OsStr;
use std::fs;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use wharf_model::{Code, Failure, Text};

use crate::Result;

/// The file that runs for a first word, or why none would. It is said now because afterwards the step would say it, to
/// the session's own terminal.
pub(crate) fn find(word: &Text, env: &[(Text, Text)], dir: &Path) -> Result<PathBuf> {
    let path = env.iter().find(|(name, _)| name.as_bytes() == b"PATH").map(|(_, value)| value.as_bytes());
    let path = path.unwrap_or(b"/usr/local/bin:/usr/bin:/bin");
    let candidates: Vec<PathBuf> = if word.as_bytes().contains(&b'/') {
        vec![dir.join(word.as_path())]
    } else {
        path.split(|byte| *byte == b':')
            .map(|at| dir.join(OsStr::from_bytes(at)).join(word.as_path()))
            .collect()
    };
    let mut why = None;
    for candidate in candidates.into_iter().filter(|candidate| candidate.exists()) {
        match check(&candidate) {
            Ok(()) => return Ok(candidate),
            Err(failure) => why = why.or(Some(failure)),
        }
    }
    Err(why.unwrap_or_else(|| {
        Failure::new(Code::CommandNotFound, format!("there is no command {:?}", word.lossy()))
            .hint("the session's own PATH is searched: `-e PATH+=DIR` adds to it")
    }))
}

fn check(file: &Path) -> Result<()> {
    let no = |why: String| {
        Err(Failure::new(Code::NotExecutable, format!("cannot run {:?}: {why}", file.display().to_string())))
    };
    let meta = match fs::metadata(file) {
        Ok(meta) if meta.is_file() => meta,
        Ok(_) => return no("it is no file".to_owned()),
        Err(error) => return no(error.to_string()),
    };
    if meta.permissions().mode() & 0o111 == 0 {
        return no("it is not executable".to_owned()).map_err(|failure| failure.hint("chmod +x it?"));
    }
    let mut head = Vec::new();
    let read = fs::File::open(file).and_then(|file| file.take(512).read_to_end(&mut head));
    if read.is_err() {
        // One that may be run but not read: the kernel decides.
        return Ok(());
    }
    if let Some(rest) = head.strip_prefix(b"#!") {
        let line = rest.split(|byte| *byte == b'\n').next().unwrap_or_default().trim_ascii();
        let interpreter = line.split(u8::is_ascii_whitespace).next().unwrap_or_default();
        let interpreter = Path::new(OsStr::from_bytes(interpreter));
        if !interpreter.exists() {
            return no(format!("its interpreter {:?} does not exist", interpreter.display().to_string()));
        }
        return Ok(());
    }
    // Anything else that the kernel runs is a program with a whole header.
    if head.len() >= 52 && head.starts_with(b"\x7fELF") {
        return Ok(());
    }
    no("it is neither a program for this machine nor a script with a #! line".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_run_is_told_before() {
        let dir = tempfile::tempdir().unwrap();
        let file = |name: &str, text: &[u8], mode: u32| {
            let path = dir.path().join(name);
            fs::write(&path, text).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        };
        file("plain", b"#!/bin/sh\n", 0o644);
        file("lost", b"#!/no/such\n", 0o755);
        file("odd", b"\x7fELF123", 0o755);
        file("good", b"#!/bin/sh -e\n", 0o755);
        let env = [("PATH".into(), Text::from(dir.path()))];
        let find = |word: &str| find(&word.into(), &env, dir.path());
        assert_eq!(find("good").unwrap(), dir.path().join("good"));
        assert_eq!(find("./good").unwrap(), dir.path().join("./good"));
        assert_eq!(find("/bin/sh").unwrap(), Path::new("/bin/sh"));
        for (word, code) in [
            ("none", Code::CommandNotFound),
            ("plain", Code::NotExecutable),
            ("lost", Code::NotExecutable),
            ("odd", Code::NotExecutable),
            ("/", Code::NotExecutable),
        ] {
            assert_eq!(find(word).unwrap_err().code, code, "{word}");
        }
    }
}

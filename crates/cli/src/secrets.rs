//! Secrets by reference: looked up here, where the caller's variables, files and programs are.

use std::io::{self, Read};
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use wharf_model::{Failure, GivenSecret, Text};

use crate::trouble::invalid;

/// The longest secret, in bytes.
const MAX_LEN: u64 = 1 << 20;
/// How long a command may take to print one.
const COMMAND_TIMEOUT: Duration = Duration::from_secs(30);

/// What `NAME=…` says of a secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Reference {
    /// `NAME=FILE` or `NAME=file:FILE`.
    File(PathBuf),
    /// `NAME=env:VARIABLE`.
    Variable(String),
    /// `NAME=command:LINE`, for a shell.
    Command(String),
}

/// Reads `NAME=FILE`, `NAME=file:FILE`, `NAME=env:VARIABLE` or `NAME=command:LINE`.
pub(crate) fn parse(text: &str, here: &Path) -> Result<(String, Reference), Failure> {
    let wrong = || {
        let how = "write --secret NAME=FILE, NAME=file:FILE, NAME=env:VARIABLE or NAME=command:LINE";
        // What stands behind the name may be a secret that somebody wrote there by mistake.
        let name = text.split_once('=').map_or(text, |(name, _)| name);
        invalid(format!("{name:?} is no secret")).hint(how)
    };
    let (name, what) = text.split_once('=').ok_or_else(wrong)?;
    let reference = match what.split_once(':') {
        Some(("env", variable)) => Reference::Variable(variable.to_owned()),
        Some(("command", line)) => Reference::Command(line.to_owned()),
        Some(("file", file)) => Reference::File(here.join(file)),
        _ => Reference::File(here.join(what)),
    };
    let empty = name.is_empty() || matches!(what, "" | "env:" | "file:" | "command:");
    if empty { Err(wrong()) } else { Ok((name.to_owned(), reference)) }
}

/// Whether one of the references takes its secret from the variable of this name.
pub(crate) fn is_source(texts: &[String], name: &Text) -> bool {
    texts.iter().any(|text| {
        let variable = text.split_once('=').and_then(|(_, what)| what.strip_prefix("env:"));
        variable.is_some_and(|variable| variable.as_bytes() == name.as_bytes())
    })
}

impl Reference {
    /// Looks it up.
    pub(crate) fn look_up(&self, name: &str) -> Result<GivenSecret, Failure> {
        let (from, value) = match self {
            Self::File(file) => (format!("file:{}", file.display()), read(name, file)?),
            Self::Variable(variable) => {
                let value = std::env::var_os(variable).ok_or_else(|| {
                    invalid(format!("the secret {name}: the variable {variable} is not set here"))
                })?;
                (format!("env:{variable}"), value.into_vec())
            }
            // The line itself may hold a secret.
            Self::Command(line) => ("a command".to_owned(), run(name, line)?),
        };
        Ok(GivenSecret { name: name.to_owned(), from, value: Some(value.into()) })
    }
}

fn long(name: &str) -> Failure {
    invalid(format!("the secret {name} is longer than {MAX_LEN} bytes"))
}

fn read(name: &str, file: &Path) -> Result<Vec<u8>, Failure> {
    let mut value = Vec::new();
    let read = std::fs::File::open(file).and_then(|file| file.take(MAX_LEN + 1).read_to_end(&mut value));
    read.map_err(|error| invalid(format!("the secret {name}: cannot read {}: {error}", file.display())))?;
    if value.len() as u64 > MAX_LEN { Err(long(name)) } else { Ok(value) }
}

/// What a command prints, without its last line break.
fn run(name: &str, line: &str) -> Result<Vec<u8>, Failure> {
    let cannot =
        |error: std::io::Error| Failure::system(format!("the secret {name}: cannot run its command"), &error);
    let mut child = Command::new("/bin/sh")
        .args(["-c", line])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(cannot)?;
    let until = Instant::now() + COMMAND_TIMEOUT;
    let late = |child: &mut Child| {
        end(child);
        invalid(format!("the secret {name}: its command was not done within {COMMAND_TIMEOUT:?}"))
    };
    let mut value = Vec::new();
    if let Some(stdout) = child.stdout.take() {
        match read_until(stdout, until, &mut value) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::TimedOut => return Err(late(&mut child)),
            Err(error) => {
                end(&mut child);
                return Err(cannot(error));
            }
        }
    }
    if value.len() as u64 > MAX_LEN {
        end(&mut child);
        return Err(long(name));
    }
    let status = loop {
        match child.try_wait().map_err(cannot)? {
            Some(status) => break status,
            None if Instant::now() >= until => return Err(late(&mut child)),
            None => std::thread::sleep(Duration::from_millis(5)),
        }
    };
    if !status.success() {
        return Err(invalid(format!("the secret {name}: its command ended with {status}")));
    }
    if value.last() == Some(&b'\n') {
        value.pop();
    }
    Ok(value)
}

/// Ends a command that nobody waits for any more.
fn end(child: &mut Child) {
    // It is ours, and may be over already.
    let _ = child.kill();
    let _ = child.wait();
}

/// Reads a pipe to its end, or one byte further than a secret may have.
fn read_until(mut pipe: ChildStdout, until: Instant, value: &mut Vec<u8>) -> io::Result<()> {
    let mut piece = vec![0; 64 << 10];
    while value.len() as u64 <= MAX_LEN {
        let left = Timespec::try_from(until.saturating_duration_since(Instant::now()))
            .map_err(|_| io::ErrorKind::InvalidInput)?;
        match poll(&mut [PollFd::new(&pipe, PollFlags::IN)], Some(&left)) {
            Ok(0) => return Err(io::ErrorKind::TimedOut.into()),
            Ok(_) => {}
            Err(Errno::INTR) => continue,
            Err(error) => return Err(error.into()),
        }
        match pipe.read(&mut piece) {
            Ok(0) => return Ok(()),
            Ok(n) => value.extend_from_slice(&piece[..n]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_are_told_apart() {
        let of = |text: &str| parse(text, Path::new("/here")).map(|(_, reference)| reference);
        assert_eq!(of("a=key").unwrap(), Reference::File("/here/key".into()));
        assert_eq!(of("a=/key").unwrap(), Reference::File("/key".into()));
        assert_eq!(of("a=file:env:x").unwrap(), Reference::File("/here/env:x".into()));
        assert_eq!(of("a=env:X").unwrap(), Reference::Variable("X".into()));
        assert_eq!(of("a=command:pass show x=y").unwrap(), Reference::Command("pass show x=y".into()));
        for wrong in ["a", "=x", "a=", "a=env:", "a=command:", "a=file:"] {
            assert!(of(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn what_a_command_prints_is_the_secret() {
        let value = |line: &str| {
            let secret = Reference::Command(line.to_owned()).look_up("a")?;
            assert_eq!(secret.from, "a command");
            Ok::<_, Failure>(secret.value.unwrap())
        };
        assert_eq!(value("printf 'a\\nb\\n'").unwrap(), "a\nb".into());
        assert!(value("echo hidden; exit 3").unwrap_err().message.contains("ended with"));
        assert!(value("yes").unwrap_err().message.contains("longer"));
        assert!(!value("echo hidden; exit 3").unwrap_err().message.contains("hidden"));
    }
}

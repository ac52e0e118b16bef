//! Defines the error type of the whole workspace: code, message and hint.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::Code;

/// What to do about a full disk, whichever it is.
const DISK_FULL: &str = "the disk is full: `wharf gc` or free some space";

/// An expected failure: a code to act on, a sentence that names the thing, and a way out where there is one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// What went wrong, for programs.
    pub code: Code,
    /// What went wrong, for people: lower-case, and it names the thing.
    pub message: String,
    /// What to do about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

impl Failure {
    /// A failure without a hint.
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), hint: None }
    }

    /// Something that a backend or version cannot do.
    pub fn unsupported(what: impl fmt::Display, by: impl fmt::Display) -> Self {
        Self::new(Code::Unsupported, format!("{by} does not support {what}"))
    }

    /// A system call that failed. Exhausted resources are told apart from faults.
    ///
    /// An error that carries a failure of ours, as far as somebody had to make one of it, is that failure still.
    pub fn system(what: impl fmt::Display, error: &std::io::Error) -> Self {
        if let Some(inner) = error.get_ref().and_then(|inner| inner.downcast_ref::<Self>()) {
            return Self { message: format!("{what}: {}", inner.message), ..inner.clone() };
        }
        // EMFILE, ENFILE, ENOSPC, EDQUOT, EAGAIN of fork, ENOMEM: more of them may be had, by the user. An error that
        // was given a path by somebody has only its kind left.
        let raw = error.raw_os_error().or(match error.kind() {
            std::io::ErrorKind::StorageFull => Some(28),
            std::io::ErrorKind::QuotaExceeded => Some(122),
            std::io::ErrorKind::OutOfMemory => Some(12),
            std::io::ErrorKind::ReadOnlyFilesystem => Some(30),
            _ => None,
        });
        let (code, hint) = match raw {
            Some(24) => (Code::Exhausted, Some("this process is out of descriptors: raise `ulimit -n`")),
            Some(23) => (Code::Exhausted, Some("the system is out of descriptors: raise fs.file-max")),
            Some(28 | 122) => (Code::DiskFull, Some(DISK_FULL)),
            Some(11) => {
                (Code::Exhausted, Some("the system is out of processes: raise `ulimit -u` or kernel.pid_max"))
            }
            Some(12) => (Code::Exhausted, Some("the system is out of memory")),
            Some(30) => (
                Code::Unavailable,
                Some("the place is read-only: make it writable, or set XDG_STATE_HOME to one that is"),
            ),
            _ => (Code::Internal, None),
        };
        Self { code, message: format!("{what}: {error}"), hint: hint.map(str::to_owned) }
    }

    /// The same failure with a hint.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Failure {}

impl From<crate::NameError> for Failure {
    fn from(error: crate::NameError) -> Self {
        Self::new(Code::InvalidName, error.to_string())
            .hint("a name, or each part of GROUP/NAME, has 1 to 64 of A-Z a-z 0-9 . _ - and starts with a letter, a digit or _")
    }
}

impl From<crate::HomeError> for Failure {
    fn from(error: crate::HomeError) -> Self {
        Self::new(Code::Invalid, error.to_string()).hint("set HOME, or XDG_STATE_HOME and XDG_CONFIG_HOME")
    }
}

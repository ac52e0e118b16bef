//! Turns I/O errors and names that leave the destination into failures with a code.

use std::fmt::Display;
use std::io::{self, ErrorKind};

use wharf_model::{Code, Failure};

/// A failure of the file system, with the code that a caller can act on.
pub(crate) fn fault(what: impl Display, error: &io::Error) -> Failure {
    let code = match error.kind() {
        ErrorKind::NotFound => Code::NotFound,
        ErrorKind::PermissionDenied => Code::Forbidden,
        ErrorKind::BrokenPipe => Code::Unreachable,
        _ => return Failure::system(what, error),
    };
    Failure::new(code, format!("{what}: {error}"))
}

/// An archive that would write elsewhere than where it was told to.
pub(crate) fn escape(name: impl Display) -> Failure {
    Failure::new(
        Code::Forbidden,
        format!("the archive names {name}, which leads out of the destination: nothing is written there"),
    )
    .hint("whoever made it did so by mistake or on purpose; look at it with `tar -tvf`")
}

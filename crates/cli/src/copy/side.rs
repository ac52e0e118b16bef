//! Parses the two sides of `wharf cp`: a path here, a path in a session, or an archive stream.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use wharf_model::{Name, Text};

/// One side of a copy.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Side {
    /// A path of this host.
    Here(Place),
    /// A path of a session's place.
    Session(String, Place),
    /// An archive, on standard input or output.
    Archive,
}

/// A path, and what its end says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Place {
    /// The path without its end.
    pub(crate) path: Text,
    /// It ends in `/`: a directory is meant.
    pub(crate) directory: bool,
    /// It ends in `/.`: what is in the directory is meant.
    pub(crate) inside: bool,
}

impl Side {
    /// `-`, `NAME:PATH`, or a path. What begins with `/` or `.` is always a path of this host; `GROUP/NAME:PATH` is
    /// one too, unless there is such a session.
    pub(crate) fn parse(text: &OsStr, is_session: impl Fn(&Name) -> bool) -> Self {
        let bytes = text.as_bytes();
        if bytes == b"-" {
            return Self::Archive;
        }
        let colon = bytes.iter().position(|byte| *byte == b':');
        let colon = colon.filter(|_| !matches!(bytes.first(), Some(b'/' | b'.')));
        if let Some(colon) = colon
            && let Some(name) = std::str::from_utf8(&bytes[..colon]).ok().and_then(|name| name.parse().ok())
            && (Name::group(&name).is_none() || is_session(&name))
        {
            return Self::Session(name.into(), Place::parse(&bytes[colon + 1..]));
        }
        Self::Here(Place::parse(bytes))
    }
}

impl Place {
    fn parse(bytes: &[u8]) -> Self {
        let inside = bytes.ends_with(b"/.") || bytes == b".";
        let mut path =
            if bytes == b"." { bytes } else { bytes.strip_suffix(b".").filter(|_| inside).unwrap_or(bytes) };
        let directory = inside || path.ends_with(b"/");
        while path.len() > 1 && path.ends_with(b"/") {
            path = &path[..path.len() - 1];
        }
        Self { path: if path.is_empty() { ".".into() } else { path.into() }, directory, inside }
    }

    /// The path of this host.
    pub(crate) fn here(&self) -> PathBuf {
        self.path.as_path().to_owned()
    }
}

impl From<&str> for Place {
    fn from(text: &str) -> Self {
        Self::parse(text.as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(path: &str, directory: bool, inside: bool) -> Place {
        Place { path: path.into(), directory, inside }
    }

    #[test]
    fn sides_are_told_apart() {
        let parse = |text: &str| Side::parse(OsStr::new(text), |name| name.as_str() == "team/one");
        assert_eq!(parse("-"), Side::Archive);
        assert_eq!(parse("one:/a/b"), Side::Session("one".into(), place("/a/b", false, false)));
        assert_eq!(parse("one:"), Side::Session("one".into(), place(".", false, false)));
        assert_eq!(parse("one:src/."), Side::Session("one".into(), place("src", true, true)));
        assert_eq!(parse("one:a:b"), Side::Session("one".into(), place("a:b", false, false)));
        assert_eq!(parse("team/one:a/b"), Side::Session("team/one".into(), place("a/b", false, false)));
        for here in [
            "./one:x",
            "/one:x",
            "plain",
            "no name:x",
            ":x",
            "./team/one:x",
            "/team/one:x",
            "team/two:x",
            "a/team/one:x",
            "team//one:x",
            "team/one",
        ] {
            assert_eq!(parse(here), Side::Here(place(here, false, false)), "{here}");
        }
    }

    #[test]
    fn ends_say_what_is_meant() {
        assert_eq!(Place::from("dir/"), place("dir", true, false));
        assert_eq!(Place::from("dir//."), place("dir", true, true));
        assert_eq!(Place::from("."), place(".", true, true));
        assert_eq!(Place::from("/"), place("/", true, false));
        assert_eq!(Place::from("/."), place("/", true, true));
        assert_eq!(Place::from("a."), place("a.", false, false));
        assert_eq!(Place::from(".."), place("..", false, false));
    }
}

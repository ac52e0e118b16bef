//! Where things go. The rules are those of `docker cp`, which people know.

use std::path::Path;

use wharf_model::{Code, Failure, FileKind, Text};

use super::side::Place;
use crate::trouble::invalid;

/// Where the entries of a copy go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Target {
    /// Into this directory, with this name.
    As(Text, Text),
    /// Into this directory, what is in the one that is copied.
    Into(Text),
}

/// What is known of the source.
pub(crate) struct Source<'a> {
    pub(crate) name: &'a Text,
    pub(crate) kind: FileKind,
    pub(crate) inside: bool,
}

/// Decides. `there` is what stands at the destination now, links followed.
pub(crate) fn target(source: &Source<'_>, to: &Place, there: Option<FileKind>) -> Result<Target, Failure> {
    let (name, is_dir) = (to.path.lossy(), source.kind == FileKind::Directory);
    match there {
        Some(FileKind::Directory) if source.inside => Ok(Target::Into(to.path.clone())),
        Some(FileKind::Directory) => Ok(Target::As(to.path.clone(), source.name.clone())),
        Some(_) if is_dir => Err(invalid(format!("{name} is a file, and a directory cannot take its place"))),
        Some(_) if to.directory => Err(invalid(format!("{name} is a file, and not a directory"))),
        None if to.directory && !is_dir => {
            Err(Failure::new(Code::NotFound, format!("there is no directory {name}"))
                .hint("make it first, or leave the slash at the end away"))
        }
        Some(_) | None => {
            let path = to.path.as_path();
            let last = path.file_name().ok_or_else(|| invalid(format!("{name} is no name for a copy")))?;
            let around = path.parent().filter(|around| !around.as_os_str().is_empty());
            Ok(Target::As(around.unwrap_or(Path::new(".")).into(), last.into()))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rules_are_those_that_people_know() {
        let name = Text::from("src");
        let decide = |kind, inside, to: &str, there| {
            target(&Source { name: &name, kind, inside }, &Place::from(to), there)
        };
        let named = |dir: &str, name: &str| Ok(Target::As(dir.into(), name.into()));
        let (file, dir) = (FileKind::File, FileKind::Directory);
        // A file, to what is not there: it gets that name, unless a directory was meant.
        assert_eq!(decide(file, false, "a/b", None), named("a", "b"));
        assert_eq!(decide(file, false, "b", None), named(".", "b"));
        assert_eq!(decide(file, false, "b/", None).unwrap_err().code, Code::NotFound);
        // To a file: in its place. To a directory: into it.
        assert_eq!(decide(file, false, "/x/b", Some(file)), named("/x", "b"));
        assert_eq!(decide(file, false, "/x/b/", Some(file)).unwrap_err().code, Code::Invalid);
        assert_eq!(decide(file, false, "/x", Some(dir)), named("/x", "src"));
        // A directory, to what is not there: it gets that name, with its contents.
        assert_eq!(decide(dir, false, "new", None), named(".", "new"));
        assert_eq!(decide(dir, true, "new/", None), named(".", "new"));
        assert_eq!(decide(dir, false, "f", Some(file)).unwrap_err().code, Code::Invalid);
        assert_eq!(decide(dir, false, "/x", Some(dir)), named("/x", "src"));
        assert_eq!(decide(dir, true, "/x", Some(dir)), Ok(Target::Into("/x".into())));
        // A link is copied as what it is.
        assert_eq!(decide(FileKind::Link, false, "/x", Some(dir)), named("/x", "src"));
        // The root is always there; were it not, there would be no name for a copy.
        assert_eq!(decide(file, false, "/", None).unwrap_err().code, Code::NotFound);
        assert_eq!(decide(dir, false, "/", None).unwrap_err().code, Code::Invalid);
    }
}

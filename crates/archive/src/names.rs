//! Renames archive entries for their destination, and refuses names that lead out of it.

use std::ffi::{OsStr, OsString};
use std::path::{Component, Path, PathBuf};

use wharf_model::{Code, Failure};

use crate::fault::escape;

/// What becomes of the names in an archive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EntryNames {
    /// They stay as they are.
    Kept,
    /// The one that all begin with becomes this one.
    Become(OsString),
    /// The one that all begin with is a directory, and only what is in it counts.
    Inside,
}

/// The names of one archive, as they are to be here.
#[derive(Debug)]
pub(crate) struct Renaming {
    how: EntryNames,
    /// What all names begin with, once the first was seen.
    root: Option<PathBuf>,
}

impl Renaming {
    pub(crate) fn new(how: EntryNames) -> Self {
        Self { how, root: None }
    }

    /// The path beneath the destination; empty for the destination itself.
    pub(crate) fn place(&mut self, name: &Path) -> Result<PathBuf, Failure> {
        let name = plain(name)?;
        if self.how == EntryNames::Kept {
            return Ok(name);
        }
        let root = self.root.get_or_insert_with(|| name.clone());
        let Ok(rest) = name.strip_prefix(root) else {
            return Err(Failure::new(
                Code::Invalid,
                format!("the archive has {}, which does not belong to what was asked for", name.display()),
            ));
        };
        Ok(match &self.how {
            EntryNames::Become(new) if rest == Path::new("") => Path::new(new).to_owned(),
            EntryNames::Become(new) => Path::new(new).join(rest),
            _ => rest.to_owned(),
        })
    }
}

/// The name without what leads nowhere. One that leads upwards or to the root of everything is refused.
fn plain(name: &Path) -> Result<PathBuf, Failure> {
    let mut plain = PathBuf::new();
    for part in name.components() {
        match part {
            Component::CurDir => {}
            Component::Normal(part) if !has_nul(part) => plain.push(part),
            _ => return Err(escape(name.display())),
        }
    }
    Ok(plain)
}

fn has_nul(part: &OsStr) -> bool {
    part.as_encoded_bytes().contains(&0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_replaced_and_none_leads_out() {
        let mut names = Renaming::new(EntryNames::Become("new".into()));
        assert_eq!(names.place(Path::new("old/")).unwrap(), Path::new("new"));
        assert_eq!(names.place(Path::new("old/a/./b")).unwrap(), Path::new("new/a/b"));
        assert_eq!(names.place(Path::new("older/a")).unwrap_err().code, Code::Invalid);
        let mut inside = Renaming::new(EntryNames::Inside);
        assert_eq!(inside.place(Path::new("./")).unwrap(), Path::new(""));
        assert_eq!(inside.place(Path::new("./a")).unwrap(), Path::new("a"));
        for out in ["../x", "/etc/passwd", "a/../../x", ".."] {
            assert_eq!(
                Renaming::new(EntryNames::Kept).place(Path::new(out)).unwrap_err().code,
                Code::Forbidden
            );
        }
    }
}

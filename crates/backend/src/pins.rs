//! What paths of the host mean: decided at a session's first start, and the same at each later one.
//!
//! A session that can write a directory can put a link in the place of anything below it. A path that is resolved again at
//! each start would then lead wherever the session wants. So the first start resolves it, links and all, and writes down
//! which directory that was ([`Pin`]). Later starts take the path without links, follow none, and refuse what is another
//! directory. Only somebody outside accepts a change, by `wharf restart --repin`.

use std::io;
use std::path::{Path, PathBuf};

use wharf_boundary::{Dir, FileIdentity, Kind};
use wharf_model::{Code, Failure, Name, Pin, PinKind, Text, device_words};

use crate::Result;

/// The pins of a session while it is being started.
pub struct Pins<'a> {
    session: &'a Name,
    pins: &'a mut Vec<Pin>,
}

/// What stands at a path now, and is what was meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sure {
    /// The path without links.
    pub path: PathBuf,
    /// What is there.
    pub look: FileIdentity,
}

impl<'a> Pins<'a> {
    /// Those of a session, by its ticket.
    pub fn new(session: &'a Name, pins: &'a mut Vec<Pin>) -> Self {
        Self { session, pins }
    }

    /// What a path means: decided now where it was not, else checked.
    pub fn settle(&mut self, kind: PinKind, given: &Text) -> Result<Sure> {
        if let Some(pin) = self.of(kind, given) {
            return check(pin).map_err(|why| changed(self.session, pin, &why));
        }
        let (pin, sure) = resolve(kind, given)?;
        self.pins.push(pin);
        Ok(sure)
    }

    /// What was decided of a path.
    pub fn of(&self, kind: PinKind, given: &Text) -> Option<&Pin> {
        self.pins.iter().find(|pin| pin.kind == kind && pin.given == *given)
    }

    /// Decides that a path is not used, and why.
    pub fn leave_out(&mut self, kind: PinKind, given: &Text, why: String) {
        self.pins.push(Pin {
            kind,
            given: given.clone(),
            path: given.clone(),
            device: 0,
            filesystem: 0,
            inode: 0,
            name: None,
            unused: Some(why),
        });
    }

    /// Takes a path whose meaning the caller found out by itself.
    pub fn decide(&mut self, kind: PinKind, given: &Text, path: &Path) -> Result<Sure> {
        let (mut pin, sure) = resolve(kind, &Text::from(path))?;
        pin.given = given.clone();
        self.pins.push(pin);
        Ok(sure)
    }
}

/// Whether every path that is in use still leads to what it led to. Only looks: nothing is decided.
pub fn check_pins(session: &Name, pins: &[Pin]) -> Result<()> {
    let mut in_use = pins.iter().filter(|pin| pin.unused.is_none());
    in_use.try_for_each(|pin| check(pin).map(drop).map_err(|why| changed(session, pin, &why)))
}

/// Opens the directory that a pin stands for, while it stands where it was. No link on the way is followed, and what was
/// checked is what is open.
pub fn open_pinned(session: &Name, pin: &Pin) -> Result<Dir> {
    let below = pin.path.as_path().strip_prefix("/").unwrap_or(pin.path.as_path());
    let below = if below.as_os_str().is_empty() { Path::new(".") } else { below };
    let opened = Dir::open(Path::new("/")).and_then(|root| root.dir(below));
    let found = opened.and_then(|dir| dir.look_here().map(|look| (dir, look)));
    let why = match found {
        Ok((dir, look)) if is_there(pin, look) && pin.name.is_none() => return Ok(dir),
        Ok((_, look)) => describe_other("the directory", look),
        Err(_) => describe(pin.path.as_path()),
    };
    let message = format!(
        "{} of {session} is not what it was at the first start: it was {}, and {why}",
        pin.given.as_path().display(),
        pin.words()
    );
    Err(Failure::new(Code::Forbidden, message).hint(repin_hint(session)))
}

/// Whether a directory is the one that a pin stands for.
fn is_there(pin: &Pin, dir: FileIdentity) -> bool {
    dir.inode == pin.inode
        && (dir.device == pin.device || (dir.filesystem != 0 && dir.filesystem == pin.filesystem))
}

fn repin_hint(session: &Name) -> String {
    format!("look at it, then `wharf restart {session} --repin` accepts it as it is")
}

fn changed(session: &Name, pin: &Pin, why: &str) -> Failure {
    let message = format!(
        "cannot start {session}: {} is not what it was at the first start: it was {}, and {why}",
        pin.given.as_path().display(),
        pin.words()
    );
    Failure::new(Code::Forbidden, message).hint(repin_hint(session))
}

/// Follows links once, for good.
fn resolve(kind: PinKind, given: &Text) -> Result<(Pin, Sure)> {
    let shown = given.as_path().display();
    if !given.as_path().is_absolute() {
        return Err(Failure::new(Code::Invalid, format!("{shown} is not an absolute path")));
    }
    let missing = |error: io::Error| {
        Failure::new(Code::NotFound, format!("cannot share {shown}: {error}"))
            .hint("make it first: what is missing is not made")
    };
    let path = given.as_path().canonicalize().map_err(missing)?;
    // Whoever put a link there since does not get it followed.
    let (dir, name, look) = open(&path).map_err(missing)?;
    let pin = Pin {
        kind,
        given: given.clone(),
        path: path.as_path().into(),
        device: dir.device,
        filesystem: dir.filesystem,
        inode: dir.inode,
        name,
        unused: None,
    };
    Ok((pin, Sure { path, look }))
}

/// What is at a path without links: the directory that it is or is in, the name there, and what it is.
fn open(path: &Path) -> io::Result<(FileIdentity, Option<Text>, FileIdentity)> {
    let root = Dir::open(Path::new("/"))?;
    let below = |path: &Path| match path.strip_prefix("/") {
        Ok(path) if !path.as_os_str().is_empty() => path.to_owned(),
        _ => PathBuf::from("."),
    };
    let look = root.look(below(path))?;
    match (look.kind, path.parent(), path.file_name()) {
        (Kind::Directory, ..) => Ok((look, None, look)),
        (Kind::Link, ..) => Err(io::Error::other("it is a link")),
        (_, Some(parent), Some(name)) => {
            let dir = root.dir(below(parent))?;
            Ok((dir.look_here()?, Some(Text::from(name)), dir.look(Path::new(name))?))
        }
        _ => Err(io::ErrorKind::NotFound.into()),
    }
}

/// Whether a pin's path still leads to what it led to; else what it leads to.
fn check(pin: &Pin) -> std::result::Result<Sure, String> {
    let path = pin.path.as_path();
    let (dir, name, look) = match open(path) {
        Ok(found) if found.2.kind != Kind::Link => found,
        Ok(_) | Err(_) => return Err(describe(path)),
    };
    if is_there(pin, dir) && name == pin.name {
        return Ok(Sure { path: path.to_owned(), look });
    }
    let what = if name.is_some() { "a file of the directory" } else { "the directory" };
    Err(describe_other(what, dir))
}

fn describe_other(what: &str, dir: FileIdentity) -> String {
    format!("is now {what} with inode {} on device {}", dir.inode, device_words(dir.device))
}

/// Why a path cannot be had without links.
fn describe(path: &Path) -> String {
    let mut so_far = PathBuf::new();
    for part in path.components() {
        so_far.push(part);
        match std::fs::symlink_metadata(&so_far) {
            Ok(meta) if meta.is_symlink() => {
                let target = std::fs::read_link(&so_far).unwrap_or_default();
                return format!("{} is now a link to {}", so_far.display(), target.display());
            }
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return format!("{} is gone", so_far.display());
            }
            Err(error) => return format!("{} cannot be looked at: {error}", so_far.display()),
        }
    }
    format!("{} was being changed", path.display())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    struct Ground {
        dir: tempfile::TempDir,
        name: Name,
        pins: Vec<Pin>,
    }

    impl Ground {
        fn new() -> Self {
            let dir = tempfile::tempdir().unwrap();
            for name in ["real/sub", "precious"] {
                fs::create_dir_all(dir.path().join(name)).unwrap();
            }
            fs::write(dir.path().join("real/file"), "1").unwrap();
            fs::write(dir.path().join("precious/file"), "2").unwrap();
            symlink("real", dir.path().join("link")).unwrap();
            Self { dir, name: "one".parse().unwrap(), pins: Vec::new() }
        }

        fn path(&self, name: &str) -> PathBuf {
            self.dir.path().canonicalize().unwrap().join(name)
        }

        fn settle(&mut self, name: &str) -> Result<Sure> {
            let given = Text::from(self.path(name));
            Pins::new(&self.name, &mut self.pins).settle(PinKind::Mount, &given)
        }

        fn refused(&mut self, name: &str) -> String {
            let failure = self.settle(name).unwrap_err();
            assert_eq!(failure.code, Code::Forbidden, "{failure:?}");
            assert!(failure.hint.is_some_and(|hint| hint.contains("restart one --repin")));
            failure.message
        }
    }

    #[test]
    fn a_link_counts_at_the_first_start_and_never_again() {
        let mut ground = Ground::new();
        assert_eq!(ground.settle("link/sub").unwrap().path, ground.path("real/sub"));
        // What the link says now is of no interest.
        fs::remove_file(ground.path("link")).unwrap();
        symlink("precious", ground.path("link")).unwrap();
        assert_eq!(ground.settle("link/sub").unwrap().path, ground.path("real/sub"));
        fs::remove_dir(ground.path("real/sub")).unwrap();
        assert!(ground.refused("link/sub").contains("is gone"));
        symlink("../precious", ground.path("real/sub")).unwrap();
        let said = ground.refused("link/sub");
        assert!(said.contains("real/sub is now a link to ../precious"), "{said}");
        assert!(said.contains("it was the directory with inode"), "{said}");
        // Accepted, it is what it is.
        ground.pins.clear();
        assert_eq!(ground.settle("real/sub").unwrap().path, ground.path("precious"));
    }

    #[test]
    fn another_directory_is_not_the_one_that_was() {
        let mut ground = Ground::new();
        ground.settle("real/sub").unwrap();
        fs::rename(ground.path("real/sub"), ground.path("real/old")).unwrap();
        fs::rename(ground.path("precious"), ground.path("real/sub")).unwrap();
        assert!(ground.refused("real/sub").contains("is now the directory with inode"));
        fs::rename(ground.path("real/sub"), ground.path("precious")).unwrap();
        fs::rename(ground.path("real/old"), ground.path("real/sub")).unwrap();
        ground.settle("real/sub").unwrap();
        // A link on the way is none that was there.
        fs::rename(ground.path("real"), ground.path("moved")).unwrap();
        symlink("moved", ground.path("real")).unwrap();
        assert!(ground.refused("real/sub").contains("real is now a link to moved"));
    }

    #[test]
    fn a_pinned_directory_is_opened_or_refused() {
        let mut ground = Ground::new();
        ground.settle("link/sub").unwrap();
        let open = |ground: &Ground| open_pinned(&ground.name, &ground.pins[0]);
        assert_eq!(open(&ground).unwrap().identity().unwrap().1, ground.pins[0].inode);
        let refused = |ground: &Ground| {
            let failure = open(ground).unwrap_err();
            assert_eq!(failure.code, Code::Forbidden, "{failure:?}");
            failure.message
        };
        fs::rename(ground.path("real/sub"), ground.path("real/old")).unwrap();
        assert!(refused(&ground).contains("is gone"));
        // A link that leads to the very directory is followed no more than another.
        symlink("old", ground.path("real/sub")).unwrap();
        assert!(refused(&ground).contains("is now a link to old"));
        fs::remove_file(ground.path("real/sub")).unwrap();
        fs::create_dir(ground.path("real/sub")).unwrap();
        assert!(refused(&ground).contains("is now the directory with inode"));
    }

    #[test]
    fn a_file_is_a_name_in_its_directory() {
        let mut ground = Ground::new();
        let first = ground.settle("real/file").unwrap();
        // An editor that writes a new file and renames it is nobody to be afraid of.
        fs::write(ground.path("real/new"), "3").unwrap();
        fs::rename(ground.path("real/new"), ground.path("real/file")).unwrap();
        assert_ne!(ground.settle("real/file").unwrap().look.inode, first.look.inode);
        fs::remove_file(ground.path("real/file")).unwrap();
        symlink("../precious/file", ground.path("real/file")).unwrap();
        assert!(ground.refused("real/file").contains("is now a link to ../precious/file"));
        fs::remove_file(ground.path("real/file")).unwrap();
        fs::create_dir(ground.path("real/file")).unwrap();
        assert!(ground.refused("real/file").contains("is now the directory"));
        // Another name in the same directory is another file.
        fs::remove_dir(ground.path("real/file")).unwrap();
        fs::write(ground.path("real/file"), "4").unwrap();
        ground.settle("real/file").unwrap();
        ground.pins[0].name = Some("other".into());
        ground.refused("real/file");
    }

    #[test]
    fn a_file_system_is_known_by_its_id_where_its_device_changed() {
        let mut ground = Ground::new();
        ground.settle("real").unwrap();
        ground.pins[0].device += 1;
        if ground.pins[0].filesystem != 0 {
            ground.settle("real").unwrap();
        }
        ground.pins[0].filesystem += 1;
        assert!(ground.refused("real").contains("on device"));
    }

    #[test]
    fn what_is_missing_is_not_pinned() {
        let mut ground = Ground::new();
        assert_eq!(ground.settle("nothing").unwrap_err().code, Code::NotFound);
        let relative = Pins::new(&ground.name, &mut ground.pins).settle(PinKind::Secret, &"x".into());
        assert_eq!(relative.unwrap_err().code, Code::Invalid);
        assert!(ground.pins.is_empty());
    }
}

//! Shares the repository of a git work tree: the tree's files are in one directory, and the repository is in another.
//!
//! Anybody can write a `.git` file that names any repository, so it counts only where that repository names the work tree in
//! turn. Then the container gets what git needs to work there, and nothing by which something would run on the host:
//!
//! ```text
//! R = /home/me/project/.git, where the container sees it
//! R                        a directory of the session's own, with links to what is in the repository
//! R/objects refs logs      the repository's, writable
//! R/worktrees              the repository's, read-only; the work tree's own directory in it is writable, but for what
//!                          leads from there to the repository (commondir, gitdir) and for its settings
//! /run/wharf/repository/0  the whole repository, read-only: where those links lead
//! ```
//! So no file of the repository's own directory can be made or changed from inside: no settings, no hooks, no `commondir`
//! that would lead git on the host elsewhere. Git must be able to lock `packed-refs` there all the same, whenever it drops
//! any reference. It resolves links itself to find out where to put the lock, five of them and no more; here it has six, and
//! the lock stands beside the last, in the session's own directory. What would then write packed references there, and
//! delete the loose ones of the host, fails because the new file's name is taken.
//!
//! The repositories of a work tree's submodules are in its own directory (`modules`), with settings and hooks. The container
//! sees them read-only. Where there are none, an empty directory is mounted, which goes with the container.

use std::ffi::OsString;
use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use wharf_boundary::{Dir, FileIdentity, Kind};
use wharf_model::Failure;

use crate::session_dirs::make_dir;
use crate::shared_container::DIR as SHARED_DIR;

/// The longest `.git`, `commondir` or `gitdir` file that is one.
const MAX_POINTER_LEN: u64 = 8 << 10;
/// The most names in a repository's own directory.
const MAX_NAMES: usize = 4096;
/// Where a container sees repositories whole.
const WHOLE_DIR: &str = "/run/wharf/repository";
/// The directory of the session's own in their places, in its home.
const VIEWS_DIR: &str = "repositories";
/// How many links git resolves when it looks for the place of a lock.
const MAX_GIT_LINKS: u32 = 5;

/// Where a repository keeps those of a work tree's submodules.
const MODULES: &str = "modules";
/// How the names of notes begin, next to the views: each is a link to what a repository keeps of a work tree. Then come the
/// number of the run whose container has it mounted, and a number of its own.
const NOTE_PREFIX: &str = "tree.";
/// The directory of all sessions, in the instance's own.
const SESSIONS_DIR: &str = "sessions";
/// Whoever makes an empty directory for a session, or takes one away that no session needs, does it alone.
static GAPS_TURN: Mutex<()> = Mutex::new(());

/// Directories of a repository that git writes to when it works in a work tree, where they are there.
const WRITABLE: &[&str] = &["objects", "refs", "logs", "lfs", "rr-cache"];

/// A repository, by the directory that it has for a work tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Repository {
    /// Its own directory, `.git`.
    pub(crate) path: PathBuf,
    /// What it keeps of the work tree.
    own: PathBuf,
}

/// A mount that a work tree needs.
pub(crate) struct Part {
    pub(crate) source: PathBuf,
    pub(crate) target: PathBuf,
    pub(crate) read_only: bool,
    pub(crate) what: &'static str,
    /// What must be there, of directories of the host.
    pub(crate) look: Option<FileIdentity>,
}

/// What the repository of the work tree in a directory keeps of it. None where the directory is no work tree, or a whole
/// repository; why it is not believed, where it claims to be one.
pub(crate) fn find(tree: &Path) -> Result<Option<PathBuf>, String> {
    let said = |error: io::Error| format!("its .git cannot be read: {error}");
    let dir = Dir::open(tree).map_err(said)?;
    match dir.kind(".git").map_err(said)? {
        Some(Kind::File) => {}
        Some(Kind::Directory) | None => return Ok(None),
        Some(kind) => return Err(format!("its .git is {}", kind.noun())),
    }
    let text = pointer(&dir, ".git").map_err(said)?;
    let Some(named) = text.strip_prefix("gitdir:").map(str::trim) else {
        return Err("its .git file names no repository".to_owned());
    };
    let no = |why: &str| format!("its .git file names {named}, {why}");
    let own =
        tree.join(named).canonicalize().map_err(|error| no(&format!("which cannot be had: {error}")))?;
    let repository = own.parent().filter(|above| above.ends_with("worktrees")).and_then(Path::parent);
    let Some(repository) = repository else {
        return Err(no("which is no work tree's place in a repository"));
    };
    let kept = Dir::open(&own).map_err(|error| no(&format!("which cannot be had: {error}")))?;
    if pointer(&kept, "commondir").ok().as_deref() != Some("../..") {
        return Err(no("whose commondir is not the repository around it"));
    }
    let back = pointer(&kept, "gitdir").map(|back| own.join(back)).unwrap_or_default();
    let same = back.ends_with(".git")
        && back.parent().and_then(|back| Dir::open(back).ok()).is_some_and(|back| {
            let identity = back.identity().ok();
            identity.is_some() && identity == dir.identity().ok()
        });
    if !same {
        return Err(no("which does not name this work tree in turn"));
    }
    let whole =
        Dir::open(repository).map_err(|error| no(&format!("whose repository cannot be had: {error}")))?;
    let is = |name: &str, kind: Kind| whole.kind(name).is_ok_and(|found| found == Some(kind));
    if !is("HEAD", Kind::File) || !is("objects", Kind::Directory) || !is("refs", Kind::Directory) {
        return Err(no("which is in no repository"));
    }
    Ok(Some(own))
}

/// A file with one line: a path.
fn pointer(dir: &Dir, name: &str) -> io::Result<String> {
    let text = String::from_utf8(dir.read(name, MAX_POINTER_LEN)?);
    text.map(|text| text.trim().to_owned()).map_err(io::Error::other)
}

impl Repository {
    /// The one that keeps this of a work tree.
    pub(crate) fn around(own: PathBuf) -> Option<Self> {
        let path = own.parent()?.parent()?.to_owned();
        Some(Self { path, own })
    }

    /// All that a container needs of it, as the repository of this number. What the session has of its own stands in `home`.
    pub(crate) fn parts(&self, home: &Path, number: usize, read_only: bool) -> Result<Vec<Part>, Failure> {
        let all = if read_only { self.whole() } else { self.opened(home, number) };
        all.map_err(|error| {
            Failure::system(format!("cannot share the repository {}", self.path.display()), &error)
        })
    }

    fn whole(&self) -> io::Result<Vec<Part>> {
        let look = Some(Dir::open(&self.path)?.look_here()?);
        let (source, target) = (self.path.clone(), self.path.clone());
        Ok(vec![Part { source, target, read_only: true, what: "the work tree's repository", look }])
    }

    fn opened(&self, home: &Path, number: usize) -> io::Result<Vec<Part>> {
        let dir = Dir::open(&self.path)?;
        let part = |source: &Path, target: &Path, read_only, what, look| Part {
            source: source.to_owned(),
            target: target.to_owned(),
            read_only,
            what,
            look,
        };
        let whole = whole_at(number);
        let mut parts = vec![
            part(&self.path, &whole, true, "the work tree's repository", Some(dir.look_here()?)),
            part(&view(home, number), &self.path, false, "a view of the work tree's repository", None),
        ];
        for name in WRITABLE.iter().filter(|name| is_dir(&dir, name)) {
            let (path, look) = (self.path.join(name), dir.look(name)?);
            parts.push(part(&path, &path, false, "of the work tree's repository", Some(look)));
        }
        let trees = self.path.join("worktrees");
        let look = Some(dir.look("worktrees")?);
        parts.push(part(&trees, &trees, true, "of the work tree's repository", look));
        parts.extend(self.own_parts()?);
        Ok(parts)
    }

    /// What the repository keeps of the work tree, without what leads out of it.
    pub(crate) fn own_parts(&self) -> io::Result<Vec<Part>> {
        let (own, kept) = (&self.own, Dir::open(&self.own)?);
        let what = "what the repository keeps of the work tree";
        let part = |path: PathBuf, read_only, look| Part {
            source: path.clone(),
            target: path,
            read_only,
            what,
            look,
        };
        let mut parts = vec![part(own.clone(), false, Some(kept.look_here()?))];
        for name in ["commondir", "gitdir", "config.worktree", MODULES] {
            match kept.kind(name)? {
                Some(Kind::File) if name != MODULES => parts.push(part(own.join(name), true, None)),
                Some(Kind::Directory) if name == MODULES => parts.push(part(own.join(name), true, None)),
                None => {}
                Some(kind) => {
                    let what = format!("{} is {}", own.join(name).display(), kind.noun());
                    return Err(io::Error::new(io::ErrorKind::InvalidData, what));
                }
            }
        }
        Ok(parts)
    }

    /// Makes what is mounted read-only in what the repository keeps of the work tree: what is not there could be planted.
    /// That is an empty file for settings, and an empty directory for the repositories of submodules. Git takes that
    /// directory for a sign of submodules, so it is noted in `home`, which is the session's or the shared container's, and
    /// goes with the container of that run.
    pub(crate) fn fill_gaps(&self, home: &Path, run: u32, number: usize) -> Result<(), Failure> {
        let fill = || -> io::Result<()> {
            let kept = Dir::open(&self.own)?;
            if kept.kind("config.worktree")?.is_none() {
                kept.make_file("config.worktree", 0o644)?;
            }
            let _turn = GAPS_TURN.lock().unwrap_or_else(PoisonError::into_inner);
            let views =
                make_dir(&home.join(VIEWS_DIR), 0o700).and_then(|()| Dir::open(&home.join(VIEWS_DIR)))?;
            let note = format!("{NOTE_PREFIX}{run}.{number}");
            views.remove(&note)?;
            symlink(&self.own, home.join(VIEWS_DIR).join(note))?;
            kept.make_dir(MODULES, 0o755).map(drop)
        };
        fill().map_err(|error| {
            Failure::system(format!("cannot share the repository {}", self.path.display()), &error)
        })
    }

    /// Makes the session's own directory in the repository's place.
    pub(crate) fn create_view(&self, home: &Path, number: usize) -> Result<(), Failure> {
        let create = || -> io::Result<()> {
            let repository = Dir::open(&self.path)?;
            if repository.kind("logs")?.is_none() {
                repository.make_dir("logs", 0o755)?;
            }
            let (views, at) = (home.join(VIEWS_DIR), view(home, number));
            make_dir(&views, 0o700)?;
            // A container of an earlier run could write there.
            Dir::open(&views)?.remove_tree(number.to_string())?;
            make_dir(&at, 0o777)?;
            let whole = whole_at(number);
            for name in repository.names(MAX_NAMES)? {
                let text = name.to_string_lossy();
                if text.starts_with("packed-refs") || text == "worktrees" || text.ends_with(".lock") {
                    continue;
                }
                if WRITABLE.contains(&&*text) && is_dir(&repository, &text) {
                    make_dir(&at.join(&name), 0o777)?;
                } else {
                    symlink(whole.join(&name), at.join(&name))?;
                }
            }
            make_dir(&at.join("worktrees"), 0o777)?;
            packed_refs(&at, &whole)
        };
        create().map_err(|error| {
            Failure::system(format!("cannot share the repository {}", self.path.display()), &error)
        })
    }
}

/// Where a container sees the whole repository, read-only.
fn whole_at(number: usize) -> PathBuf {
    Path::new(WHOLE_DIR).join(number.to_string())
}

/// Packed references can be read and locked, and not be written.
fn packed_refs(at: &Path, whole: &Path) -> io::Result<()> {
    let packed = at.join("packed");
    make_dir(&packed, 0o777)?;
    symlink("packed/1", at.join("packed-refs"))?;
    for number in 1..MAX_GIT_LINKS {
        symlink((number + 1).to_string(), packed.join(number.to_string()))?;
    }
    symlink(whole.join("packed-refs"), packed.join(MAX_GIT_LINKS.to_string()))?;
    // For git, and for those who follow no links when they lock.
    for taken in
        [packed.join(format!("{MAX_GIT_LINKS}.new")), at.join("packed-refs.new"), at.join("packed-refs.lock")]
    {
        make_dir(&taken, 0o755)?;
    }
    Ok(())
}

fn is_dir(dir: &Dir, name: &str) -> bool {
    dir.kind(name).is_ok_and(|kind| kind == Some(Kind::Directory))
}

/// The session's own directory in the place of a repository's.
fn view(home: &Path, number: usize) -> PathBuf {
    home.join(VIEWS_DIR).join(number.to_string())
}

/// Takes away the empty directories that were made in repositories for the container of one run, or of any where none is
/// named, and that no other container of this instance has mounted: what is mounted and taken away on the host is gone
/// in the container too. Call it once that container is gone.
pub(crate) fn close_gaps(home: &Path, run: Option<u32>) {
    // Most sessions have none, and wait for nobody's repository.
    if notes(home).is_ok_and(|notes| notes.is_empty()) {
        return;
    }
    let _turn = GAPS_TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let prefix = run.map_or_else(|| NOTE_PREFIX.to_owned(), |run| format!("{NOTE_PREFIX}{run}."));
    let Ok(mut gaps) = notes(home) else { return };
    gaps.retain(|(note, _)| note.as_encoded_bytes().starts_with(prefix.as_bytes()));
    for (note, _) in &gaps {
        let _ = std::fs::remove_file(home.join(VIEWS_DIR).join(note));
    }
    // Where it cannot be told who else needs one, it stays.
    let Ok(needed) = all_notes(home) else { return };
    for (_, own) in gaps.into_iter().filter(|(_, own)| !needed.contains(own)) {
        // It stays where git has put something into it.
        let _ = std::fs::remove_dir(own.join(MODULES));
    }
}

/// The work trees that are noted in a home: the note's name, and what the repository keeps of the tree.
fn notes(home: &Path) -> io::Result<Vec<(OsString, PathBuf)>> {
    let views = match Dir::open(home).and_then(|home| home.dir(VIEWS_DIR)) {
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            return Ok(Vec::new());
        }
        views => views?,
    };
    let names = views.names(MAX_NAMES)?.into_iter();
    let notes = names.filter(|name| name.as_encoded_bytes().starts_with(NOTE_PREFIX.as_bytes()));
    notes.map(|name| Ok((name.clone(), views.link_target(&name)?.into()))).collect()
}

/// What all sessions and shared containers of the instance with this home have noted.
fn all_notes(home: &Path) -> io::Result<Vec<PathBuf>> {
    let mut all = Vec::new();
    let instance = home.parent().and_then(Path::parent).ok_or(io::ErrorKind::NotFound)?;
    for homes in home.parent().into_iter().chain([&*instance.join(SHARED_DIR), &*instance.join(SESSIONS_DIR)])
    {
        let entries = match std::fs::read_dir(homes) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            entries => entries?,
        };
        for entry in entries {
            all.extend(notes(&entry?.path())?.into_iter().map(|(_, own)| own));
        }
    }
    Ok(all)
}

/// Takes away what was made in a session's home, and elsewhere for it.
pub(crate) fn clear(home: &Path) {
    close_gaps(home, None);
    // A home that is gone has none.
    let _ = Dir::open(home).and_then(|home| home.remove_tree(VIEWS_DIR));
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    struct Ground(tempfile::TempDir);

    impl Ground {
        fn new() -> Self {
            let ground = Self(tempfile::tempdir().unwrap());
            ground.repository("repo/.git", "tree");
            fs::create_dir_all(ground.path("tree")).unwrap();
            let own = ground.path("repo/.git/worktrees/tree");
            fs::write(ground.path("tree/.git"), format!("gitdir: {}\n", own.display())).unwrap();
            ground
        }

        fn path(&self, name: &str) -> PathBuf {
            self.0.path().canonicalize().unwrap().join(name)
        }

        fn repository(&self, name: &str, tree: &str) {
            let own = self.path(name).join("worktrees/tree");
            for dir in ["objects", "refs", "logs", "hooks", "worktrees/tree"] {
                fs::create_dir_all(self.path(name).join(dir)).unwrap();
            }
            fs::write(self.path(name).join("HEAD"), "ref: refs/heads/main\n").unwrap();
            fs::write(self.path(name).join("config"), "").unwrap();
            fs::write(own.join("commondir"), "../..\n").unwrap();
            fs::write(own.join("gitdir"), format!("{}\n", self.path(tree).join(".git").display())).unwrap();
        }
    }

    #[test]
    fn a_work_tree_is_believed_where_the_repository_names_it() {
        let ground = Ground::new();
        let own = ground.path("repo/.git/worktrees/tree");
        assert_eq!(find(&ground.path("tree")), Ok(Some(own.clone())));
        assert_eq!(find(&ground.path("repo")), Ok(None));
        assert_eq!(Repository::around(own).unwrap().path, ground.path("repo/.git"));
        // Another directory that claims the same place.
        fs::create_dir(ground.path("liar")).unwrap();
        fs::copy(ground.path("tree/.git"), ground.path("liar/.git")).unwrap();
        assert!(find(&ground.path("liar")).unwrap_err().contains("does not name this work tree in turn"));
    }

    #[test]
    fn made_up_places_are_not_believed() {
        let ground = Ground::new();
        let own = ground.path("tree/made-up");
        fs::create_dir(&own).unwrap();
        fs::write(own.join("commondir"), ground.path("repo/.git").to_str().unwrap()).unwrap();
        fs::write(own.join("gitdir"), ground.path("tree/.git").to_str().unwrap()).unwrap();
        fs::write(ground.path("tree/.git"), "gitdir: made-up\n").unwrap();
        assert!(find(&ground.path("tree")).unwrap_err().contains("no work tree's place"));
        // As deep as a real one, and pointing back.
        let own = ground.path("tree/x/worktrees/y");
        fs::create_dir_all(&own).unwrap();
        fs::write(own.join("commondir"), ground.path("repo/.git").to_str().unwrap()).unwrap();
        fs::write(own.join("gitdir"), ground.path("tree/.git").to_str().unwrap()).unwrap();
        fs::write(ground.path("tree/.git"), "gitdir: x/worktrees/y\n").unwrap();
        assert!(find(&ground.path("tree")).unwrap_err().contains("commondir"));
        fs::remove_file(ground.path("tree/.git")).unwrap();
        symlink(ground.path("repo/.git/config"), ground.path("tree/.git")).unwrap();
        assert!(find(&ground.path("tree")).unwrap_err().contains("is a link"));
        fs::remove_file(ground.path("tree/.git")).unwrap();
        fs::write(ground.path("tree/.git"), vec![b'x'; 1 << 20]).unwrap();
        assert!(find(&ground.path("tree")).is_err());
    }

    #[test]
    fn nothing_of_the_repositorys_own_directory_is_writable() {
        let ground = Ground::new();
        let own = ground.path("repo/.git/worktrees/tree");
        let repository = Repository::around(own.clone()).unwrap();
        let home = ground.path("home");
        fs::create_dir(&home).unwrap();
        for _ in 0..2 {
            repository.fill_gaps(&home, 1, 0).unwrap();
            repository.create_view(&home, 0).unwrap();
        }
        let git = ground.path("repo/.git");
        let parts = repository.parts(&home, 0, false).unwrap();
        let writable: Vec<_> =
            parts.iter().filter(|part| !part.read_only).map(|part| part.source.clone()).collect();
        assert_eq!(
            writable,
            [view(&home, 0), git.join("objects"), git.join("refs"), git.join("logs"), own.clone()]
        );
        for name in ["commondir", "gitdir", "config.worktree", "modules"] {
            assert!(parts.iter().any(|part| part.read_only && part.target == own.join(name)), "{name}");
        }
        assert_eq!(
            fs::read_link(view(&home, 0).join("hooks")).unwrap(),
            Path::new("/run/wharf/repository/0/hooks")
        );
        assert!(repository.parts(&home, 0, true).unwrap().iter().all(|part| part.read_only));
        clear(&home);
        assert_eq!(fs::read_dir(&home).unwrap().count(), 0);
        assert!(!own.join(MODULES).exists());
    }

    #[test]
    fn an_empty_directory_for_submodules_goes_with_the_last_container_that_has_it() {
        let ground = Ground::new();
        let own = ground.path("repo/.git/worktrees/tree");
        let repository = Repository::around(own.clone()).unwrap();
        let homes = ["sessions/1", "sessions/2", "berths/3"].map(|name| ground.path(name));
        for home in &homes {
            fs::create_dir_all(home).unwrap();
            repository.fill_gaps(home, 1, 0).unwrap();
        }
        for home in &homes[..2] {
            for _ in 0..2 {
                close_gaps(home, Some(1));
                assert!(own.join(MODULES).is_dir(), "another one has it mounted");
            }
        }
        close_gaps(&homes[2], None);
        assert!(!own.join(MODULES).exists());
        // The container of an earlier run is removed late: the next one has it mounted by then.
        for run in [1, 2] {
            repository.fill_gaps(&homes[0], run, 0).unwrap();
        }
        close_gaps(&homes[0], Some(1));
        assert!(own.join(MODULES).is_dir(), "the next run has it mounted");
        close_gaps(&homes[0], Some(2));
        assert!(!own.join(MODULES).exists());
        // What git has put there stays.
        repository.fill_gaps(&homes[0], 3, 0).unwrap();
        fs::create_dir(own.join("modules/sub")).unwrap();
        close_gaps(&homes[0], Some(3));
        assert!(own.join("modules/sub").is_dir());
    }

    #[test]
    fn where_it_cannot_be_told_who_else_has_it_an_empty_directory_stays() {
        let ground = Ground::new();
        let own = ground.path("repo/.git/worktrees/tree");
        let repository = Repository::around(own.clone()).unwrap();
        let [one, other] = ["sessions/1", "sessions/2"].map(|name| ground.path(name));
        fs::create_dir_all(&one).unwrap();
        repository.fill_gaps(&one, 1, 0).unwrap();
        fs::create_dir_all(other.join(VIEWS_DIR)).unwrap();
        fs::write(other.join(VIEWS_DIR).join("tree.1.0"), "no link").unwrap();
        close_gaps(&one, Some(1));
        assert!(own.join(MODULES).is_dir());
    }
}

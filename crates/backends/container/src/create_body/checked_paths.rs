//! Checks the paths of the host that a container is given: that each still means what it did, and may be shared.

use std::path::{Path, PathBuf};

use wharf_backend::{Pins, Sure};
use wharf_boundary::{Dir, Kind};
use wharf_model::{Code, Container, Expected, Failure, PinKind, Text};

use crate::create_body::engine_sockets::{canonical, shared_by};
use crate::create_body::mounts::SECRETS;
use crate::create_body::worktree::{self, Part, Repository};

/// The largest secret that is uploaded to another host, in bytes.
const MAX_SECRET_LEN: u64 = 16 << 20;

/// What this host shares with no container.
pub(crate) struct Withheld<'a> {
    /// The sockets of engines that we and the caller know.
    pub(crate) sockets: &'a [PathBuf],
    /// The instance's own directory.
    pub(crate) state: &'a Path,
    /// The session's own secrets in there, which it may read.
    pub(crate) secrets: &'a Path,
}

/// A container's paths, checked a moment ago.
#[derive(Debug, Clone, Default)]
pub(crate) struct CheckedPaths {
    /// For each volume its path; none for a named volume.
    pub(crate) volumes: Vec<Option<Sure>>,
    /// For each secret its path.
    pub(crate) secrets: Vec<Sure>,
    /// Repositories of volumes that are work trees.
    worktrees: Vec<Worktree>,
    /// What the holder must find in the container.
    pub(crate) expected: Vec<Expected>,
}

/// A volume that is a work tree.
#[derive(Debug, Clone)]
struct Worktree {
    tree: Sure,
    repository: Repository,
    read_only: bool,
}

impl CheckedPaths {
    /// Pins the paths of a container at its first start, and checks them at later ones. A container on another host
    /// has no path of this one.
    pub(crate) fn of(
        container: &Container,
        pins: &mut Pins<'_>,
        withheld: &Withheld<'_>,
        remote: bool,
    ) -> Result<Self, Failure> {
        let mut paths = Self::default();
        for volume in &container.volumes {
            if remote || !volume.source.as_bytes().contains(&b'/') {
                paths.volumes.push(None);
                continue;
            }
            let first = pins.of(PinKind::Mount, &volume.source).is_none();
            let tree = pins.settle(PinKind::Mount, &volume.source)?;
            withheld.allows(&volume.source, &tree)?;
            // A work tree in its own place is one in the container too.
            if volume.source == volume.target && tree.look.kind == Kind::Directory {
                let own = worktree_of(pins, &volume.source, &tree, first)?;
                if let Some(repository) = own.and_then(|own| Repository::around(own.path)) {
                    withheld.allows_path(&repository.path)?;
                    paths.worktrees.push(Worktree {
                        tree: tree.clone(),
                        repository,
                        read_only: volume.read_only,
                    });
                }
            }
            paths.expect(&volume.target, &tree);
            paths.volumes.push(Some(tree));
        }
        for secret in &container.secrets {
            named(&secret.name)?;
            let sure = pins.settle(PinKind::Secret, &secret.source)?;
            if secret.source.as_path().parent() != Some(withheld.secrets) {
                withheld.allows(&secret.source, &sure)?;
            }
            if sure.look.kind != Kind::File {
                let what = format!("{} is {} and no secret", sure.path.display(), sure.look.kind.noun());
                return Err(Failure::new(Code::Invalid, what).hint("a secret is a file"));
            }
            if !remote {
                paths.expect(&format!("{SECRETS}/{}", secret.name).into(), &sure);
            }
            paths.secrets.push(sure);
        }
        paths.keep_users_own();
        Ok(paths)
    }

    /// Leaves a repository alone that the user shares explicitly.
    fn keep_users_own(&mut self) {
        let shared: Vec<_> = self.volumes.iter().flatten().map(|sure| sure.path.clone()).collect();
        self.worktrees
            .retain(|worktree| !shared.iter().any(|shared| worktree.repository.path.starts_with(shared)));
    }

    fn expect(&mut self, target: &Text, sure: &Sure) {
        let (device, inode) = (sure.look.device, sure.look.inode);
        self.expected.push(Expected { path: target.clone(), device, inode });
    }

    /// Creates the directories that work trees need in a session's home. Runs on a blocking thread: removing what an
    /// earlier run left may take long.
    pub(crate) async fn create_dirs(&self, home: &Path, run: u32) -> Result<(), Failure> {
        let all: Vec<(usize, Repository)> =
            self.distinct().map(|(number, worktree)| (number, worktree.repository.clone())).collect();
        if all.is_empty() {
            return Ok(());
        }
        let open = self.worktrees.iter().filter(|worktree| !worktree.read_only);
        let open: Vec<Repository> = open.map(|worktree| worktree.repository.clone()).collect();
        let home = home.to_owned();
        let work = move || {
            all.iter().try_for_each(|(number, repository)| repository.create_view(&home, *number))?;
            let mut open = open.iter().enumerate();
            open.try_for_each(|(number, repository)| repository.fill_gaps(&home, run, number))
        };
        let done = tokio::task::spawn_blocking(work).await;
        done.map_err(|error| Failure::new(Code::Internal, error.to_string()))?
    }

    /// The mounts of work trees. Looks at files that may be on a file system that never answers.
    pub(crate) fn repository_parts(&self, home: &Path) -> Result<Vec<Part>, Failure> {
        let mut parts: Vec<Part> = Vec::new();
        for (number, worktree) in self.distinct() {
            parts.extend(worktree.repository.parts(home, number, worktree.read_only)?);
        }
        for worktree in self.worktrees.iter().filter(|worktree| !worktree.read_only) {
            let own = worktree.repository.own_parts();
            let own = own.map_err(|error| Failure::system("cannot share a repository", &error))?;
            for part in own {
                if !parts.iter().any(|there| there.target == part.target) {
                    parts.push(part);
                }
            }
            // Only the host may say which repository the tree belongs to.
            let pointer = worktree.tree.path.join(".git");
            let what = "says which repository the work tree is of";
            parts.push(Part { source: pointer.clone(), target: pointer, read_only: true, what, look: None });
        }
        Ok(parts)
    }

    /// All paths that the holder must find, including those of work trees.
    pub(crate) fn all_expected(&self, parts: &[Part]) -> Vec<Expected> {
        let mut all = self.expected.clone();
        for part in parts {
            if let Some(look) = &part.look {
                let path = part.target.as_path().into();
                all.push(Expected { path, device: look.device, inode: look.inode });
            }
        }
        all
    }

    /// One work tree of each repository, with the repository's number.
    fn distinct(&self) -> impl Iterator<Item = (usize, &Worktree)> {
        let first = |at: usize, worktree: &Worktree| {
            !self.worktrees[..at].iter().any(|before| before.repository.path == worktree.repository.path)
        };
        self.worktrees.iter().enumerate().filter(move |(at, worktree)| first(*at, worktree))
    }
}

/// The repository's own directory for a work tree, as pinned at the first start.
fn worktree_of(pins: &mut Pins<'_>, given: &Text, tree: &Sure, first: bool) -> Result<Option<Sure>, Failure> {
    match pins.of(PinKind::Worktree, given) {
        Some(pin) if pin.unused.is_some() => return Ok(None),
        Some(_) => return pins.settle(PinKind::Worktree, given).map(Some),
        // It was no work tree at the first start. What a session wrote since does not make it one.
        None if !first => return Ok(None),
        None => {}
    }
    match worktree::find(&tree.path) {
        Ok(None) => Ok(None),
        Ok(Some(own)) => pins.decide(PinKind::Worktree, given, &own).map(Some),
        Err(why) => {
            pins.leave_out(PinKind::Worktree, given, format!("as a work tree: {why}"));
            Ok(None)
        }
    }
}

impl Withheld<'_> {
    /// Refuses to share what would give the host away.
    fn allows(&self, given: &Text, sure: &Sure) -> Result<(), Failure> {
        self.allows_as(given.as_path(), &sure.path)
    }

    fn allows_path(&self, path: &Path) -> Result<(), Failure> {
        self.allows_as(path, path)
    }

    fn allows_as(&self, given: &Path, found: &Path) -> Result<(), Failure> {
        let shown = given.display();
        if found.starts_with(canonical(self.state)) {
            let message = format!("{shown} belongs to wharf itself and is not shared");
            return Err(Failure::new(Code::Forbidden, message));
        }
        if found.starts_with("/proc") {
            let message = format!("{shown} has the files of every process of this host, and is not shared");
            return Err(Failure::new(Code::Forbidden, message));
        }
        if let Some(socket) = shared_by(found, self.sockets) {
            let message = format!(
                "{shown} has or may have an engine's socket, {}, and is not shared",
                socket.display()
            );
            return Err(Failure::new(Code::Forbidden, message)
                .hint("whoever has the socket has the host; share a smaller directory"));
        }
        Ok(())
    }
}

/// Whether a secret's name is the name of a file and nothing else.
fn named(name: &str) -> Result<(), Failure> {
    let plain = !name.is_empty() && name != ".." && name != "." && !name.contains('/');
    if plain { Ok(()) } else { Err(Failure::new(Code::Invalid, format!("{name:?} is no name for a secret"))) }
}

/// The bytes of a secret, without following a link.
pub(crate) fn read_secret(secret: &Sure) -> Result<Vec<u8>, Failure> {
    let path = &secret.path;
    let below = path.strip_prefix("/").unwrap_or(path);
    let read = Dir::open(Path::new("/")).and_then(|root| root.read(below, MAX_SECRET_LEN));
    read.map_err(|error| Failure::system(format!("cannot read {}", path.display()), &error))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use wharf_model::{Name, Pin, Secret, Volume};

    use super::*;

    fn of(
        container: &Container,
        withheld: &Withheld<'_>,
        pins: &mut Vec<Pin>,
    ) -> Result<CheckedPaths, Failure> {
        let name: Name = "one".parse().unwrap();
        CheckedPaths::of(container, &mut Pins::new(&name, pins), withheld, false)
    }

    fn sharing(source: &Path, target: &str) -> Container {
        let volume = Volume { source: source.into(), target: target.into(), read_only: false };
        Container { volumes: vec![volume], ..Container::of("a") }
    }

    #[test]
    fn engines_and_our_own_files_are_kept_out() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        for made in ["run", "home/state", "other"] {
            std::fs::create_dir_all(root.join(made)).unwrap();
        }
        std::fs::write(root.join("run/engine.sock"), "").unwrap();
        symlink(root.join("run"), root.join("detour")).unwrap();
        let (socket, state) = (root.join("run/engine.sock"), root.join("home/state"));
        let sockets = [root.join("elsewhere.sock"), socket.clone()];
        let withheld = Withheld { sockets: &sockets, state: &state, secrets: &root.join("none") };
        let code = |path: &Path| of(&sharing(path, "/x"), &withheld, &mut Vec::new()).unwrap_err().code;
        for refused in [&socket, &root.join("run"), &root.join("detour"), &root, &state] {
            assert_eq!(code(refused), Code::Forbidden, "{}", refused.display());
        }
        for refused in ["/run", "/var/run", "/proc", "/proc/1", "/"] {
            assert_eq!(code(Path::new(refused)), Code::Forbidden, "{refused}");
        }
        assert_eq!(code(&root.join("none")), Code::NotFound);
        assert_eq!(code(Path::new("relative/x")), Code::Invalid);
        let paths = of(&sharing(&root.join("other"), "/x"), &withheld, &mut Vec::new()).unwrap();
        assert_eq!(paths.expected[0].path, "/x".into());
        assert!(
            of(&sharing(Path::new("a-volume"), "/x"), &withheld, &mut Vec::new()).unwrap().volumes[0]
                .is_none()
        );
    }

    #[test]
    fn a_secret_is_a_file_and_stays_that_of_its_directory() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        std::fs::create_dir(root.join("dir")).unwrap();
        std::fs::write(root.join("dir/key"), "k").unwrap();
        std::fs::write(root.join("other"), "o").unwrap();
        let own = root.join("state/one/secrets");
        std::fs::create_dir_all(&own).unwrap();
        std::fs::write(own.join("key"), "own").unwrap();
        std::fs::write(root.join("state/ticket"), "t").unwrap();
        let withheld = Withheld { sockets: &[], state: &root.join("state"), secrets: &own };
        let secret = |name: &str| Secret { name: "s".into(), source: root.join(name).into() };
        let with = |name: &str| Container { secrets: vec![secret(name)], ..Container::of("a") };
        assert_eq!(of(&with("dir"), &withheld, &mut Vec::new()).unwrap_err().code, Code::Invalid);
        assert_eq!(of(&with("state/ticket"), &withheld, &mut Vec::new()).unwrap_err().code, Code::Forbidden);
        let paths = of(&with("state/one/secrets/key"), &withheld, &mut Vec::new()).unwrap();
        assert_eq!(read_secret(&paths.secrets[0]).unwrap(), b"own");
        let mut pins = Vec::new();
        let paths = of(&with("dir/key"), &withheld, &mut pins).unwrap();
        assert_eq!(read_secret(&paths.secrets[0]).unwrap(), b"k");
        std::fs::remove_file(root.join("dir/key")).unwrap();
        symlink("../other", root.join("dir/key")).unwrap();
        assert_eq!(of(&with("dir/key"), &withheld, &mut pins).unwrap_err().code, Code::Forbidden);
        assert!(read_secret(&paths.secrets[0]).is_err());
    }
}

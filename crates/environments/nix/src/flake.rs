//! Which flake is meant, and how nix is told.

use std::fmt::Write as _;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use wharf_model::{Code, Failure, Nix};

use crate::Result;
use crate::git::Tree;
use crate::program::Around;

/// A flake and one of its shells.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Flake {
    pub(crate) kind: Kind,
    pub(crate) shell: Option<String>,
}

/// Where a flake is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A directory of this host, as git has it: what git does not know is not copied.
    Git(PathBuf, Tree),
    /// A directory of this host, with all that is in it.
    Path(PathBuf),
    /// Somewhere else, as nix knows it.
    Elsewhere(String),
}

impl Flake {
    /// The flake that a spec means.
    pub(crate) async fn of(nix: &Nix, around: Around<'_>) -> Result<Self> {
        let shell = nix.shell.clone();
        let Some(dir) = local(nix, around.dir) else {
            return Ok(Self { kind: Kind::Elsewhere(nix.flake.lossy().into_owned()), shell });
        };
        let dir = above(&dir)?;
        let kind = match Tree::of(&dir, around).await {
            Some(tree) if is_plain(&dir) => Kind::Git(dir, tree),
            _ => Kind::Path(dir),
        };
        Ok(Self { kind, shell })
    }

    /// The reference that nix is given where it runs in [`Flake::dir`].
    pub(crate) fn reference(&self) -> String {
        // Nix of some versions has no way to write a path with a space in it, but takes the one that it is in.
        self.referred(|_| "path:.".to_owned())
    }

    /// The reference that nix is given where it runs anywhere.
    pub(crate) fn absolute(&self) -> String {
        self.referred(|dir| format!("path:{}", encoded(dir)))
    }

    fn referred(&self, odd: impl Fn(&Path) -> String) -> String {
        let flake = match &self.kind {
            Kind::Git(_, tree) if tree.below.as_os_str().is_empty() => {
                format!("git+file://{}", tree.root.display())
            }
            Kind::Git(_, tree) => format!("git+file://{}?dir={}", tree.root.display(), tree.below.display()),
            Kind::Path(dir) if is_plain(dir) => format!("path:{}", dir.display()),
            Kind::Path(dir) => odd(dir),
            Kind::Elsewhere(flake) => flake.clone(),
        };
        with_shell(flake, self.shell.as_deref())
    }

    /// The directory to run nix in.
    pub(crate) fn dir(&self) -> &Path {
        match &self.kind {
            Kind::Git(dir, _) | Kind::Path(dir) => dir,
            Kind::Elsewhere(_) => Path::new("/"),
        }
    }

    /// What people call it.
    pub(crate) fn name(&self) -> String {
        let flake = match &self.kind {
            Kind::Git(dir, _) | Kind::Path(dir) => dir.display().to_string(),
            Kind::Elsewhere(flake) => flake.clone(),
        };
        with_shell(flake, self.shell.as_deref())
    }
}

fn with_shell(flake: String, shell: Option<&str>) -> String {
    match shell {
        Some(shell) => format!("{flake}#{shell}"),
        None => flake,
    }
}

/// What nix is told where the flake is looked for in another place than this host.
pub(crate) fn inside(nix: &Nix, dir: &Path) -> String {
    let flake = match local(nix, dir) {
        Some(dir) => format!("path:{}", encoded(&dir)),
        None => nix.flake.lossy().into_owned(),
    };
    with_shell(flake, nix.shell.as_deref())
}

/// The directory that is meant, where one is: nothing, a path, or `path:` and a path.
fn local(nix: &Nix, base: &Path) -> Option<PathBuf> {
    let text = nix.flake.as_bytes();
    let text = text.strip_prefix(b"path:").unwrap_or(text);
    let looks = text.is_empty() || matches!(text[0], b'/' | b'.');
    let joined = || base.join(Path::new(std::ffi::OsStr::from_bytes(text)));
    looks.then(|| joined().components().collect())
}

/// The nearest directory with a `flake.nix`, from here upwards to the end of a git work tree.
fn above(dir: &Path) -> Result<PathBuf> {
    let whole = dir.canonicalize().map_err(|error| {
        Failure::new(Code::NoDirectory, format!("cannot look for a flake in {}: {error}", dir.display()))
    })?;
    for at in whole.ancestors() {
        if at.join("flake.nix").is_file() {
            return Ok(at.to_owned());
        }
        if at.join(".git").exists() {
            break;
        }
    }
    Err(Failure::new(Code::Invalid, format!("there is no flake.nix in {} or above it", dir.display()))
        .hint("--nix FLAKE names another: a directory, or a reference such as github:OWNER/REPO"))
}

/// Whether a path is the same in a URL.
fn is_plain(path: &Path) -> bool {
    path.as_os_str().as_bytes().iter().all(|byte| plain(*byte))
}

fn plain(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"/._-~+".contains(&byte)
}

/// A path as a part of a URL.
fn encoded(path: &Path) -> String {
    let mut text = String::new();
    for byte in path.as_os_str().as_bytes() {
        if plain(*byte) {
            text.push(char::from(*byte));
        } else {
            let _ = write!(text, "%{byte:02X}");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_told_from_references() {
        let of = |text: &str| local(&Nix::parse(text), Path::new("/base"));
        assert_eq!(of(""), Some("/base".into()));
        assert_eq!(of("#ci"), Some("/base".into()));
        assert_eq!(of("."), Some("/base".into()));
        assert_eq!(of("./sub"), Some("/base/sub".into()));
        assert_eq!(of("path:/x"), Some("/x".into()));
        assert_eq!(of("/x"), Some("/x".into()));
        assert_eq!(of("github:o/r"), None);
        assert_eq!(of("nixpkgs"), None);
    }

    #[test]
    fn references_keep_odd_paths_apart() {
        let flake = |kind| Flake { kind, shell: Some("ci".into()) };
        assert_eq!(flake(Kind::Path("/a".into())).reference(), "path:/a#ci");
        assert_eq!(flake(Kind::Path("/a b/#c?".into())).reference(), "path:.#ci");
        assert_eq!(flake(Kind::Path("/a b/#c?".into())).absolute(), "path:/a%20b/%23c%3F#ci");
        let tree = Tree { root: "/r".into(), below: "s".into(), files: Vec::new() };
        assert_eq!(flake(Kind::Git("/r/s".into(), tree)).reference(), "git+file:///r?dir=s#ci");
    }

    #[test]
    fn a_flake_is_looked_for_upwards() {
        let root = tempfile::tempdir().unwrap();
        let deep = root.path().join("a/b");
        std::fs::create_dir_all(&deep).unwrap();
        std::fs::create_dir(root.path().join(".git")).unwrap();
        assert_eq!(above(&deep).unwrap_err().code, Code::Invalid);
        std::fs::write(root.path().join("a/flake.nix"), "").unwrap();
        assert_eq!(above(&deep).unwrap(), root.path().canonicalize().unwrap().join("a"));
        assert_eq!(above(&deep.join("no")).unwrap_err().code, Code::NoDirectory);
    }
}

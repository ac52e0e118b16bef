//! What a container sees of the host.

use std::path::{Path, PathBuf};

use bollard::models::{Mount, MountType};
use wharf_model::{Code, Container, Failure, Text, Volume};

use crate::berth::Berth;
use crate::body::worktree;
use crate::rooms::Rooms;

/// Where a container has the holder and its room.
pub(crate) const HOLDER: &str = "/run/wharf/holder";
/// The holder's directory.
pub(crate) const ROOM: &str = "/run/wharf/room";
/// The directory of all rooms, where several sessions share a container.
pub(crate) const BERTH: &str = "/run/wharf/berth";
/// The session's log, in the holder's directory.
const LOG: &str = "/run/wharf/room/log";

/// Sockets of engines: whoever has one has the host.
const SOCKETS: &[&str] = &[
    "/run/docker.sock",
    "/run/podman/podman.sock",
    "/run/containerd/containerd.sock",
    "/run/crio/crio.sock",
    "/run/buildkit/buildkitd.sock",
];

/// What this host keeps from every container.
pub(crate) struct Kept<'a> {
    /// The engine's socket.
    pub(crate) socket: Option<&'a Path>,
    /// The instance's own directory.
    pub(crate) state: &'a Path,
}

/// All mounts of a session's container.
pub(crate) fn all(
    holder: &Path,
    rooms: &Rooms,
    container: &Container,
    kept: &Kept<'_>,
) -> Result<Vec<Mount>, Failure> {
    let mut mounts =
        vec![bind(holder, HOLDER, true)?, bind(&rooms.room(), ROOM, false)?, bind(&rooms.log(), LOG, false)?];
    if let Some(prompt) = rooms.prompt() {
        let target = utf8(&prompt)?;
        mounts.push(bind(&prompt, &target, true)?);
    }
    mounts.extend(asked_for(rooms, container, kept)?);
    Ok(mounts)
}

/// All mounts of a container that several sessions share: their rooms are in one directory.
pub(crate) fn berth(
    holder: &Path,
    berth: &Berth,
    container: &Container,
    kept: &Kept<'_>,
) -> Result<Vec<Mount>, Failure> {
    let mut mounts = vec![bind(holder, HOLDER, true)?, bind(&berth.rooms(), BERTH, false)?];
    mounts.extend(asked_for(&Rooms::of(berth.dir()), container, kept)?);
    Ok(mounts)
}

/// The mounts that a spec names.
fn asked_for(rooms: &Rooms, container: &Container, kept: &Kept<'_>) -> Result<Vec<Mount>, Failure> {
    let mut mounts = Vec::new();
    for volume in &container.volumes {
        mounts.extend(self::volume(volume, rooms, kept)?);
    }
    for secret in &container.secrets {
        named(&secret.name)?;
        let source = existing(secret.source.as_path(), kept)?;
        mounts.push(bind(&source, &format!("/run/secrets/{}", secret.name), true)?);
    }
    Ok(mounts)
}

/// All mounts of a container on another host: nothing of this one can be shared with it. What is brought there has a volume
/// of its own, which can be read when the container has ended, and goes with it.
pub(crate) fn far(container: &Container) -> Result<Vec<Mount>, Failure> {
    let own = |target: &str| Mount {
        typ: Some(MountType::VOLUME),
        target: Some(target.to_owned()),
        ..Mount::default()
    };
    let mut mounts = vec![own("/run/wharf")];
    if !container.secrets.is_empty() {
        mounts.push(own("/run/secrets"));
    }
    for secret in &container.secrets {
        named(&secret.name)?;
    }
    for volume in &container.volumes {
        if volume.source.as_bytes().contains(&b'/') {
            let message = format!(
                "cannot share {}: the engine is on another host, and has nothing of this one",
                volume.source.as_path().display()
            );
            return Err(Failure::new(Code::Unsupported, message)
                .hint("name a volume of that engine, or copy files with `wharf cp`"));
        }
        let (name, typ) = (utf8(volume.source.as_path())?, Some(MountType::VOLUME));
        mounts.push(Mount { typ, ..mount(name, target(&volume.target)?, volume.read_only) });
    }
    Ok(mounts)
}

/// Whether a secret's name is the name of a file and nothing else.
fn named(name: &str) -> Result<(), Failure> {
    let plain = !name.is_empty() && name != ".." && name != "." && !name.contains('/');
    if plain { Ok(()) } else { Err(Failure::new(Code::Invalid, format!("{name:?} is no name for a secret"))) }
}

fn volume(volume: &Volume, rooms: &Rooms, kept: &Kept<'_>) -> Result<Vec<Mount>, Failure> {
    let target = target(&volume.target)?;
    if !volume.source.as_bytes().contains(&b'/') {
        let (name, typ) = (utf8(volume.source.as_path())?, Some(MountType::VOLUME));
        return Ok(vec![Mount { typ, ..mount(name, target, volume.read_only) }]);
    }
    let source = existing(volume.source.as_path(), kept)?;
    let mut mounts = vec![bind(&source, &target, volume.read_only)?];
    // What the instance keeps there decides what runs on this host; a container must not see it by a detour.
    if let Ok(below) = canonical(kept.state).strip_prefix(&source) {
        let hidden = utf8(&Path::new(&target).join(below))?;
        mounts.push(bind(&rooms.veil(kept.state)?, &hidden, true)?);
    }
    // A worktree in its own place is one in the container too.
    if volume.source == volume.target
        && let Some(repository) = worktree::repository(&source)
    {
        let path = utf8(&existing(&repository, kept)?)?;
        mounts.push(bind(&repository, &path, volume.read_only)?);
    }
    Ok(mounts)
}

/// A file or directory of the host that may be shared. One that is missing is not made: engines would make a directory
/// of root's where a file was meant.
fn existing(path: &Path, kept: &Kept<'_>) -> Result<PathBuf, Failure> {
    if !path.is_absolute() {
        return Err(Failure::new(Code::Invalid, format!("{} is not an absolute path", path.display())));
    }
    let found = path.canonicalize().map_err(|error| {
        Failure::new(Code::NotFound, format!("cannot share {}: {error}", path.display()))
            .hint("make it first: what is missing is not made")
    })?;
    let state = canonical(kept.state);
    if found.starts_with(&state) {
        let message = format!("{} belongs to wharf itself and is not shared", path.display());
        return Err(Failure::new(Code::Forbidden, message));
    }
    let sockets = SOCKETS.iter().map(Path::new).chain(kept.socket);
    if let Some(socket) = sockets.map(canonical).find(|socket| socket.starts_with(&found)) {
        let message =
            format!("{} has an engine's socket, {}, and is not shared", path.display(), socket.display());
        return Err(Failure::new(Code::Forbidden, message)
            .hint("whoever has the socket has the host; share a smaller directory"));
    }
    Ok(found)
}

/// The path without links, as far as it is there.
fn canonical(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_owned())
}

fn target(target: &Text) -> Result<String, Failure> {
    let path = target.as_path();
    let wrong = |why: &str| Failure::new(Code::Invalid, format!("cannot mount at {}: {why}", path.display()));
    if !path.is_absolute() || path.components().any(|part| part == std::path::Component::ParentDir) {
        return Err(wrong("it is not a plain absolute path"));
    }
    if path == Path::new("/")
        || path.starts_with("/run/wharf")
        || path.starts_with("/proc")
        || path.starts_with("/sys")
    {
        return Err(wrong("that place is taken"));
    }
    utf8(path)
}

fn bind(source: &Path, target: &str, read_only: bool) -> Result<Mount, Failure> {
    Ok(Mount { typ: Some(MountType::BIND), ..mount(utf8(source)?, target.to_owned(), read_only) })
}

fn mount(source: String, target: String, read_only: bool) -> Mount {
    Mount { source: Some(source), target: Some(target), read_only: Some(read_only), ..Mount::default() }
}

/// An engine is spoken to in JSON, which has no other texts.
pub(crate) fn utf8(path: &Path) -> Result<String, Failure> {
    let text = path.to_str().map(str::to_owned);
    text.ok_or_else(|| {
        Failure::new(Code::Invalid, format!("{} is not UTF-8, which engines insist on", path.display()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(volumes: &[(&Path, &str)], kept: &Kept<'_>) -> Result<Vec<(String, String)>, Failure> {
        let mut all = Vec::new();
        let home = tempfile::tempdir().unwrap();
        for (source, target) in volumes {
            let made = Volume { source: (*source).into(), target: (*target).into(), read_only: false };
            all.extend(volume(&made, &Rooms::of(home.path()), kept)?);
        }
        let text = |text: Option<String>| text.unwrap_or_default();
        Ok(all.into_iter().map(|mount| (text(mount.source), text(mount.target))).collect())
    }

    #[test]
    fn engines_and_our_own_files_are_kept_out() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        for made in ["run", "home/state", "other"] {
            std::fs::create_dir_all(root.join(made)).unwrap();
        }
        std::fs::write(root.join("run/engine.sock"), "").unwrap();
        std::os::unix::fs::symlink(root.join("run"), root.join("detour")).unwrap();
        let (socket, state) = (root.join("run/engine.sock"), root.join("home/state"));
        let kept = Kept { socket: Some(&socket), state: &state };
        for refused in [&socket, &root.join("run"), &root.join("detour"), &root, &state] {
            assert_eq!(
                of(&[(refused, "/x")], &kept).unwrap_err().code,
                Code::Forbidden,
                "{}",
                refused.display()
            );
        }
        assert_eq!(of(&[(&root.join("none"), "/x")], &kept).unwrap_err().code, Code::NotFound);
        assert_eq!(of(&[(Path::new("relative/x"), "/x")], &kept).unwrap_err().code, Code::Invalid);
        let other = root.join("other");
        assert_eq!(of(&[(&other, "/x")], &kept).unwrap(), [(other.display().to_string(), "/x".to_owned())]);
        // The home itself may be shared; what is ours in it is covered.
        let home = root.join("home");
        let shared = of(&[(&home, "/home/u")], &kept).unwrap();
        assert!(shared[1].0.ends_with("veil") && shared[1].1 == "/home/u/state", "{shared:?}");
    }

    #[test]
    fn targets_are_plain_and_not_ours() {
        let kept = Kept { socket: None, state: Path::new("/nowhere") };
        for target in ["x", "/", "/a/../run/wharf", "/run/wharf/holder", "/proc/1", "/sys"] {
            let failure = of(&[(Path::new("/tmp"), target)], &kept).unwrap_err();
            assert_eq!(failure.code, Code::Invalid, "{target}");
        }
        let named = of(&[(Path::new("a-volume"), "/data")], &kept).unwrap();
        assert_eq!(named, [("a-volume".to_owned(), "/data".to_owned())]);
    }
}

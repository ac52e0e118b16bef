//! The mounts of a container: what it sees of the host.

use std::path::Path;

use bollard::models::{Mount, MountType};
use wharf_model::{Code, Container, Failure, Mounted, MountedBy, Text, Volume};

use crate::create_body::checked_paths::CheckedPaths;
use crate::create_body::engine_sockets::canonical;
use crate::create_body::worktree::Part;
use crate::session_dirs::SessionDirs;
use crate::shared_container::SharedContainer;

/// The holder's program in a container.
pub(crate) const HOLDER: &str = "/run/wharf/holder";
/// The room in a container.
pub(crate) const ROOM: &str = "/run/wharf/room";
/// The directory of all rooms, where several sessions share a container. The name inside is older.
pub(crate) const SHARED_ROOMS: &str = "/run/wharf/berth";
/// The session's log in a container, inside the room.
const LOG: &str = "/run/wharf/room/log";
/// Where secrets are.
pub(crate) const SECRETS: &str = "/run/secrets";

/// A mount for the engine, with what people are told about it.
#[derive(Debug)]
pub(crate) struct PlannedMount {
    pub(crate) mount: Mount,
    by: MountedBy,
    what: &'static str,
}

impl PlannedMount {
    fn by_wharf(mount: Mount, what: &'static str) -> Self {
        Self { mount, by: MountedBy::Wharf, what }
    }

    fn by_user(mount: Mount, what: &'static str) -> Self {
        Self { mount, by: MountedBy::User, what }
    }
}

/// The mounts as people see them, with those that the image brings.
pub(crate) fn shown(planned: &[PlannedMount], image: &[String]) -> Vec<Mounted> {
    let text = |text: &Option<String>| Text::from(text.as_deref().unwrap_or_default());
    let known = planned.iter().map(|planned| Mounted {
        source: text(&planned.mount.source),
        target: text(&planned.mount.target),
        read_only: planned.mount.read_only == Some(true),
        by: planned.by,
        what: planned.what.to_owned(),
    });
    let taken =
        |target: &&String| !planned.iter().any(|planned| planned.mount.target.as_ref() == Some(target));
    let image = image.iter().filter(taken).map(|target| Mounted {
        source: Text::default(),
        target: target.as_str().into(),
        read_only: false,
        by: MountedBy::Image,
        what: String::new(),
    });
    known.chain(image).collect()
}

/// All mounts of a session's container.
pub(crate) fn all(
    holder: &Path,
    dirs: &SessionDirs,
    container: &Container,
    paths: &CheckedPaths,
    parts: Vec<Part>,
    state: &Path,
) -> Result<Vec<PlannedMount>, Failure> {
    let mut mounts = vec![
        PlannedMount::by_wharf(bind(holder, HOLDER, true)?, "the holder"),
        PlannedMount::by_wharf(bind(&dirs.room(), ROOM, false)?, "the holder's room"),
        PlannedMount::by_wharf(bind(&dirs.log(), LOG, false)?, "the session's log"),
    ];
    if let Some(prompt) = dirs.prompt() {
        let target = utf8(&prompt)?;
        mounts.push(PlannedMount::by_wharf(bind(&prompt, &target, true)?, "the prompt"));
    }
    mounts.extend(asked_for(dirs, container, paths, parts, state)?);
    Ok(mounts)
}

/// The mounts of a container that several sessions share: their rooms are in one directory.
pub(crate) fn of_shared(
    holder: &Path,
    shared: &SharedContainer,
    container: &Container,
    paths: &CheckedPaths,
    parts: Vec<Part>,
    state: &Path,
) -> Result<Vec<PlannedMount>, Failure> {
    let mut mounts = vec![
        PlannedMount::by_wharf(bind(holder, HOLDER, true)?, "the holder"),
        PlannedMount::by_wharf(
            bind(&shared.rooms(), SHARED_ROOMS, false)?,
            "the rooms of all sessions in it",
        ),
    ];
    mounts.extend(asked_for(&SessionDirs::of(shared.dir()), container, paths, parts, state)?);
    Ok(mounts)
}

/// The mounts that a spec names.
fn asked_for(
    dirs: &SessionDirs,
    container: &Container,
    paths: &CheckedPaths,
    parts: Vec<Part>,
    state: &Path,
) -> Result<Vec<PlannedMount>, Failure> {
    let mut mounts = Vec::new();
    for (volume, sure) in container.volumes.iter().zip(&paths.volumes) {
        let target = target(&volume.target)?;
        let Some(sure) = sure else {
            mounts.push(PlannedMount::by_user(named_volume(volume)?, ""));
            continue;
        };
        mounts.push(PlannedMount::by_user(bind(&sure.path, &target, volume.read_only)?, ""));
        // The instance's files decide what runs on this host: cover them where a mount would show them.
        if let Ok(below) = canonical(state).strip_prefix(&sure.path) {
            let hidden = utf8(&Path::new(&target).join(below))?;
            mounts.push(PlannedMount::by_wharf(
                bind(&dirs.cover_dir(state)?, &hidden, true)?,
                "hides wharf's own files",
            ));
        }
    }
    for part in parts {
        mounts.push(PlannedMount::by_wharf(
            bind(&part.source, &utf8(&part.target)?, part.read_only)?,
            part.what,
        ));
    }
    for (secret, sure) in container.secrets.iter().zip(&paths.secrets) {
        mounts.push(PlannedMount::by_user(
            bind(&sure.path, &format!("{SECRETS}/{}", secret.name), true)?,
            "a secret",
        ));
    }
    Ok(mounts)
}

/// The mounts of a container on another host, which can share nothing with this one. What is uploaded goes into a
/// volume of its own, which stays readable when the container has stopped, and is removed with it.
pub(crate) fn remote(container: &Container) -> Result<Vec<PlannedMount>, Failure> {
    let own = |target: &str| Mount {
        typ: Some(MountType::VOLUME),
        target: Some(target.to_owned()),
        ..Mount::default()
    };
    let mut mounts = vec![PlannedMount::by_wharf(own("/run/wharf"), "the holder, its room and the log")];
    if !container.secrets.is_empty() {
        mounts.push(PlannedMount::by_wharf(own(SECRETS), "the secrets"));
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
        mounts.push(PlannedMount::by_user(named_volume(volume)?, ""));
    }
    Ok(mounts)
}

fn named_volume(volume: &Volume) -> Result<Mount, Failure> {
    let (name, typ) = (utf8(volume.source.as_path())?, Some(MountType::VOLUME));
    Ok(Mount { typ, ..mount(name, target(&volume.target)?, volume.read_only) })
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

/// A path as UTF-8: the engine's API is JSON, which has nothing else.
pub(crate) fn utf8(path: &Path) -> Result<String, Failure> {
    let text = path.to_str().map(str::to_owned);
    text.ok_or_else(|| {
        Failure::new(Code::Invalid, format!("{} is not UTF-8, which engines insist on", path.display()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_are_plain_and_not_ours() {
        for odd in ["x", "/", "/a/../run/wharf", "/run/wharf/holder", "/proc/1", "/sys"] {
            assert_eq!(target(&odd.into()).unwrap_err().code, Code::Invalid, "{odd}");
        }
        assert_eq!(target(&"/data".into()).unwrap(), "/data");
    }

    #[test]
    fn every_mount_is_shown_with_who_wanted_it() {
        let container = Container {
            volumes: vec![Volume { source: "data".into(), target: "/data".into(), read_only: true }],
            ..Container::of("a")
        };
        let shown = shown(&remote(&container).unwrap(), &["/data".to_owned(), "/cache".to_owned()]);
        let brief: Vec<_> =
            shown.iter().map(|one| (one.target.lossy().into_owned(), one.by, one.read_only)).collect();
        assert_eq!(
            brief,
            [
                ("/run/wharf".to_owned(), MountedBy::Wharf, false),
                ("/data".to_owned(), MountedBy::User, true),
                ("/cache".to_owned(), MountedBy::Image, false)
            ]
        );
    }
}

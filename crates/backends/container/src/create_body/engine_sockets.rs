//! Finds sockets of container engines below a path: whoever has such a socket controls the host.

use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

/// Where engines of the system listen. A directory that one of these may be in is not shared, whether it is there or not:
/// an engine may be started later. A `*` is any name.
const SYSTEM: &[&str] = &[
    "/run/docker.sock",
    "/run/docker/containerd/containerd.sock",
    "/run/podman/podman.sock",
    "/run/containerd/containerd.sock",
    "/run/k3s/containerd/containerd.sock",
    "/run/crio/crio.sock",
    "/run/cri-dockerd.sock",
    "/run/dockershim.sock",
    "/run/buildkit/buildkitd.sock",
    "/run/user/*/docker.sock",
    "/run/user/*/docker/containerd/containerd.sock",
    "/run/user/*/podman/podman.sock",
    "/run/user/*/containerd/containerd.sock",
    "/run/user/*/buildkit/buildkitd.sock",
    "/var/lib/lxd/unix.socket",
    "/var/snap/lxd/common/lxd/unix.socket",
    "/var/lib/incus/unix.socket",
];

/// Where they listen below somebody's home. A home may be shared where none of these is there.
const HOME: &[&str] = &[
    ".docker/run/docker.sock",
    ".docker/desktop/docker.sock",
    ".docker/desktop/docker-cli.sock",
    ".docker/docker.sock",
    ".colima/docker.sock",
    ".colima/*/docker.sock",
    ".colima/*/containerd.sock",
    ".config/colima/*/docker.sock",
    ".rd/docker.sock",
    ".rd/run/docker.sock",
    ".lima/*/sock/docker.sock",
    ".lima/*/sock/podman.sock",
    ".orbstack/run/docker.sock",
    ".local/share/containers/podman/machine/podman.sock",
    ".local/share/containers/podman/machine/*/podman.sock",
];

/// What their sockets are called, wherever they are.
const NAMES: &[&str] = &[
    "docker.sock",
    "docker-cli.sock",
    "podman.sock",
    "containerd.sock",
    "crio.sock",
    "cri-dockerd.sock",
    "buildkitd.sock",
];

/// The engine's socket that a path without links would share, if any: it is one, or one is below it.
pub(crate) fn shared_by(path: &Path, known: &[PathBuf]) -> Option<PathBuf> {
    let var = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let named = |name: &str| {
        let text = std::env::var(name).ok()?;
        text.strip_prefix("unix://").map(PathBuf::from)
    };
    let homes: Vec<PathBuf> = var("HOME").into_iter().collect();
    let runtime = var("XDG_RUNTIME_DIR")
        .into_iter()
        .flat_map(|dir| ["docker.sock", "podman/podman.sock"].map(|name| dir.join(name)));
    let own = known.iter().cloned().chain(named("DOCKER_HOST")).chain(named("CONTAINER_HOST"));
    let always: Vec<PathBuf> = own.chain(runtime).collect();
    among(path, &always, &homes)
}

fn among(path: &Path, always: &[PathBuf], homes: &[PathBuf]) -> Option<PathBuf> {
    let is_socket = fs::symlink_metadata(path).is_ok_and(|meta| meta.file_type().is_socket());
    if is_socket && path.file_name().is_some_and(|name| NAMES.iter().any(|known| name == *known)) {
        return Some(path.to_owned());
    }
    // A directory that may get a socket later counts as having it.
    if let Some(may_be) = SYSTEM.iter().map(Path::new).find(|socket| may_hold(path, socket)) {
        return Some(may_be.to_owned());
    }
    let system = SYSTEM.iter().flat_map(|pattern| found(Path::new("/"), &pattern[1..]));
    let at_home = homes.iter().flat_map(|home| HOME.iter().flat_map(|pattern| found(home, pattern)));
    let there = system.chain(at_home).filter(|socket| socket.exists());
    always
        .iter()
        .cloned()
        .chain(there)
        .find(|socket| canonical(socket).starts_with(path) || (is_socket && same(socket, path)))
}

/// Whether a socket of this pattern is this path, or would be below it.
fn may_hold(path: &Path, pattern: &Path) -> bool {
    let mut parts = pattern.components();
    path.components().all(|part| parts.next().is_some_and(|known| known == part || known.as_os_str() == "*"))
}

/// The paths below a directory that a pattern means.
fn found(dir: &Path, pattern: &str) -> Vec<PathBuf> {
    let Some((before, after)) = pattern.split_once("*/") else { return vec![dir.join(pattern)] };
    let entries = fs::read_dir(dir.join(before)).into_iter().flatten().flatten();
    entries.map(|entry| entry.path().join(after)).collect()
}

/// Whether two paths are one socket: by a hard link, or because it is mounted elsewhere too.
fn same(one: &Path, other: &Path) -> bool {
    let id = |path: &Path| fs::metadata(path).ok().map(|meta| (meta.dev(), meta.ino()));
    id(one).is_some() && id(one) == id(other)
}

/// The path without links, as far as it is there.
pub(crate) fn canonical(path: &Path) -> PathBuf {
    if let Ok(found) = path.canonicalize() {
        return found;
    }
    match (path.parent(), path.file_name()) {
        (Some(parent), Some(name)) => canonical(parent).join(name),
        _ => path.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;

    use super::*;

    #[test]
    fn usual_places_are_known_whether_they_are_there_or_not() {
        for path in [
            "/",
            "/run",
            "/run/docker.sock",
            "/run/podman",
            "/run/podman/podman.sock",
            "/run/containerd",
            "/run/containerd/containerd.sock",
            "/run/crio",
            "/run/buildkit",
            "/run/k3s",
            "/run/user",
            "/run/user/1000",
            "/run/user/1000/docker.sock",
            "/run/user/1000/podman/podman.sock",
            "/var/lib",
        ] {
            assert!(among(Path::new(path), &[], &[]).is_some(), "{path}");
        }
        for path in ["/run/systemd", "/run/user/1000/pulse", "/home/me", "/usr", "/var/log"] {
            assert_eq!(among(Path::new(path), &[], &[]), None, "{path}");
        }
    }

    #[test]
    fn a_socket_is_known_by_what_it_is() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        for name in ["home/.colima/default", "home/src", "elsewhere", "run"] {
            fs::create_dir_all(root.join(name)).unwrap();
        }
        let home = [root.join("home")];
        assert_eq!(among(&root.join("home"), &[], &home), None, "a home without one may be shared");
        let socket = root.join("home/.colima/default/docker.sock");
        let _engine = UnixListener::bind(&socket).unwrap();
        for path in [&home[0], &root.join("home/.colima"), &socket] {
            assert_eq!(among(path, &[], &home).as_ref(), Some(&socket), "{}", path.display());
        }
        assert_eq!(among(&root.join("home/src"), &[], &home), None);
        // By a name that nobody knows.
        let other = root.join("elsewhere/x");
        fs::hard_link(&socket, &other).unwrap();
        assert!(among(&other, &[], &home).is_some());
        let agent = root.join("run/agent");
        let _agent = UnixListener::bind(&agent).unwrap();
        assert_eq!(among(&agent, &[], &home), None, "not every socket is an engine's");
        assert!(among(&agent, std::slice::from_ref(&agent), &home).is_some());
    }
}

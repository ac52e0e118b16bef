//! A place of its own, and what it sees of the host.

use std::path::Path;

use wharf_backend::Launch;
use wharf_model::{Container, Text, Volume};

/// The variables for the host's nix on behalf of a command that has a place of its own: the command's are that place's,
/// except where they are nix's.
pub(crate) fn host_variables(launch: &Launch) -> Vec<(Text, Text)> {
    let theirs = |name: &[u8]| name.starts_with(b"NIX_");
    let own = std::env::vars_os().map(|(name, value)| (Text::from(name), Text::from(value)));
    let own = own.filter(|(name, _)| !launch.env.iter().any(|(n, _)| n == name && theirs(n.as_bytes())));
    own.chain(launch.env.iter().filter(|(name, _)| theirs(name.as_bytes())).cloned()).collect()
}

/// Whether a volume is a path of the host at the same path.
pub(crate) fn is_same(volume: &Volume) -> bool {
    volume.source == volume.target && volume.source.as_path().is_absolute()
}

/// Whether a container sees a path of the host at the same path.
pub(crate) fn sees(container: &Container, path: &Path) -> bool {
    container.volumes.iter().any(|volume| is_same(volume) && path.starts_with(volume.target.as_path()))
}

/// Lets a container read a file of the host at the same path.
pub(crate) fn show(container: &mut Container, file: &Text) {
    if !sees(container, file.as_path()) {
        container.volumes.push(Volume { source: file.clone(), target: file.clone(), read_only: true });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_same_path_counts() {
        let volume = |source: &str, target: &str| Volume {
            source: source.into(),
            target: target.into(),
            read_only: true,
        };
        let mut container = Container::of("image");
        container.volumes = vec![volume("/a", "/nix"), volume("store", "store"), volume("/n", "/n")];
        assert!(!sees(&container, Path::new("/nix/store")));
        assert!(!sees(&container, Path::new("/next")));
        assert!(sees(&container, Path::new("/n/store")));
        show(&mut container, &"/n/file".into());
        show(&mut container, &"/f".into());
        show(&mut container, &"/f".into());
        assert_eq!(container.volumes.len(), 4);
    }
}

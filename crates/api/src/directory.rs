//! Creates private directories (0700) and refuses those that other users own or could replace.

use std::fs::{self, DirBuilder, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::Path;

use wharf_model::{Code, Failure};

/// Refuses a directory that is not the user's own, or in whose place others could put another.
pub fn check_ours(path: &Path) -> Result<(), Failure> {
    wharf_boundary::check_ours(path)
        .map_err(|distrust| Failure::new(Code::Forbidden, distrust.message).hint(distrust.hint))
}

/// Makes a directory that is the user's alone (0700), and what is missing above it, whatever the umask is. One that is
/// another's, or that others could replace, is refused.
pub fn private_directory(path: &Path) -> Result<(), Failure> {
    check_ours(path)?;
    make_private(path)?;
    // Somebody may have been quicker.
    check_ours(path)
}

fn make_private(path: &Path) -> Result<(), Failure> {
    make(path).map_err(|error| match error.kind() {
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
            Failure::new(Code::Unavailable, format!("cannot make {}: {error}", path.display())).hint(
                "Wharf keeps its state there: make the place writable, or set XDG_STATE_HOME to one that is",
            )
        }
        io::ErrorKind::NotADirectory | io::ErrorKind::AlreadyExists => {
            Failure::new(Code::Unavailable, format!("{} is no directory", path.display()))
                .hint("move what is in its place away, or set XDG_STATE_HOME to another place")
        }
        _ => Failure::system(format_args!("cannot make {}", path.display()), &error),
    })
}

fn make(path: &Path) -> io::Result<()> {
    match fs::metadata(path) {
        Ok(meta) if !meta.is_dir() => return Err(io::ErrorKind::NotADirectory.into()),
        Ok(meta) if meta.permissions().mode() & 0o777 == 0o700 => return Ok(()),
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => make_below(path)?,
        Err(error) => return Err(error),
    }
    fs::set_permissions(path, Permissions::from_mode(0o700))
}

/// Makes what is missing. Each part is opened up before the next: a umask of 777 would shut us out.
fn make_below(path: &Path) -> io::Result<()> {
    match DirBuilder::new().mode(0o700).create(path) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            make_below(path.parent().ok_or(error)?)?;
            match DirBuilder::new().mode(0o700).create(path) {
                Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
                _ => {}
            }
        }
        // Another process that starts at the same time was quicker.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && path.is_dir() => return Ok(()),
        Err(error) => return Err(error),
    }
    fs::set_permissions(path, Permissions::from_mode(0o700))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_parts_are_made_and_closed_to_others() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("a/b/c");
        private_directory(&path).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o700);
        fs::set_permissions(&path, Permissions::from_mode(0o755)).unwrap();
        private_directory(&path).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o700);
    }

    #[test]
    fn a_file_in_its_place_is_named() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("file");
        fs::write(&path, "").unwrap();
        for place in [path.clone(), path.join("below")] {
            let failure = private_directory(&place).unwrap_err();
            assert_eq!(failure.code, Code::Unavailable);
            assert!(failure.message.contains("file"), "{failure}");
            assert!(failure.hint.is_some());
        }
    }
}

//! The last look at what was mounted, before anything of the session runs.

use std::fs;
use std::os::unix::fs::MetadataExt;

use wharf_model::{Code, Expected, Failure, device_words};

/// Whether a path leads to what it must lead to. Nothing of the session has run yet, so nobody here is changing it.
pub(super) fn as_expected(expected: &Expected) -> Result<(), Failure> {
    let path = expected.path.as_path();
    let found = match fs::metadata(path) {
        Ok(meta) if (meta.dev(), meta.ino()) == (expected.device, expected.inode) => return Ok(()),
        Ok(meta) => format!("inode {} on device {}", meta.ino(), device_words(meta.dev())),
        Err(error) => error.to_string(),
    };
    let message = format!(
        "what is mounted at {} is not what was to be mounted there: inode {} on device {} was to be, found was {found}",
        path.display(),
        expected.inode,
        device_words(expected.device),
    );
    Err(Failure::new(Code::Forbidden, message)
        .hint("somebody changed a path of the host while the session was started; nothing of it ran"))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn what_was_swapped_meanwhile_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["real", "precious"] {
            fs::create_dir(dir.path().join(name)).unwrap();
        }
        let path = dir.path().join("real");
        let meta = fs::metadata(&path).unwrap();
        let expected = Expected { path: path.as_path().into(), device: meta.dev(), inode: meta.ino() };
        as_expected(&expected).unwrap();
        let refused = |expected: &Expected| {
            let failure = as_expected(expected).unwrap_err();
            assert_eq!(failure.code, Code::Forbidden);
            failure.message
        };
        assert!(refused(&Expected { device: meta.dev() + 1, ..expected.clone() }).contains("device"));
        fs::rename(&path, dir.path().join("moved")).unwrap();
        assert!(refused(&expected).contains("No such file"));
        symlink("precious", &path).unwrap();
        assert!(refused(&expected).contains("is not what was to be mounted there"));
    }
}

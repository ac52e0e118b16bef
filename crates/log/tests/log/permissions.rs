//! Nobody else reads a session's output.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use wharf_log::Writer;

use crate::support::{child_dir, child_through, files, keep_all, place};

/// Writes two segments, with the umask that it was started with.
fn child(dir: &Path) {
    let mut writer = Writer::open(dir, keep_all(1)).unwrap();
    writer.append(b"a").unwrap();
    writer.append(b"b").unwrap();
}

#[test]
fn files_are_private_whatever_the_umask() {
    if let Some(dir) = child_dir() {
        return child(&dir);
    }
    // The umask belongs to the whole process, hence one for each.
    for mask in ["000", "022", "777"] {
        let (_home, dir) = place();
        let test = "permissions::files_are_private_whatever_the_umask";
        assert!(child_through(&format!("umask {mask}"), test, &dir).status().unwrap().success());
        let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o7777;
        assert_eq!(mode(&dir), 0o700);
        assert_eq!(files(&dir).len(), 4);
        for name in files(&dir) {
            assert_eq!(mode(&dir.join(&name)), 0o600, "{name} with {mask}");
        }
    }
}

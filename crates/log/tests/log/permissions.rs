//! Nobody else reads a session's output.

use std::os::unix::fs::PermissionsExt;

use rustix::fs::Mode;
use wharf_log::Writer;

use crate::support::{files, keep_all, place};

#[test]
fn files_are_private_whatever_the_umask() {
    let (_home, dir) = place();
    // The umask is the process's: this relies on nextest, which gives every test its own. Under `cargo test` the
    // others bear it, because their files are made with these modes, too.
    for mask in [0o000, 0o777] {
        let before = rustix::process::umask(Mode::from_raw_mode(mask));
        let written = (|| {
            let mut writer = Writer::open(&dir.join(mask.to_string()), keep_all(1))?;
            writer.append(b"a")?;
            writer.append(b"b")
        })();
        rustix::process::umask(before);
        written.unwrap();
    }
    let mode = |path: &std::path::Path| path.metadata().unwrap().permissions().mode() & 0o7777;
    for mask in [0o000, 0o777] {
        let dir = dir.join(u32::to_string(&mask));
        assert_eq!(mode(&dir), 0o700);
        assert_eq!(files(&dir).len(), 4);
        for name in files(&dir) {
            assert_eq!(mode(&dir.join(&name)), 0o600, "{name}");
        }
    }
}

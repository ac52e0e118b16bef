//! Files between a container and the host.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

use crate::dock::{Dock, on_both};

on_both! {
    they_go_in_and_out
    a_container_does_not_write_to_the_host
    they_belong_to_whom_it_runs_as
}

fn they_go_in_and_out(dock: &Dock) {
    let home = dock.wharf.home();
    fs::create_dir_all(home.join("src/sub")).expect("files of the test");
    fs::write(home.join("src/f"), "text\n").expect("files of the test");
    fs::set_permissions(home.join("src/f"), fs::Permissions::from_mode(0o751)).expect("files of the test");
    fs::write(home.join("src/sub/g"), vec![7; 3_000_000]).expect("files of the test");
    symlink("f", home.join("src/l")).expect("files of the test");
    dock.start("one", &[], &["sleep", "600"]);
    dock.ok(&["cp", "src", "one:/tmp"]);
    dock.ok(&["cp", "src/.", "one:/tmp/new"]);
    assert_eq!(dock.ok(&["exec", "one", "--", "cat", "/tmp/src/l", "/tmp/new/f"]), "text\ntext\n");
    dock.ok(&["cp", "one:/tmp/src", "back"]);
    assert_eq!(fs::read(home.join("back/sub/g")).expect("files of the test"), vec![7; 3_000_000]);
    assert_eq!(fs::read_link(home.join("back/l")).expect("files of the test").to_str(), Some("f"));
    let meta = fs::metadata(home.join("back/f")).expect("files of the test");
    assert_eq!((meta.mode() & 0o7777, meta.uid()), (0o751, rustix::process::geteuid().as_raw()));
    // From the image's own directory on, which is the root here.
    dock.ok(&["cp", "one:etc/passwd", "passwd"]);
    assert!(fs::read_to_string(home.join("passwd")).expect("files of the test").starts_with("root:"));
    // As archives; and while it stands still.
    dock.ok(&["pause", "one"]);
    let archive = dock.run(&["cp", "one:/tmp/src/sub", "-"]);
    assert!(archive.code == 0 && archive.bytes.len() > 3_000_000, "{}", archive.err);
    dock.ok(&["unpause", "one"]);
    let ran = dock.run(&["cp", "one:/none", "x"]);
    assert!(ran.code == 3 && ran.err.contains("/none"), "{ran:#?}");
    assert_eq!(dock.run(&["cp", "src/f", "one:/no/such/"]).code, 3);
    assert_eq!(dock.run(&["cp", "src", "one:/tmp/src/f"]).code, 2);
    dock.ok(&["kill", "one"]);
    dock.must_be_empty();
    assert_eq!(dock.run(&["cp", "one:/tmp/src", "x"]).code, 4, "its files went with its container");
}

/// What a container can put in the way of a copy: links where the user's directories are, the second time.
fn a_container_does_not_write_to_the_host(dock: &Dock) {
    let home = dock.wharf.home();
    fs::create_dir(home.join("private")).expect("files of the test");
    fs::write(home.join("private/file"), "as it was").expect("files of the test");
    let private = home.join("private");
    let script = format!(
        "mkdir -p /tmp/d /tmp/e; ln -s {0} /tmp/d/l; ln -s {0}/file /tmp/d/f; mkdir /tmp/e/l; echo bad > /tmp/e/l/file; \
         echo bad > /tmp/e/f; echo ready; exec sleep 600",
        private.display()
    );
    dock.start("one", &[], &["sh", "-c", &script]);
    dock.wharf.until_log("one", "ready");
    dock.ok(&["cp", "one:/tmp/d", "got"]);
    assert!(
        fs::symlink_metadata(home.join("got/l")).expect("files of the test").is_symlink(),
        "a link is a link"
    );
    // Now a directory of that name comes, with a file in it that would go through the link.
    let ran = dock.run(&["cp", "one:/tmp/e/.", "got"]);
    assert_eq!(ran.code, 5, "{ran:#?}");
    assert!(ran.err.contains("leads out of the destination"), "{ran:#?}");
    // And a file over a link to a file replaces the link.
    dock.ok(&["cp", "one:/tmp/e/f", "got/"]);
    assert!(fs::symlink_metadata(home.join("got/f")).expect("files of the test").is_file());
    assert_eq!(fs::read_to_string(home.join("private/file")).expect("files of the test"), "as it was");
    assert_eq!(fs::read_dir(&private).expect("files of the test").count(), 1);
}

fn they_belong_to_whom_it_runs_as(dock: &Dock) {
    fs::write(dock.wharf.home().join("f"), "text\n").expect("files of the test");
    dock.start("named", &["--user", "other"], &["sleep", "600"]);
    dock.ok(&["cp", "f", "named:/tmp/f"]);
    let listed = dock.ok(&["exec", "named", "--", "ls", "-ln", "/tmp/f"]);
    assert!(listed.contains(" 1234 1234 "), "{listed}");
    dock.ok(&["exec", "named", "--", "rm", "/tmp/f"]);
}

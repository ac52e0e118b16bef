//! What is packed is what comes out.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::Write;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use wharf_archive::{Drain, EntryNames, Feed, How, PackSource, pack, pipe, unpack};

fn unpack_into(
    archive: impl std::io::Read,
    dir: &Path,
    names: EntryNames,
    tell: impl FnMut(u64),
) -> Result<wharf_archive::Moved, wharf_model::Failure> {
    unpack(archive, wharf_boundary::Dir::open(dir).expect("it is there"), dir, names, tell)
}

fn packed(path: &Path, name: &str, follow: bool) -> Vec<u8> {
    let mut archive = Vec::new();
    let source = PackSource::open(path, follow).expect("it is there");
    pack(&mut archive, &source, OsStr::new(name), How::default(), |_| ()).expect("it can be packed");
    archive
}

#[test]
fn a_tree_arrives_as_it_was() {
    let root = tempfile::tempdir().unwrap();
    let from = root.path().join("from");
    let odd = OsString::from_vec(b"odd \xff\nname".to_vec());
    let long: String = "long".repeat(50);
    fs::create_dir_all(from.join(&long).join(&long)).unwrap();
    fs::create_dir(from.join("closed")).unwrap();
    fs::write(from.join(&odd), [0, 255, 10]).unwrap();
    fs::write(from.join(&long).join(&long).join("deep"), vec![7; 300_000]).unwrap();
    fs::write(from.join("closed/in"), "x").unwrap();
    fs::set_permissions(from.join("closed/in"), fs::Permissions::from_mode(0o640)).unwrap();
    fs::set_permissions(from.join("closed"), fs::Permissions::from_mode(0o555)).unwrap();
    symlink("/nowhere/at/all", from.join("dangling")).unwrap();
    symlink(&long, from.join("pointing")).unwrap();
    rustix::fs::mknodat(
        rustix::fs::CWD,
        from.join("pipe"),
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RUSR,
        0,
    )
    .unwrap();
    let mut archive = Vec::new();
    let mut told = 0;
    let source = PackSource::open(&from, false).unwrap();
    let moved =
        pack(&mut archive, &source, OsStr::new("from"), How::default(), |bytes| told = bytes).unwrap();
    assert_eq!((moved.bytes, moved.left_out, told), (300_004, 1, 300_004));
    let to = root.path().join("to");
    fs::create_dir(&to).unwrap();
    let unpacked = unpack_into(&archive[..], &to, EntryNames::Become("as".into()), |_| ()).unwrap();
    assert_eq!((unpacked.bytes, unpacked.entries, unpacked.left_out), (300_004, moved.entries, 0));
    let to = to.join("as");
    assert_eq!(fs::read(to.join(&odd)).unwrap(), [0, 255, 10]);
    assert_eq!(fs::read(to.join("pointing").join(&long).join("deep")).unwrap(), vec![7; 300_000]);
    assert_eq!(fs::read_link(to.join("dangling")).unwrap(), Path::new("/nowhere/at/all"));
    let mode = |path: &str| fs::metadata(to.join(path)).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode("closed"), mode("closed/in")), (0o555, 0o640));
    let time = |path: &Path| {
        fs::metadata(path)
            .unwrap()
            .modified()
            .unwrap()
            .duration_since(std::time::UNIX_EPOCH)
            .unwrap()
            .as_secs()
    };
    assert_eq!(time(&to.join("closed")), time(&from.join("closed")));
    // A second time, over itself: what is there is replaced, and nothing is left over.
    fs::set_permissions(to.join("closed"), fs::Permissions::from_mode(0o755)).unwrap();
    unpack_into(&archive[..], to.parent().unwrap(), EntryNames::Become("as".into()), |_| ()).unwrap();
    assert_eq!(mode("closed"), 0o555);
    for dir in [&to, &from] {
        fs::set_permissions(dir.join("closed"), fs::Permissions::from_mode(0o755)).unwrap();
    }
}

#[test]
fn a_file_a_link_and_what_is_in_a_directory() {
    let root = tempfile::tempdir().unwrap();
    let (from, to) = (root.path().join("from"), root.path().join("to"));
    fs::create_dir_all(from.join("sub")).unwrap();
    fs::create_dir(&to).unwrap();
    fs::write(from.join("f"), "text").unwrap();
    symlink("f", from.join("l")).unwrap();
    unpack_into(&packed(&from.join("f"), "f", false)[..], &to, EntryNames::Become("g".into()), |_| ())
        .unwrap();
    assert_eq!(fs::read_to_string(to.join("g")).unwrap(), "text");
    unpack_into(&packed(&from.join("l"), "l", false)[..], &to, EntryNames::Kept, |_| ()).unwrap();
    assert_eq!(fs::read_link(to.join("l")).unwrap(), Path::new("f"));
    unpack_into(&packed(&from.join("l"), "m", true)[..], &to, EntryNames::Kept, |_| ()).unwrap();
    assert!(fs::symlink_metadata(to.join("m")).unwrap().is_file());
    let inside = root.path().join("inside");
    fs::create_dir(&inside).unwrap();
    unpack_into(&packed(&from, "from", false)[..], &inside, EntryNames::Inside, |_| ()).unwrap();
    assert!(inside.join("sub").is_dir() && inside.join("f").is_file());
    unpack_into(&packed(&from, "", false)[..], &to, EntryNames::Kept, |_| ()).unwrap();
    assert!(to.join("sub").is_dir());
    // What is in a file is nothing.
    assert!(
        unpack_into(&packed(&from.join("f"), "f", false)[..], &inside, EntryNames::Inside, |_| ()).is_err()
    );
    let missing = PackSource::open(&from.join("none"), true).unwrap_err();
    assert_eq!(missing.kind(), std::io::ErrorKind::NotFound);
}

#[test]
fn a_thread_and_a_task_are_joined_and_whoever_leaves_is_noticed() {
    let root = tempfile::tempdir().unwrap();
    fs::write(root.path().join("f"), vec![3; 1 << 20]).unwrap();
    let (sender, receiver) = pipe();
    let path = root.path().join("f");
    let packer = std::thread::spawn(move || {
        pack(
            Drain::new(sender),
            &PackSource::open(&path, false).unwrap(),
            OsStr::new("f"),
            How::default(),
            |_| (),
        )
    });
    let to = tempfile::tempdir().unwrap();
    unpack_into(Feed::new(receiver), to.path(), EntryNames::Kept, |_| ()).unwrap();
    assert_eq!(packer.join().unwrap().unwrap().bytes, 1 << 20);
    assert_eq!(fs::read(to.path().join("f")).unwrap(), vec![3; 1 << 20]);
    let (sender, receiver) = pipe();
    drop(receiver);
    let mut drain = Drain::new(sender);
    drain.write_all(b"x").unwrap();
    assert_eq!(drain.flush().unwrap_err().kind(), std::io::ErrorKind::BrokenPipe);
}

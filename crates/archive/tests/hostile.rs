//! Archives that want out of their destination.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;

use tar::{EntryType, Header};
use wharf_archive::{EntryNames, unpack};
use wharf_model::{Code, Failure};

fn unpack_into(
    archive: impl std::io::Read,
    dir: &Path,
    names: EntryNames,
    tell: impl FnMut(u64),
) -> Result<wharf_archive::Moved, wharf_model::Failure> {
    unpack(archive, wharf_boundary::Dir::open(dir).expect("it is there"), dir, names, tell)
}

/// An archive, made byte by byte: no decent program writes such names.
#[derive(Default)]
struct Hostile(Vec<u8>);

impl Hostile {
    fn entry(mut self, name: &str, kind: EntryType, link: &str, data: &[u8], mode: u32) -> Self {
        let mut header = Header::new_ustar();
        header.set_entry_type(kind);
        header.set_size(data.len() as u64);
        header.set_mode(mode);
        header.set_mtime(1_000_000_000);
        header.as_mut_bytes()[..name.len()].copy_from_slice(name.as_bytes());
        header.as_mut_bytes()[157..157 + link.len()].copy_from_slice(link.as_bytes());
        header.set_cksum();
        self.0.extend_from_slice(header.as_bytes());
        self.0.extend_from_slice(data);
        self.0.resize(self.0.len().next_multiple_of(512), 0);
        self
    }

    fn file(self, name: &str, data: &str) -> Self {
        self.entry(name, EntryType::Regular, "", data.as_bytes(), 0o644)
    }

    fn link(self, name: &str, target: &str) -> Self {
        self.entry(name, EntryType::Symlink, target, b"", 0o777)
    }

    fn end(mut self) -> Vec<u8> {
        self.0.resize(self.0.len() + 1024, 0);
        self.0
    }

    fn into(self, dir: &Path, names: EntryNames) -> Result<wharf_archive::Moved, Failure> {
        unpack_into(&self.end()[..], dir, names, |_| ())
    }
}

/// A directory with a destination in it, and with something beside that nobody may touch.
fn ground() -> (tempfile::TempDir, std::path::PathBuf) {
    let root = tempfile::tempdir().expect("the ground of a test");
    let dir = root.path().join("destination");
    fs::create_dir(&dir).expect("the ground of a test");
    fs::create_dir(root.path().join("outside")).expect("the ground of a test");
    fs::write(root.path().join("outside/file"), "as it was").expect("the ground of a test");
    (root, dir)
}

#[track_caller]
fn untouched(root: &tempfile::TempDir) {
    let outside = root.path().join("outside");
    assert_eq!(fs::read_to_string(outside.join("file")).expect("the ground of a test"), "as it was");
    assert_eq!(
        fs::read_dir(&outside).expect("the ground of a test").count(),
        1,
        "something was written outside"
    );
    assert_eq!(
        fs::read_dir(root.path()).expect("the ground of a test").count(),
        2,
        "something was written beside the destination"
    );
}

#[test]
fn nothing_is_written_outside_of_the_destination() {
    let (root, dir) = ground();
    let outside = root.path().join("outside");
    let absolute = outside.join("file");
    let (outside, absolute) = (outside.to_str().unwrap(), absolute.to_str().unwrap());
    let plain = Hostile::default;
    let cases = [
        ("upwards", plain().file("../outside/file", "bad")),
        ("upwards from within", plain().file("a/../../outside/file", "bad")),
        ("absolute", plain().file(absolute, "bad")),
        ("an absolute directory", plain().entry(outside, EntryType::Directory, "", b"", 0o777)),
        ("through a link of its own", plain().link("l", "../outside").file("l/file", "bad")),
        ("through an absolute link", plain().link("l", outside).file("l/new", "bad")),
        ("through two links", plain().link("a", ".").link("a/b", "../outside").file("b/file", "bad")),
        (
            "a directory through a link",
            plain().link("d", "..").entry("d/x", EntryType::Directory, "", b"", 0o777),
        ),
        ("a hard link to the outside", plain().entry("h", EntryType::Link, "../outside/file", b"", 0o644)),
        ("an absolute hard link", plain().entry("h", EntryType::Link, absolute, b"", 0o644)),
        (
            "a hard link through a link",
            plain().link("k", "../outside").entry("h", EntryType::Link, "k/file", b"", 0o644),
        ),
    ];
    for (what, hostile) in cases {
        let failure = hostile.into(&dir, EntryNames::Kept).expect_err(what);
        assert_eq!(failure.code, Code::Forbidden, "{what}: {failure}");
        untouched(&root);
        fs::remove_dir_all(&dir).unwrap();
        fs::create_dir(&dir).unwrap();
    }
}

#[test]
fn a_link_that_was_there_before_is_not_gone_through() {
    let (root, dir) = ground();
    symlink("../outside", dir.join("there")).unwrap();
    let failure = Hostile::default().file("there/file", "bad").into(&dir, EntryNames::Kept).unwrap_err();
    assert_eq!(failure.code, Code::Forbidden, "{failure}");
    untouched(&root);
    // One that stays within is.
    fs::create_dir(dir.join("real")).unwrap();
    symlink("real", dir.join("alias")).unwrap();
    Hostile::default().file("alias/x", "good").into(&dir, EntryNames::Kept).unwrap();
    assert_eq!(fs::read_to_string(dir.join("real/x")).unwrap(), "good");
}

#[test]
fn a_file_in_the_place_of_a_link_replaces_the_link() {
    let (root, dir) = ground();
    symlink("../outside/file", dir.join("f")).unwrap();
    Hostile::default()
        .link("g", "../outside/file")
        .file("g", "new")
        .file("f", "new")
        .into(&dir, EntryNames::Kept)
        .unwrap();
    untouched(&root);
    for name in ["f", "g"] {
        assert!(fs::symlink_metadata(dir.join(name)).unwrap().is_file(), "{name} is still a link");
        assert_eq!(fs::read_to_string(dir.join(name)).unwrap(), "new");
    }
}

#[test]
fn devices_are_left_out_and_no_mode_makes_somebody_else() {
    let (_root, dir) = ground();
    let moved = Hostile::default()
        .entry("d", EntryType::Block, "", b"", 0o666)
        .entry("c", EntryType::Char, "", b"", 0o666)
        .entry("p", EntryType::Fifo, "", b"", 0o666)
        .entry("s", EntryType::Regular, "", b"#!", 0o6755)
        .into(&dir, EntryNames::Kept)
        .unwrap();
    assert_eq!((moved.entries, moved.bytes, moved.left_out), (1, 2, 3));
    let meta = fs::metadata(dir.join("s")).unwrap();
    assert_eq!(meta.permissions().mode() & 0o7777, 0o755);
    assert_eq!((meta.uid(), meta.mtime()), (rustix::process::geteuid().as_raw(), 1_000_000_000));
    assert_eq!(fs::read_dir(&dir).unwrap().count(), 1);
}

#[test]
fn hard_links_within_are_made_and_a_later_file_does_not_write_through_them() {
    let (_root, dir) = ground();
    fs::write(dir.join("mine"), "mine").unwrap();
    Hostile::default()
        .file("a", "one")
        .entry("b", EntryType::Link, "a", b"", 0o644)
        .entry("c", EntryType::Link, "mine", b"", 0o644)
        .file("c", "theirs")
        .into(&dir, EntryNames::Kept)
        .unwrap();
    assert_eq!(fs::metadata(dir.join("a")).unwrap().ino(), fs::metadata(dir.join("b")).unwrap().ino());
    assert_eq!(fs::read_to_string(dir.join("mine")).unwrap(), "mine");
}

#[test]
fn files_and_directories_do_not_replace_each_other() {
    let (_root, dir) = ground();
    fs::create_dir(dir.join("d")).unwrap();
    fs::write(dir.join("f"), "").unwrap();
    let failure = Hostile::default().file("d", "x").into(&dir, EntryNames::Kept).unwrap_err();
    assert!(failure.message.contains("is a directory"), "{failure}");
    let failure = Hostile::default()
        .entry("f", EntryType::Directory, "", b"", 0o755)
        .into(&dir, EntryNames::Kept)
        .unwrap_err();
    assert!(failure.message.contains("is a file"), "{failure}");
}

#[test]
fn another_thing_than_was_asked_for_is_refused() {
    let (root, dir) = ground();
    let two = Hostile::default().file("asked", "x").file("not-asked", "bad");
    assert_eq!(two.into(&dir, EntryNames::Become("here".into())).unwrap_err().code, Code::Invalid);
    assert!(dir.join("here").exists() && !dir.join("not-asked").exists());
    untouched(&root);
}

#[test]
fn nonsense_and_names_without_an_end_are_refused_in_little_memory() {
    let (_root, dir) = ground();
    assert_eq!(
        unpack_into(&b"no archive at all, but long enough for a header"[..], &dir, EntryNames::Kept, |_| ())
            .unwrap_err()
            .code,
        Code::Invalid
    );
    // A name of four gigabytes, as a reader that keeps it would find out.
    let mut header = Header::new_gnu();
    header.set_entry_type(EntryType::GNULongName);
    header.set_size(4 << 30);
    header.as_mut_bytes()[..4].copy_from_slice(b"long");
    header.set_cksum();
    let endless = std::io::Read::chain(&header.as_bytes()[..], std::io::repeat(b'a'));
    let failure = unpack_into(endless, &dir, EntryNames::Kept, |_| ()).unwrap_err();
    assert!(failure.message.contains("no end"), "{failure}");
    // One that breaks off.
    let cut = Hostile::default().entry("f", EntryType::Regular, "", &[7; 4096], 0o644).0;
    let failure = unpack_into(&cut[..1024], &dir, EntryNames::Kept, |_| ()).unwrap_err();
    assert!(failure.message.contains("breaks off within f"), "{failure}");
}

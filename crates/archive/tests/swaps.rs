//! Somebody swaps directories for links while a tree is packed or unpacked: nothing outside comes along or is written.

use std::ffi::OsStr;
use std::fs;
use std::io::Read;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rustix::fs::{CWD, RenameFlags, renameat_with};
use wharf_archive::{EntryNames, How, PackSource, pack, unpack};
use wharf_boundary::Dir;

const SECRET: &[u8] = b"the operator's key";
/// How long it is tried: the code before, which walked by paths, let the key out after a few copies.
const TRIED_FOR: Duration = Duration::from_secs(4);

/// Tries something again and again while each of the entries `d` and `f` of a tree is swapped for a link to the same of the
/// outside, until it got out. Whether it did, and how often they were swapped.
fn tried_while_swapped(root: &Path, mut got_out: impl FnMut() -> bool) -> (bool, u64) {
    let (over, swaps) = (AtomicBool::new(false), AtomicU64::new(0));
    let out = std::thread::scope(|scope| {
        let attacker = scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                for name in ["d", "f"] {
                    let swap = || {
                        renameat_with(
                            CWD,
                            root.join(name),
                            CWD,
                            root.join("link-").join(name),
                            RenameFlags::EXCHANGE,
                        )
                        .expect("it can be done");
                    };
                    swap();
                    swap();
                    swaps.fetch_add(2, Ordering::Relaxed);
                }
            }
        });
        let (begun, mut tries, mut out) = (Instant::now(), 0_u64, false);
        while begun.elapsed() < TRIED_FOR && !out {
            out = got_out();
            tries += 1;
        }
        over.store(true, Ordering::Relaxed);
        attacker.join().expect("it can be done");
        assert!(tries > 10, "{tries} tries");
        out
    });
    (out, swaps.into_inner())
}

/// Packs a tree again and again while its entries are swapped.
fn swapped_while_packed(from: &Path, root: &Path) -> (bool, u64) {
    tried_while_swapped(root, || {
        let mut archive = Vec::new();
        // What is swapped at the wrong moment may fail, as a file that went would; it may not leak.
        let source = PackSource::open(from, false).expect("it can be done");
        let _ = pack(&mut archive, &source, OsStr::new("x"), How::default(), |_| ());
        archive.windows(SECRET.len()).any(|bytes| bytes == SECRET)
    })
}

#[test]
fn what_is_swapped_while_it_is_unpacked_leads_nowhere() {
    let root = tempfile::tempdir().unwrap();
    let (into, outside) = (root.path().join("into"), root.path().join("outside"));
    fs::create_dir_all(into.join("d/e")).unwrap();
    fs::create_dir(into.join("link-")).unwrap();
    fs::create_dir_all(outside.join("e")).unwrap();
    for file in ["f", "key", "e/key"] {
        fs::write(outside.join(file), SECRET).unwrap();
    }
    fs::write(into.join("f"), "of no interest").unwrap();
    symlink(&outside, into.join("link-/d")).unwrap();
    symlink(outside.join("f"), into.join("link-/f")).unwrap();
    let mut archive = tar::Builder::new(Vec::new());
    for name in ["d/key", "d/e/key", "d/e/new"] {
        let mut header = tar::Header::new_ustar();
        header.set_size(3);
        header.set_mode(0o600);
        archive.append_data(&mut header, name, &b"bad"[..]).unwrap();
    }
    let archive = archive.into_inner().unwrap();
    let (out, swaps) = tried_while_swapped(&into, || {
        let dir = Dir::open(&into).unwrap();
        // It may fail at a link; it may not write through one.
        let _ = unpack(&archive[..], dir, &into, EntryNames::Kept, |_| ());
        let intact = ["f", "key", "e/key"].iter().all(|file| fs::read(outside.join(file)).unwrap() == SECRET);
        !intact || outside.join("e/new").exists()
    });
    assert!(swaps > 1000, "{swaps} swaps");
    assert!(!out, "something was written outside");
}

#[test]
fn what_is_swapped_for_a_link_leads_nowhere() {
    let root = tempfile::tempdir().unwrap();
    let (from, outside) = (root.path().join("from"), root.path().join("outside"));
    fs::create_dir_all(from.join("d/e")).unwrap();
    fs::create_dir(from.join("link-")).unwrap();
    fs::create_dir_all(outside.join("e")).unwrap();
    for name in ["key", "e/key", "f"] {
        fs::write(outside.join(name), SECRET).unwrap();
    }
    for name in ["d/key", "d/e/key", "f"] {
        fs::write(from.join(name), "of no interest").unwrap();
    }
    symlink(&outside, from.join("link-/d")).unwrap();
    symlink(outside.join("f"), from.join("link-/f")).unwrap();
    let (leaked, swaps) = swapped_while_packed(&from, &from);
    assert!(swaps > 1000, "{swaps} swaps");
    assert!(!leaked, "the key came along");
}

#[test]
fn a_pipe_in_the_place_of_a_file_is_not_waited_for() {
    let root = tempfile::tempdir().unwrap();
    let from = root.path().join("from");
    fs::create_dir(&from).unwrap();
    let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
    rustix::fs::mknodat(CWD, from.join("pipe"), rustix::fs::FileType::Fifo, mode, 0).unwrap();
    let mut archive = Vec::new();
    let source = PackSource::open(&from, false).unwrap();
    let moved = pack(&mut archive, &source, OsStr::new("x"), How::default(), |_| ()).unwrap();
    assert_eq!((moved.entries, moved.left_out), (1, 1));
    // The same where it is what was asked for itself.
    let source = PackSource::open(&from.join("pipe"), false).unwrap();
    let moved = pack(std::io::sink(), &source, OsStr::new("x"), How::default(), |_| ()).unwrap();
    assert_eq!((moved.entries, moved.left_out), (0, 1));
}

#[test]
fn a_tree_deeper_than_any_path_is_refused_and_nothing_overflows() {
    let root = tempfile::tempdir().unwrap();
    let mut dir = wharf_boundary::Dir::open(root.path()).unwrap();
    for _ in 0..5_000 {
        dir = dir.make_dir("deep", 0o700).unwrap();
    }
    let source = PackSource::open(root.path(), false).unwrap();
    let failure = pack(std::io::sink(), &source, OsStr::new("x"), How::default(), |_| ()).unwrap_err();
    assert!(failure.message.contains("cannot pack"), "{failure}");
    wharf_boundary::Dir::open(root.path()).unwrap().remove_tree("deep").unwrap();
}

#[test]
fn a_file_that_shrinks_keeps_the_size_that_was_said() {
    let root = tempfile::tempdir().unwrap();
    fs::write(root.path().join("f"), vec![7; 1 << 20]).unwrap();
    let file = root.path().join("f");
    let mut cut = false;
    let mut archive = Vec::new();
    let source = PackSource::open(&file, false).unwrap();
    pack(&mut archive, &source, OsStr::new("f"), How::default(), |_| {
        if !std::mem::replace(&mut cut, true) {
            fs::write(&file, "").unwrap();
        }
    })
    .unwrap();
    let mut entries = tar::Archive::new(&archive[..]);
    let mut entry = entries.entries().unwrap().next().unwrap().unwrap();
    let mut bytes = Vec::new();
    entry.read_to_end(&mut bytes).unwrap();
    assert_eq!(bytes.len(), 1 << 20);
}

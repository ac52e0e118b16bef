//! Any bytes as an archive: nothing is made or changed outside of the destination.
#![no_main]

use std::ffi::OsString;
use std::fs;

use libfuzzer_sys::fuzz_target;
use wharf_archive::{EntryNames, unpack};
use wharf_boundary::Dir;

fuzz_target!(|data: &[u8]| {
    let Some((how, archive)) = data.split_first() else { return };
    let names = match how % 3 {
        0 => EntryNames::Kept,
        1 => EntryNames::Become(OsString::from("name")),
        _ => EntryNames::Inside,
    };
    let root = tempfile::tempdir_in("/dev/shm").expect("a directory");
    let (dir, outside) = (root.path().join("dir"), root.path().join("outside"));
    fs::create_dir(&dir).expect("a directory");
    fs::create_dir(&outside).expect("a directory");
    fs::write(outside.join("file"), "as it was").expect("a file");
    // The checksums of its headers are made right: a fuzzer would not find them. Zeros are the end, and stay so.
    let mut archive = archive.to_vec();
    let mut at = 0;
    while let Some(header) = archive.get_mut(at..at + 512) {
        if header.iter().all(|byte| *byte == 0) {
            break;
        }
        header[148..156].fill(b' ');
        let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
        header[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
        let size = std::str::from_utf8(&header[124..135])
            .ok()
            .and_then(|text| usize::from_str_radix(text.trim(), 8).ok());
        at += 512 + size.unwrap_or(0).min(1 << 20).next_multiple_of(512);
    }
    let held = Dir::open(&dir).expect("it is there");
    let _ = unpack(&archive[..], held, &dir, names, |_| ());
    assert_eq!(fs::read_to_string(outside.join("file")).expect("it is there"), "as it was");
    assert_eq!(fs::read_dir(&outside).expect("it is there").count(), 1);
    assert_eq!(fs::read_dir(root.path()).expect("it is there").count(), 2);
});

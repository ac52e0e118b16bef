//! Trees that nobody should walk by recursion, or keep in memory: `tree NAME deep|wide`.

use std::fs::File;
use std::io;
use std::path::Path;

use rustix::fs::{CWD, Mode, OFlags, mkdirat, openat};

use super::Outcome;
use super::room::room;

/// How deep, and how wide.
const TREE_DEPTH: usize = 15_000;
const TREE_WIDTH: usize = 20_000;

pub(super) fn grow(words: &[String]) -> Result<Outcome, String> {
    let [name, shape] = words else { return Err("tree NAME deep|wide".to_owned()) };
    let path = room()?.join(name);
    let grown = match shape.as_str() {
        "deep" => nest(&path, TREE_DEPTH),
        "wide" => spread(&path, TREE_WIDTH),
        other => return Err(format!("there is no shape {other:?}")),
    };
    let mut outcome = Outcome::default();
    outcome.note(path.display().to_string(), grown);
    Ok(outcome)
}

/// Directories in directories, by descriptors: the path of the last is far longer than any path may be.
pub(super) fn nest(path: &Path, depth: usize) -> io::Result<usize> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    std::fs::create_dir(path)?;
    let mut here = openat(CWD, path, flags, Mode::empty())?;
    for _ in 1..depth {
        mkdirat(&here, "d", Mode::from_raw_mode(0o777))?;
        here = openat(&here, "d", flags, Mode::empty())?;
    }
    Ok(depth)
}

fn spread(path: &Path, width: usize) -> io::Result<usize> {
    std::fs::create_dir(path)?;
    for number in 0..width {
        File::create(path.join(format!("{number:020}.log")))?;
    }
    Ok(width)
}

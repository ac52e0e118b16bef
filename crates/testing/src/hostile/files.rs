//! Something else in the place of a file: `place NAME KIND [TARGET]`, `race NAME TARGET`, `neighbours TARGET`.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, mknodat};

use super::room::{clear, room, targets};
use super::{Outcome, trees};

/// Bytes of a file that nobody should read whole.
const HUGE_FILE_LEN: u64 = 6 << 30;

/// Puts one thing in the place of another.
pub(super) fn place(words: &[String]) -> Result<Outcome, String> {
    let (name, kind, target) = match words {
        [name, kind] => (name, kind.as_str(), None),
        [name, kind, target] => (name, kind.as_str(), Some(target.as_str())),
        _ => return Err("place NAME KIND [TARGET]".to_owned()),
    };
    let mut outcome = Outcome::default();
    // A sandbox shows no log: there is nothing to put anything in the place of.
    let paths = targets(name).unwrap_or_else(|why| {
        outcome.failed.push(why);
        Vec::new()
    });
    for path in paths {
        clear(&path);
        let made = make(&path, kind, target);
        outcome.note(path.display().to_string(), made);
    }
    Ok(outcome)
}

fn make(path: &Path, kind: &str, target: Option<&str>) -> io::Result<()> {
    let target = || target.ok_or_else(|| io::Error::other("this kind needs a target"));
    match kind {
        "link" => symlink(target()?, path),
        "dangling" => symlink("/no/such/place/of/the/suite", path),
        "circle" => symlink(path.file_name().unwrap_or_default(), path),
        "fifo" => Ok(mknodat(CWD, path, FileType::Fifo, Mode::from_raw_mode(0o666), 0)?),
        "device" => {
            let zero = rustix::fs::makedev(1, 5);
            Ok(mknodat(CWD, path, FileType::CharacterDevice, Mode::from_raw_mode(0o666), zero)?)
        }
        "directory" => fs::create_dir(path),
        "deep" => trees::nest(path, 15_000).map(drop),
        "huge" => File::create(path)?.set_len(HUGE_FILE_LEN),
        // Opens as JSON does, and does not end.
        "huge-json" => {
            let mut file = File::create(path)?;
            file.write_all(b"{\"by\":\"")?;
            file.set_len(HUGE_FILE_LEN)
        }
        "nested-json" => fs::write(path, "[".repeat(1 << 20)),
        "lies" => fs::write(
            path,
            r#"{"code":0,"reason":"exited","by":"\u001b]0;owned\u0007\u202e","started":18446744073709551615,"ended":1,"log_end":18446744073709551615}"#,
        ),
        "noise" => fs::write(path, (0..=255).cycle().take(1 << 16).collect::<Vec<u8>>()),
        "gone" => Ok(()),
        "closed" => {
            use std::os::unix::fs::PermissionsExt;
            fs::write(path, "")?;
            fs::set_permissions(path, fs::Permissions::from_mode(0o000))
        }
        other => Err(io::Error::other(format!("there is no kind {other:?}"))),
    }
}

/// Puts a link in the place of a name again and again, between a look at it and its use.
pub(super) fn race(words: &[String]) -> Result<Outcome, String> {
    let [name, target] = words else { return Err("race NAME TARGET".to_owned()) };
    let (path, target) = (room()?.join(name), target.clone());
    std::thread::spawn(move || {
        let aside = path.with_extension("aside");
        loop {
            // What was there comes back, so that whoever looks twice sees both.
            let _ = fs::rename(&path, &aside);
            let _ = symlink(&target, &path);
            std::thread::sleep(Duration::from_micros(200));
            let _ = fs::remove_file(&path);
            let _ = fs::rename(&aside, &path);
            std::thread::sleep(Duration::from_micros(200));
        }
    });
    Ok(Outcome { did: vec![name.clone()], ..Outcome::default() })
}

/// In a container that sessions share: whatever a neighbour's room has, now and later, becomes a link to a place of the host. A descriptor
/// of the room is kept, so that this goes on where the room is taken away and comes back.
pub(super) fn neighbours(words: &[String]) -> Result<Outcome, String> {
    let [target] = words else { return Err("neighbours TARGET".to_owned()) };
    let own = room()?;
    let berth = own.parent().ok_or("a room that is in nothing")?.to_owned();
    let target = PathBuf::from(target);
    let outcome = Outcome { did: vec![berth.display().to_string()], ..Outcome::default() };
    std::thread::spawn(move || {
        let mut held: BTreeMap<PathBuf, OwnedFd> = BTreeMap::new();
        loop {
            for room in fs::read_dir(&berth).into_iter().flatten().filter_map(Result::ok) {
                let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
                if room.path() != own
                    && !held.contains_key(&room.path())
                    && let Ok(fd) = rustix::fs::open(room.path(), flags, Mode::empty())
                {
                    held.insert(room.path(), fd);
                }
            }
            for _ in 0..200 {
                for fd in held.values() {
                    // What is there already would keep a link out.
                    let _ = rustix::fs::unlinkat(fd, "prompt", AtFlags::empty());
                    for name in ["prompt", "exit.json"] {
                        let _ = rustix::fs::symlinkat(&target, fd, name);
                    }
                }
            }
        }
    });
    Ok(outcome)
}

//! Being woken.

use std::os::fd::AsFd;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use wharf_log::{Chunk, Follower, Mark, Reader, Retention, Writer};
use wharf_model::Offset;

use crate::support::{Deadline, keep_all, pattern, place};

const TEST_TIMEOUT: Duration = Duration::from_secs(30);

fn readable(follower: &Follower) -> bool {
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    poll(&mut [PollFd::from_borrowed_fd(follower.as_fd(), PollFlags::IN)], Some(&now)).unwrap() > 0
}

#[test]
fn every_kind_of_change_wakes() {
    let (home, dir) = place();
    let mut writer = Writer::open(&dir, keep_all(100)).unwrap();
    let (pipe, mut end) = std::io::pipe().unwrap();
    let mut follower = Follower::new(&dir).unwrap();
    assert!(!follower.drain().unwrap());
    assert!(!readable(&follower));
    assert!(!follower.wait(Duration::from_millis(1)).unwrap());

    let mut changes: [(&str, &mut dyn FnMut()); 6] = [
        ("append", &mut || writer.append(b"x").unwrap()),
        ("splice", &mut || {
            std::io::Write::write_all(&mut end, b"x").unwrap();
            assert_eq!(writer_splice(&dir, &pipe), 1);
        }),
        ("mark", &mut || Writer::open(&dir, keep_all(100)).unwrap().mark(Mark::Restart(2), 1).unwrap()),
        ("skip", &mut || Writer::open(&dir, keep_all(100)).unwrap().skip(5)),
        ("exit record", &mut || {
            std::fs::write(home.path().join(".exit.json.tmp"), "{}").unwrap();
            Follower::new(&dir).unwrap();
            std::fs::rename(home.path().join(".exit.json.tmp"), home.path().join("exit.json")).unwrap();
        }),
        ("removal", &mut || std::fs::remove_dir_all(&dir).unwrap()),
    ];
    for (name, change) in &mut changes {
        change();
        assert!(readable(&follower), "{name}");
        assert!(follower.wait(TEST_TIMEOUT).unwrap(), "{name}");
        assert!(!follower.wait(Duration::ZERO).unwrap(), "{name}: once");
        assert!(!readable(&follower), "{name}");
    }
}

fn writer_splice(dir: &std::path::Path, pipe: &std::io::PipeReader) -> usize {
    Writer::open(dir, keep_all(100)).unwrap().splice_from(pipe.as_fd(), 10).unwrap()
}

#[test]
fn a_rename_alone_wakes() {
    let (home, dir) = place();
    drop(Writer::open(&dir, keep_all(100)).unwrap());
    std::fs::write(home.path().join("tmp"), "{}").unwrap();
    let mut follower = Follower::new(&dir).unwrap();
    std::fs::rename(home.path().join("tmp"), home.path().join("exit.json")).unwrap();
    assert!(follower.wait(TEST_TIMEOUT).unwrap());
}

#[test]
fn followers_see_everything_without_polling() {
    let (home, dir) = place();
    let exit = home.path().join("exit.json");
    let mut writer = Writer::open(&dir, Retention { total: u64::MAX, segment: 1000 }).unwrap();
    std::thread::scope(|scope| {
        let readers: Vec<_> = (0..3)
            .map(|_| {
                scope.spawn(|| {
                    let deadline = Deadline::new();
                    let mut follower = Follower::new(&dir).unwrap();
                    let mut reader = Reader::open(&dir, Offset(0)).unwrap();
                    let mut buf = [0; 512];
                    loop {
                        let ended = exit.exists();
                        while let Chunk::Data { offset, len } = reader.read(&mut buf).unwrap() {
                            for (at, byte) in (offset.0..).zip(&buf[..len]) {
                                assert_eq!(*byte, pattern(at));
                            }
                        }
                        if ended {
                            return reader.position();
                        }
                        // A wake-up that is lost ends here.
                        assert!(follower.wait(deadline.left("a wake-up")).unwrap());
                    }
                })
            })
            .collect();
        for n in 0..5000u64 {
            let chunk: Vec<u8> = (n * 10..n * 10 + 10).map(pattern).collect();
            writer.append(&chunk).unwrap();
            writer.tick(n * 1000).unwrap();
        }
        std::fs::write(&exit, "{}").unwrap();
        for reader in readers {
            assert_eq!(reader.join().unwrap(), Offset(50_000));
        }
    });
}

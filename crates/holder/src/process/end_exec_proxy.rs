//! Ends an exec proxy (`wharf-holder lend`) whose caller is gone: an engine lets a further process run on when nobody reads it any more.

use std::fs;
use std::io::{self, Read};

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

/// The most that is read of a process's arguments: ours are short.
const MAX_ARGUMENTS_LEN: u64 = 4 << 10;

/// Runs `wharf-holder recall MARK`: kills the exec proxy with that mark. Its connection to the session's holder ends with it, and
/// the holder ends the command.
pub(super) fn run(mark: &str) -> io::Result<()> {
    for entry in fs::read_dir("/proc")?.flatten() {
        let pid = entry.file_name().to_str().and_then(|name| Pid::from_raw(name.parse().ok()?));
        let Some(pid) = pid else { continue };
        // Held before its arguments are looked at, so that its number stays its own.
        let Ok(pidfd) = pidfd_open(pid, PidfdFlags::empty()) else { continue };
        if is_exec_proxy(pid, mark).unwrap_or(false) {
            let _ = pidfd_send_signal(&pidfd, Signal::KILL);
        }
    }
    Ok(())
}

fn is_exec_proxy(pid: Pid, mark: &str) -> io::Result<bool> {
    let mut arguments = Vec::new();
    let file = fs::File::open(format!("/proc/{}/cmdline", pid.as_raw_nonzero()))?;
    file.take(MAX_ARGUMENTS_LEN).read_to_end(&mut arguments)?;
    Ok(names_exec_proxy(&arguments, mark))
}

/// Whether arguments are those of `PROGRAM lend SOCKET MARK`.
fn names_exec_proxy(arguments: &[u8], mark: &str) -> bool {
    let mut words = arguments.split(|byte| *byte == 0).skip(1);
    words.next() == Some(b"lend") && words.nth(1) == Some(mark.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_who_lends_with_that_mark_is_meant() {
        assert!(names_exec_proxy(b"/run/wharf/holder\0lend\0/s\0mark\0", "mark"));
        for other in [
            &b"h\0lend\0/s\0marks\0"[..],
            b"h\0relay\0/s\0mark\0",
            b"lend\0/s\0mark\0",
            b"h\0recall\0mark\0",
            b"",
        ] {
            assert!(!names_exec_proxy(other, "mark"), "{other:?}");
        }
    }
}

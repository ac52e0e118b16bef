use std::fs::{File, OpenOptions, Permissions};
use std::io::{Read, Seek, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;
use std::time::Duration;

use rustix::fs::{FlockOperation, flock};
use rustix::process::{Pid, test_kill_process};
use wharf_model::{Code, Failure};

use crate::Result;

/// The lock of an instance: one engine at a time. Its text is the owner's pid.
pub(crate) struct Lock(File);

impl Lock {
    pub(crate) fn take(path: &Path) -> Result<Self> {
        let named = |error| Failure::system(format!("cannot lock {}", path.display()), &error);
        let mut options = OpenOptions::new();
        let mut file = options
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(path)
            .map_err(named)?;
        file.set_permissions(Permissions::from_mode(0o600)).map_err(named)?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(rustix::io::Errno::WOULDBLOCK) => {
                let owner = owner(&mut file).map_or("another process".to_owned(), |pid| format!("process {pid}"));
                return Err(Failure::new(Code::Locked, format!("{owner} owns {}", path.display()))
                    .hint("`wharf daemon stop` ends the daemon of this instance; its sessions go on"));
            }
            Err(error) => return Err(named(error.into())),
        }
        // The lock holds without its text: a full disk is no reason to leave the sessions alone.
        let _ = file.set_len(0).and_then(|()| writeln!(file, "{}", std::process::id()));
        Ok(Self(file))
    }
}

/// Who has the lock. It writes its pid just after it took it, so an old pid or none may stand there for a moment.
fn owner(file: &mut File) -> Option<i32> {
    for _ in 0..20 {
        let mut text = String::new();
        let read = file.rewind().and_then(|()| file.read_to_string(&mut text));
        let pid: Option<i32> = read.ok().and_then(|_| text.trim().parse().ok());
        if pid.and_then(Pid::from_raw).is_some_and(|pid| test_kill_process(pid).is_ok()) {
            return pid;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    None
}

impl Drop for Lock {
    fn drop(&mut self) {
        // Closing releases it as well; a descriptor that somebody inherited must not keep it.
        let _ = flock(&self.0, FlockOperation::Unlock);
    }
}

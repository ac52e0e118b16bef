//! Takes the instance's lock, so that one engine runs at a time.

use std::fs::{self, File};
use std::io::{Read, Seek, Write};
use std::os::unix::fs::MetadataExt;
use std::time::Duration;

use rustix::fs::{FlockOperation, flock};
use rustix::process::{Pid, test_kill_process};
use wharf_boundary::{Dir, is_locked_by_us};
use wharf_model::{Code, Failure, Home};

use crate::Result;

/// The lock of an instance: one engine at a time.
pub(crate) struct Lock {
    /// The file; its text is the owner's pid.
    file: File,
    /// The directory above the instance. Who deletes the instance's own deletes the file in it, and a second engine
    /// would then know nothing of the sessions of the first.
    above: Option<File>,
}

impl Lock {
    pub(crate) fn take(home: &Home) -> Result<Self> {
        let file = file(home)?;
        let mut above = home.state().parent().and_then(|above| File::open(above).ok());
        if above.as_ref().is_some_and(|above| matches!(try_lock(above), Err(rustix::io::Errno::WOULDBLOCK))) {
            let which = above.take().and_then(|above| above.metadata().ok());
            // Anybody who can read a directory can lock it. Only one of us means something by it.
            if !which.is_some_and(|which| is_locked_by_us(which.dev(), which.ino())) {
                tracing::warn!("another user has locked the directory above {}", home.state().display());
                return Ok(Self { file, above });
            }
            let message =
                format!("another process owns {}, and its files were deleted", home.state().display());
            return Err(Failure::new(Code::Locked, message).hint("it is about to make them again: try again"));
        }
        Ok(Self { file, above })
    }

    /// Locks the file again where it was deleted under us.
    pub(crate) fn renew(&mut self, home: &Home) -> Result<()> {
        let which = |meta: fs::Metadata| (meta.dev(), meta.ino());
        let (ours, there) = (self.file.metadata().map(which), fs::symlink_metadata(home.lock()).map(which));
        if !matches!((ours, there), (Ok(ours), Ok(there)) if ours == there) {
            self.file = file(home)?;
        }
        Ok(())
    }
}

fn file(home: &Home) -> Result<File> {
    let path = home.lock();
    let named = |error| Failure::system(format!("cannot lock {}", path.display()), &error);
    let opened = Dir::open(home.state()).and_then(|state| state.open_own("daemon.lock", 0o600));
    let (mut file, aside) = opened.map_err(named)?;
    if let Some(aside) = aside {
        tracing::warn!("{aside}");
    }
    match try_lock(&file) {
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
    Ok(file)
}

fn try_lock(file: &File) -> rustix::io::Result<()> {
    flock(file, FlockOperation::NonBlockingLockExclusive)
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
        for file in [Some(&self.file), self.above.as_ref()].into_iter().flatten() {
            let _ = flock(file, FlockOperation::Unlock);
        }
    }
}

use std::fs::{File, OpenOptions, Permissions};
use std::io::{Read, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;

use rustix::fs::{FlockOperation, flock};
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
                let mut owner = String::new();
                // The owner writes its pid just after it took the lock; without one it is merely unnamed.
                let _ = file.read_to_string(&mut owner);
                let owner = owner.trim();
                let owner =
                    if owner.is_empty() { "another process".to_owned() } else { format!("process {owner}") };
                return Err(Failure::new(Code::Locked, format!("{owner} owns {}", path.display()))
                    .hint("`wharf daemon stop` ends the daemon of this instance; its sessions go on"));
            }
            Err(error) => return Err(named(error.into())),
        }
        file.set_len(0).map_err(named)?;
        writeln!(file, "{}", std::process::id()).map_err(named)?;
        Ok(Self(file))
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // Closing releases it as well; a descriptor that somebody inherited must not keep it.
        let _ = flock(&self.0, FlockOperation::Unlock);
    }
}

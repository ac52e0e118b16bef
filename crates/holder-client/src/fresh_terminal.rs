//! A terminal of our own making for a further command, and the caller's terminal that it is joined to.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{Mode, OFlags};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{OptionalActions, Termios, Winsize, tcgetattr, tcgetwinsize, tcsetattr, tcsetwinsize};

/// Makes one: our end, which does not block, and the command's.
pub fn pair() -> io::Result<(OwnedFd, OwnedFd)> {
    let outer = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)?;
    grantpt(&outer)?;
    unlockpt(&outer)?;
    let name = ptsname(&outer, Vec::new())?;
    let inner = rustix::fs::open(&name, OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC, Mode::empty())?;
    rustix::io::ioctl_fionbio(&outer, true)?;
    Ok((outer, inner))
}

/// The caller's terminal while it only passes on what is typed: raw, and as it was once this is dropped.
pub(crate) struct PassedOn {
    terminal: OwnedFd,
    before: Termios,
    size: Option<(u16, u16)>,
}

impl PassedOn {
    /// Nothing where the descriptor is no terminal.
    pub(crate) fn new(terminal: impl AsFd) -> io::Result<Option<Self>> {
        let Ok(before) = tcgetattr(&terminal) else { return Ok(None) };
        let terminal = terminal.as_fd().try_clone_to_owned()?;
        let mut raw = before.clone();
        raw.make_raw();
        tcsetattr(&terminal, OptionalActions::Now, &raw)?;
        Ok(Some(Self { terminal, before, size: None }))
    }

    /// Gives the other terminal this one's size, where that has changed since.
    pub(crate) fn copy_size(&mut self, outer: impl AsFd) {
        let Ok(Winsize { ws_row, ws_col, .. }) = tcgetwinsize(&self.terminal) else { return };
        if self.size != Some((ws_row, ws_col)) {
            self.size = Some((ws_row, ws_col));
            let _ = tcsetwinsize(outer, Winsize { ws_row, ws_col, ws_xpixel: 0, ws_ypixel: 0 });
        }
    }
}

impl Drop for PassedOn {
    fn drop(&mut self) {
        // The terminal may be gone, and then there is nothing to restore.
        let _ = tcsetattr(&self.terminal, OptionalActions::Now, &self.before);
    }
}

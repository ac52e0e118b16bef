//! The files of a session that lives, when somebody took them away or put older ones in their place.

use std::fs;
use std::io;
use std::os::unix::net::UnixListener;
use std::path::Path;

use wharf_log::{Mark, Writer};
use wharf_model::{Home, Offset};

use super::holder::{Holder, LISTENER_TOKEN, micros};
use crate::linux::events::Interest;
use crate::linux::{self, own};

/// What is copied at once.
const CHUNK_LEN: usize = 64 << 10;

impl Holder {
    /// Listens anew at our place, and goes on with the log that stands there now. Somebody who could not reach us asked.
    pub(super) fn look_at_files(&mut self) {
        if self.listener.is_none() || !self.home.is_dir() {
            // We are about to go, or the session was removed.
            return;
        }
        if let Err(error) = self.listen_anew() {
            own::say(format_args!("cannot listen anew in {}: {error}", self.home.display()));
        }
        if self.log.is_displaced()
            && let Err(error) = self.log_anew()
        {
            own::say(format_args!("cannot go on with the log in {}: {error}", self.home.display()));
        }
    }

    fn listen_anew(&mut self) -> io::Result<()> {
        let fresh = bind_over(&self.home)?;
        // Whoever found the old one is let in first.
        self.accept();
        if let Some(old) = &self.listener {
            self.events.remove(old);
        }
        self.events.add(&fresh, LISTENER_TOKEN, Interest::READ)?;
        (self.listener, self.deaf) = (Some(fresh), None);
        Ok(())
    }

    /// Continues the log that stands there now at the position where ours is. What it lacks is taken from our own files,
    /// which we hold open, as far as those go; the rest is a gap.
    fn log_anew(&mut self) -> io::Result<()> {
        let mut fresh = Writer::open(&self.home.join(Home::LOG), self.log.retention())?;
        if self.channel.is_tty() {
            let _ = fresh.mark(Mark::Resize(self.size), micros());
        }
        let (end, held) = (self.log.end(), self.log.held_from());
        if fresh.end() < held {
            fresh.skip(held - fresh.end());
        }
        let mut piece = vec![0; CHUNK_LEN];
        while fresh.end() < end {
            let wanted = (end - fresh.end()).min(CHUNK_LEN as u64) as usize;
            let copied = self.log.read_at(fresh.end(), &mut piece[..wanted]).unwrap_or(0);
            if copied == 0 || fresh.append(&piece[..copied]).is_err() {
                fresh.skip(end.0.saturating_sub(fresh.end().0));
            }
        }
        debug_assert!(fresh.end() >= Offset(end.0), "no position is given twice");
        self.log = fresh;
        Ok(())
    }
}

/// Listens at the session's place in one step, whatever stands there.
fn bind_over(home: &Path) -> io::Result<UnixListener> {
    let new = home.join(format!(".{}.{}", Home::SOCKET, std::process::id()));
    let place = home.join(Home::SOCKET);
    let _ = fs::remove_file(&new);
    let listener = linux::bind(&new)?;
    listener.set_nonblocking(true)?;
    let moved = fs::rename(&new, &place);
    moved.inspect_err(|_| drop(fs::remove_file(&new)))?;
    Ok(listener)
}

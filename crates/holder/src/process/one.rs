//! A holder that is the first process of a container: no nursery forks it, and one session is all that it will have.

use std::io;
use std::path::Path;

use super::nursery::Nest;
use super::start;
use crate::linux::cgroup::Hierarchies;
use crate::linux::{self, own, proc};

/// Runs `wharf-holder one SOCKET`: calls whoever waits at that socket, and is told by them what to start.
///
/// The asker listens and not we: it is heard at once when we are there, and where it is gone so are we.
pub(super) fn one(socket: &Path, shared: bool) -> io::Result<()> {
    own::close_inherited();
    let _ = rustix::process::setsid();
    // Where another user than the asker's writes the files, the asker reads them all the same: the directory
    // around them is its own alone.
    let umask = if shared {
        wharf_log::share_files();
        own::open_umask()
    } else {
        own::private_umask()
    };
    let nest = Nest { boot: proc::boot()?, cgroups: Hierarchies::own(), umask };
    std::env::set_current_dir("/")?;
    start::serve(linux::connect(socket)?, &nest)
}

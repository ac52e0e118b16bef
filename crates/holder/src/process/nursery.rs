//! The nursery: a process that has all of the program in memory and forks a holder in microseconds.
//!
//! Its standard input is a socket. Each descriptor that arrives on it becomes the first connection of a new
//! holder. When the socket ends, the nursery ends; holders live on.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::process::ExitCode;

use super::{keep, lend, one, relay, seat, start};
use crate::linux::cgroup::Hierarchies;
use crate::linux::{self, own, proc};

/// What every holder of this nursery starts with.
pub(super) struct Nest {
    pub(super) boot: String,
    pub(super) cgroups: Hierarchies,
    /// The mask that we were started with: ours to give back to commands.
    pub(super) umask: u32,
}

/// Runs `wharf-holder nursery`, `wharf-holder one SOCKET [shared]`, what a container of another host runs, or what a
/// pane of tmux does.
pub fn main() -> ExitCode {
    let mut args = std::env::args_os().skip(1);
    let said = |ended: io::Result<()>| match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("wharf-holder: {error}");
            ExitCode::FAILURE
        }
    };
    match (args.next().as_deref().and_then(|verb| verb.to_str()), args.next(), args.next()) {
        (Some("nursery"), ..) => said(nursery()),
        (Some("one"), Some(socket), shared) => {
            said(one::one(socket.as_ref(), shared.is_some_and(|word| word == "shared")))
        }
        (Some("keep"), ..) => said(keep::keep()),
        (Some("await"), Some(socket), _) => said(one::awaited(socket.as_ref())),
        (Some("relay"), Some(socket), early) => {
            said(relay::relay(socket.as_ref(), early.is_some_and(|word| word == "early")))
        }
        (Some("lend"), Some(socket), Some(mark)) => lend::lend(socket.as_ref(), &mark.to_string_lossy()),
        (Some("pane"), Some(door), _) => said(seat::pane(&door)),
        (Some("tap"), Some(door), _) => said(seat::tap(&door)),
        (Some("version"), ..) => {
            println!("wharf-holder {}", env!("CARGO_PKG_VERSION"));
            ExitCode::SUCCESS
        }
        _ => {
            eprintln!("wharf-holder is started by wharf; there is nothing to type here");
            ExitCode::from(2)
        }
    }
}

fn nursery() -> io::Result<()> {
    own::close_inherited();
    // Away from the terminal of whoever started the daemon.
    let _ = rustix::process::setsid();
    let umask = own::private_umask();
    let nest = Nest { boot: proc::boot()?, cgroups: Hierarchies::here(), umask };
    std::env::set_current_dir("/")?;
    let orders = own::take_stdin()?;
    own::forget_children(true);
    nest.cgroups.tidy();
    loop {
        let (mut byte, mut passed) = ([0_u8; 1], Vec::new());
        if linux::receive(&orders, &mut byte, &mut passed)? == 0 {
            return Ok(());
        }
        let Some(connection) = passed.pop() else { continue };
        match own::fork() {
            Ok(0) => {
                drop(orders);
                let held = hatch(connection, &nest);
                if let Err(error) = &held {
                    eprintln!("wharf-holder: {error}");
                }
                own::leave(i32::from(held.is_err()));
            }
            Ok(_) => {}
            // The daemon sees the connection close, and says that the system is out of processes.
            Err(error) => eprintln!("wharf-holder: cannot fork: {error}"),
        }
    }
}

fn hatch(connection: OwnedFd, nest: &Nest) -> io::Result<()> {
    own::forget_children(false);
    rustix::process::setsid()?;
    debug_assert!(connection.as_raw_fd() > 2, "the standard descriptors are never given away");
    start::serve(connection.into(), nest)
}

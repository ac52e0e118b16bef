//! The nursery: a process that has all of the program in memory and forks a holder in microseconds.
//!
//! Its standard input is a socket. Each descriptor that arrives on it becomes the first connection of a new
//! holder. When the socket ends, the nursery ends; holders live on. Its standard output is a socket too: who asks there is told
//! of the orphans of holders that were killed.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::process::ExitCode;

use rustix::event::{PollFd, PollFlags, poll};

use super::nursery_children::NurseryChildren;
use super::{container_init, end_exec_proxy, exec_proxy, one, relay, start, tmux_pane};
use crate::linux::cgroup::Hierarchies;
use crate::linux::{self, events, own, proc};

/// What every holder of this nursery starts with.
pub(super) struct ForkContext {
    pub(super) boot: String,
    pub(super) cgroups: Hierarchies,
    /// The mask that we were started with: ours to give back to commands.
    pub(super) umask: u32,
    /// The way to the nursery, where there is one: it knows what holders left that were killed.
    pub(super) door: Option<OwnedFd>,
}

/// Runs `wharf-holder nursery`, `wharf-holder one SOCKET [shared]`, what a container of another host runs, or what a
/// pane of tmux does.
pub fn main() -> ExitCode {
    let mut args = std::env::args_os().skip(1);
    let said = |ended: io::Result<()>| match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            own::say(format_args!("{error}"));
            ExitCode::FAILURE
        }
    };
    match (args.next().as_deref().and_then(|verb| verb.to_str()), args.next(), args.next()) {
        (Some("nursery"), ..) => said(nursery()),
        (Some("one"), Some(socket), shared) => {
            said(one::one(socket.as_ref(), shared.is_some_and(|word| word == "shared")))
        }
        (Some("keep"), ..) => said(container_init::run()),
        (Some("await"), Some(socket), _) => said(one::awaited(socket.as_ref())),
        (Some("relay"), Some(socket), early) => {
            said(relay::relay(socket.as_ref(), early.is_some_and(|word| word == "early")))
        }
        (Some("lend"), Some(socket), Some(mark)) => exec_proxy::run(socket.as_ref(), &mark.to_string_lossy()),
        (Some("recall"), Some(mark), _) => said(end_exec_proxy::run(&mark.to_string_lossy())),
        (Some("pane"), Some(door), _) => said(tmux_pane::pane(&door)),
        (Some("tap"), Some(door), _) => said(tmux_pane::tap(&door)),
        (Some("version"), ..) => {
            println!("wharf-holder {}", env!("CARGO_PKG_VERSION"));
            ExitCode::SUCCESS
        }
        _ => {
            own::say(format_args!("it is started by wharf; there is nothing to type here"));
            ExitCode::from(2)
        }
    }
}

fn nursery() -> io::Result<()> {
    own::close_inherited();
    // Away from the terminal of whoever started the daemon.
    let _ = rustix::process::setsid();
    let umask = own::private_umask();
    let mut context = ForkContext { boot: proc::boot()?, cgroups: Hierarchies::here(), umask, door: None };
    std::env::set_current_dir("/")?;
    let orders = own::take_stdin()?;
    let desk = own::take_socket_of_stdout()?;
    // What a holder that is killed leaves behind becomes ours, and not init's, where nobody would know it.
    own::subreaper(true)?;
    own::keep_ended_children();
    let ended = events::ended_children()?;
    let mut nursery_children = NurseryChildren::new();
    context.cgroups.tidy();
    loop {
        let mut fds = vec![PollFd::new(&orders, PollFlags::IN), PollFd::new(&ended, PollFlags::IN)];
        fds.extend(desk.as_ref().map(|desk| PollFd::new(desk, PollFlags::IN)));
        match poll(&mut fds, None) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let happened: Vec<bool> = fds.iter().map(|fd| !fd.revents().is_empty()).collect();
        if happened[0] {
            let (mut byte, mut passed) = ([0_u8; 1], Vec::new());
            if linux::receive(&orders, &mut byte, &mut passed)? == 0 {
                return Ok(());
            }
            if let Some(connection) = passed.pop() {
                match own::fork() {
                    Ok(0) => {
                        drop((orders, desk, ended));
                        context.door = passed.pop();
                        let held = run_holder(connection, &context);
                        if let Err(error) = &held {
                            own::say(format_args!("{error}"));
                        }
                        own::leave(i32::from(held.is_err()));
                    }
                    Ok(pid) => nursery_children.note_forked(pid),
                    // The daemon sees the connection close, and says that the system is out of processes.
                    Err(error) => own::say(format_args!("cannot fork: {error}")),
                }
            }
        }
        if happened[1] {
            while events::next_signal(&ended).is_some() {}
        }
        // Before any question: a holder that is seen to be dead has left its orphans here by then.
        nursery_children.look();
        if let Some(desk) = desk.as_ref().filter(|_| happened.get(2) == Some(&true)) {
            nursery_children.answer(desk);
        }
    }
}

fn run_holder(connection: OwnedFd, context: &ForkContext) -> io::Result<()> {
    rustix::process::setsid()?;
    debug_assert!(connection.as_raw_fd() > 2, "the standard descriptors are never given away");
    start::serve(connection.into(), context)
}

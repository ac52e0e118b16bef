//! What the daemon sets up in its own process.

use std::io;

use wharf_boundary::limits::{self, Lowered};
use wharf_model::{Code, Failure};

/// The descriptors that a command may open where the daemon's starter had fewer: what systems give by themselves.
const ORDINARY_DESCRIPTORS: u64 = 1_024;

/// How many descriptors the daemon has room for from its start on: some for each of two thousand sessions, in 128 KiB of
/// the kernel's memory.
const TABLE_LEN: u64 = 16 << 10;

/// Makes this process what a daemon is, whatever its starter ignored, blocked, masked or limited: what it is, every
/// session is to come.
///
/// Returns the soft limit of descriptors for sessions. The daemon has some for every session; programs that use
/// `select`, or that close every descriptor up to the limit, fail with that many.
pub(crate) fn settle() -> io::Result<Option<u64>> {
    reset_signals()?;
    rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o077));
    let soft = limits::raise_soft().map(|soft| soft.max(ORDINARY_DESCRIPTORS));
    grow_descriptor_table();
    Ok(soft)
}

/// Has the kernel make room for the descriptors of many sessions at once. When it makes more room in a table that threads
/// share, it waits until none of them can look at the old one, and a start would wait with it. So this is done while there
/// is one thread.
fn grow_descriptor_table() {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
    let last = limit.map_or(TABLE_LEN, |limit| limit.min(TABLE_LEN)).saturating_sub(1);
    // Closed again at once: the table keeps its size.
    let _ = i32::try_from(last).map(|last| rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stderr(), last));
}

/// Refuses hard limits under which sessions would end without a word, unless they are meant.
pub(crate) fn check_limits(lowered: &[Lowered], inherit: bool) -> Result<(), Failure> {
    let Some(deadly) = lowered.iter().find(|limit| limit.is_deadly()) else { return Ok(()) };
    if inherit {
        tracing::warn!("sessions are under {deadly}");
        return Ok(());
    }
    Err(Failure::new(Code::LimitRefused, format!("all sessions would be under {deadly}")).hint(
        "start it from a shell without that limit; `wharf daemon start --inherit-limits` or \
         WHARF_INHERIT_LIMITS=1 takes it over",
    ))
}

fn reset_signals() -> io::Result<()> {
    // SAFETY: `set` is initialised by sigemptyset before it is read, and all calls only change this process's
    // signal settings, before any other thread runs. Signals that cannot be set stay as they are.
    #[expect(unsafe_code, reason = "the C library alone can set these")]
    unsafe {
        for signal in 1..=libc::SIGRTMAX() {
            libc::signal(signal, libc::SIG_DFL);
        }
        // A file that may grow no more is an error, and not the end.
        libc::signal(libc::SIGXFSZ, libc::SIG_IGN);
        let mut set = std::mem::zeroed::<libc::sigset_t>();
        libc::sigemptyset(&raw mut set);
        if libc::sigprocmask(libc::SIG_SETMASK, &raw const set, std::ptr::null_mut()) != 0
            || libc::signal(libc::SIGPIPE, libc::SIG_IGN) == libc::SIG_ERR
        {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(())
}

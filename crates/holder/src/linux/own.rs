//! This process itself: what it inherits, what it leaves, and how it forks.

use std::ffi::CString;
use std::io::{self, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;

use super::children;
use super::spawn::Command;

/// Says something on standard error. Nobody has to hear it: a log on a full disk is no reason to end.
pub(crate) fn say(words: std::fmt::Arguments<'_>) {
    let _ = writeln!(io::stderr(), "wharf-holder: {words}");
}

/// Makes files ours alone from now on. Returns the mask that was in force.
pub(crate) fn private_umask() -> u32 {
    rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o077)).as_raw_mode()
}

/// Lets anybody use the files that we make from now on. Returns the mask that was in force.
pub(crate) fn open_umask() -> u32 {
    rustix::process::umask(rustix::fs::Mode::empty()).as_raw_mode()
}

/// Closes whatever we were started with beyond the standard descriptors.
pub(crate) fn close_inherited() {
    // SAFETY: called first of all, before this program has opened anything of its own.
    unsafe { libc::syscall(libc::SYS_close_range, 3, libc::c_uint::MAX, 0) };
}

/// Moves standard input away to a descriptor of its own, and leaves `/dev/null` in its place.
pub(crate) fn take_stdin() -> io::Result<OwnedFd> {
    let taken = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdin(), 3)?;
    let null = std::fs::File::open("/dev/null")?;
    rustix::stdio::dup2_stdin(&null)?;
    Ok(taken)
}

/// Moves standard output away where it is a socket, and leaves `/dev/null` in its place. What is asked there waits for nobody.
pub(crate) fn take_socket_of_stdout() -> io::Result<Option<OwnedFd>> {
    let mode = rustix::fs::fstat(rustix::stdio::stdout())?.st_mode;
    if rustix::fs::FileType::from_raw_mode(mode) != rustix::fs::FileType::Socket {
        return Ok(None);
    }
    let taken = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdout(), 3)?;
    rustix::io::ioctl_fionbio(&taken, true)?;
    let null = std::fs::OpenOptions::new().write(true).open("/dev/null")?;
    rustix::stdio::dup2_stdout(&null)?;
    Ok(Some(taken))
}

/// Moves the terminal that we were started on to a descriptor of its own, and leaves `/dev/null` in its place.
pub(crate) fn take_stdio() -> io::Result<OwnedFd> {
    let taken = take_stdin()?;
    let null = std::fs::OpenOptions::new().read(true).write(true).open("/dev/null")?;
    rustix::stdio::dup2_stdout(&null)?;
    rustix::stdio::dup2_stderr(&null)?;
    Ok(taken)
}

/// Treats every signal as the system does by default, whatever whoever started us ignored: commands inherit it. The
/// one for a broken pipe is the runtime's to ignore, and a command gets that one back by itself.
pub(crate) fn default_signals() {
    for signal in (1..=libc::SIGRTMAX()).filter(|signal| *signal != libc::SIGPIPE) {
        // SAFETY: sets a disposition that needs no handler; those that cannot be set stay as they are.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
    }
}

/// Lets go of the terminal that we were started at, so that somebody else can have it. The hang-up that this costs is
/// ours, and is not heard.
pub(crate) fn leave_terminal() {
    // SAFETY: a disposition that needs no handler, and a request without an argument on our own standard input.
    unsafe {
        libc::signal(libc::SIGHUP, libc::SIG_IGN);
        libc::ioctl(libc::STDIN_FILENO, libc::TIOCNOTTY);
    }
}

/// Has ended children wait to be reaped, whatever whoever started us made of them.
pub(crate) fn keep_ended_children() {
    // SAFETY: sets a disposition that needs no handler.
    unsafe { libc::signal(libc::SIGCHLD, libc::SIG_DFL) };
}

/// Forks this program: zero in the child.
pub(crate) fn fork() -> io::Result<i32> {
    // SAFETY: this process has one thread, so the child may go on as it likes.
    match unsafe { libc::fork() } {
        pid if pid >= 0 => Ok(pid),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Ends this process at once. What a program does before it leaves, a holder has nothing of.
pub(crate) fn leave(code: i32) -> ! {
    // SAFETY: ends this process, whose files are all written without a buffer.
    unsafe { libc::_exit(code) }
}

/// Shows others in our container what we are, and nothing more. The name is what a neighbour's holder knows our processes by,
/// wherever the program is mounted. What is not dumpable, no other process of the same user can trace, nor take descriptors,
/// variables or memory of; a command that we start is a program of its own again, and as it wishes.
pub(crate) fn keep_to_ourselves() -> io::Result<()> {
    // SAFETY: a string that ends, and a flag; both of this process alone.
    let (named, hidden) = unsafe {
        (
            libc::prctl(libc::PR_SET_NAME, super::origin::HOLDER_NAME.as_ptr(), 0, 0, 0),
            libc::prctl(libc::PR_SET_DUMPABLE, 0 as libc::c_ulong, 0, 0, 0),
        )
    };
    if named == 0 && hidden == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Whether orphans of our descendants become our children.
pub(crate) fn subreaper(yes: bool) -> io::Result<()> {
    // SAFETY: a flag of this process.
    match unsafe { libc::prctl(libc::PR_SET_CHILD_SUBREAPER, libc::c_ulong::from(yes), 0, 0, 0) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Starts the daemon outside our tree. We stop being a subreaper for that moment, so that it goes to init.
pub(crate) fn daemon(env: &[u8], ready: &OwnedFd, log: &OwnedFd, umask: u32) -> io::Result<()> {
    let own = std::fs::read_link("/proc/self/exe")?;
    let program = own.with_file_name("wharf");
    let argv = [program.as_os_str().as_bytes(), b"\0daemon\0run\0"].concat();
    let (ready, log) = (ready.as_raw_fd(), log.as_raw_fd());
    let command = Command {
        argv: &argv,
        env,
        dir: CString::from(c"/"),
        stdio: [ready, log, log],
        control_terminal: false,
        cgroup: None,
        umask,
        descriptors: None,
        channel: None,
    };
    subreaper(false)?;
    let started = detached(&command);
    subreaper(true)?;
    started
}

/// Runs a command that is not ours to hold, outside our tree: our parent, or init, becomes its parent.
fn detached(command: &Command<'_>) -> io::Result<()> {
    let laid = command.lay();
    let middle = fork()?;
    if middle == 0 {
        // The middle one goes at once, so that its child is nobody's of ours.
        if matches!(fork(), Ok(0)) {
            command.become_it(&laid, None);
        }
        // SAFETY: ends this process and nothing else.
        unsafe { libc::_exit(0) }
    }
    children::reap(middle);
    Ok(())
}

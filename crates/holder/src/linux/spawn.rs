//! Starting a command: everything is laid out before the fork, and nothing but system calls follows it.

use std::ffi::CString;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::ptr;

use wharf_model::{Code, Failure};

/// A command that is ready to run.
pub(crate) struct Command<'a> {
    /// Arguments, each ending with a NUL.
    pub(crate) argv: &'a [u8],
    /// Variables, each ending with a NUL.
    pub(crate) env: &'a [u8],
    /// The directory to run in.
    pub(crate) dir: CString,
    /// Its standard input, output and error.
    pub(crate) stdio: [RawFd; 3],
    /// Whether standard input is a terminal that it shall control.
    pub(crate) control_terminal: bool,
    /// The version 2 cgroup to be born into.
    pub(crate) cgroup: Option<RawFd>,
    /// File creation mask.
    pub(crate) umask: u32,
    /// Soft limit of descriptors.
    pub(crate) descriptors: Option<u64>,
}

/// A child that has been forked and waits for the word to run its command.
pub(crate) struct Child {
    pub(crate) pid: i32,
    pub(crate) pidfd: OwnedFd,
    gate: OwnedFd,
    program: Vec<u8>,
    candidates: Vec<CString>,
    dir: CString,
}

/// Where a child failed before its command ran.
#[repr(u8)]
#[derive(Clone, Copy)]
enum Stage {
    Terminal = 1,
    Directory = 2,
    Exec = 3,
}

impl Command<'_> {
    /// Forks. The child has its session, its terminal and its directory, and waits for [`Child::run`].
    pub(crate) fn fork(self) -> Result<Child, Failure> {
        let argv = pointers(self.argv);
        let env = pointers(self.env);
        let program = split(self.argv).next().unwrap_or_default();
        let candidates = candidates(program, self.env);
        if argv.len() < 2 || candidates.is_empty() {
            return Err(not_found(program));
        }
        let (ours, theirs) = pair().map_err(|e| Failure::system("cannot make a socket pair", &e))?;
        let mut pidfd: RawFd = -1;
        let pid = clone(self.cgroup, &mut pidfd).map_err(|e| Failure::system("cannot fork", &e))?;
        if pid == 0 {
            // SAFETY: we are the child of a fork, and only system calls on data that was laid out before follow.
            unsafe { child(&self, &argv, &env, &candidates, theirs.as_raw_fd()) }
        }
        // SAFETY: the kernel has just made this descriptor for us.
        let pidfd = unsafe { OwnedFd::from_raw_fd(pidfd) };
        Ok(Child { pid, pidfd, gate: ours, program: program.to_vec(), candidates, dir: self.dir })
    }
}

impl Child {
    /// Lets the command run. Returns once it does, or says why it cannot; then the child is gone and reaped.
    pub(crate) fn run(self) -> Result<(i32, OwnedFd), Failure> {
        let mut report = [0_u8; 5];
        // A child that failed already does not hear it, but what it had to say is there to read.
        let _ = rustix::io::write(&self.gate, &[1]);
        let told = rustix::io::retry_on_intr(|| rustix::io::read(&self.gate, &mut report));
        // The gate closes by itself at exec: no report is good news.
        let failure = match told {
            Ok(0) => return Ok((self.pid, self.pidfd)),
            Ok(_) => {
                let error = i32::from_le_bytes([report[1], report[2], report[3], report[4]]);
                self.explain(report[0], &io::Error::from_raw_os_error(error))
            }
            Err(error) => Failure::system("cannot hear of the command's start", &error.into()),
        };
        reap(self.pid);
        Err(failure)
    }

    fn explain(&self, stage: u8, error: &io::Error) -> Failure {
        let dir = self.dir.to_string_lossy();
        if stage == Stage::Terminal as u8 {
            return Failure::system("cannot take the terminal", error);
        }
        if stage == Stage::Directory as u8 {
            return Failure::new(Code::NoDirectory, format!("cannot run in {dir:?}: {error}"))
                .hint("give a directory that exists with -w");
        }
        let named =
            self.candidates.last().map_or_else(String::new, |path| path.to_string_lossy().into_owned());
        match error.raw_os_error() {
            Some(libc::E2BIG) => Failure::new(
                Code::TooLong,
                format!("the arguments and variables of {named:?} are too long: {error}"),
            )
            .hint("pass long text by a file or by standard input"),
            Some(libc::ENOENT | libc::ENOTDIR) => match self.interpreter() {
                Some((path, interpreter)) => Failure::new(
                    Code::NotExecutable,
                    format!("cannot run {path:?}: its interpreter {interpreter:?} does not exist"),
                ),
                None => not_found(&self.program),
            },
            Some(libc::ENOEXEC) => Failure::new(
                Code::NotExecutable,
                format!(
                    "cannot run {named:?}: it is neither a program for this machine nor a script with a #! line"
                ),
            ),
            Some(libc::EACCES) => Failure::new(Code::NotExecutable, format!("cannot run {named:?}: {error}"))
                .hint("chmod +x it?"),
            _ => Failure {
                code: Code::NotExecutable,
                ..Failure::system(format!("cannot run {named:?}"), error)
            },
        }
    }

    /// The script that is there, and the interpreter in its first line that is not.
    fn interpreter(&self) -> Option<(String, String)> {
        let base = std::path::Path::new(std::ffi::OsStr::new(self.dir.to_str().ok()?));
        self.candidates.iter().find_map(|candidate| {
            let path = candidate.to_str().ok()?;
            let bytes = std::fs::read(base.join(path)).ok()?;
            let line =
                bytes.strip_prefix(b"#!").map(|rest| rest.split(|b| *b == b'\n').next().unwrap_or_default());
            let interpreter = line.map_or_else(|| "(of its ELF header)".into(), String::from_utf8_lossy);
            Some((path.to_owned(), interpreter.trim().to_owned()))
        })
    }
}

/// Runs a command that is not ours to hold, outside our tree: our parent, or init, becomes its parent.
fn detached(command: &Command<'_>) -> io::Result<()> {
    let argv = pointers(command.argv);
    let env = pointers(command.env);
    let candidates = candidates(split(command.argv).next().unwrap_or_default(), command.env);
    let mut pidfd: RawFd = -1;
    let middle = clone(None, &mut pidfd)?;
    if middle == 0 {
        let mut pidfd: RawFd = -1;
        if matches!(clone(None, &mut pidfd), Ok(0)) {
            // SAFETY: as in `fork`; there is no gate to wait at.
            unsafe { child(command, &argv, &env, &candidates, -1) }
        }
        // SAFETY: ends this process and nothing else.
        unsafe { libc::_exit(0) }
    }
    // SAFETY: the kernel has just made this descriptor for us.
    drop(unsafe { OwnedFd::from_raw_fd(pidfd) });
    reap(middle);
    Ok(())
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
    };
    subreaper(false)?;
    let started = detached(&command);
    subreaper(true)?;
    started
}

fn reap(pid: i32) {
    let mut status = 0;
    // SAFETY: waits for a child that is about to end, and writes one integer.
    while unsafe { libc::waitpid(pid, &raw mut status, 0) } < 0
        && io::Error::last_os_error().kind() == io::ErrorKind::Interrupted
    {}
}

fn pair() -> io::Result<(OwnedFd, OwnedFd)> {
    use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
    Ok(socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?)
}

/// Wider than the type that the libc crate gives it.
const CLONE_INTO_CGROUP: u64 = 0x2_0000_0000;

/// Forks, into a cgroup where one is given: moving a process there later would cost milliseconds.
fn clone(cgroup: Option<RawFd>, pidfd: &mut RawFd) -> io::Result<i32> {
    // SAFETY: all-zero is a legal value of this plain struct.
    let mut args: libc::clone_args = unsafe { std::mem::zeroed() };
    args.flags = libc::CLONE_PIDFD as u64;
    args.exit_signal = libc::SIGCHLD as u64;
    args.pidfd = ptr::from_mut(pidfd) as u64;
    if let Some(fd) = cgroup {
        args.flags |= CLONE_INTO_CGROUP;
        args.cgroup = fd as u64;
    }
    // SAFETY: without CLONE_VM this is a fork; this process has one thread, so no lock is held by another.
    let pid =
        unsafe { libc::syscall(libc::SYS_clone3, &raw mut args, std::mem::size_of::<libc::clone_args>()) };
    if pid < 0 { Err(io::Error::last_os_error()) } else { Ok(pid as i32) }
}

/// The child's side: never returns.
unsafe fn child(
    command: &Command<'_>,
    argv: &[*const libc::c_char],
    env: &[*const libc::c_char],
    candidates: &[CString],
    gate: RawFd,
) -> ! {
    let report = |stage: Stage| -> ! {
        // SAFETY: reads errno and writes five bytes of this frame to a descriptor; then the process ends.
        unsafe {
            let error = (*libc::__errno_location()).to_le_bytes();
            let bytes = [stage as u8, error[0], error[1], error[2], error[3]];
            libc::write(gate, bytes.as_ptr().cast(), bytes.len());
            libc::_exit(127)
        }
    };
    // SAFETY: only async-signal-safe calls, on pointers that were made before the fork.
    unsafe {
        libc::setsid();
        let [input, output, error] = command.stdio;
        if command.control_terminal && libc::ioctl(input, libc::TIOCSCTTY, 0) < 0 {
            report(Stage::Terminal);
        }
        // Through high numbers first, so that none is overwritten before it was copied.
        let high = [
            libc::fcntl(input, libc::F_DUPFD_CLOEXEC, 10),
            libc::fcntl(output, libc::F_DUPFD_CLOEXEC, 10),
            libc::fcntl(error, libc::F_DUPFD_CLOEXEC, 10),
        ];
        for (number, from) in high.into_iter().enumerate() {
            if libc::dup2(from, number as i32) < 0 {
                report(Stage::Terminal);
            }
        }
        libc::umask(command.umask as libc::mode_t);
        if let Some(soft) = command.descriptors {
            let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
            if libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) == 0 {
                limit.rlim_cur = soft.min(limit.rlim_max);
                libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit);
            }
        }
        let mut none: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut none);
        for signal in [libc::SIGPIPE, libc::SIGCHLD, libc::SIGHUP, libc::SIGINT, libc::SIGQUIT, libc::SIGTERM]
        {
            libc::signal(signal, libc::SIG_DFL);
        }
        libc::sigprocmask(libc::SIG_SETMASK, &raw const none, ptr::null_mut());
        if libc::chdir(command.dir.as_ptr()) < 0 {
            report(Stage::Directory);
        }
        if gate >= 0 {
            let mut word = 0_u8;
            if libc::read(gate, (&raw mut word).cast(), 1) != 1 {
                libc::_exit(127);
            }
        }
        let mut worst = libc::ENOENT;
        for candidate in candidates {
            libc::execve(candidate.as_ptr(), argv.as_ptr(), env.as_ptr());
            match *libc::__errno_location() {
                libc::ENOENT | libc::ENOTDIR => {}
                error => {
                    worst = error;
                    if error != libc::EACCES {
                        break;
                    }
                }
            }
        }
        *libc::__errno_location() = worst;
        report(Stage::Exec)
    }
}

/// NUL-terminated strings in a row.
fn split(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    bytes.split_inclusive(|b| *b == 0).map(|string| string.strip_suffix(b"\0").unwrap_or(string))
}

/// What exec wants: a pointer to each string, then null.
fn pointers(bytes: &[u8]) -> Vec<*const libc::c_char> {
    let strings = bytes.split_inclusive(|b| *b == 0).filter(|string| string.ends_with(b"\0"));
    strings.map(|string| string.as_ptr().cast()).chain([ptr::null()]).collect()
}

/// The paths to try: the program itself where it has a slash, else one for each directory of the command's PATH.
fn candidates(program: &[u8], env: &[u8]) -> Vec<CString> {
    if program.is_empty() {
        return Vec::new();
    }
    if program.contains(&b'/') {
        return CString::new(program).into_iter().collect();
    }
    let path =
        split(env).find_map(|var| var.strip_prefix(b"PATH=")).unwrap_or(b"/usr/local/bin:/usr/bin:/bin");
    let join = |dir: &[u8]| match dir {
        b"" => CString::new([b"./", program].concat()),
        dir => CString::new([dir, b"/", program].concat()),
    };
    path.split(|b| *b == b':').filter_map(|dir| join(dir).ok()).collect()
}

fn not_found(program: &[u8]) -> Failure {
    let failure = Failure::new(
        Code::CommandNotFound,
        format!("there is no command {:?}", String::from_utf8_lossy(program)),
    );
    if program.contains(&b'/') {
        return failure.hint("a relative path is looked for from the session's directory");
    }
    failure.hint("the session's own PATH is searched: `-e PATH+=DIR` adds to it")
}

/// A path for the system.
pub(crate) fn c_path(bytes: &[u8]) -> Result<CString, Failure> {
    CString::new(bytes).map_err(|_| Failure::new(Code::NoDirectory, "a path contains a NUL byte"))
}

/// What a wait status says: code, or signal.
pub(crate) fn decode(status: i32) -> (Option<i32>, Option<i32>) {
    if libc::WIFSIGNALED(status) {
        (None, Some(libc::WTERMSIG(status)))
    } else {
        (Some(libc::WEXITSTATUS(status)), None)
    }
}

/// The next child that has ended: pid and wait status.
pub(crate) fn wait_any() -> Option<(i32, i32)> {
    let mut status = 0;
    // SAFETY: does not block, and writes one integer.
    let pid = unsafe { libc::waitpid(-1, &raw mut status, libc::WNOHANG) };
    (pid > 0).then_some((pid, status))
}

/// Whether there is any child, ended or not.
pub(crate) fn has_children() -> bool {
    // SAFETY: does not block, reaps nothing, and writes to a struct of our own.
    unsafe {
        let mut info: libc::siginfo_t = std::mem::zeroed();
        libc::waitid(libc::P_ALL, 0, &raw mut info, libc::WEXITED | libc::WNOHANG | libc::WNOWAIT) == 0
    }
}

/// Makes files ours alone from now on. Returns the mask that was in force.
pub(crate) fn private_umask() -> u32 {
    rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o077)).as_raw_mode()
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

/// Whether ended children vanish by themselves.
pub(crate) fn forget_children(yes: bool) {
    // SAFETY: sets a disposition that needs no handler.
    unsafe { libc::signal(libc::SIGCHLD, if yes { libc::SIG_IGN } else { libc::SIG_DFL }) };
}

/// Forks this program: true in the child.
pub(crate) fn fork_self() -> io::Result<bool> {
    // SAFETY: this process has one thread, so the child may go on as it likes.
    match unsafe { libc::fork() } {
        0 => Ok(true),
        pid if pid > 0 => Ok(false),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Whether orphans of our descendants become our children.
pub(crate) fn subreaper(yes: bool) -> io::Result<()> {
    // SAFETY: a flag of this process.
    match unsafe { libc::prctl(libc::PR_SET_CHILD_SUBREAPER, libc::c_ulong::from(yes), 0, 0, 0) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sessions_own_path_is_searched() {
        let found: Vec<String> = candidates(b"x", b"A=1\0PATH=/a::/b\0")
            .iter()
            .map(|c| c.to_string_lossy().into_owned())
            .collect();
        assert_eq!(found, ["/a/x", "./x", "/b/x"]);
        assert_eq!(candidates(b"./x", b"PATH=/a\0").len(), 1);
        assert!(candidates(b"", b"PATH=/a\0").is_empty());
    }
}

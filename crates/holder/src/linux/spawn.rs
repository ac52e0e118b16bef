//! Starting a command: everything is laid out before the fork, and nothing but system calls follows it.

use std::ffi::CString;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::ptr;

use rustix::process::{Pid, PidfdFlags};
use wharf_model::{Code, Failure};

use super::{children, own, proc};

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
    /// The session's own channel, where it has one.
    pub(crate) channel: Option<RawFd>,
}

/// A child that has been forked and waits for the word to run its command. Dropped before that, it is ended.
pub(crate) struct Child {
    pub(crate) pid: i32,
    /// Taken by whoever holds the command from then on.
    pidfd: Option<OwnedFd>,
    gate: OwnedFd,
    /// Whether it was there to hear that it may run.
    heard: bool,
    wanted: Wanted,
}

/// Where a child waits for the word to run its command, and says what went wrong.
#[derive(Clone, Copy)]
pub(super) struct Gate {
    /// The holder's end.
    ours: RawFd,
    /// The child's end.
    theirs: RawFd,
    /// The holder.
    holder: i32,
}

/// What was to run, for the words of a failure.
struct Wanted {
    program: Vec<u8>,
    candidates: Vec<CString>,
    dir: CString,
}

/// What exec wants, laid out before the fork.
pub(super) struct Laid {
    argv: Vec<*const libc::c_char>,
    env: Vec<*const libc::c_char>,
    candidates: Vec<CString>,
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
    fn program(&self) -> &[u8] {
        split(self.argv).next().unwrap_or_default()
    }

    /// Lays out what exec wants.
    pub(super) fn lay(&self) -> Laid {
        Laid {
            argv: pointers(self.argv),
            env: pointers(self.env),
            candidates: candidates(self.program(), self.env),
        }
    }

    fn laid(&self) -> Result<Laid, Failure> {
        let laid = self.lay();
        if laid.argv.len() < 2 || laid.candidates.is_empty() {
            return Err(not_found(self.program()));
        }
        Ok(laid)
    }

    /// Forks. The child has its session, its terminal and its directory, and waits for [`Child::release`].
    pub(crate) fn fork(self) -> Result<Child, Failure> {
        let laid = self.laid()?;
        let (ours, theirs) = pair().map_err(|e| Failure::system("cannot make a socket pair", &e))?;
        let holder = std::process::id() as i32;
        let (pid, pidfd) = self.clone_or_fork().map_err(|e| Failure::system("cannot fork", &e))?;
        if pid == 0 {
            let gate = Gate { ours: ours.as_raw_fd(), theirs: theirs.as_raw_fd(), holder };
            self.become_it(&laid, Some(gate));
        }
        Ok(Child { pid, pidfd, gate: ours, heard: false, wanted: self.wanted(laid) })
    }

    fn wanted(self, laid: Laid) -> Wanted {
        Wanted { program: self.program().to_vec(), candidates: laid.candidates, dir: self.dir }
    }

    /// A child in its cgroup from the first; where the system does not offer that, a fork that is moved there.
    fn clone_or_fork(&self) -> io::Result<(i32, Option<OwnedFd>)> {
        if let Ok(born) = clone(self.cgroup) {
            return Ok(born);
        }
        let pid = own::fork()?;
        if pid == 0 {
            return Ok((0, None));
        }
        // It waits at its gate, so its pid is its own.
        let name = Pid::from_raw(pid).ok_or(io::ErrorKind::InvalidData)?;
        let pidfd = rustix::process::pidfd_open(name, PidfdFlags::empty())?;
        if let Some(group) = self.cgroup {
            // Where it cannot be moved, its descent still tells where it belongs.
            let _ = std::fs::write(format!("/proc/self/fd/{group}/cgroup.procs"), pid.to_string());
        }
        Ok((pid, Some(pidfd)))
    }

    /// The child's side: becomes the command, and never returns. It has its session, its terminal and its directory when it
    /// comes to the gate, and no signal but the last one ends it before it runs the command.
    pub(super) fn become_it(&self, laid: &Laid, gate: Option<Gate>) -> ! {
        let fail = |stage: Stage| -> ! {
            // SAFETY: reads errno; then the process ends.
            unsafe {
                let error = *libc::__errno_location();
                if let Some(gate) = gate {
                    gate.report(stage, error);
                }
                libc::_exit(127)
            }
        };
        // SAFETY: we are the child of a fork, and only system calls follow, on data that was laid out before it.
        unsafe {
            libc::setsid();
            let [input, output, error] = self.stdio;
            if self.control_terminal && libc::ioctl(input, libc::TIOCSCTTY, 0) < 0 {
                fail(Stage::Terminal);
            }
            // Through high numbers first, so that none is overwritten before it was copied.
            let high = [
                libc::fcntl(input, libc::F_DUPFD_CLOEXEC, 10),
                libc::fcntl(output, libc::F_DUPFD_CLOEXEC, 10),
                libc::fcntl(error, libc::F_DUPFD_CLOEXEC, 10),
            ];
            for (number, from) in high.into_iter().enumerate() {
                if libc::dup2(from, number as i32) < 0 {
                    fail(Stage::Terminal);
                }
            }
            // All else of ours closes by itself when the command begins.
            if let Some(channel) = self.channel
                && libc::dup2(channel, wharf_boundary::channel::NUMBER) < 0
            {
                fail(Stage::Terminal);
            }
            if libc::chdir(self.dir.as_ptr()) < 0 {
                fail(Stage::Directory);
            }
            if gate.is_some_and(|gate| !gate.pass()) {
                libc::_exit(127);
            }
            libc::umask(self.umask as libc::mode_t);
            if let Some(soft) = self.descriptors {
                let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
                if libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) == 0 {
                    limit.rlim_cur = soft.min(limit.rlim_max);
                    libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit);
                }
            }
            let mut none: libc::sigset_t = std::mem::zeroed();
            libc::sigemptyset(&raw mut none);
            for signal in [
                libc::SIGPIPE,
                libc::SIGXFSZ,
                libc::SIGCHLD,
                libc::SIGHUP,
                libc::SIGINT,
                libc::SIGQUIT,
                libc::SIGTERM,
            ] {
                libc::signal(signal, libc::SIG_DFL);
            }
            libc::sigprocmask(libc::SIG_SETMASK, &raw const none, ptr::null_mut());
            let mut worst = libc::ENOENT;
            for candidate in &laid.candidates {
                libc::execve(candidate.as_ptr(), laid.argv.as_ptr(), laid.env.as_ptr());
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
            fail(Stage::Exec)
        }
    }
}

impl Gate {
    /// The child's side: waits for the word to run. False where it never comes, or where whoever gave it is gone: nobody would
    /// hold the command.
    fn pass(self) -> bool {
        let mut word = 0_u8;
        // SAFETY: descriptors of our own, and a byte of this frame. Our own copy of the holder's end would keep the gate from
        // ever closing on us.
        unsafe {
            libc::close(self.ours);
            libc::read(self.theirs, (&raw mut word).cast(), 1) == 1 && libc::getppid() == self.holder
        }
    }

    /// The child's side: says what went wrong.
    fn report(self, stage: Stage, error: i32) {
        let error = error.to_le_bytes();
        let bytes = [stage as u8, error[0], error[1], error[2], error[3]];
        // SAFETY: five bytes of this frame.
        unsafe { libc::write(self.theirs, bytes.as_ptr().cast(), bytes.len()) };
    }
}

impl Child {
    /// Says that the command may run.
    pub(crate) fn release(&mut self) {
        // A child that failed already does not hear it, but what it had to say is there to read.
        self.heard = rustix::io::write(&self.gate, &[1]).is_ok();
    }

    /// What is readable once it is known whether the command runs.
    pub(crate) fn gate(&self) -> BorrowedFd<'_> {
        self.gate.as_fd()
    }

    /// Whether the command runs, or why it does not. Waits until that is known.
    pub(crate) fn outcome(mut self) -> Result<(i32, OwnedFd), Failure> {
        let mut report = [0_u8; 5];
        let told = rustix::io::retry_on_intr(|| rustix::io::read(&self.gate, &mut report));
        // The gate closes by itself at exec: no report is good news.
        match told {
            Ok(0) if self.heard => {
                let pidfd = self.pidfd.take();
                pidfd
                    .map(|pidfd| (self.pid, pidfd))
                    .ok_or_else(|| Failure::new(Code::Internal, "there is no child"))
            }
            Ok(0) | Err(rustix::io::Errno::CONNRESET) => {
                Err(Failure::new(Code::Internal, "the command was killed before it ran"))
            }
            Ok(_) => {
                let error = i32::from_le_bytes([report[1], report[2], report[3], report[4]]);
                let stages = [Stage::Terminal, Stage::Directory];
                let stage = stages.into_iter().find(|stage| *stage as u8 == report[0]);
                Err(self.wanted.explain(stage.unwrap_or(Stage::Exec), error))
            }
            Err(error) => Err(Failure::system("cannot hear of the command's start", &error.into())),
        }
    }
}

impl Wanted {
    fn explain(&self, stage: Stage, error: i32) -> Failure {
        let error = &io::Error::from_raw_os_error(error);
        match stage {
            Stage::Terminal => return Failure::system("cannot take the terminal", error),
            Stage::Directory => {
                let dir = self.dir.to_string_lossy();
                return Failure::new(Code::NoDirectory, format!("cannot run in {dir:?}: {error}"))
                    .hint("give a directory that exists with -w");
            }
            Stage::Exec => {}
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

impl Drop for Child {
    fn drop(&mut self) {
        if let Some(pidfd) = self.pidfd.take() {
            let _ = proc::signal(&pidfd, libc::SIGKILL);
            children::reap(self.pid);
        }
    }
}

fn pair() -> io::Result<(OwnedFd, OwnedFd)> {
    use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
    Ok(socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?)
}

/// Wider than the type that the libc crate gives it.
const CLONE_INTO_CGROUP: u64 = 0x2_0000_0000;

/// Forks by `clone3`: a child with a pidfd, in a cgroup from the first where one is given. Moving a process there later costs
/// milliseconds, and until then it would be in ours.
fn clone(cgroup: Option<RawFd>) -> io::Result<(i32, Option<OwnedFd>)> {
    let mut pidfd: RawFd = -1;
    // SAFETY: all-zero is a legal value of this plain struct.
    let mut args: libc::clone_args = unsafe { std::mem::zeroed() };
    args.flags = libc::CLONE_PIDFD as u64;
    args.exit_signal = libc::SIGCHLD as u64;
    args.pidfd = &raw mut pidfd as u64;
    if let Some(fd) = cgroup {
        args.flags |= CLONE_INTO_CGROUP;
        args.cgroup = fd as u64;
    }
    let size = std::mem::size_of::<libc::clone_args>();
    // SAFETY: without CLONE_VM this is a fork; this process has one thread, so no lock is held by another.
    match unsafe { libc::syscall(libc::SYS_clone3, &raw mut args, size) } {
        0 => Ok((0, None)),
        // SAFETY: the kernel has just made this descriptor for us.
        pid if pid > 0 => Ok((pid as i32, Some(unsafe { OwnedFd::from_raw_fd(pidfd) }))),
        _ => Err(io::Error::last_os_error()),
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

/// Says whether there is a program of the first word, for whoever has another stand between it and the kernel's own word.
pub(crate) fn look_for(argv: &[u8], env: &[u8], dir: &CString) -> Result<(), Failure> {
    use std::os::unix::ffi::OsStrExt;
    let program = split(argv).next().unwrap_or_default();
    let dir = std::path::Path::new(std::ffi::OsStr::from_bytes(dir.as_bytes()));
    let there = |path: CString| dir.join(std::ffi::OsStr::from_bytes(path.as_bytes())).exists();
    if candidates(program, env).into_iter().any(there) { Ok(()) } else { Err(not_found(program)) }
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

    /// A shell that writes a word to its standard output.
    fn shell<'a>(argv: &'a [u8], to: &OwnedFd, channel: Option<RawFd>) -> Command<'a> {
        let to = to.as_raw_fd();
        Command {
            argv,
            env: b"PATH=/usr/bin:/bin\0",
            dir: CString::from(c"/"),
            stdio: [to, to, to],
            control_terminal: false,
            cgroup: None,
            umask: 0o077,
            descriptors: None,
            channel,
        }
    }

    fn all_of(from: OwnedFd) -> String {
        std::io::read_to_string(std::fs::File::from(from)).unwrap()
    }

    #[test]
    fn a_command_waits_at_its_gate() {
        let (from, to) = std::io::pipe().unwrap();
        let (from, to) = (OwnedFd::from(from), OwnedFd::from(to));
        let mut child = shell(b"sh\0-c\0echo ran\0", &to, None).fork().unwrap();
        drop(to);
        let mut fds = [rustix::event::PollFd::new(&from, rustix::event::PollFlags::IN)];
        let moment = rustix::event::Timespec { tv_sec: 0, tv_nsec: 50_000_000 };
        assert_eq!(rustix::event::poll(&mut fds, Some(&moment)), Ok(0), "it did not wait");
        child.release();
        let (pid, _) = child.outcome().unwrap();
        assert_eq!(all_of(from), "ran\n");
        children::reap(pid);
    }

    #[test]
    fn a_child_that_is_killed_at_its_gate_is_no_success() {
        for released in [false, true] {
            let (from, to) = std::io::pipe().unwrap();
            let (from, to) = (OwnedFd::from(from), OwnedFd::from(to));
            let mut child = shell(b"sh\0-c\0echo ran\0", &to, None).fork().unwrap();
            drop(to);
            let pidfd = child.pidfd.as_ref().unwrap();
            // Stopped first, so that it has not read the word when it dies.
            let signal = if released { libc::SIGSTOP } else { libc::SIGKILL };
            proc::signal(pidfd, signal).unwrap();
            let options = rustix::process::WaitIdOptions::STOPPED
                | rustix::process::WaitIdOptions::EXITED
                | rustix::process::WaitIdOptions::NOWAIT;
            rustix::process::waitid(rustix::process::WaitId::PidFd(pidfd.as_fd()), options).unwrap();
            child.release();
            proc::signal(child.pidfd.as_ref().unwrap(), libc::SIGKILL).unwrap();
            let failure = child.outcome().unwrap_err();
            assert_eq!(failure.message, "the command was killed before it ran");
            assert_eq!(all_of(from), "");
        }
    }

    #[test]
    fn one_that_nobody_lets_run_never_runs() {
        let (from, to) = std::io::pipe().unwrap();
        let (from, to) = (OwnedFd::from(from), OwnedFd::from(to));
        let child = shell(b"sh\0-c\0echo ran\0", &to, None).fork().unwrap();
        drop((child, to));
        assert_eq!(all_of(from), "");
    }
}

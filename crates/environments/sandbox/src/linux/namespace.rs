//! Namespaces of the sandbox's own: a network, and a view of the files in which the rest cannot be changed at all.

use std::fs;
use std::io;
use std::os::fd::AsFd;

use rustix::process::{Pid, PidfdFlags, getegid, geteuid};
use rustix::thread::{ThreadNameSpaceType, UnshareFlags, unshare_unsafe};

/// Moves this process into new namespaces, as a user of its own where it may not do so as it is.
pub(super) fn enter(flags: UnshareFlags) -> io::Result<()> {
    let (user, group) = (geteuid(), getegid());
    // Whoever may is not asked to change who they are.
    if unshare(flags).is_ok() {
        return Ok(());
    }
    unshare(flags | UnshareFlags::NEWUSER)?;
    fs::write("/proc/self/setgroups", "deny")?;
    fs::write("/proc/self/uid_map", format!("{0} {0} 1", user.as_raw()))?;
    fs::write("/proc/self/gid_map", format!("{0} {0} 1", group.as_raw()))
}

fn unshare(flags: UnshareFlags) -> io::Result<()> {
    // SAFETY: this process has one thread, and its file table, which others might share, is not touched.
    #[expect(unsafe_code, reason = "namespaces are a matter of the whole process")]
    unsafe {
        unshare_unsafe(flags)?;
    }
    Ok(())
}

/// Moves this process into the namespaces of another, told as `PID:START`. Whether a view of the files was one of them.
pub(super) fn join(process: &str, network: bool) -> io::Result<bool> {
    let odd = || io::Error::new(io::ErrorKind::InvalidInput, "that is no process");
    let (pid, start) = process.split_once(':').ok_or_else(odd)?;
    let pid: i32 = pid.parse().map_err(|_| odd())?;
    let name = Pid::from_raw(pid).ok_or_else(odd)?;
    let pidfd = rustix::process::pidfd_open(name, PidfdFlags::empty())?;
    // Looked at after it is held: whoever has the number now has it to the end.
    if start_of(pid)? != start {
        return Err(io::Error::new(io::ErrorKind::NotFound, "it has ended"));
    }
    let here = std::env::current_dir()?;
    let theirs = |kind: &str| -> io::Result<bool> {
        let theirs = fs::read_link(format!("/proc/{pid}/ns/{kind}"))?;
        Ok(theirs != fs::read_link(format!("/proc/self/ns/{kind}"))?)
    };
    let (user, files, net, ipc) = (theirs("user")?, theirs("mnt")?, theirs("net")?, theirs("ipc")?);
    if network && !net {
        return Err(io::Error::other("it has no network of its own"));
    }
    let mut flags = ThreadNameSpaceType::empty();
    flags.set(ThreadNameSpaceType::USER, user);
    flags.set(ThreadNameSpaceType::MOUNT, files);
    flags.set(ThreadNameSpaceType::NETWORK, net);
    flags.set(ThreadNameSpaceType::INTER_PROCESS_COMMUNICATION, ipc);
    if !flags.is_empty() {
        rustix::thread::move_into_thread_name_spaces(pidfd.as_fd(), flags)?;
        // The same place as the sandbox has it.
        std::env::set_current_dir(here)?;
    }
    Ok(files)
}

/// When a process began, as the kernel counts it: the twenty-second word, and the second one may have any in it.
fn start_of(pid: i32) -> io::Result<String> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat"))?;
    let word = stat.rsplit_once(')').and_then(|(_, rest)| rest.split_whitespace().nth(19));
    word.map(str::to_owned).ok_or_else(|| io::ErrorKind::InvalidData.into())
}

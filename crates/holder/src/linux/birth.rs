//! A child that begins in our own memory, while we stand still.
//!
//! A fork copies the tables of all our memory, and a child that is about to run another program throws the copy away:
//! a large part of what it costs to start a command. This one has nothing of its own but a stack until it runs its
//! program or ends, and we do not go on before. What it writes meanwhile, we find.

use std::convert::Infallible;
use std::ffi::c_void;
use std::io;
use std::os::fd::{FromRawFd, OwnedFd, RawFd};
use std::ptr;

use rustix::mm::{MapFlags, MprotectFlags, ProtFlags, mmap_anonymous, mprotect, munmap};

use super::spawn::clone_args;

/// Room for all that a start does on it, many times over. Only what is used is ever there.
const STACK: usize = 256 << 10;
/// What lies below it and cannot be touched.
const GUARD: usize = 4 << 10;

/// Lets a child do its work in our memory, and waits until it has run another program or ended. It must do one of them.
///
/// It is born into a cgroup where one is given. On an error nothing was done.
pub(crate) fn share<F>(cgroup: Option<RawFd>, work: F) -> io::Result<(i32, OwnedFd)>
where
    F: FnOnce() -> Infallible,
{
    extern "C" fn begin<F: FnOnce() -> Infallible>(work: *mut c_void) -> ! {
        // SAFETY: our caller below left it there for us, and does not touch it again.
        let work = unsafe { work.cast::<F>().read() };
        match work() {}
    }
    let stack = Stack::new()?;
    let mut work = std::mem::ManuallyDrop::new(work);
    let mut pidfd: RawFd = -1;
    let mut args = clone_args(cgroup, &raw mut pidfd);
    args.flags |= (libc::CLONE_VM | libc::CLONE_VFORK) as u64;
    args.stack = stack.base as u64;
    args.stack_size = stack.len as u64;
    // SAFETY: the child has a stack of its own, this thread is the only one and sleeps until the child has left our
    // memory, and all that the child is given outlives that.
    match unsafe { enter(&raw const args, begin::<F>, (&raw mut work).cast()) } {
        // SAFETY: the kernel has just made this descriptor for us.
        pid if pid > 0 => Ok((pid as i32, unsafe { OwnedFd::from_raw_fd(pidfd) })),
        error => Err(io::Error::from_raw_os_error(-error as i32)),
    }
}

/// `clone3`, after which the child calls `begin` on the stack that it was given. Returns in the parent alone: a pid, or
/// an error below zero.
unsafe fn enter(
    args: *const libc::clone_args,
    begin: extern "C" fn(*mut c_void) -> !,
    work: *mut c_void,
) -> isize {
    let told: isize;
    // SAFETY: the kernel leaves all registers but three as they were, in the child too, where the stack is another.
    // The child never comes back from the call.
    #[cfg(target_arch = "x86_64")]
    unsafe {
        std::arch::asm!(
            "syscall",
            "test rax, rax",
            "jnz 2f",
            "xor ebp, ebp",
            "mov rdi, r12",
            "call r13",
            "ud2",
            "2:",
            inlateout("rax") libc::SYS_clone3 as isize => told,
            in("rdi") args,
            in("rsi") std::mem::size_of::<libc::clone_args>(),
            in("r12") work,
            in("r13") begin,
            lateout("rcx") _,
            lateout("r11") _,
        );
    }
    // SAFETY: the same; here all registers but one.
    #[cfg(target_arch = "aarch64")]
    unsafe {
        std::arch::asm!(
            "svc #0",
            "cbnz x0, 2f",
            "mov x29, xzr",
            "mov x30, xzr",
            "mov x0, x20",
            "blr x21",
            "brk #1",
            "2:",
            inlateout("x0") args => told,
            in("x1") std::mem::size_of::<libc::clone_args>(),
            in("x8") libc::SYS_clone3,
            in("x20") work,
            in("x21") begin,
            // The call is the child's alone, but it is a call.
            lateout("x30") _,
        );
    }
    // Elsewhere nobody has written it yet, and a start is done by a fork.
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    {
        let _ = (args, begin, work);
        told = -libc::ENOSYS as isize;
    }
    told
}

struct Stack {
    base: *mut c_void,
    len: usize,
}

impl Stack {
    fn new() -> io::Result<Self> {
        let (len, rights) = (GUARD + STACK, ProtFlags::READ | ProtFlags::WRITE);
        // SAFETY: new memory, which nothing else knows of.
        let base = unsafe { mmap_anonymous(ptr::null_mut(), len, rights, MapFlags::PRIVATE)? };
        let stack = Self { base, len };
        // SAFETY: the lowest page of what was just made.
        unsafe { mprotect(base, GUARD, MprotectFlags::empty())? };
        Ok(stack)
    }
}

impl Drop for Stack {
    fn drop(&mut self) {
        // SAFETY: ours alone, and whoever stood on it is gone.
        let _ = unsafe { munmap(self.base, self.len) };
    }
}

#[cfg(all(test, any(target_arch = "x86_64", target_arch = "aarch64")))]
mod tests {
    use super::*;
    use crate::linux::children;

    #[test]
    fn what_the_child_wrote_is_ours_and_its_end_is_awaited() {
        for round in 0..50 {
            let (mut told, mut text) = (0, String::from("we"));
            let (pid, _pidfd) = share(None, || {
                told = std::process::id();
                text.extend([" and they, ".to_owned(), round.to_string()]);
                // SAFETY: ends the child, and nothing of ours.
                unsafe { libc::_exit(7) }
            })
            .unwrap();
            assert_eq!(told as i32, pid);
            assert_eq!(text, format!("we and they, {round}"));
            let mut status = 0;
            // SAFETY: a child of ours, and an integer of ours.
            assert_eq!(unsafe { libc::waitpid(pid, &raw mut status, 0) }, pid);
            assert_eq!(children::decode(status), (Some(7), None));
        }
    }

    #[test]
    fn a_descriptor_that_is_no_cgroup_is_an_error_and_nothing_runs() {
        let null = std::fs::File::open("/dev/null").unwrap();
        let mut ran = false;
        let error = share(Some(std::os::fd::AsRawFd::as_raw_fd(&null)), || {
            ran = true;
            // SAFETY: ends the child, and nothing of ours.
            unsafe { libc::_exit(0) }
        })
        .unwrap_err();
        assert_eq!((error.raw_os_error(), ran), (Some(libc::EBADF), false));
    }
}

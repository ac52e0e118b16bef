//! System calls that are refused, by seccomp.

use std::collections::BTreeMap;

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
    TargetArch, apply_filter,
};
use wharf_model::{Code, Failure, Network};

use crate::Result;

/// What no agent needs and what would lead around the rest: other ways to open files and sockets, the kernel's own
/// keys, modules and mounts.
const NEVER: &[libc::c_long] = &[
    libc::SYS_acct,
    libc::SYS_add_key,
    libc::SYS_bpf,
    libc::SYS_chroot,
    libc::SYS_delete_module,
    libc::SYS_finit_module,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fsopen,
    libc::SYS_init_module,
    // Opens sockets without the call that opens sockets.
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_io_uring_setup,
    libc::SYS_kexec_file_load,
    libc::SYS_kexec_load,
    libc::SYS_keyctl,
    libc::SYS_mount,
    libc::SYS_mount_setattr,
    libc::SYS_move_mount,
    libc::SYS_open_by_handle_at,
    libc::SYS_open_tree,
    libc::SYS_perf_event_open,
    // Takes descriptors out of processes.
    libc::SYS_pidfd_getfd,
    libc::SYS_pivot_root,
    // Acts on processes of the same user, wherever they are.
    libc::SYS_process_madvise,
    libc::SYS_process_mrelease,
    libc::SYS_quotactl,
    libc::SYS_reboot,
    libc::SYS_request_key,
    libc::SYS_setns,
    libc::SYS_swapoff,
    libc::SYS_swapon,
    libc::SYS_umount2,
    // A namespace of its own would give it privileges there.
    libc::SYS_unshare,
    libc::SYS_userfaultfd,
];

/// Calls whose first argument is a process that they change; 0 is the caller itself.
const ON_PROCESSES: &[libc::c_long] = &[
    libc::SYS_migrate_pages,
    libc::SYS_move_pages,
    libc::SYS_sched_setaffinity,
    libc::SYS_sched_setattr,
    libc::SYS_sched_setparam,
    libc::SYS_sched_setscheduler,
];

/// Memory, semaphores and queues that all processes of the host share, where the sandbox has none of its own.
const SHARED_BY_ALL: &[libc::c_long] = &[
    libc::SYS_mq_open,
    libc::SYS_mq_unlink,
    libc::SYS_msgctl,
    libc::SYS_msgget,
    libc::SYS_msgrcv,
    libc::SYS_msgsnd,
    libc::SYS_semctl,
    libc::SYS_semget,
    libc::SYS_semop,
    libc::SYS_semtimedop,
    libc::SYS_shmat,
    libc::SYS_shmctl,
    libc::SYS_shmget,
];

/// `IOPRIO_WHO_PROCESS`, which the C library's headers leave out.
const IO_PRIORITY_OF_PROCESS: i32 = 1;

/// What a new process may not get with its birth, for the same reason.
const NAMESPACES: libc::c_int = libc::CLONE_NEWCGROUP
    | libc::CLONE_NEWIPC
    | libc::CLONE_NEWNET
    | libc::CLONE_NEWNS
    | libc::CLONE_NEWPID
    | libc::CLONE_NEWUSER
    | libc::CLONE_NEWUTS;

/// Kinds of sockets that a pair may be of: an end of any other can be connected anew, to whoever listens on the host.
const PAIRS: [i32; 2] = [libc::SOCK_STREAM, libc::SOCK_SEQPACKET];
/// The part of a socket's type that says which kind it is.
const KIND_MASK: u64 = 0xf;

/// Families whose other end may be outside whatever network there is.
const FAMILIES: [i32; 2] = [libc::AF_UNIX, libc::AF_VSOCK];

/// Calls of the same meaning under another number, where a kernel has them.
#[cfg(target_arch = "x86_64")]
const TWIN: libc::c_long = 0x4000_0000;

/// Refuses what [`NEVER`] names, sockets that lead outside, and what changes processes outside. `own_ipc` says whether the
/// sandbox has shared memory of its own; that of the host is refused.
pub(super) fn restrict(network: Network, own_ipc: bool) -> Result<()> {
    let odd = |why: String| {
        Failure::new(Code::Unsupported, format!("system calls cannot be filtered here: {why}"))
            .hint("the kernel lacks seccomp, or an outer sandbox forbids it; a container is another way")
    };
    let programs = programs(network, own_ipc).map_err(|error| odd(error.to_string()))?;
    programs.iter().try_for_each(|program| apply_filter(program)).map_err(|error| odd(error.to_string()))
}

type Rules = BTreeMap<i64, Vec<SeccompRule>>;
type Built<T> = std::result::Result<T, seccompiler::BackendError>;

fn programs(network: Network, own_ipc: bool) -> Built<[BpfProgram; 2]> {
    let mut refused: Rules = NEVER.iter().map(|call| (*call, Vec::new())).collect();
    if !own_ipc {
        refused.extend(SHARED_BY_ALL.iter().map(|call| (*call, Vec::new())));
    }
    for call in ON_PROCESSES {
        refused.insert(*call, vec![argument(0, SeccompCmpOp::Ne, 0)?]);
    }
    // To ask for another's limits is harmless.
    let other = SeccompCondition::new(0, SeccompCmpArgLen::Dword, SeccompCmpOp::Ne, 0)?;
    let sets = SeccompCondition::new(2, SeccompCmpArgLen::Qword, SeccompCmpOp::Ne, 0)?;
    refused.insert(libc::SYS_prlimit64, vec![SeccompRule::new(vec![other, sets])?]);
    // Of itself alone, and not of its group or its user.
    for (call, process) in
        [(libc::SYS_setpriority, libc::PRIO_PROCESS as i32), (libc::SYS_ioprio_set, IO_PRIORITY_OF_PROCESS)]
    {
        let others = vec![argument(0, SeccompCmpOp::Ne, process)?, argument(1, SeccompCmpOp::Ne, 0)?];
        refused.insert(call, others);
    }
    // No rule means always: with the network off there is no socket of any family.
    let sockets = if network == Network::Off {
        refused.extend([(libc::SYS_bind, Vec::new()), (libc::SYS_connect, Vec::new())]);
        Vec::new()
    } else {
        FAMILIES.into_iter().map(|family| argument(0, SeccompCmpOp::Eq, family)).collect::<Built<_>>()?
    };
    refused.insert(libc::SYS_socket, sockets);
    let mut pairs = vec![argument(0, SeccompCmpOp::Ne, libc::AF_UNIX)?];
    let others = (0..=KIND_MASK as i32).filter(|kind| !PAIRS.contains(kind));
    for kind in others {
        pairs.push(argument(1, SeccompCmpOp::MaskedEq(KIND_MASK), kind)?);
    }
    refused.insert(libc::SYS_socketpair, pairs);
    let flags = (0..32).map(|bit| 1_u64 << bit).filter(|flag| NAMESPACES as u64 & flag != 0);
    let births = flags.map(|flag| {
        let set = SeccompCondition::new(0, SeccompCmpArgLen::Dword, SeccompCmpOp::MaskedEq(flag), flag)?;
        SeccompRule::new(vec![set])
    });
    refused.insert(libc::SYS_clone, births.collect::<Built<_>>()?);
    // What it asks for cannot be looked at. The C library goes on with the older call where this one is not there.
    let absent: Rules = [(libc::SYS_clone3, Vec::new())].into();
    Ok([program(refused, libc::EPERM)?, program(absent, libc::ENOSYS)?])
}

fn argument(number: u8, op: SeccompCmpOp, value: i32) -> Built<SeccompRule> {
    let value = u64::from(value.unsigned_abs());
    SeccompRule::new(vec![SeccompCondition::new(number, SeccompCmpArgLen::Dword, op, value)?])
}

/// A filter that answers these calls with an error, under both of their numbers.
fn program(mut rules: Rules, error: libc::c_int) -> Built<BpfProgram> {
    #[cfg(target_arch = "x86_64")]
    {
        let twins: Vec<_> = rules.iter().map(|(call, rules)| (call | TWIN, rules.clone())).collect();
        rules.extend(twins);
    }
    let arch: TargetArch = std::env::consts::ARCH.try_into()?;
    SeccompFilter::new(rules, SeccompAction::Allow, SeccompAction::Errno(error.unsigned_abs()), arch)?
        .try_into()
}

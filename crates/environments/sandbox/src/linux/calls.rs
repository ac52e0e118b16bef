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
    libc::SYS_quotactl,
    libc::SYS_reboot,
    libc::SYS_request_key,
    libc::SYS_setns,
    libc::SYS_swapoff,
    libc::SYS_swapon,
    libc::SYS_umount2,
    libc::SYS_userfaultfd,
];

/// Families whose other end may be outside whatever network there is.
const FAMILIES: [i32; 2] = [libc::AF_UNIX, libc::AF_VSOCK];

/// Calls of the same meaning under another number, where a kernel has them.
#[cfg(target_arch = "x86_64")]
const TWIN: libc::c_long = 0x4000_0000;

/// Refuses what [`NEVER`] names, and sockets that lead outside.
pub(super) fn restrict(network: Network) -> Result<()> {
    let odd = |why: String| {
        Failure::new(Code::Unsupported, format!("system calls cannot be filtered here: {why}"))
            .hint("the kernel lacks seccomp, or an outer sandbox forbids it; a container is another way")
    };
    let program = program(network).map_err(|error| odd(error.to_string()))?;
    apply_filter(&program).map_err(|error| odd(error.to_string()))
}

fn program(network: Network) -> std::result::Result<BpfProgram, seccompiler::BackendError> {
    let mut rules: BTreeMap<i64, Vec<SeccompRule>> = NEVER.iter().map(|call| (*call, Vec::new())).collect();
    // No rule means always: with the network off there is no socket of any family.
    let sockets = if network == Network::Off {
        Vec::new()
    } else {
        let of = |family: i32| {
            let family = u64::from(family.unsigned_abs());
            SeccompRule::new(vec![SeccompCondition::new(
                0,
                SeccompCmpArgLen::Dword,
                SeccompCmpOp::Eq,
                family,
            )?])
        };
        FAMILIES.into_iter().map(of).collect::<std::result::Result<_, _>>()?
    };
    rules.insert(libc::SYS_socket, sockets);
    #[cfg(target_arch = "x86_64")]
    {
        let twins: Vec<_> = rules.iter().map(|(call, rules)| (call | TWIN, rules.clone())).collect();
        rules.extend(twins);
    }
    let arch: TargetArch = std::env::consts::ARCH.try_into()?;
    let refused = SeccompAction::Errno(libc::EPERM.unsigned_abs());
    SeccompFilter::new(rules, SeccompAction::Allow, refused, arch)?.try_into()
}

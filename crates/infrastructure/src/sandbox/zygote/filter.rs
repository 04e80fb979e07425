//! Which system calls a payload may make (`sandbox.md` 4.2, layer 11).

use seccompiler::{
    BpfProgram, Error, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
    sock_filter,
};
use std::{collections::BTreeMap, env::consts::ARCH};

/// Calls that change the machine, reach into other processes or are large surfaces of the kernel.
const REFUSED: &[libc::c_long] = &[
    // Namespaces and mounts.
    libc::SYS_unshare,
    libc::SYS_setns,
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_open_tree,
    libc::SYS_move_mount,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_mount_setattr,
    OPEN_TREE_ATTR,
    // Other processes.
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_process_madvise,
    libc::SYS_pidfd_getfd,
    libc::SYS_kcmp,
    // Ways past this filter, and surfaces.
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_keyctl,
    libc::SYS_name_to_handle_at,
    libc::SYS_open_by_handle_at,
    libc::SYS_fanotify_init,
    // The machine.
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_kexec_load,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_kexec_file_load,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_iopl,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_ioperm,
    libc::SYS_clock_settime,
    libc::SYS_clock_adjtime,
    libc::SYS_adjtimex,
    libc::SYS_settimeofday,
    libc::SYS_quotactl,
    libc::SYS_quotactl_fd,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_reboot,
    libc::SYS_acct,
    libc::SYS_syslog,
    libc::SYS_vhangup,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
];
/// open_tree_attr(2), Linux 6.15.
const OPEN_TREE_ATTR: libc::c_long = 467;
/// The flags of clone(2) that make a namespace.
const NEW_NAMESPACES: [libc::c_int; 8] = [
    libc::CLONE_NEWUSER,
    libc::CLONE_NEWPID,
    libc::CLONE_NEWNS,
    libc::CLONE_NEWNET,
    libc::CLONE_NEWIPC,
    libc::CLONE_NEWUTS,
    libc::CLONE_NEWCGROUP,
    0x80, // CLONE_NEWTIME
];
/// Requests of ioctl(2) that type into a terminal.
const TYPING: [u32; 2] = [0x5412 /* TIOCSTI */, 0x541C /* TIOCLINUX */];
const SOCKET_FAMILIES: [libc::c_int; 3] = [libc::AF_UNIX, libc::AF_INET, libc::AF_INET6];

/// The programs, in the order in which they are put in place.
#[derive(Debug)]
pub(super) struct Filter([BpfProgram; 2]);

impl Filter {
    pub(super) fn build() -> Result<Self, Error> {
        Ok(Self([numbers(), calls()?]))
    }

    /// Binds this process and what it starts, for good.
    pub(super) fn apply(&self) -> Result<(), Error> {
        self.0.iter().try_for_each(|program| seccompiler::apply_filter(program))
    }
}

/// Refuses clone3, whose flags a filter cannot read: the C library falls back to clone. Ends whoever uses the second
/// numbering of x86-64 (x32), which no other rule here would see.
fn numbers() -> BpfProgram {
    const LOAD: u16 = 0x20;
    const JUMP_IF_EQUAL: u16 = 0x15;
    const JUMP_IF_AT_LEAST: u16 = 0x35;
    const RETURN: u16 = 0x06;
    const FIRST_X32: u32 = 0x4000_0000;
    let refusal = libc::SECCOMP_RET_ERRNO | libc::ENOSYS.unsigned_abs();
    let clone3 = u32::try_from(libc::SYS_clone3).unwrap_or(u32::MAX);
    vec![
        sock_filter { code: LOAD, jt: 0, jf: 0, k: 0 },
        sock_filter { code: JUMP_IF_EQUAL, jt: 2, jf: 0, k: clone3 },
        sock_filter { code: JUMP_IF_AT_LEAST, jt: 2, jf: 0, k: FIRST_X32 },
        sock_filter { code: RETURN, jt: 0, jf: 0, k: libc::SECCOMP_RET_ALLOW },
        sock_filter { code: RETURN, jt: 0, jf: 0, k: refusal },
        sock_filter { code: RETURN, jt: 0, jf: 0, k: libc::SECCOMP_RET_KILL_PROCESS },
    ]
}

fn calls() -> Result<BpfProgram, Error> {
    let condition =
        |argument, operator, value| SeccompCondition::new(argument, SeccompCmpArgLen::Dword, operator, value);
    let mut rules: BTreeMap<i64, Vec<SeccompRule>> = REFUSED.iter().map(|call| (*call, Vec::new())).collect();
    let clone = NEW_NAMESPACES.into_iter().map(|flag| {
        let flag = u64::from(flag.unsigned_abs());
        Ok(SeccompRule::new(vec![condition(0, SeccompCmpOp::MaskedEq(flag), flag)?])?)
    });
    rules.insert(libc::SYS_clone, clone.collect::<Result<_, Error>>()?);
    let typing = TYPING
        .into_iter()
        .map(|request| Ok(SeccompRule::new(vec![condition(1, SeccompCmpOp::Eq, u64::from(request))?])?));
    rules.insert(libc::SYS_ioctl, typing.collect::<Result<_, Error>>()?);
    for call in [libc::SYS_socket, libc::SYS_socketpair] {
        let others = SOCKET_FAMILIES
            .into_iter()
            .map(|family| condition(0, SeccompCmpOp::Ne, u64::from(family.unsigned_abs())))
            .collect::<Result<Vec<_>, _>>()?;
        rules.insert(call, vec![SeccompRule::new(others)?]);
    }
    let refusal = SeccompAction::Errno(libc::EPERM.unsigned_abs());
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, refusal, ARCH.try_into()?)?;
    Ok(filter.try_into()?)
}

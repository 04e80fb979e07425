//! System calls that a payload may make.

use super::ConfinementLayers;
use seccompiler::{
    BpfProgram, Error, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
    sock_filter,
};
use std::{collections::BTreeMap, env::consts::ARCH};

/// Calls that change the machine, reach into other processes or expose large parts of the kernel.
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
    // Calls that bypass this filter, and large attack surfaces.
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
/// Calls that set the mode of a file, and the index of the argument with the mode.
const MODES: &[(libc::c_long, u8)] = &[
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_chmod, 1),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_creat, 1),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_mknod, 1),
    (libc::SYS_fchmod, 1),
    (libc::SYS_fchmodat, 2),
    (FCHMODAT2, 2),
    (libc::SYS_mknodat, 2),
];
/// Calls that may create a file, and the indices of the arguments with the flags and the mode.
const OPENINGS: &[(libc::c_long, u8, u8)] = &[
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_open, 1, 2),
    (libc::SYS_openat, 2, 3),
];
/// Mode bits that give a process the rights of a file's owner or group (setuid, setgid). They have no effect in the
/// sandbox, but they do outside of it.
const LENDING: [libc::mode_t; 2] = [libc::S_ISUID, libc::S_ISGID];
/// Flags of open(2) that create a file.
const MAKING: [libc::c_int; 2] = [libc::O_CREAT, libc::O_TMPFILE & !libc::O_DIRECTORY];
/// Calls that limit or slow down the process that their first argument names.
const ON_PROCESSES: &[libc::c_long] = &[
    libc::SYS_prlimit64,
    libc::SYS_sched_setaffinity,
    libc::SYS_sched_setattr,
    libc::SYS_sched_setparam,
    libc::SYS_sched_setscheduler,
    libc::SYS_migrate_pages,
    libc::SYS_move_pages,
];
/// Calls whose first argument decides what the second one names, with its values for a process and for all processes of
/// a user.
const ON_GROUPS: &[(libc::c_long, u64, u64)] = &[
    (libc::SYS_setpriority, 0 /* PRIO_PROCESS */, 2 /* PRIO_USER */),
    (libc::SYS_ioprio_set, 1 /* IOPRIO_WHO_PROCESS */, 3 /* IOPRIO_WHO_USER */),
];
/// Process id of the init in its run. The init has the payload's user, cleans up at the end, and is in none of the
/// groups that a payload can name.
const INIT: u64 = 1;
/// Process id that means the calling process, in the calls of [`ON_PROCESSES`] and [`ON_GROUPS`].
const ITSELF: u64 = 0;
/// Calls that reach resources shared with all programs in the same IPC namespace. These resources have no paths.
const SHARED: &[libc::c_long] = &[
    libc::SYS_shmget,
    libc::SYS_shmat,
    libc::SYS_shmctl,
    libc::SYS_semget,
    libc::SYS_semop,
    libc::SYS_semtimedop,
    libc::SYS_semctl,
    libc::SYS_msgget,
    libc::SYS_msgsnd,
    libc::SYS_msgrcv,
    libc::SYS_msgctl,
    libc::SYS_mq_open,
    libc::SYS_mq_unlink,
];
/// fchmodat2(2), Linux 6.6.
const FCHMODAT2: libc::c_long = 452;
/// open_tree_attr(2), Linux 6.15.
const OPEN_TREE_ATTR: libc::c_long = 467;
/// Flags of clone(2) that create a namespace.
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
/// Requests of ioctl(2) that insert input into a terminal.
const TYPING: [u32; 2] = [0x5412 /* TIOCSTI */, 0x541C /* TIOCLINUX */];
const SOCKET_FAMILIES: [libc::c_int; 3] = [libc::AF_UNIX, libc::AF_INET, libc::AF_INET6];
/// Bits of a socket type that are not flags, and the types of a pair of which each end can be connected to another
/// socket.
const SOCKET_TYPE: u64 = 0xf;
const UNBOUND_PAIRS: [libc::c_int; 2] = [libc::SOCK_DGRAM, libc::SOCK_RAW];

/// Number of calls in a part of the filter, which are compared one by one.
const CALLS_OF_A_PART: usize = 8;
/// BPF instructions (seccomp(2), linux/bpf_common.h). The first loads the number of the call.
const LOAD: u16 = 0x20;
const JUMP: u16 = 0x05;
const JUMP_IF_EQUAL: u16 = 0x15;
const JUMP_IF_AT_LEAST: u16 = 0x35;
const RETURN: u16 = 0x06;

/// Compiled filter. It is a single program, because the kernel takes long to install each one.
#[derive(Debug)]
pub(super) struct SyscallFilter(BpfProgram);

impl SyscallFilter {
    pub(super) fn build(layers: ConfinementLayers) -> Result<Self, Error> {
        Ok(Self(build_program(layers)?))
    }

    /// Applies the filter to this process and its children permanently.
    pub(super) fn apply(&self) -> Result<(), Error> {
        seccompiler::apply_filter(&self.0)
    }
}

/// Builds the checks of call numbers, followed by the checks of arguments.
fn build_program(layers: ConfinementLayers) -> Result<BpfProgram, Error> {
    let mut program = numbers();
    program.extend(calls(layers)?);
    Ok(program)
}

/// Rejects clone3 and openat2, whose flags a filter cannot read; the C library and programs fall back to clone and
/// openat. Kills a process that uses the second numbering of x86-64 (x32), which no other rule of the filter would
/// match. All other calls continue with the next instruction.
fn numbers() -> BpfProgram {
    const FIRST_X32: u32 = 0x4000_0000;
    let refusal = libc::SECCOMP_RET_ERRNO | libc::ENOSYS.unsigned_abs();
    let number = |call: libc::c_long| u32::try_from(call).unwrap_or(u32::MAX);
    vec![
        sock_filter { code: LOAD, jt: 0, jf: 0, k: 0 },
        sock_filter { code: JUMP_IF_EQUAL, jt: 3, jf: 0, k: number(libc::SYS_clone3) },
        sock_filter { code: JUMP_IF_EQUAL, jt: 2, jf: 0, k: number(libc::SYS_openat2) },
        sock_filter { code: JUMP_IF_AT_LEAST, jt: 2, jf: 0, k: FIRST_X32 },
        sock_filter { code: JUMP, jt: 0, jf: 0, k: 2 },
        sock_filter { code: RETURN, jt: 0, jf: 0, k: refusal },
        sock_filter { code: RETURN, jt: 0, jf: 0, k: libc::SECCOMP_RET_KILL_PROCESS },
    ]
}

fn calls(layers: ConfinementLayers) -> Result<BpfProgram, Error> {
    let mut rest = rules(layers)?;
    let mut parts = Vec::new();
    while let Some((first, _)) = rest.first_key_value() {
        let first = u32::try_from(*first).unwrap_or(u32::MAX);
        let after = rest.keys().nth(CALLS_OF_A_PART).copied().map(|call| rest.split_off(&call));
        parts.push((first, program(rest)?));
        rest = after.unwrap_or_default();
    }
    Ok(joined(&parts))
}

fn program(rules: BTreeMap<i64, Vec<SeccompRule>>) -> Result<BpfProgram, Error> {
    let refusal = SeccompAction::Errno(libc::EPERM.unsigned_abs());
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, refusal, ARCH.try_into()?)?;
    Ok(filter.try_into()?)
}

/// Returns the calls that are refused: with any arguments if there is no rule, otherwise with the arguments of one of
/// its rules.
fn rules(layers: ConfinementLayers) -> Result<BTreeMap<i64, Vec<SeccompRule>>, Error> {
    // Without namespaces only the filter keeps a run from the sockets, shared memory and processes of others.
    let (refused, families): (&[&[libc::c_long]], &[libc::c_int]) = match layers {
        ConfinementLayers::All => (&[REFUSED], &SOCKET_FAMILIES),
        ConfinementLayers::WithoutNamespaces => (&[REFUSED, SHARED, &[libc::SYS_socket]], &[libc::AF_UNIX]),
    };
    let mut rules: BTreeMap<i64, Vec<SeccompRule>> =
        refused.iter().copied().flatten().map(|call| (*call, Vec::new())).collect();
    // A call is refused if all conditions of one of its lists hold.
    let mut refuse = |call: libc::c_long, arguments: Vec<(u8, SeccompCmpOp, u64)>| {
        let condition =
            |(argument, operator, value)| SeccompCondition::new(argument, SeccompCmpArgLen::Dword, operator, value);
        let conditions = arguments.into_iter().map(condition).collect::<Result<_, _>>()?;
        rules.entry(call).or_default().push(SeccompRule::new(conditions)?);
        Ok::<_, Error>(())
    };
    let has = |argument, bit: u64| (argument, SeccompCmpOp::MaskedEq(bit), bit);
    let is = |argument, value| (argument, SeccompCmpOp::Eq, value);
    let is_other = |argument| match layers {
        ConfinementLayers::All => is(argument, INIT),
        ConfinementLayers::WithoutNamespaces => (argument, SeccompCmpOp::Ne, ITSELF),
    };
    for flag in NEW_NAMESPACES {
        refuse(libc::SYS_clone, vec![has(0, u64::from(flag.unsigned_abs()))])?;
    }
    for request in TYPING {
        refuse(libc::SYS_ioctl, vec![is(1, u64::from(request))])?;
    }
    let others = families.iter().map(|family| (0, SeccompCmpOp::Ne, u64::from(family.unsigned_abs())));
    let others: Vec<_> = others.collect();
    refuse(libc::SYS_socketpair, others.clone())?;
    match layers {
        ConfinementLayers::All => refuse(libc::SYS_socket, others)?,
        ConfinementLayers::WithoutNamespaces => {
            for kind in UNBOUND_PAIRS {
                let kind = (1, SeccompCmpOp::MaskedEq(SOCKET_TYPE), u64::from(kind.unsigned_abs()));
                refuse(libc::SYS_socketpair, vec![kind])?;
            }
        }
    }
    for bit in LENDING.map(u64::from) {
        for (call, mode) in MODES {
            refuse(*call, vec![has(*mode, bit)])?;
        }
        for (call, flags, mode) in OPENINGS {
            for flag in MAKING {
                refuse(*call, vec![has(*flags, u64::from(flag.unsigned_abs())), has(*mode, bit)])?;
            }
        }
    }
    for call in ON_PROCESSES {
        refuse(*call, vec![is_other(0)])?;
    }
    for (call, of_process, of_user) in ON_GROUPS {
        match layers {
            ConfinementLayers::All => refuse(*call, vec![is(0, *of_process), is(1, INIT)])?,
            ConfinementLayers::WithoutNamespaces => refuse(*call, vec![is_other(1)])?,
        }
        refuse(*call, vec![is(0, *of_user)])?;
    }
    Ok(rules)
}

/// Joins the programs for ranges of call numbers, in their order. Each part is complete and checks the architecture
/// first. The kernel evaluates a filter for each call number when it is installed, which takes long if the path through
/// the filter is long.
fn joined(parts: &[(u32, BpfProgram)]) -> BpfProgram {
    let mut program = vec![sock_filter { code: LOAD, jt: 0, jf: 0, k: 0 }];
    let mut start = parts.iter().map(|(_, part)| part.len()).sum::<usize>();
    for (place, (first, part)) in parts.iter().enumerate().skip(1).rev() {
        start -= part.len();
        // There are two instructions for each earlier part between this jump and the first part.
        let way = u32::try_from(start + 2 * (place - 1)).unwrap_or(u32::MAX);
        program.push(sock_filter { code: JUMP_IF_AT_LEAST, jt: 0, jf: 1, k: *first });
        program.push(sock_filter { code: JUMP, jt: 0, jf: 0, k: way });
    }
    program.extend(parts.iter().flat_map(|(_, part)| part).cloned());
    program
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the result of a program for a call, as the kernel evaluates it.
    fn answer(program: &BpfProgram, number: u32, arguments: [u64; 6]) -> u32 {
        let architecture = if cfg!(target_arch = "x86_64") { 0xc000_003e_u32 } else { 0xc000_00b7 };
        let mut data: Vec<u8> = [number, architecture, 0, 0].iter().flat_map(|word| word.to_ne_bytes()).collect();
        data.extend(arguments.iter().flat_map(|argument| argument.to_ne_bytes()));
        let (mut at, mut value) = (0, 0);
        loop {
            let sock_filter { code, jt, jf, k } = program[at].clone();
            let jump = |holds: bool| usize::from(if holds { jt } else { jf });
            at += 1;
            match code {
                LOAD => value = u32::from_ne_bytes(data[k as usize..][..4].try_into().unwrap()),
                0x54 => value &= k,
                JUMP => at += k as usize,
                JUMP_IF_EQUAL => at += jump(value == k),
                JUMP_IF_AT_LEAST => at += jump(value >= k),
                0x25 => at += jump(value > k),
                RETURN => return k,
                code => panic!("{code:#x}"),
            }
        }
    }

    #[test]
    fn clone3_and_openat2_are_unavailable_and_other_calls_follow_the_filter_rules() {
        let number = |call: libc::c_long| u32::try_from(call).unwrap();
        let missing = libc::SECCOMP_RET_ERRNO | libc::ENOSYS.unsigned_abs();
        for layers in [ConfinementLayers::All, ConfinementLayers::WithoutNamespaces] {
            let (whole, calls) = (build_program(layers).unwrap(), calls(layers).unwrap());
            for call in 0..1024 {
                let is_unread = [libc::SYS_clone3, libc::SYS_openat2].map(number).contains(&call);
                for value in [0, 0x1000_0000, u64::MAX] {
                    let expected = if is_unread { missing } else { answer(&calls, call, [value; 6]) };
                    assert_eq!(answer(&whole, call, [value; 6]), expected, "{call} with {value:#x}");
                }
            }
            for call in [0x4000_0000, u32::MAX] {
                assert_eq!(answer(&whole, call, [0; 6]), libc::SECCOMP_RET_KILL_PROCESS, "{call:#x}");
            }
        }
    }

    #[test]
    fn the_split_filter_decides_like_the_combined_filter() {
        for layers in [ConfinementLayers::All, ConfinementLayers::WithoutNamespaces] {
            let (parts, whole) = (calls(layers).unwrap(), program(rules(layers).unwrap()).unwrap());
            let (mut refused, mut steps) = (0, 0);
            for number in (0..1024).chain([0x4000_0000, u32::MAX]) {
                for value in [0, 1, 2, 0x40, 0x80, 0x1000_0000, 0x5412, 0o4755, 0o2000, u64::MAX] {
                    let expected = answer(&whole, number, [value; 6]);
                    assert_eq!(answer(&parts, number, [value; 6]), expected, "{number} with {value:#x}");
                    refused += u32::from(expected != libc::SECCOMP_RET_ALLOW);
                    steps += 1;
                }
            }
            assert!(refused > 500 && refused < steps / 2, "{refused} of {steps}");
        }
    }
}

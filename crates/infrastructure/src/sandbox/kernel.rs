//! Features of the running kernel.

use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, openat2};

/// Features of the kernel that the sandbox uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KernelFeatures {
    /// `true` if paths can be resolved beneath a folder without races (Linux 5.6).
    pub openat2: bool,
    /// ABI version of Landlock. `None` if the kernel does not support it.
    pub landlock_abi: Option<u32>,
    /// `true` if the settings of the system allow this user to create user namespaces.
    pub user_namespaces: bool,
}

/// Queries the kernel. Changes nothing.
pub fn features() -> KernelFeatures {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    KernelFeatures {
        openat2: openat2(CWD, ".", flags, Mode::empty(), ResolveFlags::BENEATH).is_ok(),
        landlock_abi: landlock_abi(),
        user_namespaces: setting("/proc/sys/user/max_user_namespaces").is_none_or(|most| most > 0)
            && setting("/proc/sys/kernel/unprivileged_userns_clone").is_none_or(|allowed| allowed > 0)
            && setting("/proc/sys/kernel/apparmor_restrict_unprivileged_userns")
                .is_none_or(|restricted| restricted == 0),
    }
}

/// Reads a number from the settings of the kernel. Returns `None` if this kernel has no such setting.
#[expect(clippy::disallowed_methods, reason = "a setting of the kernel, not a file of a user")]
fn setting(path: &str) -> Option<u64> {
    std::fs::read_to_string(path).ok()?.trim().parse().ok()
}

#[expect(unsafe_code, reason = "rustix has no call for Landlock's version")]
fn landlock_abi() -> Option<u32> {
    const ONLY_VERSION: libc::c_long = 1;
    // SAFETY: with a null attribute, size 0 and the flag for the version, the call touches no memory (landlock(7)).
    let version =
        unsafe { libc::syscall(libc::SYS_landlock_create_ruleset, std::ptr::null::<u8>(), 0_usize, ONLY_VERSION) };
    u32::try_from(version).ok().filter(|version| *version > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_of_the_test_machine_supports_openat2() {
        assert!(features().openat2);
    }
}

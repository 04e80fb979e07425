//! User that a payload runs as, which is never root.

use super::request::{StepFailure, StepResultExt};
use rustix::{
    io::Errno,
    process::{DumpableBehavior, getegid, geteuid, set_dumpable_behavior},
    thread::{CapabilitySet, CapabilitySets, capabilities, set_capabilities},
};
use std::{
    collections::HashMap,
    fs::{self, File},
    os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd},
};

/// User and group id of payloads that root starts. No distribution assigns it: it is between the ids of services and
/// `nobody`.
pub(in crate::sandbox) const DEDICATED_ID: u32 = 65_532;
const HIGHEST_ID: u32 = u32::MAX - 1;

/// The user and group of the payloads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PayloadUser {
    pub(super) uid: u32,
    pub(super) gid: u32,
    /// `true` if the runtime is root, so that its payloads have another user.
    pub(super) is_other: bool,
}

impl PayloadUser {
    /// Selects the user of the payloads: the user of this process, or a dedicated one if that is root.
    pub(super) fn choose() -> Result<Self, StepFailure> {
        let (uid, gid) = (geteuid().as_raw(), getegid().as_raw());
        if uid != 0 {
            return Ok(Self { uid, gid, is_other: false });
        }
        let step = || "give up the superuser's rights".to_owned();
        let own = capabilities(None).step(step)?;
        let needed = CapabilitySet::SYS_ADMIN | CapabilitySet::SETUID | CapabilitySet::SETGID;
        if own.effective.contains(needed) {
            return Ok(Self { uid: DEDICATED_ID, gid: DEDICATED_ID, is_other: true });
        }
        let reason = "this user is root without the capability CAP_SYS_ADMIN; run Toolstead as an ordinary user";
        Err(StepFailure::new(step(), reason))
    }

    /// Changes the init to the payload's user, in a user namespace that owns nothing: neither the mounts nor the
    /// network nor the processes of the run belong to it, so capabilities in it have no effect.
    pub(super) fn assume(&self) -> Result<(), StepFailure> {
        let step = || "become an unprivileged user".to_owned();
        if self.is_other {
            // SAFETY: plain system calls; this process has one thread.
            let done = unsafe {
                libc::setgroups(0, std::ptr::null()) == 0
                    && libc::setresgid(self.gid, self.gid, self.gid) == 0
                    && libc::setresuid(self.uid, self.uid, self.uid) == 0
            };
            if !done {
                return Err(std::io::Error::last_os_error()).step(step);
            }
        }
        unshare(libc::CLONE_NEWUSER).step(|| "make a user namespace".into())?;
        self.map_itself()
    }

    /// Maps this process's ids to themselves in the user namespace that it has just created.
    pub(super) fn map_itself(&self) -> Result<(), StepFailure> {
        let step = || "map this user into its namespace".to_owned();
        // A process that changed its user is not dumpable, and such a process cannot write its own maps.
        set_dumpable_behavior(DumpableBehavior::Dumpable).step(step)?;
        fs::write("/proc/self/setgroups", "deny").step(step)?;
        fs::write("/proc/self/uid_map", format!("{0} {0} 1", self.uid)).step(step)?;
        fs::write("/proc/self/gid_map", format!("{0} {0} 1", self.gid)).step(step)
    }
}

/// Calls unshare(2).
pub(super) fn unshare(flags: libc::c_int) -> std::io::Result<()> {
    // SAFETY: the call touches no memory; this process has one thread.
    if unsafe { libc::unshare(flags) } == 0 { Ok(()) } else { Err(std::io::Error::last_os_error()) }
}

/// Drops every capability permanently.
pub(super) fn drop_capabilities() -> Result<(), StepFailure> {
    let step = || "give up all capabilities".to_owned();
    bound_capabilities().step(step)?;
    clear_capabilities()
}

/// Clears the bounding set, so that no program can grant a capability.
fn bound_capabilities() -> std::io::Result<()> {
    for capability in 0..64 {
        // SAFETY: the call touches no memory.
        if unsafe { libc::prctl(libc::PR_CAPBSET_DROP, capability, 0, 0, 0) } != 0 {
            match std::io::Error::last_os_error() {
                // There are no more capabilities.
                error if error.raw_os_error() == Some(Errno::INVAL.raw_os_error()) => break,
                error => return Err(error),
            }
        }
    }
    Ok(())
}

/// Drops the capabilities that this process has. Programs cannot grant new ones, because this process sets
/// `no_new_privs`.
pub(super) fn clear_capabilities() -> Result<(), StepFailure> {
    let step = || "give up all capabilities".to_owned();
    rustix::thread::clear_ambient_capability_set().step(step)?;
    let none = CapabilitySet::empty();
    set_capabilities(None, CapabilitySets { effective: none, permitted: none, inheritable: none }).step(step)?;
    rustix::thread::set_no_new_privs(true).step(step)
}

/// User namespaces whose id maps show the files of an owner as the payload's own.
#[derive(Debug, Default)]
pub(super) struct IdMapNamespaces(HashMap<(u32, u32), OwnedFd>);

impl IdMapNamespaces {
    /// Returns the number of maps. None is ever closed.
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns the descriptors of the namespaces.
    pub(super) fn descriptors(&self) -> impl Iterator<Item = RawFd> {
        self.0.values().map(AsRawFd::as_raw_fd)
    }

    pub(super) fn get(&self, owner: (u32, u32)) -> Option<BorrowedFd<'_>> {
        self.0.get(&owner).map(AsFd::as_fd)
    }

    /// Creates the map for an owner, if one is needed.
    pub(super) fn provide(&mut self, identity: &PayloadUser, owner: (u32, u32)) -> Result<(), StepFailure> {
        if !identity.is_other || owner == (identity.uid, identity.gid) || self.0.contains_key(&owner) {
            return Ok(());
        }
        let step = || "make a map of ids".to_owned();
        // SAFETY: this process has one thread, so that the child finds no lock held.
        let child = unsafe { libc::fork() };
        if child == 0 {
            let made = unshare(libc::CLONE_NEWUSER).is_ok();
            // SAFETY: both calls touch no memory. The child stops, and never runs again.
            unsafe {
                if made {
                    libc::raise(libc::SIGSTOP);
                }
                libc::_exit(1)
            }
        }
        if child < 0 {
            return Err(std::io::Error::last_os_error()).step(step);
        }
        let mut status = 0;
        // SAFETY: the status is this function's own.
        unsafe { libc::waitpid(child, &raw mut status, libc::WUNTRACED) };
        let made = if libc::WIFSTOPPED(status) {
            let write = |name: &str, owner, own| fs::write(format!("/proc/{child}/{name}"), id_map(owner, own));
            write("uid_map", owner.0, identity.uid)
                .and_then(|()| write("gid_map", owner.1, identity.gid))
                .and_then(|()| File::open(format!("/proc/{child}/ns/user")))
        } else {
            Err(std::io::Error::other("no user namespace can be made"))
        };
        // SAFETY: the child has not been waited for, so that the id is still its own.
        unsafe {
            libc::kill(child, libc::SIGKILL);
            libc::waitpid(child, &raw mut status, 0);
        }
        self.0.insert(owner, made.step(step)?.into());
        Ok(())
    }
}

/// Returns an id map that shows `owner` as `own` and leaves all other ids unchanged.
fn id_map(owner: u32, own: u32) -> String {
    if owner == own {
        return format!("0 0 {}", HIGHEST_ID);
    }
    let mut map = format!("{owner} {own} 1\n");
    let (low, high) = (owner.min(own), owner.max(own));
    for (first, end) in [(0, low), (low + 1, high), (high.saturating_add(1), HIGHEST_ID)] {
        if first < end {
            map.push_str(&format!("{first} {first} {}\n", end - first));
        }
    }
    map
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_map_replaces_one_id_and_keeps_the_others() {
        for (owner, expected) in [
            (0, "0 10 1\n1 1 9\n11 11 4294967283\n"),
            (9, "9 10 1\n0 0 9\n11 11 4294967283\n"),
            (20, "20 10 1\n0 0 10\n11 11 9\n21 21 4294967273\n"),
        ] {
            assert_eq!(id_map(owner, 10), expected);
        }
        assert_eq!(id_map(10, 10), "0 0 4294967294");
    }
}

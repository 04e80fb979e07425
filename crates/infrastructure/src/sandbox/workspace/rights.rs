//! Access rights of a file that replaces another one: the same as before, or fewer.

use crate::sandbox::workspace::{file_handle::FileHandle, resolve::proc_link};
use rustix::{
    fs::{Gid, Uid, XattrFlags, fchown, fremovexattr, fsetxattr, fstat, getxattr, listxattr},
    io::Errno,
};
use std::fs::File;

/// Extended attribute with the capabilities that a program gets when it is executed. The kernel removes it when the
/// content changes, so the new file does not get it either.
const RIGHTS_OF_THE_CONTENT: &[u8] = b"security.capability";
/// Access list (POSIX ACL). A new file inherits one from its folder.
const ACCESS_LIST: &str = "system.posix_acl_access";
/// Maximum size of an extended attribute that is copied, which is the limit of Linux, in bytes.
const MAX_ATTRIBUTE_BYTES: usize = 64 << 10;

/// Rights that a file lost when it was replaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LostRights {
    /// `true` if the file belonged to another user before, and that could not be restored.
    pub owner_changed: bool,
    /// `true` if the file belongs to another group now or has lost its access list, so that the access they granted is
    /// gone.
    pub group_changed: bool,
}

impl LostRights {
    /// Returns the permission bits that remain of the old ones. If the group has changed, the new group gets none of
    /// its bits, and the members of the old group only have the rights of all others.
    pub(super) fn mode(self, old: u32) -> u32 {
        let (group, others) = ((old >> 3) & 0o7, old & 0o7);
        if self.group_changed { (old & 0o700) | (group & others) } else { old }
    }
}

/// Copies owner, group, access list and extended attributes of the old file to the new one, as far as the system
/// permits.
///
/// # Errors
/// The error of the system if the new file has an inherited access list that cannot be removed.
pub(super) fn keep(file: &File, existing: &FileHandle) -> rustix::io::Result<LostRights> {
    let (owner_changed, group_changed) = keep_owner(file, existing)?;
    let keeps_list = keep_attributes(file, existing)?;
    Ok(LostRights { owner_changed, group_changed: group_changed || !keeps_list })
}

/// Gives the new file the owner and the group of the old one, as far as the system permits. Returns `true` for the
/// owner, and `true` for the group, if it is still a different one.
fn keep_owner(file: &File, existing: &FileHandle) -> rustix::io::Result<(bool, bool)> {
    let (ours, theirs) = (fstat(file)?, fstat(existing.handle())?);
    let (other_owner, other_group) = (ours.st_uid != theirs.st_uid, ours.st_gid != theirs.st_gid);
    let group = Some(Gid::from_raw(theirs.st_gid));
    if !(other_owner || other_group) || fchown(file, Some(Uid::from_raw(theirs.st_uid)), group).is_ok() {
        return Ok((false, false));
    }
    Ok((other_owner, other_group && fchown(file, None, group).is_err()))
}

/// Copies extended attributes, including the access list, and removes a list that only the new file has. Returns
/// `false` if the access list could not be preserved.
fn keep_attributes(file: &File, existing: &FileHandle) -> rustix::io::Result<bool> {
    let source = proc_link(existing.handle());
    let mut names = vec![0; MAX_ATTRIBUTE_BYTES];
    let (length, mut keeps_list) = match listxattr(&source, &mut names) {
        Ok(length) => (length, true),
        Err(errno) => (0, errno == Errno::NOTSUP),
    };
    let (mut has_list, mut value) = (false, vec![0; MAX_ATTRIBUTE_BYTES]);
    for name in names[..length].split(|byte| *byte == 0) {
        if name.is_empty() || name == RIGHTS_OF_THE_CONTENT {
            continue;
        }
        let copied = getxattr(&source, name, &mut value)
            .and_then(|length| fsetxattr(file, name, &value[..length], XattrFlags::empty()));
        // Other attributes may be reserved for the system. The file does not require them.
        if name == ACCESS_LIST.as_bytes() {
            has_list = copied.is_ok();
            keeps_list &= has_list;
        }
    }
    if !has_list {
        match fremovexattr(file, ACCESS_LIST) {
            Ok(()) | Err(Errno::NODATA | Errno::NOTSUP) => {}
            Err(errno) => return Err(errno),
        }
    }
    Ok(keeps_list)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_change_never_grants_more_access_to_a_file() {
        let check = |old: u32, new: u32| {
            assert_eq!(LostRights { group_changed: true, ..LostRights::default() }.mode(old), new, "{old:o}");
            assert_eq!(LostRights { owner_changed: true, ..LostRights::default() }.mode(old), old);
        };
        check(0o640, 0o600);
        check(0o664, 0o604);
        // The old group had fewer rights than all others, and its members have those of all others now.
        check(0o604, 0o600);
        check(0o775, 0o705);
    }
}

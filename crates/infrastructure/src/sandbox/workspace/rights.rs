//! Who may do what with a file that takes the place of another one: the same as before, or less.

use crate::sandbox::workspace::{found::Found, resolve::proc_link};
use rustix::{
    fs::{Gid, Uid, XattrFlags, fchown, fremovexattr, fsetxattr, fstat, getxattr, listxattr},
    io::Errno,
};
use std::fs::File;

/// Extended attributes that grant the file itself rights. A change of the content takes them away, as the kernel does.
const RIGHTS_OF_THE_CONTENT: &[u8] = b"security.capability";
/// The access list (POSIX ACL). A new file inherits one from its folder.
const ACCESS_LIST: &str = "system.posix_acl_access";
/// The largest extended attribute that is kept, Linux's own limit.
const MAX_ATTRIBUTE_BYTES: usize = 64 << 10;

/// Which rights a file lost when it was replaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Rights {
    /// Whether it belonged to another user before, and could not be given back.
    pub owner_changed: bool,
    /// Whether it belongs to another group now, or has lost its access list: what these allowed is not allowed any more.
    pub group_changed: bool,
}

impl Rights {
    /// The permission bits, of those that the old file had. The bits of a group that is not the same are nobody's; and
    /// whoever was in the old group counts among all others now.
    pub(super) fn mode(self, old: u32) -> u32 {
        let (group, others) = ((old >> 3) & 0o7, old & 0o7);
        if self.group_changed { (old & 0o700) | (group & others) } else { old }
    }
}

/// Gives the new file owner, group, access list and extended attributes of the one that it is to replace, as far as the
/// system lets us.
///
/// # Errors
/// The system's, when the new file has an inherited access list that cannot be taken away.
pub(super) fn keep(file: &File, existing: &Found) -> rustix::io::Result<Rights> {
    let (owner_changed, group_changed) = keep_owner(file, existing)?;
    let keeps_list = keep_attributes(file, existing)?;
    Ok(Rights { owner_changed, group_changed: group_changed || !keeps_list })
}

/// Whether owner and group are others than before.
fn keep_owner(file: &File, existing: &Found) -> rustix::io::Result<(bool, bool)> {
    let (ours, theirs) = (fstat(file)?, fstat(existing.handle())?);
    let (other_owner, other_group) = (ours.st_uid != theirs.st_uid, ours.st_gid != theirs.st_gid);
    let group = Some(Gid::from_raw(theirs.st_gid));
    if !(other_owner || other_group) || fchown(file, Some(Uid::from_raw(theirs.st_uid)), group).is_ok() {
        return Ok((false, false));
    }
    Ok((other_owner, other_group && fchown(file, None, group).is_err()))
}

/// Copies extended attributes, the access list among them; false if that could not be kept.
fn keep_attributes(file: &File, existing: &Found) -> rustix::io::Result<bool> {
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
        // Others belong to the system alone; the file is as good without.
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
    fn a_file_of_another_group_is_never_opened_to_more() {
        let check = |old: u32, new: u32| {
            assert_eq!(Rights { group_changed: true, ..Rights::default() }.mode(old), new, "{old:o}");
            assert_eq!(Rights { owner_changed: true, ..Rights::default() }.mode(old), old);
        };
        check(0o640, 0o600);
        check(0o664, 0o604);
        // The old group had less than all others, and is one of these now.
        check(0o604, 0o600);
        check(0o775, 0o705);
    }
}

//! System calls that build a tree of mounts, by descriptor and never by name.

use rustix::{
    fs::{CWD, Mode, OFlags, ResolveFlags, openat2},
    io::Errno,
    mount::{
        FsMountFlags, FsOpenFlags, MountAttrFlags, MoveMountFlags, OpenTreeFlags, fsconfig_create, fsconfig_set_string,
        fsmount, fsopen, move_mount, open_tree,
    },
};
use std::{
    io,
    os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd},
    path::Path,
};

/// `struct mount_attr` of mount_setattr(2).
#[repr(C)]
struct MountAttr {
    set: u64,
    clear: u64,
    propagation: u64,
    user_namespace: u64,
}

/// Restrictions of a mount (`MOUNT_ATTR_*` flags).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct MountRestrictions(u64);

impl MountRestrictions {
    pub(super) const READ_ONLY: Self = Self(0x1 | 0x2 | 0x4);
    pub(super) const WRITABLE: Self = Self(0x2 | 0x4);
    pub(super) const READ_ONLY_DEVICES: Self = Self(0x1 | 0x2 | 0x8);
}

const ATTRIBUTE_ID_MAP: u64 = 0x0010_0000;

/// Opens an absolute path. Fails if any part of it is a symbolic link.
pub(super) fn open_exactly(path: &Path) -> io::Result<OwnedFd> {
    let resolve = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    openat2(CWD, path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty(), resolve).map_err(explained)
}

/// Opens a path beneath a folder. Every part of the path except the last must be a folder, and none may be a link.
pub(super) fn open_beneath(folder: impl AsFd, path: &Path, flags: OFlags) -> io::Result<OwnedFd> {
    let resolve = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS | ResolveFlags::BENEATH;
    let path = path.strip_prefix("/").unwrap_or(path);
    let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
    for _ in 0..64 {
        match openat2(&folder, path, flags | OFlags::CLOEXEC, Mode::empty(), resolve) {
            Err(Errno::AGAIN) => {}
            opened => return opened.map_err(explained),
        }
    }
    Err(Errno::AGAIN.into())
}

fn explained(error: Errno) -> io::Error {
    match error {
        Errno::LOOP => io::Error::new(io::ErrorKind::InvalidInput, "a part of the path is a symbolic link"),
        error => error.into(),
    }
}

/// Copies the tree of mounts at a path handle. The copy is not attached.
pub(super) fn copy(tree: impl AsFd) -> io::Result<OwnedFd> {
    let flags = OpenTreeFlags::OPEN_TREE_CLONE
        | OpenTreeFlags::OPEN_TREE_CLOEXEC
        | OpenTreeFlags::AT_EMPTY_PATH
        | OpenTreeFlags::AT_RECURSIVE;
    Ok(open_tree(tree, "", flags)?)
}

/// Restricts a tree of mounts, and detaches it from mount propagation of the machine: later mounts would have no
/// restrictions.
pub(super) fn bar(tree: impl AsFd, bars: MountRestrictions) -> io::Result<()> {
    let attributes = MountAttr { set: bars.0, clear: 0, propagation: libc::MS_PRIVATE, user_namespace: 0 };
    set_attributes(tree.as_fd(), true, &attributes)
}

/// Restricts one mount, without those below it.
pub(super) fn bar_alone(mount: impl AsFd, bars: MountRestrictions) -> io::Result<()> {
    let attributes = MountAttr { set: bars.0, clear: 0, propagation: 0, user_namespace: 0 };
    set_attributes(mount.as_fd(), false, &attributes)
}

/// Shows the files of a mount with the ids to which a user namespace maps their owners. Mounts below it are unchanged.
pub(super) fn map_ids(tree: impl AsFd, namespace: BorrowedFd<'_>) -> io::Result<()> {
    let user_namespace = u64::try_from(namespace.as_raw_fd()).map_err(io::Error::other)?;
    set_attributes(tree.as_fd(), false, &MountAttr { set: ATTRIBUTE_ID_MAP, clear: 0, propagation: 0, user_namespace })
}

fn set_attributes(tree: BorrowedFd<'_>, is_recursive: bool, attributes: &MountAttr) -> io::Result<()> {
    let flags = libc::AT_EMPTY_PATH | if is_recursive { libc::AT_RECURSIVE } else { 0 };
    // SAFETY: the structure belongs to this function and outlives the call, and its size is passed.
    let done = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            tree.as_raw_fd(),
            c"".as_ptr(),
            flags,
            std::ptr::from_ref(attributes),
            size_of::<MountAttr>(),
        )
    };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Attaches a tree to a path handle.
pub(super) fn attach(tree: impl AsFd, place: impl AsFd) -> io::Result<()> {
    let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH | MoveMountFlags::MOVE_MOUNT_T_EMPTY_PATH;
    Ok(move_mount(tree, "", place, "", flags)?)
}

/// Creates a file system in memory for at most this number of bytes and entries (files and folders). It is not
/// attached.
pub(super) fn memory(bytes: u64, entries: u64, mode: &str) -> io::Result<OwnedFd> {
    let context = fsopen("tmpfs", FsOpenFlags::FSOPEN_CLOEXEC)?;
    fsconfig_set_string(&context, "size", bytes.to_string())?;
    fsconfig_set_string(&context, "nr_inodes", entries.to_string())?;
    fsconfig_set_string(&context, "mode", mode)?;
    fsconfig_create(&context)?;
    let attributes = MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NODEV;
    Ok(fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, attributes)?)
}

/// Creates the `/proc` of this process namespace. It is not attached.
pub(super) fn processes() -> io::Result<OwnedFd> {
    let context = fsopen("proc", FsOpenFlags::FSOPEN_CLOEXEC)?;
    fsconfig_create(&context)?;
    let attributes =
        MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NODEV | MountAttrFlags::MOUNT_ATTR_NOEXEC;
    Ok(fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, attributes)?)
}

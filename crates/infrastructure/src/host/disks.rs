//! The mounted file systems.

use crate::host::system_file;
use rustix::fs::{StatVfsMountFlags, statvfs};
use std::{
    ffi::OsString,
    io,
    os::unix::ffi::OsStringExt,
    path::{Path, PathBuf},
};

/// Names of file systems that are not on disks: in memory, in the kernel, layered, or in an image that never changes.
const NO_DISKS: &[&str] = &[
    "autofs",
    "binfmt_misc",
    "bpf",
    "cgroup",
    "cgroup2",
    "configfs",
    "debugfs",
    "devpts",
    "devtmpfs",
    "efivarfs",
    "fusectl",
    "hugetlbfs",
    "mqueue",
    "nsfs",
    "overlay",
    "proc",
    "pstore",
    "ramfs",
    "rpc_pipefs",
    "securityfs",
    "selinuxfs",
    "squashfs",
    "sysfs",
    "tmpfs",
    "tracefs",
];
/// Maximum number of mounts that are returned. A machine with containers may have thousands.
const MAX_MOUNTS: usize = 256;

/// A mounted file system.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mount {
    /// Path of the mount.
    pub mount_point: PathBuf,
    /// Source of the mount: a device, or a folder of a server.
    pub source: String,
    /// Name of the file system, such as `ext4`.
    pub file_system: String,
    device: String,
}

/// Space in a file system, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileSystemSpace {
    /// Total size.
    pub total_bytes: u64,
    /// Unused space.
    pub free_bytes: u64,
    /// Unused space that this user may use.
    pub available_bytes: u64,
    /// `true` if the file system is read-only.
    pub read_only: bool,
}

/// Returns the mounted file systems, sorted by path, at most 256. File systems that are not on disks are included only
/// if `all` is set; otherwise a disk that is mounted several times is listed once, at its shortest path. Blocks
/// briefly.
pub fn mounts(all: bool) -> Vec<Mount> {
    parse(&system_file("/proc/self/mountinfo").unwrap_or_default(), all)
}

impl Mount {
    /// Returns the space in the file system. Blocks, without a limit if a server on the network does not respond.
    ///
    /// # Errors
    /// The error of the system.
    pub fn space(&self) -> io::Result<FileSystemSpace> {
        let found = statvfs(&self.mount_point)?;
        let bytes = |blocks: u64| blocks.saturating_mul(found.f_frsize);
        Ok(FileSystemSpace {
            total_bytes: bytes(found.f_blocks),
            free_bytes: bytes(found.f_bfree),
            available_bytes: bytes(found.f_bavail),
            read_only: found.f_flag.contains(StatVfsMountFlags::RDONLY),
        })
    }
}

/// Parses `/proc/self/mountinfo` (`proc_pid_mountinfo(5)`).
fn parse(mount_info: &str, all: bool) -> Vec<Mount> {
    let mut mounts: Vec<Mount> = mount_info.lines().filter_map(parse_line).collect();
    if !all {
        // The root of a container is an overlay, which is the disk for its programs.
        mounts.retain(|mount| {
            !NO_DISKS.contains(&&*mount.file_system)
                || (mount.file_system == "overlay" && mount.mount_point == Path::new("/"))
        });
        mounts.sort_by_key(|mount| mount.mount_point.components().count());
        let mut devices = std::collections::HashSet::new();
        mounts.retain(|mount| devices.insert(mount.device.clone()));
    }
    mounts.sort_by(|a, b| a.mount_point.cmp(&b.mount_point));
    mounts.truncate(MAX_MOUNTS);
    mounts
}

fn parse_line(line: &str) -> Option<Mount> {
    let (mount, system) = line.split_once(" - ")?;
    let mut mount = mount.split(' ').skip(2);
    let (device, point) = (mount.next()?, mount.nth(1)?);
    let mut system = system.split(' ');
    let (file_system, source) = (system.next()?, system.next()?);
    Some(Mount {
        mount_point: OsString::from_vec(unescaped(point)).into(),
        source: String::from_utf8_lossy(&unescaped(source)).into_owned(),
        file_system: file_system.into(),
        device: device.into(),
    })
}

/// Replaces escapes: blanks and similar characters are written as a backslash and three octal digits.
fn unescaped(text: &str) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((byte, tail)) = rest.split_first() {
        let digits = tail.get(..3).and_then(|digits| std::str::from_utf8(digits).ok());
        let escaped = digits.filter(|_| *byte == b'\\').and_then(|digits| u8::from_str_radix(digits, 8).ok());
        bytes.push(escaped.unwrap_or(*byte));
        rest = if escaped.is_some() { &tail[3..] } else { tail };
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOUNT_INFO: &str = "\
22 27 0:20 / /proc rw,nosuid shared:5 - proc proc rw
27 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
31 27 8:1 /srv /mnt/again rw,relatime shared:1 - ext4 /dev/sda1 rw
35 27 8:17 / /mnt/my\\040disk rw master:1 - vfat /dev/sdb1 rw
36 27 0:44 / /run rw - tmpfs tmpfs rw
not a mount
";

    #[test]
    fn each_disk_is_listed_once_and_other_file_systems_only_on_request() {
        let shown = |all| {
            let one = |mount: Mount| format!("{} {} {}", mount.mount_point.display(), mount.file_system, mount.source);
            parse(MOUNT_INFO, all).into_iter().map(one).collect::<Vec<_>>()
        };
        assert_eq!(shown(false), ["/ ext4 /dev/sda1", "/mnt/my disk vfat /dev/sdb1"]);
        assert_eq!(shown(true).len(), 5);
    }

    #[test]
    fn invalid_escapes_are_left_unchanged() {
        assert_eq!(unescaped("a\\040b\\0x\\999\\"), b"a b\\0x\\999\\");
        assert_eq!(unescaped("\\04ü"), "\\04ü".as_bytes());
    }

    #[test]
    fn the_root_file_system_is_mounted_and_reports_its_space() {
        let root = mounts(true).into_iter().find(|mount| mount.mount_point == Path::new("/")).unwrap();
        assert!(root.space().is_ok());
    }
}

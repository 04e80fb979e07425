//! Places where this process may create control groups.

use super::{text, write};
use std::{
    ffi::OsString,
    fs,
    os::{fd::OwnedFd, unix::ffi::OsStringExt},
    path::{Component, Path, PathBuf},
};

/// Name of the file with the controllers that are available to the groups below a group.
const OFFERED: &str = "cgroup.controllers";
/// Name of the file with the controllers that are enabled for the groups below a group.
pub(super) const ENABLED: &str = "cgroup.subtree_control";
/// Controllers that limit a run.
const WANTED: [&str; 2] = ["memory", "pids"];
/// Folder that exists if systemd manages the hierarchy of control groups (sd_booted(3)).
const OF_SYSTEMD: &str = "/run/systemd/system";
/// Extended attributes that systemd sets to `1` on a control group that it delegates to a service (`Delegate=yes`).
/// Only root can read the second one.
const MARKS_OF_DELEGATION: [&str; 2] = ["user.delegate", "trusted.delegate"];

/// Control group in which other groups could be created.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ParentGroup {
    pub(super) path: PathBuf,
    /// `true` if this process may enable controllers for the groups in this one; `false` for a group that systemd
    /// manages itself.
    can_enable_controllers: bool,
}

impl ParentGroup {
    /// Returns the groups in which this process could create others, the better one first: the group around its own,
    /// because a group with processes cannot limit groups below it, and its own group, which can if it is the root of
    /// the hierarchy. The former is left out if controllers may not be enabled in it.
    pub(super) fn all() -> Result<Vec<Self>, String> {
        let read = |path| fs::read_to_string(path).map_err(|error| format!("`{path}` cannot be read: {error}"));
        let (own, mounts) = (read("/proc/self/cgroup")?, read("/proc/self/mountinfo")?);
        let is_kept = Path::new(OF_SYSTEMD).is_dir();
        Self::among(&own, &mounts, |path| !is_kept || is_delegated(path))
    }

    fn among(own: &str, mounts: &str, may_be_divided: impl Fn(&Path) -> bool) -> Result<Vec<Self>, String> {
        let own = own.lines().find_map(|line| line.strip_prefix("0::"));
        let own = Path::new(own.ok_or("this process is not in a cgroup of version 2")?);
        if own.components().any(|part| part == Component::ParentDir) {
            return Err("the cgroup of this process is not visible here".into());
        }
        let mut mounts = mounts.lines().filter_map(mount).peekable();
        mounts.peek().ok_or("no file system of the type `cgroup2` is mounted")?;
        let found = mounts.find_map(|(root, place)| Some((own.strip_prefix(root).ok()?.to_owned(), place)));
        let (rest, top) = found.ok_or("the cgroup of this process is not visible here")?;
        // Removes the trailing slash that joining an empty path leaves.
        let below = |rest: &Path| top.components().chain(rest.components()).collect::<PathBuf>();
        let around = rest.parent().map(below);
        let place = |path: PathBuf| Self { can_enable_controllers: may_be_divided(&path), path };
        // If controllers may not be enabled there, the surrounding group has no advantage over the process's own.
        let around = around.map(place).filter(|around| around.can_enable_controllers);
        Ok(around.into_iter().chain([place(below(&rest))]).collect())
    }

    /// Enables the controllers that limit a run for the groups in this one, as far as possible. `folder` is the open
    /// folder of this group. Returns the reason if one is missing.
    pub(super) fn enable_controllers(&self, folder: &OwnedFd) -> Option<String> {
        if self.can_enable_controllers {
            return enable(folder).map(|reason| format!("in `{}` {reason}", self.path.display()));
        }
        Some(format!("systemd has not delegated `{}`", self.path.display()))
    }
}

/// Enables the controllers that limit a run for the groups below a group. Returns the reason if one is missing.
pub(super) fn enable(folder: &OwnedFd) -> Option<String> {
    let (Ok(offered), Ok(enabled)) = (text(folder, OFFERED), text(folder, ENABLED)) else {
        return Some(format!("`{OFFERED}` or `{ENABLED}` cannot be read"));
    };
    let has = |names: &str, name: &str| names.split_whitespace().any(|one| one == name);
    let mut lacks = None;
    for name in WANTED.into_iter().filter(|name| !has(&enabled, name)) {
        let fault = if has(&offered, name) {
            write(folder, ENABLED, &format!("+{name}")).err().map(|error| error.to_string())
        } else {
            Some(format!("there is no `{name}`"))
        };
        lacks = lacks.or(fault);
    }
    lacks
}

/// Parses a line of mountinfo (proc_pid_mountinfo(5)). Returns the root of the mount in the hierarchy and the mount
/// point, if the line describes a cgroup v2 mount.
fn mount(line: &str) -> Option<(PathBuf, PathBuf)> {
    let (mount, kind) = line.split_once(" - ")?;
    if kind.split(' ').next() != Some("cgroup2") {
        return None;
    }
    let mut fields = mount.split(' ').skip(3);
    Some((unescaped(fields.next()?), unescaped(fields.next()?)))
}

/// Replaces escapes: spaces and similar characters are written as three octal digits.
fn unescaped(text: &str) -> PathBuf {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        let digits = after.first_chunk::<3>().filter(|_| first == b'\\');
        let escaped = digits.and_then(|digits| u8::from_str_radix(std::str::from_utf8(digits).ok()?, 8).ok());
        bytes.push(escaped.unwrap_or(first));
        rest = if escaped.is_some() { &after[3..] } else { after };
    }
    OsString::from_vec(bytes).into()
}

fn is_delegated(path: &Path) -> bool {
    MARKS_OF_DELEGATION.iter().any(|mark| {
        let mut value = [0; 2];
        rustix::fs::getxattr(path, *mark, &mut value).is_ok_and(|length| value.get(..length) == Some(b"1"))
    })
}

#[cfg(test)]
mod tests;

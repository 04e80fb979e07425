//! Where this process may make control groups.

use super::{text, write};
use std::{
    ffi::OsString,
    fs,
    os::{fd::OwnedFd, unix::ffi::OsStringExt},
    path::{Component, Path, PathBuf},
};

/// What the groups below a group may have, and what they have.
const OFFERED: &str = "cgroup.controllers";
pub(super) const ENABLED: &str = "cgroup.subtree_control";
/// What bounds a run, by the names that the kernel gives.
const WANTED: [&str; 2] = ["memory", "pids"];
/// Is there where systemd keeps the tree (sd_booted(3)).
const OF_SYSTEMD: &str = "/run/systemd/system";
/// Set to `1` by systemd on a group that it leaves to the service in it (`Delegate=yes`); the second one only the superuser
/// can read.
const MARKS_OF_DELEGATION: [&str; 2] = ["user.delegate", "trusted.delegate"];

/// A group in which others could be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct GroupPlace {
    pub(super) path: PathBuf,
    /// Whether what its groups have may be decided here: not in what systemd keeps for itself.
    may_be_divided: bool,
}

impl GroupPlace {
    /// The places of this process: the group around its own, since no group with processes in it can bound those below it,
    /// and the own one, which can where it is the topmost.
    pub(super) fn all() -> Result<Vec<Self>, String> {
        let read = |path| fs::read_to_string(path).map_err(|error| format!("`{path}` cannot be read: {error}"));
        let (own, mounts) = (read("/proc/self/cgroup")?, read("/proc/self/mountinfo")?);
        let is_kept = Path::new(OF_SYSTEMD).is_dir();
        Self::among(&own, &mounts, |path| !is_kept || is_delegated(path))
    }

    fn among(own: &str, mounts: &str, may_be_divided: impl Fn(&Path) -> bool) -> Result<Vec<Self>, String> {
        let own = own.lines().find_map(|line| line.strip_prefix("0::"));
        let own = Path::new(own.ok_or("this process is in no group of the second version")?);
        if own.components().any(|part| part == Component::ParentDir) {
            return Err("this process's own group is not seen here".into());
        }
        let mut mounts = mounts.lines().filter_map(mount).peekable();
        mounts.peek().ok_or("no file system of the type `cgroup2` is mounted")?;
        let found = mounts.find_map(|(root, place)| Some((own.strip_prefix(root).ok()?.to_owned(), place)));
        let (rest, top) = found.ok_or("this process's own group is not seen here")?;
        // Without the slash at its end that a joined empty path leaves.
        let below = |rest: &Path| top.components().chain(rest.components()).collect::<PathBuf>();
        let around = rest.parent().map(below);
        let place = |path: PathBuf| Self { may_be_divided: may_be_divided(&path), path };
        // Without a say there, the group around the own one has nothing that the own one has not.
        let around = around.map(place).filter(|around| around.may_be_divided);
        Ok(around.into_iter().chain([place(below(&rest))]).collect())
    }

    /// Has the groups made here bounds, as far as that can be had. Says why not, where something is missing.
    pub(super) fn divide(&self, folder: &OwnedFd) -> Option<String> {
        if self.may_be_divided {
            return enable(folder).map(|reason| format!("in `{}` {reason}", self.path.display()));
        }
        Some(format!("systemd has not delegated `{}`", self.path.display()))
    }
}

/// Gives the groups below a group what bounds a run. Says why not, where something is missing.
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

/// A line of mountinfo (proc_pid_mountinfo(5)), if it tells of a mount of the second version: what of the tree is mounted,
/// and where.
fn mount(line: &str) -> Option<(PathBuf, PathBuf)> {
    let (mount, kind) = line.split_once(" - ")?;
    if kind.split(' ').next() != Some("cgroup2") {
        return None;
    }
    let mut fields = mount.split(' ').skip(3);
    Some((unescaped(fields.next()?), unescaped(fields.next()?)))
}

/// Spaces and their like are written as three octal digits.
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

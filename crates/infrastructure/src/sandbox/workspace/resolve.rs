//! From a path to a handle and a real path, beneath the roots and nowhere else.

use crate::sandbox::workspace::{Root, Workspace, path_error::PathError};
use rustix::{
    fs::{Mode, OFlags, ResolveFlags, fstat, lstat, openat2, readlink, readlinkat},
    io::Errno,
};
use std::{
    collections::VecDeque,
    ffi::OsString,
    io,
    os::{
        fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd},
        unix::ffi::OsStringExt,
    },
    path::{Component, Path, PathBuf},
};

/// The kernel says "again" when a rename raced with the lookup. Sandboxed commands rename a lot, but not for ever.
pub(super) const ATTEMPTS: usize = 64;
/// As many links are followed on the way, the kernel's own number.
const MAX_LINKS: usize = 40;

/// Links are followed as long as they stay beneath.
pub(super) const BENEATH: ResolveFlags = ResolveFlags::BENEATH.union(ResolveFlags::NO_MAGICLINKS);
/// No link is followed at all: for real paths.
pub(super) const WITHOUT_LINKS: ResolveFlags = BENEATH.union(ResolveFlags::NO_SYMLINKS);

/// Where a path leads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Resolved {
    /// To this real path in a root. Its end may not exist.
    Inside(PathBuf),
    /// Out of all roots; the way there was not looked at.
    Outside(PathBuf),
}

/// Opens a path beneath a folder's handle.
pub(super) fn open_beneath(
    folder: BorrowedFd<'_>,
    path: &Path,
    flags: OFlags,
    resolve: ResolveFlags,
) -> rustix::io::Result<OwnedFd> {
    let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
    for _ in 0..ATTEMPTS {
        match openat2(folder, path, flags | OFlags::CLOEXEC, Mode::empty(), resolve) {
            Err(Errno::AGAIN | Errno::INTR) => {}
            other => return other,
        }
    }
    Err(Errno::AGAIN)
}

/// The link in `/proc` that stands for a handle.
pub(super) fn proc_link(handle: impl AsFd) -> String {
    format!("/proc/self/fd/{}", handle.as_fd().as_raw_fd())
}

/// The real path of what a handle holds, now; `ESTALE` when that has lost its name.
pub(super) fn real_path(handle: impl AsFd) -> io::Result<PathBuf> {
    let path = readlink(proc_link(&handle), Vec::with_capacity(256))?.into_bytes();
    // The kernel marks what was deleted or replaced. Something may bear such a name by itself: then it is found by it.
    if path.ends_with(b" (deleted)") {
        let (named, held) = (lstat(&*path), fstat(&handle)?);
        if !named.is_ok_and(|named| (named.st_dev, named.st_ino) == (held.st_dev, held.st_ino)) {
            return Err(Errno::STALE.into());
        }
    }
    let path = PathBuf::from(OsString::from_vec(path));
    // Handles of pipes and the like have no path, only a description.
    if path.is_absolute() { Ok(path) } else { Err(Errno::NOENT.into()) }
}

impl Root {
    /// The path below the root; the caller knows that it lies there.
    pub(super) fn rest<'a>(&self, path: &'a Path) -> &'a Path {
        path.strip_prefix(&self.path).unwrap_or(path)
    }
}

impl Workspace {
    /// Where an absolute path without dots leads.
    pub(super) fn resolve(&self, lexical: &Path) -> Result<Resolved, PathError> {
        let Some(root) = self.root_of(lexical) else { return self.resolve_by_hand(lexical) };
        let handle = open_beneath(root.handle.as_fd(), root.rest(lexical), OFlags::PATH, BENEATH);
        match handle.and_then(|handle| self.real_path_of(lexical, &handle).map_err(|_| Errno::NOENT)) {
            // A root that was moved away is no root any more: what counts is where we are.
            Ok(real) => Ok(self.placed(real)),
            Err(_) => self.resolve_by_hand(lexical),
        }
    }

    /// The real path of what was opened under a lexical one; `ESTALE` when it has lost that name. A file that is being
    /// replaced bears for a moment the name that its successor was written under.
    pub(super) fn real_path_of(&self, lexical: &Path, handle: &OwnedFd) -> io::Result<PathBuf> {
        let real = real_path(handle)?;
        if real != lexical {
            let now = self.open_path(lexical).map_err(|_| Errno::STALE)?;
            let (held, now) = (fstat(handle)?, fstat(&now)?);
            if (held.st_dev, held.st_ino) != (now.st_dev, now.st_ino) {
                return Err(Errno::STALE.into());
            }
        }
        Ok(real)
    }

    /// Opens an absolute path without dots, without rights to its content (`O_PATH`).
    pub(super) fn open_path(&self, lexical: &Path) -> Result<OwnedFd, PathError> {
        let failed = |errno: Errno| match errno {
            Errno::NOENT | Errno::NOTDIR => PathError::not_found(lexical),
            errno => PathError::io("open", lexical, errno),
        };
        let mut last = Errno::AGAIN;
        for _ in 0..ATTEMPTS {
            if let Some(root) = self.root_of(lexical) {
                match open_beneath(root.handle.as_fd(), root.rest(lexical), OFlags::PATH, BENEATH) {
                    Err(Errno::XDEV) => {}
                    other => return other.map_err(failed),
                }
            }
            // The kernel takes an absolute link for one that leads out. It may lead back in, or into another root.
            let real = match self.resolve_by_hand(lexical)? {
                Resolved::Inside(real) => real,
                Resolved::Outside(real) => return Err(self.outside(lexical, real)),
            };
            let Some(root) = self.root_of(&real) else { return Err(self.outside(lexical, real)) };
            let flags = OFlags::PATH | OFlags::NOFOLLOW;
            match open_beneath(root.handle.as_fd(), root.rest(&real), flags, WITHOUT_LINKS) {
                // Something on the way became a link after it was looked at.
                Err(errno @ (Errno::LOOP | Errno::XDEV)) => last = errno,
                other => return other.map_err(failed),
            }
        }
        Err(failed(last))
    }

    pub(super) fn outside(&self, lexical: &Path, real: PathBuf) -> PathError {
        if self.roots.is_empty() {
            return PathError::NoRoot;
        }
        PathError::Outside { path: lexical.to_path_buf(), real }
    }

    /// Follows the path name by name. What comes out is a text only: whoever opens it does so beneath a root, without
    /// links, so that a race makes the opening fail and never lead astray.
    fn resolve_by_hand(&self, lexical: &Path) -> Result<Resolved, PathError> {
        for _ in 0..ATTEMPTS {
            if let Some(resolved) = self.follow(lexical)? {
                return Ok(resolved);
            }
        }
        Err(PathError::io("follow", lexical, Errno::AGAIN))
    }

    /// One attempt; `None` when a folder on the way became a link after it was looked at.
    fn follow(&self, lexical: &Path) -> Result<Option<Resolved>, PathError> {
        let mut real = PathBuf::from("/");
        let mut rest: VecDeque<OsString> = names(lexical).collect();
        let mut links = 0;
        while let Some(name) = rest.pop_front() {
            if name == ".." {
                real.pop();
                continue;
            }
            let next = real.join(&name);
            let Some(root) = self.root_of(&real) else {
                // The roots' own paths are real, so that the way to a root needs no look.
                if self.roots.iter().any(|root| root.path.starts_with(&next)) {
                    real = next;
                    continue;
                }
                return Ok(Some(Resolved::Outside(completed(next, rest))));
            };
            let folder = open_beneath(
                root.handle.as_fd(),
                root.rest(&real),
                OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW,
                WITHOUT_LINKS,
            );
            let target = match folder {
                Ok(folder) => match readlinkat(&folder, &name, Vec::new()) {
                    Err(Errno::INVAL) => Ok(None),
                    other => other.map(Some),
                },
                Err(errno) => Err(errno),
            };
            match target {
                Ok(Some(target)) => {
                    links += 1;
                    if links > MAX_LINKS {
                        return Err(PathError::io("follow", lexical, Errno::LOOP));
                    }
                    let target = PathBuf::from(OsString::from_vec(target.into_bytes()));
                    if target.is_absolute() {
                        real = PathBuf::from("/");
                    }
                    for name in names(&target).collect::<Vec<_>>().into_iter().rev() {
                        rest.push_front(name);
                    }
                }
                Ok(None) => real = next,
                // It is not there, or goes on behind a file: the rest is a name for something to come.
                Err(Errno::NOENT | Errno::NOTDIR) => return Ok(Some(self.placed(completed(next, rest)))),
                Err(Errno::LOOP | Errno::XDEV) => return Ok(None),
                Err(errno) => return Err(PathError::io("follow", lexical, errno)),
            }
        }
        Ok(Some(self.placed(real)))
    }

    fn placed(&self, real: PathBuf) -> Resolved {
        if self.root_of(&real).is_some() { Resolved::Inside(real) } else { Resolved::Outside(real) }
    }
}

/// The names of a path, `..` among them.
fn names(path: &Path) -> impl Iterator<Item = OsString> + '_ {
    path.components().filter_map(|component| match component {
        Component::Normal(name) => Some(name.to_owned()),
        Component::ParentDir => Some("..".into()),
        Component::RootDir | Component::CurDir | Component::Prefix(_) => None,
    })
}

fn completed(mut path: PathBuf, rest: VecDeque<OsString>) -> PathBuf {
    for name in rest {
        if name == ".." {
            path.pop();
        } else {
            path.push(name);
        }
    }
    path
}

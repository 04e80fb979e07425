//! Resolves a path to a handle and a real path, only beneath the roots.

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

/// Maximum number of attempts to look up a path. The kernel returns `EAGAIN` if a rename raced with the lookup, and
/// sandboxed commands may rename often.
pub(super) const ATTEMPTS: usize = 64;
/// Maximum number of links that are followed, which is also the limit of the kernel.
const MAX_LINKS: usize = 40;

/// Follows links that stay beneath the folder.
pub(super) const BENEATH: ResolveFlags = ResolveFlags::BENEATH.union(ResolveFlags::NO_MAGICLINKS);
/// Follows no links. For real paths.
pub(super) const WITHOUT_LINKS: ResolveFlags = BENEATH.union(ResolveFlags::NO_SYMLINKS);

/// Target of a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum PathLocation {
    /// Real path in a root. Its last components may not exist.
    Inside(PathBuf),
    /// A path outside of all roots, which was not examined.
    Outside(PathBuf),
}

/// Opens a path beneath the handle of a folder.
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

/// Returns the link in `/proc` that represents a handle.
pub(super) fn proc_link(handle: impl AsFd) -> String {
    format!("/proc/self/fd/{}", handle.as_fd().as_raw_fd())
}

/// Returns the current real path of a handle, or `ESTALE` if the file has no name any more.
pub(super) fn real_path(handle: impl AsFd) -> io::Result<PathBuf> {
    let path = readlink(proc_link(&handle), Vec::with_capacity(256))?.into_bytes();
    // The kernel marks deleted and replaced files with this suffix. A file may also really have such a name, and is
    // then found at that path.
    if path.ends_with(b" (deleted)") {
        let (named, held) = (lstat(&*path), fstat(&handle)?);
        if !named.is_ok_and(|named| (named.st_dev, named.st_ino) == (held.st_dev, held.st_ino)) {
            return Err(Errno::STALE.into());
        }
    }
    let path = PathBuf::from(OsString::from_vec(path));
    // Handles of pipes and sockets have no path, only a description.
    if path.is_absolute() { Ok(path) } else { Err(Errno::NOENT.into()) }
}

impl Root {
    /// Returns the path relative to the root, which must contain it.
    pub(super) fn relative_path<'a>(&self, path: &'a Path) -> &'a Path {
        path.strip_prefix(&self.path).unwrap_or(path)
    }
}

impl Workspace {
    /// Returns the target of an absolute path without `.` and `..`.
    pub(super) fn resolve(&self, lexical: &Path) -> Result<PathLocation, PathError> {
        let Some(root) = self.root_of(lexical) else { return self.resolve_by_hand(lexical) };
        let handle = open_beneath(root.handle.as_fd(), root.relative_path(lexical), OFlags::PATH, BENEATH);
        match handle.and_then(|handle| self.real_path_of(lexical, &handle).map_err(|_| Errno::NOENT)) {
            // A root that was moved away is no longer a root. The present path counts.
            Ok(real) => Ok(self.classify_target(real)),
            Err(_) => self.resolve_by_hand(lexical),
        }
    }

    /// Returns the real path of the file that was opened at a lexical path, or `ESTALE` if it no longer has that name.
    /// A file that is being replaced briefly has the temporary name of the new one.
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

    /// Opens an absolute path without `.` and `..`, without access to the content (`O_PATH`). Links are followed, but
    /// only to targets in a root.
    pub(super) fn open_path(&self, lexical: &Path) -> Result<OwnedFd, PathError> {
        let failed = |errno: Errno| match errno {
            Errno::NOENT | Errno::NOTDIR => PathError::not_found(lexical),
            errno => PathError::io("open", lexical, errno),
        };
        let mut last = Errno::AGAIN;
        for _ in 0..ATTEMPTS {
            if let Some(root) = self.root_of(lexical) {
                match open_beneath(root.handle.as_fd(), root.relative_path(lexical), OFlags::PATH, BENEATH) {
                    Err(Errno::XDEV) => {}
                    other => return other.map_err(failed),
                }
            }
            // The kernel rejects every absolute link as leading out. It may lead back into this root, or into another
            // one.
            let real = match self.resolve_by_hand(lexical)? {
                PathLocation::Inside(real) => real,
                PathLocation::Outside(real) => return Err(self.outside(lexical, real)),
            };
            let Some(root) = self.root_of(&real) else { return Err(self.outside(lexical, real)) };
            let flags = OFlags::PATH | OFlags::NOFOLLOW;
            match open_beneath(root.handle.as_fd(), root.relative_path(&real), flags, WITHOUT_LINKS) {
                // A component became a link after it was checked.
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

    /// Follows the path component by component. The result is only a text: the caller opens it beneath a root and
    /// without links, so a race makes the opening fail and cannot redirect it.
    fn resolve_by_hand(&self, lexical: &Path) -> Result<PathLocation, PathError> {
        for _ in 0..ATTEMPTS {
            if let Some(resolved) = self.follow(lexical)? {
                return Ok(resolved);
            }
        }
        Err(PathError::io("follow", lexical, Errno::AGAIN))
    }

    /// Makes one attempt to follow the path. Returns `None` if a folder on the way became a link after it was checked.
    fn follow(&self, lexical: &Path) -> Result<Option<PathLocation>, PathError> {
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
                // The paths of roots are real, so the components up to a root need no check.
                if self.roots.iter().any(|root| root.path.starts_with(&next)) {
                    real = next;
                    continue;
                }
                return Ok(Some(PathLocation::Outside(completed(next, rest))));
            };
            let folder = open_beneath(
                root.handle.as_fd(),
                root.relative_path(&real),
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
                // The path does not exist, or continues after a file. The rest consists of names that may be created
                // later.
                Err(Errno::NOENT | Errno::NOTDIR) => return Ok(Some(self.classify_target(completed(next, rest)))),
                Err(Errno::LOOP | Errno::XDEV) => return Ok(None),
                Err(errno) => return Err(PathError::io("follow", lexical, errno)),
            }
        }
        Ok(Some(self.classify_target(real)))
    }

    fn classify_target(&self, real: PathBuf) -> PathLocation {
        if self.root_of(&real).is_some() { PathLocation::Inside(real) } else { PathLocation::Outside(real) }
    }
}

/// Returns the components of a path, including `..`.
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

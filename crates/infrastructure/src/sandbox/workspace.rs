//! Folders that tools may work in. They are opened once, and reached only by handle.
//!
//! The kernel resolves every path beneath the handle of a root (`openat2`, Linux 5.6 and later), so that neither a link
//! nor a race leads out of it. An opened file is checked again by the real path of its descriptor. The functions here
//! block; [`granted_workspace::GrantedWorkspace`] is created for one call and used on a blocking thread.

pub mod draft;
pub mod facts;
pub mod file_handle;
pub mod granted_workspace;
mod lock;
pub mod lock_folder;
pub mod open_file_limit;
pub mod path_error;
mod resolve;
pub mod rights;
pub mod stop;
pub mod walk;
pub mod write;
mod write_target;

use crate::sandbox::{
    workspace::{
        draft::is_other_name,
        lock::PathLocks,
        lock_folder::lock_folders,
        path_error::PathError,
        resolve::{WITHOUT_LINKS, open_beneath},
    },
    writable_roots::WritableRoots,
};
use rustix::fs::{AtFlags, CWD, Mode, OFlags, openat, unlinkat};
use std::{
    io,
    os::fd::{AsFd, OwnedFd},
    path::{Path, PathBuf},
};
use toolstead_domain::{AccessPath, OutputHandle, workspace_roots};

/// Maximum length of a path in Linux, in bytes.
const MAX_PATH_BYTES: usize = 4095;
/// Maximum length of a file name, in bytes.
const MAX_NAME_BYTES: usize = 255;

/// Flags for opening a folder on the way to a file.
const FOLDER: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW);

/// The folders that tools may work in (roots), opened.
#[derive(Debug)]
pub struct Workspace {
    roots: Vec<Root>,
    start: Option<PathBuf>,
    writable: WritableRoots,
    names: UserPathAliases,
    locks: PathLocks,
}

/// Folder that tools may work in: its real path, and the handle by which it is used once it was opened.
#[derive(Debug)]
struct Root {
    path: PathBuf,
    handle: OwnedFd,
}

/// Paths by which users name folders, other than the real ones: `~`, and links to roots.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct UserPathAliases {
    /// Folder that `~` at the beginning of a path represents. Without it, `~` is an ordinary name.
    pub home: Option<PathBuf>,
    /// Other absolute names of folders, with their real paths. Users know a root that was configured through a link by
    /// that link.
    pub aliases: Vec<(PathBuf, PathBuf)>,
}

impl Workspace {
    /// Opens the roots, and removes the temporary files of processes that ended in the middle of a change. Blocks.
    ///
    /// # Errors
    /// [`OpenWorkspaceError`] if a root is missing, is not a folder, or has another real path.
    pub fn open(roots: &workspace_roots::WorkspaceRoots, names: UserPathAliases) -> Result<Self, OpenWorkspaceError> {
        let open = |path: &Path| {
            let fault = |source: io::Error| OpenWorkspaceError::Open { path: path.to_path_buf(), source };
            let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
            let handle = openat(CWD, path, flags, Mode::empty()).map_err(|errno| fault(errno.into()))?;
            let real = resolve::real_path(&handle).map_err(fault)?;
            if real != path {
                return Err(OpenWorkspaceError::NotReal { path: path.to_path_buf(), real });
            }
            Ok(Root { path: real, handle })
        };
        let workspace = Self {
            roots: roots.all().map(open).collect::<Result<_, _>>()?,
            start: roots.start().map(Path::to_path_buf),
            writable: WritableRoots::new(&roots.write),
            names,
            locks: PathLocks::new(lock_folders()),
        };
        workspace.locks.clear_abandoned(|draft| workspace.remove_draft(draft));
        Ok(workspace)
    }

    /// Removes the draft of a process that ended in the middle of a change. Returns `false` if it is not in a writable
    /// root.
    fn remove_draft(&self, draft: &Path) -> bool {
        let Some(root) = self.root_of(draft).filter(|_| self.writable.hold(draft)) else { return false };
        let rest = root.relative_path(draft);
        if let (Some(folder), Some(name)) = (rest.parent(), rest.file_name().map(Path::new))
            && is_other_name(name)
            && let Ok(folder) = open_beneath(root.handle.as_fd(), folder, FOLDER, WITHOUT_LINKS)
        {
            let _ = unlinkat(&folder, name, AtFlags::empty());
        }
        true
    }

    /// Creates a workspace without roots, which rejects every path.
    pub fn closed() -> Self {
        Self {
            roots: Vec::new(),
            start: None,
            writable: WritableRoots::default(),
            names: UserPathAliases::default(),
            locks: PathLocks::new(lock_folders()),
        }
    }

    /// Returns the roots that may be changed.
    pub fn writable(&self) -> &WritableRoots {
        &self.writable
    }

    /// Returns the folder where relative paths start, or `None` without roots.
    pub fn start(&self) -> Option<&Path> {
        self.start.as_deref()
    }

    /// Returns `true` if a path is a root, is in one, or contains one.
    pub fn meets(&self, path: &Path) -> bool {
        self.roots.iter().any(|root| path.starts_with(&root.path) || root.path.starts_with(path))
    }

    /// Returns `true` if a path is a root or is in one.
    pub fn contains(&self, path: &Path) -> bool {
        self.root_of(path).is_some()
    }

    /// Returns the path for display, in a form that is also valid as input: relative to the start folder if it is in
    /// it, otherwise absolute.
    pub fn shown(&self, path: &Path) -> String {
        let rest = self.start().and_then(|start| path.strip_prefix(start).ok());
        match rest {
            Some(rest) if rest.as_os_str().is_empty() => ".".into(),
            Some(rest) => unmistakable(rest.to_string_lossy().into_owned()),
            None => path.to_string_lossy().into_owned(),
        }
    }

    /// Returns the access of a call that names this path. Opens no file for reading, and examines nothing outside of
    /// the roots. Blocks.
    ///
    /// The text is absolute or relative to the start folder; a leading `~/` represents the home folder. Nothing else is
    /// interpreted, neither URLs nor escapes. `.` and `..` are resolved in the text, so that the checked file is the
    /// file that is opened. A missing path is not an error: the last components of its real form do not exist.
    ///
    /// # Errors
    /// [`PathError`] if the text is not a valid path, or the system refuses to resolve it.
    pub fn access(&self, text: &str) -> Result<AccessPath, PathError> {
        let lexical = self.lexical(text)?;
        let real = match self.resolve(&lexical)? {
            resolve::PathLocation::Inside(real) | resolve::PathLocation::Outside(real) => real,
        };
        Ok(AccessPath { lexical, real, tree: false })
    }

    /// Returns the path as requested: absolute, without `.` and `..`. Replaces `~` and other names of folders.
    fn lexical(&self, text: &str) -> Result<PathBuf, PathError> {
        let unusable = |reason| Err(PathError::Unusable { text: text.chars().take(80).collect(), reason });
        if text.is_empty() {
            return unusable("it is empty; `.` is the start folder");
        }
        if text.contains('\0') {
            return unusable("it holds a NUL character");
        }
        if text.len() > MAX_PATH_BYTES {
            return unusable("it is longer than 4095 bytes");
        }
        if text.split('/').any(|name| name.len() > MAX_NAME_BYTES) {
            return unusable("one of its names is longer than 255 bytes");
        }
        let start = self.start().unwrap_or(Path::new("/"));
        let lexical = match (&self.names.home, text.strip_prefix('~')) {
            (Some(home), Some(rest)) if rest.is_empty() || rest.starts_with('/') => {
                workspace_roots::lexical(home, Path::new(rest.trim_start_matches('/')))
            }
            _ => workspace_roots::lexical(start, Path::new(text)),
        };
        if let Some(root) = self.root_of(&lexical) {
            return match resolve::real_path(&root.handle) {
                Err(error) if error.kind() == io::ErrorKind::StaleNetworkFileHandle => {
                    Err(PathError::RootGone { root: root.path.clone() })
                }
                _ => Ok(lexical),
            };
        }
        let known =
            self.names.aliases.iter().find_map(|(alias, real)| Some(real.join(lexical.strip_prefix(alias).ok()?)));
        Ok(known.map_or(lexical, |path| workspace_roots::lexical(Path::new("/"), &path)))
    }

    /// Returns the innermost root that contains the path.
    fn root_of(&self, path: &Path) -> Option<&Root> {
        let holding = self.roots.iter().filter(|root| path.starts_with(&root.path));
        holding.max_by_key(|root| root.path.components().count())
    }
}

/// Returns a relative path for display. `./` precedes a path that could be mistaken for the handle of a stored output
/// or for the home folder.
pub fn unmistakable(relative: String) -> String {
    let is_mistakable = relative.starts_with('~') || relative.parse::<OutputHandle>().is_ok();
    if is_mistakable { format!("./{relative}") } else { relative }
}

/// Reason why a workspace could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenWorkspaceError {
    /// A root is missing, is not a folder, or may not be entered.
    #[error("could not open the root `{}`", path.display())]
    Open {
        /// Path of the root.
        path: PathBuf,
        /// Error of the system.
        #[source]
        source: io::Error,
    },
    /// The path of the root contains links, or the root was moved meanwhile.
    #[error("the root `{}` is really `{}`", path.display(), real.display())]
    NotReal {
        /// Path as given.
        path: PathBuf,
        /// Real path of the root.
        real: PathBuf,
    },
}

#[cfg(test)]
mod tests;

//! The folders that tools may work in, opened once and reached by handle only.
//!
//! Every path is resolved by the kernel beneath a root's handle (`openat2`, Linux 5.6 and later), so that no link and
//! no race leads out; what was opened is judged again by the real path of its descriptor. The functions here block;
//! [`granted::GrantedWorkspace`] is made for one call and used on a blocking thread.

pub mod draft;
pub mod facts;
pub mod found;
pub mod granted;
mod lock;
pub mod lock_folder;
pub mod path_error;
mod resolve;
pub mod rights;
pub mod seats;
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
    writable::WritableRoots,
};
use rustix::fs::{AtFlags, CWD, Mode, OFlags, openat, unlinkat};
use std::{
    io,
    os::fd::{AsFd, OwnedFd},
    path::{Path, PathBuf},
};
use toolstead_domain::{access::PathAccess, ports::output_store::OutputHandle, workspace_roots};

/// The longest path that Linux takes, in bytes.
const MAX_PATH_BYTES: usize = 4095;
/// The longest name of a file, in bytes.
const MAX_NAME_BYTES: usize = 255;

/// Flags for a folder on the way to a file.
const FOLDER: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW);

/// The roots, open.
#[derive(Debug)]
pub struct Workspace {
    roots: Vec<Root>,
    start: Option<PathBuf>,
    writable: WritableRoots,
    names: FolderNames,
    locks: PathLocks,
}

/// One root: its real path, and the handle that stands for it from now on.
#[derive(Debug)]
struct Root {
    path: PathBuf,
    handle: OwnedFd,
}

/// What folders are called besides their real paths.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FolderNames {
    /// What `~` at the beginning of a path means. Without it, `~` is a name like any other.
    pub home: Option<PathBuf>,
    /// Other absolute names of folders, with their real paths: a root that was configured through a link is known to
    /// its users by the link.
    pub aliases: Vec<(PathBuf, PathBuf)>,
}

impl Workspace {
    /// Opens the roots. Blocks.
    ///
    /// # Errors
    /// [`OpenWorkspaceError`] when a root is missing, is no folder, or is not where its path says.
    pub fn open(roots: &workspace_roots::WorkspaceRoots, names: FolderNames) -> Result<Self, OpenWorkspaceError> {
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

    /// Removes a draft that a process left which ended in the middle of a change. Returns `false` if it is not in a writable
    /// root.
    fn remove_draft(&self, draft: &Path) -> bool {
        let Some(root) = self.root_of(draft).filter(|_| self.writable.hold(draft)) else { return false };
        let rest = root.rest(draft);
        if let (Some(folder), Some(name)) = (rest.parent(), rest.file_name().map(Path::new))
            && is_other_name(name)
            && let Ok(folder) = open_beneath(root.handle.as_fd(), folder, FOLDER, WITHOUT_LINKS)
        {
            let _ = unlinkat(&folder, name, AtFlags::empty());
        }
        true
    }

    /// A workspace without any root: every path is refused.
    pub fn closed() -> Self {
        Self {
            roots: Vec::new(),
            start: None,
            writable: WritableRoots::default(),
            names: FolderNames::default(),
            locks: PathLocks::new(lock_folders()),
        }
    }

    /// The roots that may be changed.
    pub fn writable(&self) -> &WritableRoots {
        &self.writable
    }

    /// Where relative paths start; `None` without roots.
    pub fn start(&self) -> Option<&Path> {
        self.start.as_deref()
    }

    /// Whether a path is a root, lies in one, or has one in it.
    pub fn meets(&self, path: &Path) -> bool {
        self.roots.iter().any(|root| path.starts_with(&root.path) || root.path.starts_with(path))
    }

    /// Whether a path is a root or lies in one.
    pub fn contains(&self, path: &Path) -> bool {
        self.root_of(path).is_some()
    }

    /// The path as it is shown, in a form that means this path where it is given back: relative to the start folder
    /// where it lies in it, else absolute.
    pub fn shown(&self, path: &Path) -> String {
        let rest = self.start().and_then(|start| path.strip_prefix(start).ok());
        match rest {
            Some(rest) if rest.as_os_str().is_empty() => ".".into(),
            Some(rest) => unmistakable(rest.to_string_lossy().into_owned()),
            None => path.to_string_lossy().into_owned(),
        }
    }

    /// What a call that names this path would touch. Nothing is opened for reading and nothing outside of the roots is
    /// looked at. Blocks.
    ///
    /// The text is absolute or relative to the start folder; a leading `~/` is the home folder. Nothing else is
    /// interpreted: no URL, no escape. `.` and `..` are worked out on the text, so that the file that is judged is the
    /// file that is opened. A missing path is no error; its real form ends in what is missing.
    ///
    /// # Errors
    /// [`PathError`] when the text is no path, or the system refuses to follow it.
    pub fn access(&self, text: &str) -> Result<PathAccess, PathError> {
        let lexical = self.lexical(text)?;
        let real = match self.resolve(&lexical)? {
            resolve::Resolved::Inside(real) | resolve::Resolved::Outside(real) => real,
        };
        Ok(PathAccess { lexical, real, tree: false })
    }

    /// The path as asked for: absolute, without `.` and `..`.
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

    /// The innermost root that holds the path.
    fn root_of(&self, path: &Path) -> Option<&Root> {
        let holding = self.roots.iter().filter(|root| path.starts_with(&root.path));
        holding.max_by_key(|root| root.path.components().count())
    }
}

/// A relative path as it is shown: `./` is put before what would be taken for the handle of a stored output or for the
/// home folder.
pub fn unmistakable(relative: String) -> String {
    let is_mistakable = relative.starts_with('~') || relative.parse::<OutputHandle>().is_ok();
    if is_mistakable { format!("./{relative}") } else { relative }
}

/// A workspace that could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenWorkspaceError {
    /// A root is missing, is no folder, or may not be entered.
    #[error("could not open the root `{}`", path.display())]
    Open {
        /// The root.
        path: PathBuf,
        /// The cause.
        #[source]
        source: io::Error,
    },
    /// The root's path goes through links, or was moved meanwhile.
    #[error("the root `{}` is really `{}`", path.display(), real.display())]
    NotReal {
        /// The root as given.
        path: PathBuf,
        /// Its real path.
        real: PathBuf,
    },
}

#[cfg(test)]
mod tests;

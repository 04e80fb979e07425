//! Repositories within a repository: those of its submodules, and the metadata of its working trees.

use super::folder::{FolderHandle, WorkBudget};
use rustix::fs::FileType;
use std::{ffi::OsStr, io};

/// Maximum nesting depth of folders.
const DEPTH: usize = 24;

/// Part of a repository that contains other ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RepositoryListFolder {
    Modules,
    Worktrees,
}

/// Entry of the `modules` or `worktrees` folder of a repository.
pub(super) enum SubmoduleOrWorktreeEntry<'a> {
    /// Repository of a submodule.
    Repository(&'a FolderHandle),
    /// Metadata of a working tree.
    Worktree(&'a FolderHandle),
    /// A link in a list of repositories.
    Link(&'a FolderHandle, &'a OsStr),
    /// A link, or another entry that is not a folder, in place of the list.
    Other(&'a FolderHandle, &'a OsStr),
}

/// Callback for each entry.
pub(super) type NestedGitDirCallback<'a> =
    dyn FnMut(SubmoduleOrWorktreeEntry<'_>, &mut WorkBudget) -> io::Result<()> + 'a;

impl RepositoryListFolder {
    pub(super) const ALL: [Self; 2] = [Self::Modules, Self::Worktrees];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Modules => "modules",
            Self::Worktrees => "worktrees",
        }
    }
}

/// Calls a function for all entries of one part of a repository that are not read-only.
///
/// # Errors
/// `QuotaExceeded` if there is more than may be examined; otherwise the error of the system or of the
/// function.
pub(super) fn each(
    repository: &FolderHandle,
    part: RepositoryListFolder,
    work: &mut WorkBudget,
    act: &mut NestedGitDirCallback<'_>,
) -> io::Result<()> {
    within(repository, part, DEPTH, work, act)
}

fn within(
    repository: &FolderHandle,
    part: RepositoryListFolder,
    depth: usize,
    work: &mut WorkBudget,
    act: &mut NestedGitDirCallback<'_>,
) -> io::Result<()> {
    match repository.kind(part.name())? {
        None => Ok(()),
        Some(_) if repository.is_closed(part.name()) => Ok(()),
        Some(FileType::Directory) => of_list(&repository.inner(part.name())?.opened(), part, depth, work, act),
        Some(_) => act(SubmoduleOrWorktreeEntry::Other(repository, OsStr::new(part.name())), work),
    }
}

fn of_list(
    list: &FolderHandle,
    part: RepositoryListFolder,
    depth: usize,
    work: &mut WorkBudget,
    act: &mut NestedGitDirCallback<'_>,
) -> io::Result<()> {
    let depth = depth.checked_sub(1).ok_or(io::ErrorKind::QuotaExceeded)?;
    for name in list.names(work)? {
        match list.kind(&name)? {
            Some(_) if list.is_closed(&name) => continue,
            Some(FileType::Directory) => {}
            Some(FileType::Symlink) => {
                act(SubmoduleOrWorktreeEntry::Link(list, &name), work)?;
                continue;
            }
            _ => continue,
        }
        let folder = list.inner(&name)?.opened();
        if part == RepositoryListFolder::Worktrees {
            act(SubmoduleOrWorktreeEntry::Worktree(&folder), work)?;
            // Submodules that were created in that working tree.
            within(&folder, RepositoryListFolder::Modules, depth, work, act)?;
        } else if folder.kind("HEAD")?.is_none() {
            // The name of a submodule may contain slashes. A folder without `HEAD` is not a repository.
            of_list(&folder, part, depth, work, act)?;
        } else {
            act(SubmoduleOrWorktreeEntry::Repository(&folder), work)?;
            for part in RepositoryListFolder::ALL {
                within(&folder, part, depth, work, act)?;
            }
        }
    }
    Ok(())
}

//! What a repository keeps of others: those of its submodules, and what it knows of its working trees.

use super::folder::{Folder, Work};
use rustix::fs::FileType;
use std::{ffi::OsStr, io};

/// Folders within folders.
const DEPTH: usize = 24;

/// Where they stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    Modules,
    Worktrees,
}

/// What is found.
pub(super) enum Found<'a> {
    /// The repository of a submodule.
    Repository(&'a Folder),
    /// What is known of a working tree.
    Worktree(&'a Folder),
    /// A link in a list of them.
    Link(&'a Folder, &'a OsStr),
    /// Under this name stands a link, or no folder, where the list has to be.
    Other(&'a Folder, &'a OsStr),
}

/// What is done with it.
pub(super) type Act<'a> = dyn FnMut(Found<'_>, &mut Work) -> io::Result<()> + 'a;

impl Part {
    pub(super) const ALL: [Self; 2] = [Self::Modules, Self::Worktrees];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Modules => "modules",
            Self::Worktrees => "worktrees",
        }
    }
}

/// Does something with all that is found in one part of a repository and is not closed.
///
/// # Errors
/// `QuotaExceeded` when it is more than may be looked at; otherwise the system's, or that of what is done.
pub(super) fn each(repository: &Folder, part: Part, work: &mut Work, act: &mut Act<'_>) -> io::Result<()> {
    within(repository, part, DEPTH, work, act)
}

fn within(repository: &Folder, part: Part, depth: usize, work: &mut Work, act: &mut Act<'_>) -> io::Result<()> {
    match repository.kind(part.name())? {
        None => Ok(()),
        Some(_) if repository.is_closed(part.name()) => Ok(()),
        Some(FileType::Directory) => of_list(&repository.inner(part.name())?.opened(), part, depth, work, act),
        Some(_) => act(Found::Other(repository, OsStr::new(part.name())), work),
    }
}

fn of_list(list: &Folder, part: Part, depth: usize, work: &mut Work, act: &mut Act<'_>) -> io::Result<()> {
    let depth = depth.checked_sub(1).ok_or(io::ErrorKind::QuotaExceeded)?;
    for name in list.names(work)? {
        match list.kind(&name)? {
            Some(_) if list.is_closed(&name) => continue,
            Some(FileType::Directory) => {}
            Some(FileType::Symlink) => {
                act(Found::Link(list, &name), work)?;
                continue;
            }
            _ => continue,
        }
        let folder = list.inner(&name)?.opened();
        if part == Part::Worktrees {
            act(Found::Worktree(&folder), work)?;
            // Submodules that were made in that working tree.
            within(&folder, Part::Modules, depth, work, act)?;
        } else if folder.kind("HEAD")?.is_none() {
            // A submodule's name may hold slashes. Without a head nothing is a repository.
            of_list(&folder, part, depth, work, act)?;
        } else {
            act(Found::Repository(&folder), work)?;
            for part in Part::ALL {
                within(&folder, part, depth, work, act)?;
            }
        }
    }
    Ok(())
}

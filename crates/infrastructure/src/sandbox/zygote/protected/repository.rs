//! A folder that git takes for a repository. Its files that make git run programs are restored or removed after a run.

use super::{
    super::view::RootBuilder,
    RootUndoPass, WritablePaths,
    folder::{FolderHandle, WorkBudget, shown},
    git_control_files::{GitControlSnapshot, GitDirKind},
    known_entries::KnownEntries,
    nested_repositories::{self, RepositoryListFolder, SubmoduleOrWorktreeEntry},
};
use rustix::fs::FileType;
use std::{collections::BTreeMap, ffi::OsStr, io, path::PathBuf};

/// Maximum number of new hooks that are set aside one by one. With more, the whole folder is set aside.
const SINGLE_HOOKS: usize = 64;
/// Maximum number of problems that are fixed one by one. With more, all submodules or working trees are set aside.
const SINGLE_THINGS: usize = 500;

/// Folders in which git reads every file: hooks, and remotes and branches in the format that preceded `config`.
const LISTS: [&str; 3] = ["hooks", "remotes", "branches"];

/// The repository of a root, with the state before a run.
#[derive(Debug)]
pub(super) struct RepositorySnapshot {
    pub(super) folder: FolderHandle,
    own: GitControlSnapshot,
    /// Texts of its submodules and working trees, by path.
    inner: BTreeMap<PathBuf, GitControlSnapshot>,
}

impl RepositorySnapshot {
    /// Records the state before the run. Hooks become read-only. Settings stay writable, because `git config` is
    /// ordinary work.
    pub(super) fn guard(
        view: &mut RootBuilder<'_>,
        folder: FolderHandle,
        ground: &WritablePaths,
        known: &mut KnownEntries,
    ) -> io::Result<Self> {
        close_lists(view, &folder)?;
        let mut work = WorkBudget::new();
        let own = GitControlSnapshot::of(&folder, GitDirKind::Main, &mut work, ground, known)?;
        let mut repository = Self { own, inner: BTreeMap::new(), folder };
        for part in RepositoryListFolder::ALL {
            repository.guard_part(view, part, &mut work, ground, known)?;
        }
        Ok(repository)
    }

    fn guard_part(
        &mut self,
        view: &mut RootBuilder<'_>,
        part: RepositoryListFolder,
        work: &mut WorkBudget,
        ground: &WritablePaths,
        known: &mut KnownEntries,
    ) -> io::Result<()> {
        let mut held = 0;
        let looked = nested_repositories::each(&self.folder, part, work, &mut |found, work| {
            let (folder, kind) = match found {
                SubmoduleOrWorktreeEntry::Repository(folder) => (folder, GitDirKind::Module),
                SubmoduleOrWorktreeEntry::Worktree(folder) => (folder, GitDirKind::Worktree),
                SubmoduleOrWorktreeEntry::Link(folder, name) | SubmoduleOrWorktreeEntry::Other(folder, name) => {
                    return Err(io::Error::new(
                        io::ErrorKind::InvalidInput,
                        format!("`{}` is a symbolic link, or not a folder", shown(&folder.path.join(name))),
                    ));
                }
            };
            let mut texts = GitControlSnapshot::of(folder, kind, work, ground, known)?;
            // A repository with entries of the user is held in place, so that these can be distinguished from entries
            // of the run. Others can be moved and removed, as is usual for submodules and working trees.
            if !texts.foreign.is_empty() || has_hooks(folder, work)? {
                held += 1;
                if held > SINGLE_THINGS {
                    return Err(io::ErrorKind::QuotaExceeded.into());
                }
                close_lists(view, &FolderHandle::of(view.pinned(&folder.path)?, folder.path.clone()))?;
                texts.is_held = true;
            }
            self.inner.insert(folder.path.clone(), texts);
            Ok(())
        });
        match looked {
            // A part that is too large or cannot be examined becomes read-only.
            Err(error) if matches!(error.kind(), io::ErrorKind::QuotaExceeded | io::ErrorKind::PermissionDenied) => {
                view.seal(&self.folder.path.join(part.name()), self.folder.handle_of(part.name())?)
            }
            looked => looked,
        }
    }

    /// Undoes the changes of a run to the repository.
    pub(super) fn restore(&self, account: &mut RootUndoPass<'_>) -> io::Result<()> {
        restore_all(&self.folder.try_clone()?.opened(), &self.own, &self.inner, account);
        Ok(())
    }
}

/// Undoes dangerous settings of a run in a repository that did not exist before.
pub(super) fn restore_new(folder: FolderHandle, account: &mut RootUndoPass<'_>) {
    restore_all(&folder.opened(), &GitControlSnapshot::default(), &BTreeMap::new(), account);
}

fn restore_all(
    folder: &FolderHandle,
    own: &GitControlSnapshot,
    inner: &BTreeMap<PathBuf, GitControlSnapshot>,
    account: &mut RootUndoPass<'_>,
) {
    restore_lists(folder, &mut WorkBudget::new(), account);
    own.restore(folder, GitDirKind::Main, &mut WorkBudget::new(), account);
    let mut work = WorkBudget::new();
    let none = GitControlSnapshot::default();
    for part in RepositoryListFolder::ALL {
        let looked = nested_repositories::each(folder, part, &mut work, &mut |found, work| {
            let (folder, kind) = match found {
                SubmoduleOrWorktreeEntry::Repository(folder) => (folder, GitDirKind::Module),
                SubmoduleOrWorktreeEntry::Worktree(folder) => (folder, GitDirKind::Worktree),
                SubmoduleOrWorktreeEntry::Link(list, name) => {
                    list.remove_link(name, account.report);
                    return Ok(());
                }
                SubmoduleOrWorktreeEntry::Other(folder, name) => {
                    folder.set_aside(name, account.report);
                    return Ok(());
                }
            };
            restore_lists(folder, work, account);
            inner.get(&folder.path).unwrap_or(&none).restore(folder, kind, work, account);
            let is_too_much = work.is_spent() || account.report.things > SINGLE_THINGS;
            if is_too_much { Err(io::ErrorKind::QuotaExceeded.into()) } else { Ok(()) }
        });
        if looked.is_err() {
            folder.set_aside(part.name(), account.report);
        }
    }
}

/// Makes existing hooks and similar entries read-only.
fn close_lists(view: &mut RootBuilder<'_>, git: &FolderHandle) -> io::Result<()> {
    for name in LISTS.into_iter().chain(["commondir"]) {
        if git.kind(name)?.is_some() {
            view.seal(&git.path.join(name), git.handle_of(name)?)?;
        }
    }
    Ok(())
}

/// Returns `true` if there is a hook or similar entry that is writable.
fn has_hooks(git: &FolderHandle, work: &mut WorkBudget) -> io::Result<bool> {
    for list in LISTS {
        if git.kind(list)?.is_some()
            && !git.is_closed(list)
            && git.inner(list)?.names(work)?.iter().any(|name| is_hook(name))
        {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Moves aside hooks and similar entries that the run added to the repository.
fn restore_lists(git: &FolderHandle, work: &mut WorkBudget, account: &mut RootUndoPass<'_>) {
    for list in LISTS {
        match git.kind(list) {
            Ok(None) => {}
            Ok(Some(_)) if git.is_closed(list) => {}
            Ok(Some(FileType::Directory)) => restore_list(git, list, work, account),
            _ => git.set_aside(list, account.report),
        }
    }
}

fn restore_list(git: &FolderHandle, list: &str, work: &mut WorkBudget, account: &mut RootUndoPass<'_>) {
    let listed = git.inner(list).map(FolderHandle::opened).and_then(|folder| Ok((folder.names(work)?, folder)));
    let Ok((names, folder)) = listed else { return git.set_aside(list, account.report) };
    let new: Vec<_> = names.into_iter().filter(|name| is_hook(name)).collect();
    if new.len() > SINGLE_HOOKS {
        return git.set_aside(list, account.report);
    }
    for name in new {
        folder.set_aside(&name, account.report);
    }
}

/// Returns `true` unless the file is a sample, or was set aside.
fn is_hook(name: &OsStr) -> bool {
    let name = name.to_string_lossy();
    !name.ends_with(".sample") && !name.contains(".refused")
}

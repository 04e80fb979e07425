//! Names in a root that a run must not change, because programs outside of the sandbox act on them.
//!
//! Existing entries are read-only while the run lives. Entries that do not exist cannot be mounted read-only; they are
//! undone after the run, once none of its processes is left. The report names everything that could not be undone as
//! untrusted.

mod folder;
mod git_control_files;
mod known_entries;
mod nested_repositories;
mod repository;
mod writable_paths;

use super::{
    mount,
    request::{self, ProtectedChanges, RunRequest, StepFailure, StepResultExt},
    view::RootBuilder,
};
use folder::{FolderHandle, WorkBudget, shown};
use known_entries::KnownEntries;
use repository::RepositorySnapshot;
use rustix::fs::{FileType, fstat};
use std::{
    io,
    path::{Path, PathBuf},
    time::Duration,
};
use writable_paths::WritablePaths;

/// Files and folders with the settings of Toolstead, of agents and of an editor, relative to a root.
pub(super) const SETTINGS: [&str; 16] = [
    "toolstead.toml",
    "toolstead.json",
    "toolstead.yaml",
    "toolstead.yml",
    ".toolstead.toml",
    ".toolstead",
    ".mcp.json",
    ".claude",
    ".codex",
    ".gemini",
    ".cursor",
    ".agents",
    // Files that an editor acts on when the folder is opened in it.
    ".vscode/launch.json",
    ".vscode/mcp.json",
    ".vscode/settings.json",
    ".vscode/tasks.json",
];
/// Files that a shell or a tool executes when its user logs in. They are protected in the home folder.
pub(super) const START_FILES: [&str; 19] = [
    ".bashrc",
    ".bash_profile",
    ".bash_login",
    ".bash_logout",
    ".bash_aliases",
    ".profile",
    ".zshrc",
    ".zshenv",
    ".zprofile",
    ".zlogin",
    ".zlogout",
    ".kshrc",
    ".gitconfig",
    ".ssh",
    ".claude.json",
    ".config/autostart",
    ".config/fish",
    ".config/git",
    ".config/systemd",
];
/// Maximum total time that is spent waiting for locks of git after a run. Git holds a lock for a moment, and the
/// following work has one second when Toolstead itself ends.
const PATIENCE: Duration = Duration::from_millis(400);
/// Entries that make a folder a repository for git: the first, together with the last or with both others.
pub(super) const MARKS: [&str; 4] = ["HEAD", "objects", "refs", "commondir"];

/// Names that are watched during a run, and restored after it.
#[derive(Debug)]
pub(super) struct RunNameProtection {
    ground: WritablePaths,
    roots: Vec<RootNameProtection>,
}

/// Context and result of checking one root after a run.
#[derive(Debug)]
struct RootUndoPass<'a> {
    ground: &'a WritablePaths,
    known: &'a KnownEntries,
    report: &'a mut ProtectedChanges,
    /// Remaining time for waiting for locks of other processes.
    patience: Duration,
}

#[derive(Debug)]
struct RootNameProtection {
    top: FolderHandle,
    known: KnownEntries,
    closed: Vec<ReadOnlyName>,
    /// Protected names that did not exist before the run.
    missing: Vec<&'static str>,
    git: GitState,
    bare: BareRepositoryState,
}

/// An existing name that is read-only.
#[derive(Debug)]
struct ReadOnlyName {
    name: &'static str,
    /// `true` if the name existed for all runs that were alive.
    is_known: bool,
}

/// State of `.git` before the run.
#[derive(Debug)]
enum GitState {
    Nothing,
    /// A file, which is read-only, or an entry that a rule makes read-only. The list has the repositories in roots that
    /// the file points to.
    ReadOnly(Vec<LinkedRepository>),
    Repository(RepositorySnapshot),
}

/// Repository that the file `.git` of a root points to: its path, and its state before the run, or `None` if it did not
/// exist.
#[derive(Debug)]
struct LinkedRepository(PathBuf, Option<RepositorySnapshot>);

/// State of the root itself as a repository.
#[derive(Debug)]
enum BareRepositoryState {
    Repository(RepositorySnapshot),
    /// The root was not a repository, and these marks of one were missing.
    Without(Vec<&'static str>),
}

impl RunNameProtection {
    /// Makes existing names read-only and records missing ones. A symbolic link at a protected name fails the run,
    /// because its target could not be held.
    pub(super) fn guard(view: &mut RootBuilder<'_>, request: &RunRequest) -> Result<Self, StepFailure> {
        let ground = WritablePaths::of(view, request)?;
        let mut roots = Vec::new();
        for folder in request.folders.iter().filter(|folder| folder.is_root && folder.is_writable) {
            let step = || format!("protect names in `{}`", folder.target.display());
            let handle = view.found(&folder.target).step(step)?;
            // A root may be a file, which contains no names.
            let found = fstat(&handle).step(step)?;
            if FileType::from_raw_mode(found.st_mode) == FileType::Directory {
                let top = FolderHandle::of(handle, folder.target.clone());
                let known = KnownEntries::begin(&top).step(step)?;
                let mut root = RootNameProtection::guard(view, top, known, &ground, is_home(folder, request))?;
                root.known.publish().step(step)?;
                roots.push(root);
            }
        }
        Ok(Self { ground, roots })
    }

    /// Undoes the changes of the run, once none of its processes is left.
    pub(super) fn undo(&self) -> ProtectedChanges {
        let (mut cleanup, mut patience) = (ProtectedChanges::default(), PATIENCE);
        for root in &self.roots {
            let mut account = RootUndoPass { ground: &self.ground, known: &root.known, report: &mut cleanup, patience };
            let undone = root.undo(&mut account);
            patience = account.patience;
            if let Err(error) = undone {
                cleanup.left(format!(
                    "protected names in `{}` could not be checked ({error}): check the settings of agents and `.git` \
                     before you use git or an agent there",
                    shown(&root.top.path)
                ));
            }
        }
        cleanup
    }
}

/// Returns `true` if the folder is a home: the user's, or the one in the run's environment.
pub(super) fn is_home(folder: &request::FolderMapping, request: &RunRequest) -> bool {
    request.environment.get("HOME").is_some_and(|home| Path::new(home) == folder.target)
        || request.own_home.as_ref().is_some_and(|home| *home == folder.source)
}

impl RootNameProtection {
    fn guard(
        view: &mut RootBuilder<'_>,
        top: FolderHandle,
        mut known: KnownEntries,
        ground: &WritablePaths,
        is_home: bool,
    ) -> Result<Self, StepFailure> {
        let (mut closed, mut missing) = (Vec::new(), Vec::new());
        for name in SETTINGS.into_iter().chain(START_FILES.into_iter().filter(|_| is_home)) {
            let path = top.path.join(name);
            let step = || format!("protect `{}`", path.display());
            if is_absent(&top, name) {
                missing.push(name);
                continue;
            }
            let held = holder(&top, name).step(step)?;
            match held.filter(|(folder, name)| !matches!(folder.kind(name), Ok(None))) {
                None => missing.push(name),
                Some((folder, last)) => {
                    if folder.path != top.path && !top.is_closed(folder.path.file_name().unwrap_or_default()) {
                        view.pinned(&folder.path).step(step)?;
                    }
                    // Resolved again, beneath the new mount.
                    let (folder, _) = holder(&top, name).step(step)?.unwrap_or((folder, last));
                    make_read_only(view, &folder, last).step(step)?;
                    closed.push(ReadOnlyName { name, is_known: known.record(&path, b"") });
                }
            }
        }
        let path = top.path.join(".git");
        let step = || format!("protect `{}`", path.display());
        let git = match top.kind(".git").step(step)? {
            None => GitState::Nothing,
            Some(FileType::Directory) if !top.is_closed(".git") => {
                let folder = FolderHandle::of(view.pinned(&path).step(step)?, path.clone());
                GitState::Repository(RepositorySnapshot::guard(view, folder, ground, &mut known).step(step)?)
            }
            Some(kind) => {
                make_read_only(view, &top, ".git").step(step)?;
                closed.push(ReadOnlyName { name: ".git", is_known: known.record(&path, b"") });
                let led = if kind == FileType::RegularFile {
                    find_linked_repositories(view, &top, ground, &mut known)
                } else {
                    Ok(Vec::new())
                };
                GitState::ReadOnly(led.step(|| format!("protect the target of `{}`", path.display()))?)
            }
        };
        let step = || format!("protect the repository `{}`", top.path.display());
        let bare = if !is_repository(&top).step(step)? {
            BareRepositoryState::Without(MARKS.into_iter().filter(|name| matches!(top.kind(name), Ok(None))).collect())
        } else if known.record(&top.path, b"") {
            let folder = top.try_clone().step(step)?;
            BareRepositoryState::Repository(RepositorySnapshot::guard(view, folder, ground, &mut known).step(step)?)
        } else {
            BareRepositoryState::Without(MARKS.into())
        };
        Ok(Self { top, known, closed, missing, git, bare })
    }

    fn undo(&self, account: &mut RootUndoPass<'_>) -> io::Result<()> {
        let top = self.top.try_clone()?.opened();
        for name in &self.missing {
            set_aside(&top, name, account.report);
        }
        for ReadOnlyName { name, is_known } in &self.closed {
            let is_open = match holder(&top, name) {
                Ok(Some((folder, last))) => {
                    let folder = folder.opened();
                    !matches!(folder.kind(last), Ok(None)) && !folder.is_closed(last)
                }
                Ok(None) => false,
                Err(_) => true,
            };
            // If another program replaced the name, it is writable.
            if is_open && *is_known {
                account.report.left(format!(
                    "`{}` was replaced while this command ran, possibly by the command: check it before you use git \
                     or an agent there",
                    shown(&top.path.join(name))
                ));
            } else if is_open {
                set_aside(&top, name, account.report);
            }
        }
        self.undo_git(&top, account)?;
        let marks = match &self.bare {
            BareRepositoryState::Repository(repository) => return repository.restore(account),
            BareRepositoryState::Without(marks) => marks,
        };
        for name in marks {
            if is_repository(&top).unwrap_or(true) && !matches!(top.kind(name), Ok(None)) {
                top.set_aside(name, account.report);
            }
        }
        Ok(())
    }

    fn undo_git(&self, top: &FolderHandle, account: &mut RootUndoPass<'_>) -> io::Result<()> {
        match &self.git {
            GitState::ReadOnly(led) => {
                for LinkedRepository(path, repository) in led {
                    match (repository, mount::open_exactly(path)) {
                        (Some(repository), _) => repository.restore(account)?,
                        (None, Ok(handle)) => repository::restore_new(FolderHandle::of(handle, path.clone()), account),
                        (None, Err(error)) if error.kind() == io::ErrorKind::NotFound => {}
                        (None, Err(error)) => return Err(error),
                    }
                }
                return Ok(());
            }
            GitState::Repository(repository) if top.identity_of(".git")? == Some(repository.folder.identity()?) => {
                return repository.restore(account);
            }
            // A program outside of the sandbox replaced it, and the present content was not checked.
            GitState::Repository(_) | GitState::Nothing => {}
        }
        match (top.kind(".git"), top.inner(".git")) {
            (Ok(None), _) => {}
            (Ok(Some(FileType::Directory)), Ok(folder)) => repository::restore_new(folder, account),
            // A file or a link points to a repository whose hooks were not checked.
            _ => top.set_aside(".git", account.report),
        }
        Ok(())
    }
}

/// Returns `true` if no entry has the first component of this name, which is the usual case, so that the name does not
/// exist. One system call decides it, without opening a handle.
fn is_absent(top: &FolderHandle, name: &str) -> bool {
    matches!(top.kind(first_of(name)), Ok(None))
}

fn first_of(name: &str) -> &str {
    name.split('/').next().unwrap_or(name)
}

/// Returns the folder that contains a name, which may be nested, and the last component of the name. Returns `None` if
/// that folder does not exist.
fn holder<'a>(top: &FolderHandle, name: &'a str) -> io::Result<Option<(FolderHandle, &'a str)>> {
    let Some((folder, name)) = name.rsplit_once('/') else { return Ok(Some((top.try_clone()?, name))) };
    if top.kind(folder)?.is_none() {
        return Ok(None);
    }
    Ok(Some((top.inner(folder)?, name)))
}

/// Moves an entry out of the way, if there is one.
fn set_aside(top: &FolderHandle, name: &str, report: &mut ProtectedChanges) {
    if is_absent(top, name) {
        return;
    }
    match holder(top, name).map(|held| held.map(|(folder, name)| (folder.opened(), name))) {
        Ok(None) => {}
        Ok(Some((folder, name))) => {
            if !matches!(folder.kind(name), Ok(None)) {
                folder.set_aside(name, report);
            }
        }
        // There is a link or a file in place of the folder.
        Err(_) => top.set_aside(first_of(name), report),
    }
}

/// Returns the repositories in roots that the file `.git` points to: its own, and the main repository of that one.
fn find_linked_repositories(
    view: &mut RootBuilder<'_>,
    top: &FolderHandle,
    ground: &WritablePaths,
    known: &mut KnownEntries,
) -> io::Result<Vec<LinkedRepository>> {
    let Some(text) = top.text(".git", &mut WorkBudget::new())? else { return Ok(Vec::new()) };
    let Some(path) = text.bytes.strip_prefix(b"gitdir: ").and_then(|path| ground.root_of(path, &top.path)) else {
        return Ok(Vec::new());
    };
    let mut led = Vec::new();
    let mut next = Some(path);
    while let (Some(path), ..2) = (next.take(), led.len()) {
        let folder = match view.pinned(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                led.push(LinkedRepository(path, None));
                break;
            }
            handle => FolderHandle::of(handle?, path),
        };
        if let Some(text) = folder.text("commondir", &mut WorkBudget::new())? {
            next = ground.root_of(&text.bytes, &folder.path);
        }
        led.push(LinkedRepository(folder.path.clone(), Some(RepositorySnapshot::guard(view, folder, ground, known)?)));
    }
    Ok(led)
}

/// Makes an entry read-only.
fn make_read_only(view: &mut RootBuilder<'_>, top: &FolderHandle, name: &str) -> io::Result<()> {
    view.seal(&top.path.join(name), top.handle_of(name)?)
}

/// Returns `true` if git would take the folder itself for a repository.
fn is_repository(top: &FolderHandle) -> io::Result<bool> {
    let is_there = |name: &str| Ok::<_, io::Error>(top.kind(name)?.is_some());
    let [head, objects, refs, common] = MARKS;
    Ok(is_there(head)? && (is_there(common)? || is_there(objects)? && is_there(refs)?))
}

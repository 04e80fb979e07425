//! Names in a root that a run must not change, because programs outside act on them.
//!
//! What is there is closed while the run lives. What is not there cannot be held: it is put right after the run, when
//! nothing of it lives any more. Whatever cannot be put right is told as not to be trusted.

mod account;
mod folder;
mod inner;
mod repository;
mod texts;

use super::{
    request::{self, Aftermath, Failure, Request, Step},
    view::View,
};
use account::{Account, Journal};
use folder::{Folder, shown};
use repository::Repository;
use rustix::fs::FileType;
use std::{
    io,
    path::{Path, PathBuf},
};

/// Settings of this runtime and of agents.
const SETTINGS: [&str; 9] = [
    "toolstead.toml",
    ".toolstead.toml",
    ".toolstead",
    ".mcp.json",
    ".claude",
    ".codex",
    ".gemini",
    ".cursor",
    ".agents",
];
/// What a shell or a tool executes when its user comes home; protected in the home folder.
const START_FILES: [&str; 12] = [
    ".bashrc",
    ".bash_profile",
    ".bash_login",
    ".bash_logout",
    ".profile",
    ".zshrc",
    ".zshenv",
    ".zprofile",
    ".zlogin",
    ".kshrc",
    ".gitconfig",
    ".ssh",
];
/// What makes any folder a repository for git: the first, and the last or both of the others.
const MARKS: [&str; 4] = ["HEAD", "objects", "refs", "commondir"];

/// What is watched during a run and put right after it.
#[derive(Debug)]
pub(super) struct Protected {
    journal: Journal,
    roots: Vec<Root>,
    /// Where working trees of a repository may stand.
    places: Vec<PathBuf>,
}

#[derive(Debug)]
struct Root {
    top: Folder,
    /// Names that were there and are closed.
    closed: Vec<&'static str>,
    /// Names that were not there.
    missing: Vec<&'static str>,
    git: Git,
    bare: Bare,
}

/// What stood under `.git`.
#[derive(Debug)]
enum Git {
    Nothing,
    /// A file that names a repository elsewhere, or what a rule closes.
    Closed,
    Repository(Repository),
}

/// Whether the root itself was a repository.
#[derive(Debug)]
enum Bare {
    Repository(Repository),
    /// These marks of one were missing.
    Without(Vec<&'static str>),
}

impl Protected {
    /// Closes what is there and notes what is not. A symbolic link under a protected name fails the run: what it leads
    /// to could not be held.
    pub(super) fn guard(view: &View<'_>, request: &Request) -> Result<Self, Failure> {
        let journal = Journal::open().step(|| "open the journal of what is refused".into())?;
        let mut roots = Vec::new();
        for folder in request.folders.iter().filter(|folder| folder.is_root && folder.is_writable) {
            let step = || format!("protect names in `{}`", folder.target.display());
            let handle = view.found(&folder.target).step(step)?;
            let top = Folder::of(handle, folder.target.clone());
            if top.kind(".").step(step)? == Some(FileType::Directory) {
                roots.push(Root::guard(view, top, is_home(folder, request))?);
            }
        }
        let writable = request.folders.iter().filter(|folder| folder.is_writable).map(|folder| folder.target.clone());
        let own = request.home.iter().cloned().chain(["/tmp", "/var/tmp"].map(PathBuf::from));
        Ok(Self { journal, roots, places: writable.chain(own).collect() })
    }

    /// Puts right what the run did, once nothing of it lives any more.
    pub(super) fn undo(&self) -> Aftermath {
        let mut account = Account::begin(&self.places, &self.journal);
        for root in &self.roots {
            if let Err(error) = root.undo(&mut account) {
                account.told.left(format!(
                    "protected names in `{}` could not be looked at ({error}): look at the settings of agents and at \
                     `.git` before git or an agent is used there",
                    shown(&root.top.path)
                ));
            }
        }
        account.told
    }
}

/// Whether the folder is a home: the user's, or the one that the run is told.
fn is_home(folder: &request::Folder, request: &Request) -> bool {
    request.environment.get("HOME").is_some_and(|home| Path::new(home) == folder.target)
        || request.own_home.as_ref().is_some_and(|home| *home == folder.source)
}

impl Root {
    fn guard(view: &View<'_>, top: Folder, is_home: bool) -> Result<Self, Failure> {
        let (mut closed, mut missing) = (Vec::new(), Vec::new());
        for name in SETTINGS.iter().chain(START_FILES.iter().filter(|_| is_home)) {
            let step = || format!("protect `{}`", top.path.join(name).display());
            match top.kind(name).step(step)? {
                None => missing.push(*name),
                Some(_) => {
                    close(view, &top, name).step(step)?;
                    closed.push(*name);
                }
            }
        }
        let step = || format!("protect `{}`", top.path.join(".git").display());
        let git = match top.kind(".git").step(step)? {
            None => Git::Nothing,
            Some(FileType::Directory) if !top.is_closed(".git") => {
                let folder = repository::pin(&top, ".git").step(step)?;
                Git::Repository(Repository::guard(view, folder).step(step)?)
            }
            Some(_) => {
                close(view, &top, ".git").step(step)?;
                closed.push(".git");
                Git::Closed
            }
        };
        let step = || format!("protect the repository `{}`", top.path.display());
        let bare = if is_repository(&top).step(step)? {
            Bare::Repository(top.try_clone().and_then(|top| Repository::guard(view, top)).step(step)?)
        } else {
            Bare::Without(MARKS.into_iter().filter(|name| matches!(top.kind(name), Ok(None))).collect())
        };
        Ok(Self { top, closed, missing, git, bare })
    }

    fn undo(&self, account: &mut Account<'_>) -> io::Result<()> {
        let top = self.top.try_clone()?.opened();
        for name in &self.missing {
            if !matches!(top.kind(name), Ok(None)) {
                top.set_aside(name, &mut account.told);
            }
        }
        for name in &self.closed {
            // A name that somebody gave to something else is open.
            if !matches!(top.kind(name), Ok(None)) && !top.is_closed(name) {
                account.told.left(format!(
                    "`{}` was replaced while this command ran, and whether by it cannot be told: look at it before git \
                     or an agent is used there",
                    shown(&top.path.join(name))
                ));
            }
        }
        self.undo_git(&top, account)?;
        let marks = match &self.bare {
            // Another run had made it one.
            Bare::Repository(_) if account.was_refused(&top.path, b"") => &MARKS[..],
            Bare::Repository(repository) => return repository.put_right(account),
            Bare::Without(marks) => marks,
        };
        for name in marks {
            if is_repository(&top).unwrap_or(true) && !matches!(top.kind(name), Ok(None)) {
                top.set_aside(name, &mut account.told);
                account.refuse(&top.path, b"");
            }
        }
        Ok(())
    }

    fn undo_git(&self, top: &Folder, account: &mut Account<'_>) -> io::Result<()> {
        match &self.git {
            Git::Closed => return Ok(()),
            Git::Repository(repository) if top.identity_of(".git")? == Some(repository.folder.identity()?) => {
                return repository.put_right(account);
            }
            // Somebody outside has replaced it: nobody has looked at what is there now.
            Git::Repository(_) | Git::Nothing => {}
        }
        match (top.kind(".git"), top.inner(".git")) {
            (Ok(None), _) => {}
            (Ok(Some(FileType::Directory)), Ok(folder)) => repository::put_new_right(folder, account),
            // A file or a link leads to a repository whose hooks nobody has looked at.
            _ => top.set_aside(".git", &mut account.told),
        }
        Ok(())
    }
}

/// Makes an entry read-only.
fn close(view: &View<'_>, top: &Folder, name: &str) -> io::Result<()> {
    view.seal(top.handle_of(name)?).map(drop)
}

/// Whether git would take the folder itself for a repository.
fn is_repository(top: &Folder) -> io::Result<bool> {
    let is_there = |name: &str| Ok::<_, io::Error>(top.kind(name)?.is_some());
    let [head, objects, refs, common] = MARKS;
    Ok(is_there(head)? && (is_there(common)? || is_there(objects)? && is_there(refs)?))
}

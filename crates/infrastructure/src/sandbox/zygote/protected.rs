//! Names in a root that a run must not change, because programs outside act on them.
//!
//! What is there is closed while the run lives. What is not there cannot be held: it is put right after the run, when
//! nothing of it lives any more. Whatever cannot be put right is told as not to be trusted.

mod folder;
mod ground;
mod inner;
mod known;
mod repository;
mod texts;

use super::{
    mount,
    request::{self, Aftermath, Failure, Request, Step},
    view::View,
};
use folder::{Folder, Work, shown};
use ground::Ground;
use known::Known;
use repository::Repository;
use rustix::fs::{FileType, fstat};
use std::{
    io,
    path::{Path, PathBuf},
    time::Duration,
};

/// Settings of this runtime and of agents.
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
    // What an editor runs, when the folder is opened in it.
    ".vscode/launch.json",
    ".vscode/mcp.json",
    ".vscode/settings.json",
    ".vscode/tasks.json",
];
/// What a shell or a tool executes when its user comes home; protected in the home folder.
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
/// How long it is waited for locks of git after a run, all in all. Git has one for a moment, and the work that follows has
/// a second when Toolstead itself ends.
const PATIENCE: Duration = Duration::from_millis(400);
/// What makes any folder a repository for git: the first, and the last or both of the others.
pub(super) const MARKS: [&str; 4] = ["HEAD", "objects", "refs", "commondir"];

/// What is watched during a run and put right after it.
#[derive(Debug)]
pub(super) struct Protected {
    ground: Ground,
    roots: Vec<Root>,
}

/// What one look at a root after a run goes by, and what comes of it.
#[derive(Debug)]
struct Account<'a> {
    ground: &'a Ground,
    known: &'a Known,
    told: &'a mut Aftermath,
    /// How long it is still waited for locks that somebody has.
    patience: Duration,
}

#[derive(Debug)]
struct Root {
    top: Folder,
    known: Known,
    closed: Vec<Closed>,
    /// Names that were not there.
    missing: Vec<&'static str>,
    git: Git,
    bare: Bare,
}

/// A name that was there and is closed.
#[derive(Debug)]
struct Closed {
    name: &'static str,
    /// Whether it was there for all runs that lived.
    is_known: bool,
}

/// What stood under `.git`.
#[derive(Debug)]
enum Git {
    Nothing,
    /// A file, which is closed, or what a rule closes. These repositories in roots are what the file leads to.
    Closed(Vec<Led>),
    Repository(Repository),
}

/// A repository that a file leads to; `None`: it was not there.
#[derive(Debug)]
struct Led(PathBuf, Option<Repository>);

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
    pub(super) fn guard(view: &mut View<'_>, request: &Request) -> Result<Self, Failure> {
        let ground = Ground::of(view, request)?;
        let mut roots = Vec::new();
        for folder in request.folders.iter().filter(|folder| folder.is_root && folder.is_writable) {
            let step = || format!("protect names in `{}`", folder.target.display());
            let handle = view.found(&folder.target).step(step)?;
            // A root may be a file, which holds no names.
            let found = fstat(&handle).step(step)?;
            if FileType::from_raw_mode(found.st_mode) == FileType::Directory {
                let top = Folder::of(handle, folder.target.clone());
                let known = Known::begin(&top).step(step)?;
                let mut root = Root::guard(view, top, known, &ground, is_home(folder, request))?;
                root.known.publish().step(step)?;
                roots.push(root);
            }
        }
        Ok(Self { ground, roots })
    }

    /// Puts right what the run did, once nothing of it lives any more.
    pub(super) fn undo(&self) -> Aftermath {
        let (mut told, mut patience) = (Aftermath::default(), PATIENCE);
        for root in &self.roots {
            let mut account = Account { ground: &self.ground, known: &root.known, told: &mut told, patience };
            let undone = root.undo(&mut account);
            patience = account.patience;
            if let Err(error) = undone {
                told.left(format!(
                    "protected names in `{}` could not be looked at ({error}): look at the settings of agents and at \
                     `.git` before git or an agent is used there",
                    shown(&root.top.path)
                ));
            }
        }
        told
    }
}

/// Whether the folder is a home: the user's, or the one that the run is told.
pub(super) fn is_home(folder: &request::Folder, request: &Request) -> bool {
    request.environment.get("HOME").is_some_and(|home| Path::new(home) == folder.target)
        || request.own_home.as_ref().is_some_and(|home| *home == folder.source)
}

impl Root {
    fn guard(
        view: &mut View<'_>,
        top: Folder,
        mut known: Known,
        ground: &Ground,
        is_home: bool,
    ) -> Result<Self, Failure> {
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
                    // Looked up anew, beneath what was just mounted.
                    let (folder, _) = holder(&top, name).step(step)?.unwrap_or((folder, last));
                    close(view, &folder, last).step(step)?;
                    closed.push(Closed { name, is_known: known.note(&path, b"") });
                }
            }
        }
        let path = top.path.join(".git");
        let step = || format!("protect `{}`", path.display());
        let git = match top.kind(".git").step(step)? {
            None => Git::Nothing,
            Some(FileType::Directory) if !top.is_closed(".git") => {
                let folder = Folder::of(view.pinned(&path).step(step)?, path.clone());
                Git::Repository(Repository::guard(view, folder, ground, &mut known).step(step)?)
            }
            Some(kind) => {
                close(view, &top, ".git").step(step)?;
                closed.push(Closed { name: ".git", is_known: known.note(&path, b"") });
                let led =
                    if kind == FileType::RegularFile { led(view, &top, ground, &mut known) } else { Ok(Vec::new()) };
                Git::Closed(led.step(|| format!("protect what `{}` leads to", path.display()))?)
            }
        };
        let step = || format!("protect the repository `{}`", top.path.display());
        let bare = if !is_repository(&top).step(step)? {
            Bare::Without(MARKS.into_iter().filter(|name| matches!(top.kind(name), Ok(None))).collect())
        } else if known.note(&top.path, b"") {
            let folder = top.try_clone().step(step)?;
            Bare::Repository(Repository::guard(view, folder, ground, &mut known).step(step)?)
        } else {
            Bare::Without(MARKS.into())
        };
        Ok(Self { top, known, closed, missing, git, bare })
    }

    fn undo(&self, account: &mut Account<'_>) -> io::Result<()> {
        let top = self.top.try_clone()?.opened();
        for name in &self.missing {
            set_aside(&top, name, account.told);
        }
        for Closed { name, is_known } in &self.closed {
            let is_open = match holder(&top, name) {
                Ok(Some((folder, last))) => {
                    let folder = folder.opened();
                    !matches!(folder.kind(last), Ok(None)) && !folder.is_closed(last)
                }
                Ok(None) => false,
                Err(_) => true,
            };
            // A name that somebody gave to something else is open.
            if is_open && *is_known {
                account.told.left(format!(
                    "`{}` was replaced while this command ran, and whether by it cannot be told: look at it before git \
                     or an agent is used there",
                    shown(&top.path.join(name))
                ));
            } else if is_open {
                set_aside(&top, name, account.told);
            }
        }
        self.undo_git(&top, account)?;
        let marks = match &self.bare {
            Bare::Repository(repository) => return repository.put_right(account),
            Bare::Without(marks) => marks,
        };
        for name in marks {
            if is_repository(&top).unwrap_or(true) && !matches!(top.kind(name), Ok(None)) {
                top.set_aside(name, account.told);
            }
        }
        Ok(())
    }

    fn undo_git(&self, top: &Folder, account: &mut Account<'_>) -> io::Result<()> {
        match &self.git {
            Git::Closed(led) => {
                for Led(path, repository) in led {
                    match (repository, mount::open_exactly(path)) {
                        (Some(repository), _) => repository.put_right(account)?,
                        (None, Ok(handle)) => repository::put_new_right(Folder::of(handle, path.clone()), account),
                        (None, Err(error)) if error.kind() == io::ErrorKind::NotFound => {}
                        (None, Err(error)) => return Err(error),
                    }
                }
                return Ok(());
            }
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
            _ => top.set_aside(".git", account.told),
        }
        Ok(())
    }
}

/// Tells whether nothing stands under a name, as is the rule: one look tells, and no handle is needed for it.
fn is_absent(top: &Folder, name: &str) -> bool {
    matches!(top.kind(first_of(name)), Ok(None))
}

fn first_of(name: &str) -> &str {
    name.split('/').next().unwrap_or(name)
}

/// The folder that holds a name, which may be one within a folder, and the name there. `None`: that folder is not there.
fn holder<'a>(top: &Folder, name: &'a str) -> io::Result<Option<(Folder, &'a str)>> {
    let Some((folder, name)) = name.rsplit_once('/') else { return Ok(Some((top.try_clone()?, name))) };
    if top.kind(folder)?.is_none() {
        return Ok(None);
    }
    Ok(Some((top.inner(folder)?, name)))
}

/// Takes a name out of the way, if something stands there.
fn set_aside(top: &Folder, name: &str, told: &mut Aftermath) {
    if is_absent(top, name) {
        return;
    }
    match holder(top, name).map(|held| held.map(|(folder, name)| (folder.opened(), name))) {
        Ok(None) => {}
        Ok(Some((folder, name))) => {
            if !matches!(folder.kind(name), Ok(None)) {
                folder.set_aside(name, told);
            }
        }
        // A link or a file stands where the folder was not.
        Err(_) => top.set_aside(first_of(name), told),
    }
}

/// The repositories in roots that the file `.git` leads to: its own, and the one that this belongs to.
fn led(view: &mut View<'_>, top: &Folder, ground: &Ground, known: &mut Known) -> io::Result<Vec<Led>> {
    let Some(text) = top.text(".git", &mut Work::new())? else { return Ok(Vec::new()) };
    let Some(path) = text.bytes.strip_prefix(b"gitdir: ").and_then(|path| ground.root_of(path, &top.path)) else {
        return Ok(Vec::new());
    };
    let mut led = Vec::new();
    let mut next = Some(path);
    while let (Some(path), ..2) = (next.take(), led.len()) {
        let folder = match view.pinned(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                led.push(Led(path, None));
                break;
            }
            handle => Folder::of(handle?, path),
        };
        if let Some(text) = folder.text("commondir", &mut Work::new())? {
            next = ground.root_of(&text.bytes, &folder.path);
        }
        led.push(Led(folder.path.clone(), Some(Repository::guard(view, folder, ground, known)?)));
    }
    Ok(led)
}

/// Makes an entry read-only.
fn close(view: &mut View<'_>, top: &Folder, name: &str) -> io::Result<()> {
    view.seal(&top.path.join(name), top.handle_of(name)?)
}

/// Whether git would take the folder itself for a repository.
fn is_repository(top: &Folder) -> io::Result<bool> {
    let is_there = |name: &str| Ok::<_, io::Error>(top.kind(name)?.is_some());
    let [head, objects, refs, common] = MARKS;
    Ok(is_there(head)? && (is_there(common)? || is_there(objects)? && is_there(refs)?))
}

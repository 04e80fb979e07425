//! Names in a root that a run must not change, because programs outside act on them.

use super::{
    init::ROOT_FLAGS,
    mount,
    request::{Failure, Request, Step},
    view::View,
};
use rustix::fs::{AtFlags, FileType, OFlags, RenameFlags, renameat_with, statat};
use std::{
    io,
    os::fd::OwnedFd,
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

/// What is watched during a run and put right after it.
#[derive(Debug, Default)]
pub(super) struct Protected {
    roots: Vec<Root>,
}

#[derive(Debug)]
struct Root {
    path: PathBuf,
    top: OwnedFd,
    /// Names that were not there.
    missing: Vec<&'static str>,
}

impl Protected {
    /// Closes what is there and notes what is not. A symbolic link under a protected name fails the run: what it leads
    /// to could not be held.
    pub(super) fn guard(view: &View<'_>, request: &Request) -> Result<Self, Failure> {
        let mut roots = Vec::new();
        for folder in request.folders.iter().filter(|folder| folder.is_root && folder.is_writable) {
            let step = || format!("protect names in `{}`", folder.target.display());
            let top = mount::open_beneath(&view.root, &folder.target, OFlags::PATH).step(step)?;
            if kind(&top, ".").step(step)? != Some(FileType::Directory) {
                continue;
            }
            let is_home = request.environment.get("HOME").is_some_and(|home| Path::new(home) == folder.target);
            let names = SETTINGS.iter().chain(START_FILES.iter().filter(|_| is_home));
            let mut missing = Vec::new();
            for name in names {
                let path = folder.target.join(name);
                let step = || format!("protect `{}`", path.display());
                match kind(&top, name).step(step)? {
                    None => missing.push(*name),
                    Some(_) => {
                        let place = mount::open_beneath(&top, Path::new(name), OFlags::PATH).step(step)?;
                        view.seal(place).step(step)?;
                    }
                }
            }
            let top = mount::open_beneath(&view.root, &folder.target, ROOT_FLAGS).step(step)?;
            roots.push(Root { path: folder.target.clone(), top, missing });
        }
        Ok(Self { roots })
    }

    /// Puts right what the run did, once nothing of it lives any more. One line for each thing.
    pub(super) fn undo(&self) -> Vec<String> {
        let mut lines = Vec::new();
        for root in &self.roots {
            for name in &root.missing {
                if matches!(kind(&root.top, name), Ok(None)) {
                    continue;
                }
                lines.push(set_aside(&root.top, name, &root.path));
            }
        }
        lines
    }
}

/// What stands under a name; `None`: nothing.
fn kind(folder: &OwnedFd, name: &str) -> io::Result<Option<FileType>> {
    match statat(folder, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(found) => Ok(Some(FileType::from_raw_mode(found.st_mode))),
        Err(rustix::io::Errno::NOENT) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Gives an entry a name that nobody acts on.
fn set_aside(folder: &OwnedFd, name: &str, path: &Path) -> String {
    let shown = path.join(name);
    for number in 0..100 {
        let aside = if number == 0 { format!("{name}.refused") } else { format!("{name}.refused-{number}") };
        match renameat_with(folder, name, folder, aside.as_str(), RenameFlags::NOREPLACE) {
            Ok(()) => {
                return format!("`{}` is protected and was made by this command; it is now `{aside}`", shown.display());
            }
            Err(rustix::io::Errno::EXIST) => {}
            Err(error) => return format!("`{}` is protected and could not be put aside: {error}", shown.display()),
        }
    }
    format!("`{}` is protected and could not be put aside: too many of them are there", shown.display())
}

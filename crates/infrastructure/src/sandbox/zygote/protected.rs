//! Names in a root that a run must not change, because programs outside act on them.

use super::{
    git_config,
    mount::{self, Bars},
    request::{Failure, Request, Step},
    view::View,
};
use rustix::{
    fs::{AtFlags, Dir, FileType, Mode, OFlags, RenameFlags, fstat, openat, renameat, renameat_with, statat, unlinkat},
    io::Errno,
};
use std::{
    fs::File,
    io::{self, Read, Write},
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
    git: Git,
}

/// What stood under `.git`.
#[derive(Debug)]
enum Git {
    Nothing,
    /// A file that names a repository elsewhere.
    File,
    Repository {
        folder: OwnedFd,
        has_hooks: bool,
        config: Option<Vec<u8>>,
    },
}

impl Protected {
    /// Closes what is there and notes what is not. A symbolic link under a protected name fails the run: what it leads
    /// to could not be held.
    pub(super) fn guard(view: &View<'_>, request: &Request) -> Result<Self, Failure> {
        let mut roots = Vec::new();
        for folder in request.folders.iter().filter(|folder| folder.is_root && folder.is_writable) {
            let step = || format!("protect names in `{}`", folder.target.display());
            let top = view.found(&folder.target).step(step)?;
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
            let git = guard_git(view, &top).map_err(|error| Failure {
                step: format!("protect `{}`", folder.target.join(".git").display()),
                reason: error.to_string(),
            })?;
            roots.push(Root { path: folder.target.clone(), top, missing, git });
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
            root.undo_git(&mut lines);
        }
        lines
    }
}

impl Root {
    fn undo_git(&self, lines: &mut Vec<String>) {
        let path = self.path.join(".git");
        match &self.git {
            Git::File => {}
            Git::Repository { folder, has_hooks, config } => {
                if !has_hooks {
                    undo_hooks(folder, &path, lines);
                }
                undo_config(folder, config.as_deref(), &path, lines);
            }
            Git::Nothing => match kind(&self.top, ".git") {
                Ok(None) => {}
                Ok(Some(FileType::Directory)) => {
                    match mount::open_beneath(&self.top, Path::new(".git"), OFlags::PATH | OFlags::DIRECTORY) {
                        Ok(folder) => {
                            undo_hooks(&folder, &path, lines);
                            undo_config(&folder, None, &path, lines);
                        }
                        Err(_) => lines.push(set_aside(&self.top, ".git", &self.path)),
                    }
                }
                // A file or a link leads to a repository whose hooks nobody has looked at.
                _ => lines.push(set_aside(&self.top, ".git", &self.path)),
            },
        }
    }
}

/// Pins `.git`, so that it cannot be replaced as a whole, and closes its hooks. Its settings stay open: `git config` is
/// ordinary work.
fn guard_git(view: &View<'_>, top: &OwnedFd) -> io::Result<Git> {
    let found = kind(top, ".git")?;
    if found.is_none() {
        return Ok(Git::Nothing);
    }
    let place = mount::open_beneath(top, Path::new(".git"), OFlags::PATH)?;
    if found != Some(FileType::Directory) {
        view.seal(place)?;
        return Ok(Git::File);
    }
    let tree = mount::copy(&place)?;
    mount::bar(&tree, Bars::WRITABLE)?;
    mount::attach(tree, place)?;
    let folder = mount::open_beneath(top, Path::new(".git"), OFlags::PATH | OFlags::DIRECTORY)?;
    let has_hooks = kind(&folder, "hooks")?.is_some();
    if has_hooks {
        view.seal(mount::open_beneath(&folder, Path::new("hooks"), OFlags::PATH)?)?;
    }
    let config = kind(&folder, "config")?.map(|_| contents(&folder)).transpose()?;
    Ok(Git::Repository { folder, has_hooks, config })
}

/// The text of `config`, which must be a plain file.
fn contents(git: &OwnedFd) -> io::Result<Vec<u8>> {
    let file = mount::open_beneath(git, Path::new("config"), OFlags::RDONLY | OFlags::NONBLOCK)?;
    let found = fstat(&file)?;
    let is_usual = FileType::from_raw_mode(found.st_mode) == FileType::RegularFile;
    if !is_usual || usize::try_from(found.st_size).is_ok_and(|size| size > git_config::MAX_BYTES) {
        return Err(io::Error::other("`config` is no plain file, or too large"));
    }
    let mut text = Vec::new();
    File::from(file).take(git_config::MAX_BYTES as u64 + 1).read_to_end(&mut text)?;
    Ok(text)
}

/// Hooks that appeared in a folder that was not there before. Samples are no hooks.
fn undo_hooks(git: &OwnedFd, path: &Path, lines: &mut Vec<String>) {
    match kind(git, "hooks") {
        Ok(None) => return,
        Ok(Some(FileType::Directory)) => {}
        _ => return lines.push(set_aside(git, "hooks", path)),
    }
    let flags = OFlags::RDONLY | OFlags::DIRECTORY;
    let listed = mount::open_beneath(git, Path::new("hooks"), flags)
        .and_then(|folder| Ok((Dir::read_from(&folder)?.take(4096).flatten().collect::<Vec<_>>(), folder)));
    let Ok((entries, folder)) = listed else { return lines.push(set_aside(git, "hooks", path)) };
    for entry in entries {
        let name = entry.file_name().to_string_lossy();
        if name != "." && name != ".." && !name.ends_with(".sample") && !name.contains(".refused") {
            lines.push(set_aside(&folder, &name, &path.join("hooks")));
        }
    }
}

/// Settings that make git run a program and were not there before.
fn undo_config(git: &OwnedFd, before: Option<&[u8]>, path: &Path, lines: &mut Vec<String>) {
    if before.is_none() && matches!(kind(git, "config"), Ok(None)) {
        return;
    }
    let text = contents(git).ok();
    if text.as_deref() == before {
        return;
    }
    let known = before.map(String::from_utf8_lossy).map(|text| git_config::running(&text)).unwrap_or_default();
    let shown = path.join("config");
    let Some(text) = text.and_then(|text| String::from_utf8(text).ok()) else {
        // What cannot be judged gives way to what was there.
        if !matches!(kind(git, "config"), Ok(None)) {
            lines.push(set_aside(git, "config", path));
        }
        if let Some(before) = before
            && replace(git, before).is_ok()
        {
            lines.push(format!("`{}` is as it was before this command", shown.display()));
        }
        return;
    };
    if let Some((cleaned, keys)) = git_config::cleaned(&text, &known) {
        let keys = keys.join("`, `");
        lines.push(match replace(git, cleaned.as_bytes()) {
            Ok(()) => format!(
                "`{keys}` can make git run a program, so it was taken out of `{}` again; set it outside of commands",
                shown.display()
            ),
            Err(_) => set_aside(git, "config", path),
        });
    }
}

/// Writes `config` anew.
fn replace(git: &OwnedFd, text: &[u8]) -> io::Result<()> {
    const NEW: &str = "config.toolstead";
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let _ = unlinkat(git, NEW, AtFlags::empty());
    let mut file = File::from(openat(git, NEW, flags, Mode::from_raw_mode(0o644))?);
    file.write_all(text)?;
    Ok(renameat(git, NEW, git, "config")?)
}

/// What stands under a name; `None`: nothing.
fn kind(folder: &OwnedFd, name: &str) -> io::Result<Option<FileType>> {
    match statat(folder, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(found) => Ok(Some(FileType::from_raw_mode(found.st_mode))),
        Err(Errno::NOENT) => Ok(None),
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
            Err(Errno::EXIST) => {}
            Err(error) => return format!("`{}` is protected and could not be put aside: {error}", shown.display()),
        }
    }
    format!("`{}` is protected and could not be put aside: too many of them are there", shown.display())
}

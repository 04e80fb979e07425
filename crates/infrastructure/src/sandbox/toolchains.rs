//! Folders that a program needs to run, in addition to system folders: its installation, and the programs on its
//! `PATH`.
//!
//! Content that runs can write must not decide what the next run sees. For a link in such a folder, or the first line
//! of a script there, only known installation folders are shown, such as `~/.pyenv` for the `python` of a virtual
//! environment.

mod managers;
pub(super) mod toolchain_cache;

use crate::sandbox::{
    toolchains::{
        managers::InstallationFolder,
        toolchain_cache::{Link, LinkAndInterpreterCache},
    },
    writable_roots::{PathKindCache, ResolvedPath, WritableRoots},
};
use std::{
    collections::{BTreeSet, HashMap, HashSet},
    ffi::OsString,
    fs::{self, File, Metadata},
    io::{BufRead, BufReader, Read},
    mem,
    os::unix::fs::OpenOptionsExt,
    path::{Component, Path, PathBuf},
    rc::Rc,
};

/// Maximum number of symbolic links and interpreters that are followed from one program.
const MAX_HOPS: usize = 16;
/// System folders, which every run sees.
const SYSTEM: [&str; 8] = ["usr", "bin", "sbin", "lib", "lib32", "lib64", "libx32", "etc"];
/// Folders in `/` that the kernel and running services create. They contain no files of users, but many interfaces to
/// the kernel and the services.
const MACHINE: [&str; 4] = ["proc", "sys", "dev", "run"];
/// Folder where removable disks are mounted.
const PLUGGED_IN: &str = "/run/media";
/// Folders beside `bin` that programs of an installation need and that contain no settings.
const PARTS: [&str; 3] = ["lib", "lib64", "libexec"];
/// Targets of links in `~/.local/bin`: installations of Python, pipx and uv.
const LOCAL_TOOLS: [&str; 5] =
    [".local/share/uv/python", ".local/share/uv/tools", ".local/share/pipx", ".local/pipx", ".local/lib"];

/// Collection of the folders that must be readable in a run, so that the programs on its `PATH` work.
#[derive(Debug)]
pub(super) struct ToolchainFolderCollector<'a> {
    home: Option<PathBuf>,
    writable: &'a WritableRoots,
    folders: BTreeSet<PathBuf>,
    links: PathKindCache,
    cache: Option<&'a LinkAndInterpreterCache>,
    resolved_paths: HashMap<OsString, Option<ResolvedPath>>,
    /// Programs that were followed already, each with `true` if runs could influence the path to it.
    followed: HashSet<(OsString, bool)>,
    /// Folders that were added or rejected already.
    known: HashSet<OsString>,
    /// Visible parts of known installation folders, by the path of the folder relative to the home folder.
    parts: HashMap<&'static str, Rc<[PathBuf]>>,
}

impl<'a> ToolchainFolderCollector<'a> {
    /// Creates the collection. `home` is the runtime's own home folder.
    pub(super) fn new(home: Option<&Path>, writable: &'a WritableRoots) -> Self {
        let real = |home: &Path| fs::canonicalize(home).unwrap_or_else(|_| home.to_owned());
        let home = home.map(real).filter(|home| *home != Path::new("/"));
        Self {
            home,
            writable,
            folders: BTreeSet::new(),
            links: PathKindCache::default(),
            cache: None,
            resolved_paths: HashMap::new(),
            followed: HashSet::new(),
            known: HashSet::new(),
            parts: HashMap::new(),
        }
    }

    /// Sets the links that earlier lookups found, so that they are not read again.
    pub(super) fn over(self, links: PathKindCache) -> Self {
        Self { links, ..self }
    }

    /// Adds a cache, so that unchanged folders are not read again. Folders that runs write to are read each time.
    pub(super) fn remembering(self, remembered: &'a LinkAndInterpreterCache) -> Self {
        Self { cache: Some(remembered), ..self }
    }

    /// Removes and returns the links that were found, so that other lookups do not read them again.
    pub(super) fn take_links(&mut self) -> PathKindCache {
        mem::take(&mut self.links)
    }

    /// Adds the folders that the programs in the folders of `path`, a value of `PATH`, need. Ignores relative folders.
    pub(super) fn add_path(&mut self, path: &str) {
        for folder in path.split(':').map(Path::new).filter(|folder| folder.is_absolute()) {
            let Some(way) = self.resolve(folder) else { continue };
            if !way.is_run_controlled && !is_system_path(&way.real) {
                self.add_bin(&way.real);
                let read = || links_in(&way.real);
                let links = self.cache.map_or_else(|| read().into(), |known| known.links(&way.real, read));
                self.add_links(&way.real, &links);
            } else if self.writable.hold(&way.real) {
                self.add_links(&way.real, &links_in(&way.real));
            } else if way.is_run_controlled {
                self.add_known_place_of(&way.real);
            }
        }
    }

    /// Adds the folders that one program needs: its own installation, and that of its interpreter.
    pub(super) fn add_program(&mut self, program: &Path) {
        self.add_link(program.to_owned(), None);
    }

    /// Adds the folders of a program. `end` is the target if the program is a link whose target is known.
    fn add_link(&mut self, mut program: PathBuf, mut end: Option<&Path>) {
        let mut is_theirs = false;
        for _ in 0..MAX_HOPS {
            if !self.followed.insert((program.clone().into(), is_theirs)) {
                return;
            }
            let (Some(folder), Some(name)) = (program.parent(), program.file_name()) else { return };
            let Some(way) = self.resolve(folder) else { return };
            let (folder, path) = (&way.real, way.real.join(name));
            // Once runs can influence the path, they can influence everything that follows.
            is_theirs |= way.is_run_controlled || self.writable.hold(&path);
            if is_theirs {
                if !self.writable.hold(&path) && !self.add_known_place_of(folder) {
                    return;
                }
            } else if self.is_settings(folder) {
                self.add(&path);
            } else if !is_system_path(folder) {
                self.add_bin(folder);
                if self.manager_of(folder).is_some() {
                    self.add(&path);
                }
            }
            let target = end.take().map_or_else(|| fs::read_link(&path).ok(), |end| Some(end.to_owned()));
            program = match target {
                Some(target) => folder.join(target),
                None => match interpreter(&path, self.cache.filter(|_| !is_theirs)) {
                    Some(interpreter) => interpreter,
                    None => return,
                },
            };
        }
    }

    /// Returns the folders, without those within another one.
    pub(super) fn into_folders(self) -> Vec<PathBuf> {
        let mut outer: Vec<PathBuf> = Vec::new();
        // In sorted order, a folder directly precedes those within it.
        for folder in self.folders {
            if !outer.last().is_some_and(|last| folder.starts_with(last)) {
                outer.push(folder);
            }
        }
        outer
    }

    /// Adds a folder with programs, given by its canonical path, and the installation to which it belongs. In the home
    /// folder, parts that may contain settings or credentials are left out.
    pub(super) fn add_bin(&mut self, folder: &Path) {
        let parent = folder.parent().unwrap_or(folder);
        let name = folder.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let of_home = self.relative_to_home(parent);
        if let Some(of_home) = &of_home {
            match of_home.to_str() {
                Some(".cargo") => {
                    // The folder beside it contains the credentials of registries.
                    self.add(&parent.with_file_name(".rustup"));
                    return self.add(folder);
                }
                Some(".local") => {
                    for place in LOCAL_TOOLS {
                        self.add_installation(&parent.with_file_name(place));
                    }
                    return self.add(folder);
                }
                _ => {}
            }
        }
        let installed = match name {
            "bin" | "sbin" | "shims" => parent,
            ".bin" if parent.ends_with("node_modules") => parent,
            _ => folder,
        };
        let Some(of_home) = of_home.filter(|_| installed != folder) else { return self.add_installation(installed) };
        if is_installation(parent, &of_home) {
            return self.add_installation(installed);
        }
        // The folder beside it may contain work of the user, or credentials of the program.
        self.add(folder);
        if of_home.components().next().is_some_and(|first| first.as_os_str().as_encoded_bytes().starts_with(b".")) {
            for part in PARTS {
                self.add(&parent.join(part));
            }
        }
    }

    /// Adds the installations that links in a folder point to.
    fn add_links(&mut self, folder: &Path, links: &[Link]) {
        links.iter().for_each(|Link { name, end }| self.add_link(folder.join(name), Some(end)));
    }

    /// Adds all parts of the known installation folder that contains a folder, because they refer to one another.
    /// Returns `false` if there is none.
    fn add_known_place_of(&mut self, folder: &Path) -> bool {
        let Some((manager, place)) = self.manager_of(folder) else { return false };
        for part in self.parts_of(manager, &place).iter() {
            self.add(part);
        }
        true
    }

    /// Adds an installation. Of a known installation folder, only the parts without credentials are added.
    fn add_installation(&mut self, installed: &Path) {
        let Some((manager, place)) = self.manager_of(installed) else { return self.add(installed) };
        let parts = self.parts_of(manager, &place);
        if parts.iter().any(|part| installed.starts_with(part)) {
            return self.add(installed);
        }
        let is_one_of_many = parts.iter().any(|part| part.starts_with(installed));
        for part in parts.iter().filter(|part| !is_one_of_many || part.starts_with(installed)) {
            self.add(part);
        }
    }

    fn parts_of(&mut self, manager: &InstallationFolder, place: &Path) -> Rc<[PathBuf]> {
        self.parts.entry(manager.folder).or_insert_with(|| manager.parts_in(place).into()).clone()
    }

    fn resolve(&mut self, path: &Path) -> Option<ResolvedPath> {
        if let Some(way) = self.resolved_paths.get(path.as_os_str()) {
            return way.clone();
        }
        let way = self.writable.resolve_with_links(&mut self.links, path);
        self.resolved_paths.insert(path.into(), way.clone());
        way
    }

    /// Returns the known installation folder that contains a folder, and the absolute path of the installation folder.
    fn manager_of(&self, folder: &Path) -> Option<(&'static InstallationFolder, PathBuf)> {
        let manager = managers::of(&self.relative_to_home(folder)?)?;
        Some((manager, self.home.as_ref()?.join(manager.folder)))
    }

    fn relative_to_home(&self, folder: &Path) -> Option<PathBuf> {
        folder.strip_prefix(self.home.as_ref()?).ok().map(Path::to_owned)
    }

    /// Returns `true` for a folder such as `~/.tool`, which usually contains settings.
    fn is_settings(&self, folder: &Path) -> bool {
        self.relative_to_home(folder).is_some_and(|of_home| {
            of_home.components().count() == 1
                && of_home.as_os_str().as_encoded_bytes().starts_with(b".")
                && !is_installation(folder, &of_home)
        })
    }

    /// Adds a folder, or a single program, by its real path: it will be mounted, and links cannot be. Ignores paths
    /// that runs can influence, system folders, and folders that contain too much, such as the home folder.
    fn add(&mut self, folder: &Path) {
        if !self.known.insert(folder.into()) {
            return;
        }
        // Folders that runs write to are shown as roots.
        let Some(ResolvedPath { real: folder, is_run_controlled: false }) = self.resolve(folder) else { return };
        let is_too_wide = folder.components().count() < 3 && !folder.starts_with("/nix")
            || self.home.as_ref().is_some_and(|home| home.starts_with(&folder))
            || is_machine_path(&folder);
        if !is_too_wide && !is_system_path(&folder) {
            self.folders.insert(if folder.starts_with("/nix") { "/nix".into() } else { folder });
        }
    }
}

/// Returns `true` if every run sees the folder.
pub(super) fn is_system_path(path: &Path) -> bool {
    is_within_any(path, &SYSTEM)
}

/// Returns `true` if the kernel or a running service creates the files at this path. Removable disks do not count. Runs
/// do not see the host's files at such paths.
pub(super) fn is_machine_path(path: &Path) -> bool {
    is_within_any(path, &MACHINE) && !path.starts_with(PLUGGED_IN)
}

/// Returns `true` if an absolute path is one of these folders of `/`, or in one of them.
fn is_within_any(path: &Path, folders: &[&str]) -> bool {
    let mut parts = path.components();
    match (parts.next(), parts.next()) {
        (Some(Component::RootDir), Some(Component::Normal(name))) => folders.iter().any(|folder| name == *folder),
        _ => false,
    }
}

/// Returns `true` if a folder in the home folder is an installation, or within a known one. `of_home` is its path
/// relative to the home folder.
fn is_installation(folder: &Path, of_home: &Path) -> bool {
    managers::of(of_home).is_some()
        || folder.join("conda-meta").is_dir()
        || folder.join("pyvenv.cfg").is_file()
        || folder.ends_with("node_modules")
}

/// Returns the symbolic links among the first 1,000 entries of a folder; none if it cannot be read. The target of a
/// link never changes: only another link can replace it.
fn links_in(folder: &Path) -> Vec<Link> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten().take(1000);
    let links = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_symlink()));
    links.filter_map(|link| Some(Link { name: link.file_name(), end: fs::read_link(link.path()).ok()? })).collect()
}

/// Returns the interpreter in the first line of a script, if its path is absolute.
fn interpreter(script: &Path, remembered: Option<&LinkAndInterpreterCache>) -> Option<PathBuf> {
    // Opening some devices has side effects.
    let found = fs::metadata(script).ok().filter(Metadata::is_file)?;
    match remembered {
        Some(remembered) => remembered.interpreter(script, &found, || first_line_of(script)),
        None => first_line_of(script),
    }
}

fn first_line_of(script: &Path) -> Option<PathBuf> {
    let mut line = String::new();
    // If the file was replaced by a pipe, opening it would otherwise wait for a writer.
    let file = File::options().read(true).custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY).open(script).ok();
    let file = file.filter(|file| file.metadata().is_ok_and(|found| found.is_file()))?;
    BufReader::new(file.take(256)).read_line(&mut line).ok()?;
    let interpreter = line.strip_prefix("#!")?.split_whitespace().next()?;
    Path::new(interpreter).is_absolute().then(|| interpreter.into())
}

#[cfg(test)]
mod tests;

//! Which folders beside the system's a program needs to run: where it is installed, and where the programs on its
//! `PATH` are.

use std::{
    collections::BTreeSet,
    fs::{self, File},
    io::{BufRead, BufReader, Read},
    path::{Component, Path, PathBuf},
};

/// Symbolic links and interpreters are followed so far.
const MAX_HOPS: usize = 16;
/// Folders of the system, which every run sees.
const SYSTEM: [&str; 8] = ["/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc"];
/// What `~/.local/bin` leads to: Python's and uv's installations.
const LOCAL_TOOLS: [&str; 4] = ["share/uv", "share/pipx", "pipx", "lib"];

/// Collects folders that are to be readable.
#[derive(Debug)]
pub(super) struct Toolchains<'a> {
    home: Option<&'a Path>,
    folders: BTreeSet<PathBuf>,
}

impl<'a> Toolchains<'a> {
    /// `home` is the runtime's own home folder.
    pub(super) fn new(home: Option<&'a Path>) -> Self {
        Self { home: home.filter(|home| *home != Path::new("/")), folders: BTreeSet::new() }
    }

    /// What the programs on a `PATH` need.
    pub(super) fn add_path(&mut self, path: &str) {
        for folder in path.split(':').map(Path::new).filter(|folder| folder.is_absolute()) {
            if let Ok(folder) = fs::canonicalize(folder)
                && !is_of_system(&folder)
            {
                self.add_bin(&folder);
                self.add_links(&folder);
            }
        }
    }

    /// What one program needs: its own installation, and that of its interpreter.
    pub(super) fn add_program(&mut self, program: &Path) {
        let mut program = program.to_owned();
        for _ in 0..MAX_HOPS {
            let (Some(folder), Some(name)) = (program.parent(), program.file_name()) else { return };
            let Ok(folder) = fs::canonicalize(folder) else { return };
            if !is_of_system(&folder) {
                self.add_bin(&folder);
            }
            let path = folder.join(name);
            program = match fs::read_link(&path) {
                Ok(target) => folder.join(target),
                Err(_) => match interpreter(&path) {
                    Some(interpreter) => interpreter,
                    None => return,
                },
            };
        }
    }

    /// The folders, none of them within another.
    pub(super) fn into_folders(self) -> Vec<PathBuf> {
        let mut outer: Vec<PathBuf> = Vec::new();
        // In their order, a folder comes before what it holds.
        for folder in self.folders {
            if !outer.iter().any(|known| folder.starts_with(known)) {
                outer.push(folder);
            }
        }
        outer
    }

    /// A folder with programs; canonical.
    fn add_bin(&mut self, folder: &Path) {
        let parent = folder.parent().unwrap_or(folder);
        let name = folder.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let of_home = self.home.and_then(|home| parent.strip_prefix(home).ok());
        if let Some(of_home) = of_home {
            match of_home.to_str() {
                Some(".cargo") => {
                    // The folder beside it has the credentials of registries.
                    self.add(parent.with_file_name(".rustup"));
                    return self.add(folder.to_owned());
                }
                Some(".local") => {
                    for tool in LOCAL_TOOLS {
                        self.add(parent.join(tool));
                    }
                    return self.add(folder.to_owned());
                }
                _ => {}
            }
        }
        let installed = match name {
            "bin" | "sbin" | "shims" => parent,
            ".bin" if parent.ends_with("node_modules") => parent,
            _ => folder,
        };
        // A folder of the user's own work that has a `bin` is no installation.
        let is_work = of_home.is_some_and(|of_home| {
            !matches!(of_home.components().next(), Some(Component::Normal(first)) if first.as_encoded_bytes().starts_with(b"."))
                && !parent.join("conda-meta").is_dir()
                && !parent.join("pyvenv.cfg").is_file()
                && !parent.ends_with("node_modules")
        });
        self.add(if is_work { folder.to_owned() } else { installed.to_owned() });
    }

    /// Installations that programs of a folder are links into.
    fn add_links(&mut self, folder: &Path) {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten().take(1000) {
            if entry.file_type().is_ok_and(|kind| kind.is_symlink()) {
                self.add_program(&entry.path());
            }
        }
    }

    fn add(&mut self, folder: PathBuf) {
        let is_too_wide = folder.components().count() < 3 && !folder.starts_with("/nix")
            || self.home.is_some_and(|home| home.starts_with(&folder));
        if !is_too_wide && folder.is_dir() {
            self.folders.insert(if folder.starts_with("/nix") { "/nix".into() } else { folder });
        }
    }
}

/// Whether every run sees the folder.
pub(super) fn is_of_system(path: &Path) -> bool {
    SYSTEM.iter().any(|folder| path.starts_with(folder))
}

/// What the first line of a script names, as an absolute path.
fn interpreter(script: &Path) -> Option<PathBuf> {
    let mut line = String::new();
    let file = File::open(script).ok().filter(|file| file.metadata().is_ok_and(|found| found.is_file()))?;
    BufReader::new(file.take(256)).read_line(&mut line).ok()?;
    let interpreter = line.strip_prefix("#!")?.split_whitespace().next()?;
    Path::new(interpreter).is_absolute().then(|| interpreter.into())
}

#[cfg(test)]
mod tests;

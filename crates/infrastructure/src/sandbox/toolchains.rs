//! Which folders beside the system's a program needs to run: where it is installed, and where the programs on its
//! `PATH` are.

use std::{
    collections::BTreeSet,
    fs::{self, File},
    io::{BufRead, BufReader, Read},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
};

/// Symbolic links and interpreters are followed so far.
const MAX_HOPS: usize = 16;
/// Folders of the system, which every run sees.
const SYSTEM: [&str; 8] = ["/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc"];
/// Folders that the kernel and running services make: nobody's work, and full of doors to both.
const MACHINE: [&str; 4] = ["/proc", "/sys", "/dev", "/run"];
/// Where disks that were plugged in stand.
const PLUGGED_IN: &str = "/run/media";
/// Folders of a home that hold installations and no credentials: a program within sees the installation that it is of.
const MANAGERS: [&str; 34] = [
    ".asdf",
    ".bun",
    ".composer/vendor",
    ".config/composer/vendor",
    ".deno",
    ".dotnet",
    ".elan",
    ".fnm",
    ".gem/ruby",
    ".ghcup",
    ".goenv",
    ".jenv",
    ".juliaup",
    ".linuxbrew",
    ".local/share/fnm",
    ".local/share/mise",
    ".local/share/pnpm",
    ".local/share/rtx",
    ".local/share/uv",
    ".nodenv",
    ".npm-global",
    ".npm-packages",
    ".nvm",
    ".opam",
    ".phpenv",
    ".plenv",
    ".pyenv",
    ".rbenv",
    ".rustup",
    ".rvm",
    ".sdkman",
    ".swiftly",
    ".volta",
    ".yarn",
];
/// What programs of an installation need beside their own folder, and what holds no settings.
const PARTS: [&str; 3] = ["lib", "lib64", "libexec"];
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
            let path = folder.join(name);
            if self.is_settings(&folder) {
                self.add(path.clone());
            } else if !is_of_system(&folder) {
                self.add_bin(&folder);
            }
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
        let Some(of_home) = of_home.filter(|_| installed != folder) else { return self.add(installed.to_owned()) };
        if is_installation(parent, of_home) {
            return self.add(installed.to_owned());
        }
        // The folder beside it may be somebody's work, or hold the credentials of the program.
        self.add(folder.to_owned());
        if of_home.components().next().is_some_and(|first| first.as_os_str().as_encoded_bytes().starts_with(b".")) {
            for part in PARTS {
                self.add(parent.join(part));
            }
        }
    }

    /// Installations that programs of a folder are links into.
    fn add_links(&mut self, folder: &Path) {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten().take(1000) {
            if entry.file_type().is_ok_and(|kind| kind.is_symlink()) {
                self.add_program(&entry.path());
            }
        }
    }

    /// Whether it is a folder such as `~/.tool`, which mostly holds the settings of one.
    fn is_settings(&self, folder: &Path) -> bool {
        let of_home = self.home.and_then(|home| folder.strip_prefix(home).ok());
        of_home.is_some_and(|of_home| {
            of_home.components().count() == 1
                && of_home.as_os_str().as_encoded_bytes().starts_with(b".")
                && !is_installation(folder, of_home)
        })
    }

    /// A folder, or a program alone.
    fn add(&mut self, folder: PathBuf) {
        let is_too_wide = folder.components().count() < 3 && !folder.starts_with("/nix")
            || self.home.is_some_and(|home| home.starts_with(&folder))
            || is_of_machine(&folder);
        if !is_too_wide && folder.exists() {
            self.folders.insert(if folder.starts_with("/nix") { "/nix".into() } else { folder });
        }
    }
}

/// Whether every run sees the folder.
pub(super) fn is_of_system(path: &Path) -> bool {
    SYSTEM.iter().any(|folder| path.starts_with(folder))
}

/// Whether the kernel or a running service makes what stands there. No run sees that of the machine.
pub(super) fn is_of_machine(path: &Path) -> bool {
    MACHINE.iter().any(|folder| path.starts_with(folder)) && !path.starts_with(PLUGGED_IN)
}

/// Whether a folder below the home is an installation as a whole.
fn is_installation(folder: &Path, of_home: &Path) -> bool {
    MANAGERS.iter().any(|manager| of_home.starts_with(manager))
        || folder.join("conda-meta").is_dir()
        || folder.join("pyvenv.cfg").is_file()
        || folder.ends_with("node_modules")
}

/// What the first line of a script names, as an absolute path.
fn interpreter(script: &Path) -> Option<PathBuf> {
    let mut line = String::new();
    // Opening a pipe would wait for somebody who writes.
    let file = File::options().read(true).custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY).open(script).ok();
    let file = file.filter(|file| file.metadata().is_ok_and(|found| found.is_file()))?;
    BufReader::new(file.take(256)).read_line(&mut line).ok()?;
    let interpreter = line.strip_prefix("#!")?.split_whitespace().next()?;
    Path::new(interpreter).is_absolute().then(|| interpreter.into())
}

#[cfg(test)]
mod tests;

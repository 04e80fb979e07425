//! Classifies paths on a command line by looking at the file system.

use crate::sandbox::toolchains::{is_machine_path, is_system_path};
use std::{
    fs,
    path::{Path, PathBuf},
};

/// Extensions of files that an interpreter runs.
const SCRIPTS: [&str; 9] = ["js", "mjs", "cjs", "ts", "mts", "py", "rb", "jar", "php"];
/// Files at the top of a project.
const PROJECT_FILES: [&str; 3] = ["package.json", "pyproject.toml", "Gemfile"];

/// Meaning of a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PathRole {
    /// The path does not exist, or needs no folder of its own in the sandbox.
    Nothing,
    /// A program, which needs the contents of this folder, or only this file.
    Program(PathBuf),
    /// A folder or file to work on.
    Data,
}

/// Classifies a path. `home` is the runtime's own home folder, which no program needs as a whole.
pub fn classify_path(path: &Path, home: Option<&Path>) -> PathRole {
    let Ok(found) = path.metadata() else { return PathRole::Nothing };
    // Paths of the machine that a confined program never sees, and system folders that it always sees.
    if fs::canonicalize(path).is_ok_and(|real| is_machine_path(&real) || is_system_path(&real)) {
        return PathRole::Nothing;
    }
    let is_script = path.extension().and_then(|end| end.to_str()).is_some_and(|end| SCRIPTS.contains(&end));
    if !found.is_file() || !is_script {
        return if found.is_dir() || found.is_file() { PathRole::Data } else { PathRole::Nothing };
    }
    let home = home.and_then(|home| fs::canonicalize(home).ok());
    let is_narrow = |folder: &&Path| {
        fs::canonicalize(folder).is_ok_and(|folder| {
            folder.components().count() > 2 && !home.as_ref().is_some_and(|home| home.starts_with(&folder))
        })
    };
    let folder = path.parent().filter(is_narrow);
    let around = folder.into_iter().flat_map(Path::ancestors).take_while(is_narrow);
    let mut projects = around.filter(|folder| PROJECT_FILES.iter().any(|name| folder.join(name).is_file()));
    PathRole::Program(projects.next().or(folder).unwrap_or(path).to_path_buf())
}

/// Returns `true` if a folder is the home, or contains it.
pub fn holds_home(folder: &Path, home: Option<&Path>) -> bool {
    let real = |path: &Path| fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    home.is_some_and(|home| real(home).starts_with(real(folder)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_path_exposes_its_project_but_never_the_whole_home() {
        let folder = tempfile::tempdir().unwrap();
        let home = fs::canonicalize(folder.path()).unwrap().join("home");
        fs::create_dir_all(home.join("work/tool/dist")).unwrap();
        fs::create_dir_all(home.join("app/dist")).unwrap();
        for file in
            ["package.json", "alone.js", "work/tool/dist/x.js", "app/package.json", "app/dist/x.js", "notes.txt"]
        {
            fs::write(home.join(file), "").unwrap();
        }
        // A project that contains the home.
        fs::write(home.with_file_name("Gemfile"), "").unwrap();
        let program = |path: &str| PathRole::Program(home.join(path));
        for (path, expected) in [
            ("app/dist/x.js", program("app")),
            ("work/tool/dist/x.js", program("work/tool/dist")),
            ("alone.js", program("alone.js")),
            ("notes.txt", PathRole::Data),
            ("work", PathRole::Data),
            ("missing.js", PathRole::Nothing),
        ] {
            assert_eq!(classify_path(&home.join(path), Some(&home)), expected, "{path}");
        }
        for path in
            ["/proc/self/status", "/dev/null", "/sys", "/proc/self/cwd/no.js", "/bin/sh", "/etc/hosts", "/usr/lib"]
        {
            assert_eq!(classify_path(Path::new(path), Some(&home)), PathRole::Nothing, "{path}");
        }
    }
}

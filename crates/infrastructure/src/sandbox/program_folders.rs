//! What a path on a command line names, as far as the disk can tell.

use std::path::{Path, PathBuf};

/// Files that an interpreter is told to run.
const SCRIPTS: [&str; 9] = ["js", "mjs", "cjs", "ts", "mts", "py", "rb", "jar", "php"];
/// Files that stand at the top of a project.
const PROJECT_FILES: [&str; 3] = ["package.json", "pyproject.toml", "Gemfile"];

/// What a path names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Named {
    /// Nothing that exists.
    Nothing,
    /// A program; it needs what stands in this folder.
    Program(PathBuf),
    /// A folder or file to work on.
    Data,
}

/// Looks at the disk.
pub fn named_by(path: &Path) -> Named {
    let Ok(found) = path.metadata() else { return Named::Nothing };
    let is_script = path.extension().and_then(|end| end.to_str()).is_some_and(|end| SCRIPTS.contains(&end));
    if !found.is_file() || !is_script {
        return if found.is_dir() || found.is_file() { Named::Data } else { Named::Nothing };
    }
    let folder = path.parent().unwrap_or(path);
    let project = folder.ancestors().find(|folder| PROJECT_FILES.iter().any(|name| folder.join(name).is_file()));
    Named::Program(project.unwrap_or(folder).to_path_buf())
}

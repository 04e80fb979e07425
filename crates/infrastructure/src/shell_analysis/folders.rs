//! Possible working folders of a command. A `cd` can fail, so both the old and the new folder are possible after it,
//! until `&&` rules out the old one.

use super::word::Word;
use std::path::{Path, PathBuf};

/// Maximum number of possible folders. With more, the folder counts as unknown.
const MAX_FOLDERS: usize = 8;

/// Possible folders. `None` means that the folder is unknown.
type PossibleFolders = Option<Vec<PathBuf>>;

/// Possible working folders of the next command.
#[derive(Debug, Clone)]
pub(super) struct WorkingFolders {
    /// Folders regardless of the exit status of the last command.
    now: PossibleFolders,
    /// Folders if the last command succeeded.
    after_success: PossibleFolders,
}

/// Target of a command that changes the working folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum FolderChange {
    /// A literal path.
    To(String),
    /// A folder that is known only at run time.
    Somewhere,
}

impl WorkingFolders {
    pub(super) fn start(folder: &Path) -> Self {
        let set = Some(vec![folder.to_owned()]);
        Self { now: set.clone(), after_success: set }
    }

    pub(super) fn anywhere() -> Self {
        Self { now: None, after_success: None }
    }

    /// Returns the possible folders, or `None` if the folder is unknown.
    pub(super) fn known(&self) -> Option<&[PathBuf]> {
        self.now.as_deref()
    }

    /// Records a command that does not change the working folder.
    pub(super) fn record_unchanged(&mut self) {
        self.after_success = self.now.clone();
    }

    /// Records a command that changes the working folder.
    pub(super) fn record_change(&mut self, to: &FolderChange) {
        let FolderChange::To(target) = to else {
            *self = Self::anywhere();
            return;
        };
        let new = if target.starts_with('/') {
            Some(vec![logical(Path::new(target))])
        } else {
            self.now.as_ref().map(|set| set.iter().map(|folder| logical(&folder.join(target))).collect())
        };
        self.now = union(self.now.take(), new.clone());
        self.after_success = new;
    }

    /// Returns the state at the start of the right-hand side of `&&` (`and` is `true`) or `||`.
    pub(super) fn right_side(&self, and: bool) -> Self {
        let set = if and { &self.after_success } else { &self.now };
        Self { now: set.clone(), after_success: set.clone() }
    }

    /// Returns the state after `left && right` (`and` is `true`) or `left || right`.
    pub(super) fn join(left: Self, right: Self, and: bool) -> Self {
        let after_success = if and { right.after_success } else { union(left.after_success, right.after_success) };
        Self { now: union(left.now, right.now), after_success }
    }
}

fn union(left: PossibleFolders, right: PossibleFolders) -> PossibleFolders {
    let (mut left, right) = (left?, right?);
    for folder in right {
        if !left.contains(&folder) {
            left.push(folder);
        }
    }
    (left.len() <= MAX_FOLDERS).then_some(left)
}

/// Resolves a path as `cd` does: `..` removes the preceding component even if that is a symbolic link.
fn logical(path: &Path) -> PathBuf {
    let mut result = PathBuf::from("/");
    for part in path.components() {
        match part {
            std::path::Component::ParentDir => {
                result.pop();
            }
            std::path::Component::Normal(name) => result.push(name),
            _ => {}
        }
    }
    result
}

/// Returns the target of `cd`, `pushd` or `popd` with these words. It is known only for `cd` with one literal path.
pub(super) fn folder_change(words: &[Word]) -> FolderChange {
    let operands = match words {
        [name, rest @ ..] if name.text == "cd" => rest,
        _ => return FolderChange::Somewhere,
    };
    let operands = match operands {
        [dashes, rest @ ..] if dashes.text == "--" => rest,
        operands => operands,
    };
    match operands {
        [target] => match target.literal() {
            Some(path) if !path.is_empty() && !path.starts_with('-') => FolderChange::To(path.to_owned()),
            _ => FolderChange::Somewhere,
        },
        _ => FolderChange::Somewhere,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn moved(target: &str) -> WorkingFolders {
        let mut folders = WorkingFolders::start(Path::new("/work"));
        folders.record_change(&FolderChange::To(target.into()));
        folders
    }

    #[test]
    fn both_folders_are_possible_after_cd_until_an_and_operator_follows() {
        assert_eq!(moved("sub").known().unwrap(), [PathBuf::from("/work"), PathBuf::from("/work/sub")]);
        assert_eq!(moved("sub").right_side(true).known().unwrap(), [PathBuf::from("/work/sub")]);
        assert_eq!(moved("../a").right_side(true).known().unwrap(), [PathBuf::from("/a")]);
    }

    #[test]
    fn too_many_possible_working_folders_are_treated_as_unknown() {
        let mut folders = WorkingFolders::start(Path::new("/"));
        for _ in 0..MAX_FOLDERS {
            folders.record_change(&FolderChange::To("a".into()));
        }
        assert_eq!(folders.known(), None);
    }
}

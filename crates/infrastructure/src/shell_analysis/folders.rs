//! The folders that a command may be started in. A `cd` may fail, so that after it both the old and the new folder are
//! possible, until `&&` rules the old one out.

use super::word::Word;
use std::path::{Path, PathBuf};

/// More folders than these are as good as not known.
const MAX_FOLDERS: usize = 8;

/// A set of folders; `None` is any folder.
type Set = Option<Vec<PathBuf>>;

/// Where the next command starts.
#[derive(Debug, Clone)]
pub(super) struct Folders {
    /// Whatever the last command answered.
    now: Set,
    /// If the last command succeeded.
    after_success: Set,
}

/// How a command moves to another folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Move {
    /// To a folder that is written out.
    To(String),
    /// To a folder that cannot be told.
    Somewhere,
}

impl Folders {
    pub(super) fn start(folder: &Path) -> Self {
        let set = Some(vec![folder.to_owned()]);
        Self { now: set.clone(), after_success: set }
    }

    pub(super) fn anywhere() -> Self {
        Self { now: None, after_success: None }
    }

    /// The possible folders, if they are known.
    pub(super) fn known(&self) -> Option<&[PathBuf]> {
        self.now.as_deref()
    }

    /// A command ran that moves nowhere.
    pub(super) fn settle(&mut self) {
        self.after_success = self.now.clone();
    }

    /// A command ran that moves.
    pub(super) fn go(&mut self, to: &Move) {
        let Move::To(target) = to else {
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

    /// What the right side of `&&` (or of `||`) starts with.
    pub(super) fn right_side(&self, and: bool) -> Self {
        let set = if and { &self.after_success } else { &self.now };
        Self { now: set.clone(), after_success: set.clone() }
    }

    /// What comes after `left && right` (or `left || right`).
    pub(super) fn join(left: Self, right: Self, and: bool) -> Self {
        let after_success = if and { right.after_success } else { union(left.after_success, right.after_success) };
        Self { now: union(left.now, right.now), after_success }
    }
}

fn union(left: Set, right: Set) -> Set {
    let (mut left, right) = (left?, right?);
    for folder in right {
        if !left.contains(&folder) {
            left.push(folder);
        }
    }
    (left.len() <= MAX_FOLDERS).then_some(left)
}

/// What `cd` makes of a path: `..` takes the name before it away, whether that is a link or not.
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

/// How `cd`, `pushd` or `popd` with these words moves.
pub(super) fn moved_by(words: &[Word]) -> Move {
    let operands = match words {
        [name, rest @ ..] if name.text == "cd" => rest,
        _ => return Move::Somewhere,
    };
    let operands = match operands {
        [dashes, rest @ ..] if dashes.text == "--" => rest,
        operands => operands,
    };
    match operands {
        [target] => match target.literal() {
            Some(path) if !path.is_empty() && !path.starts_with('-') => Move::To(path.to_owned()),
            _ => Move::Somewhere,
        },
        _ => Move::Somewhere,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn moved(target: &str) -> Folders {
        let mut folders = Folders::start(Path::new("/work"));
        folders.go(&Move::To(target.into()));
        folders
    }

    #[test]
    fn a_cd_may_have_failed_until_and_rules_it_out() {
        assert_eq!(moved("sub").known().unwrap(), [PathBuf::from("/work"), PathBuf::from("/work/sub")]);
        assert_eq!(moved("sub").right_side(true).known().unwrap(), [PathBuf::from("/work/sub")]);
        assert_eq!(moved("../a").right_side(true).known().unwrap(), [PathBuf::from("/a")]);
    }

    #[test]
    fn many_folders_are_any_folder() {
        let mut folders = Folders::start(Path::new("/"));
        for _ in 0..MAX_FOLDERS {
            folders.go(&Move::To("a".into()));
        }
        assert_eq!(folders.known(), None);
    }
}

//! Changes of several files between their preparation and their end.

use crate::{
    builtin::text::wording::counted,
    sandbox::workspace::{draft::FileChangeDraft, path_error::PathError, write::WriteResult},
};
use std::io;
use toolstead_domain::ToolFailure;

/// Failure to make all changes of a set.
pub(super) struct ApplyFailure {
    pub(super) failure: ToolFailure,
    /// `true` if all files are as they were before.
    pub(super) is_as_before: bool,
}

/// Prepared changes.
pub(super) struct FileChangeTransaction<'t>(Vec<FileChangeDraft<'t>>);

impl<'t> FileChangeTransaction<'t> {
    pub(super) fn new() -> Self {
        Self(Vec::new())
    }

    pub(super) fn push(&mut self, draft: FileChangeDraft<'t>) {
        self.0.push(draft);
    }

    /// Makes all changes in order, and returns their results. After a failure it reverts the changes already made; the
    /// failure names those that could not be reverted.
    pub(super) fn put_in_place(&mut self) -> Result<Vec<WriteResult>, ApplyFailure> {
        let mut written = Vec::new();
        let mut failed = None;
        for draft in &mut self.0 {
            match draft.put_in_place() {
                Ok(done) => written.push(done),
                Err(error) => {
                    failed = Some(error);
                    break;
                }
            }
        }
        match failed {
            None => Ok(written),
            Some(error) => Err(self.put_back(written.len(), error)),
        }
    }

    /// Reverts the first `done` changes, the last of them first, discards the others, and returns the failure with
    /// `cause` and with the changes that could not be reverted.
    fn put_back(&mut self, done: usize, cause: PathError) -> ApplyFailure {
        let mut stuck = Vec::new();
        // Discards the changes that were not made first, because they may be in folders that earlier ones created.
        self.0.truncate(done);
        while let Some(draft) = self.0.pop() {
            if let Err(error) = draft.put_back() {
                stuck.push(error);
            }
        }
        let is_as_before = stuck.is_empty() && !matches!(cause, PathError::Misplaced { .. });
        let mut failure = ToolFailure::from(cause);
        if done > 0 {
            let were = counted(done, "file");
            let note = match stuck.len() {
                0 => format!(" The changes to {were} made before it were reverted."),
                _ => {
                    let which: Vec<String> = stuck.iter().map(ToString::to_string).collect();
                    format!(
                        " Of the changes to {were} made before it some could not be reverted: {}.",
                        which.join("; ")
                    )
                }
            };
            failure.message = format!("{}.{note}", failure.message);
        }
        ApplyFailure { failure, is_as_before }
    }

    /// Makes all changes final. Returns for each change, in order, the error if it is made but not safely on disk.
    pub(super) fn keep(mut self) -> Vec<Option<io::Error>> {
        std::mem::take(&mut self.0).into_iter().map(|draft| draft.keep().err()).collect()
    }
}

impl Drop for FileChangeTransaction<'_> {
    fn drop(&mut self) {
        // The last changes first, because they may be in folders that earlier ones created.
        while self.0.pop().is_some() {}
    }
}

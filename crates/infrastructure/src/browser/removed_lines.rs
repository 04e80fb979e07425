//! Removed elements that a caller received. A call that names one of them is answered with similar elements of the
//! page.

use crate::browser::{
    references::ElementReference,
    snapshot::{Snapshot, SnapshotLine},
};
use std::collections::{HashSet, VecDeque};

/// Maximum number of stored lines; the oldest are dropped first.
const MAX_LINES: usize = 5_000;

/// The last line of each removed element.
#[derive(Debug, Default)]
pub(crate) struct RemovedElementLines(VecDeque<SnapshotLine>);

impl RemovedElementLines {
    /// Stores the lines of the elements that the page no longer has.
    pub(crate) fn keep(&mut self, before: Snapshot, now: &Snapshot) {
        let there: HashSet<ElementReference> = now.references().collect();
        let gone = before.lines.into_iter().filter(|line| line.reference.is_some_and(|one| !there.contains(&one)));
        self.0.extend(gone);
        let surplus = self.0.len().saturating_sub(MAX_LINES);
        self.0.drain(..surplus);
    }

    /// Returns the last line of a removed element; `None` if it is not stored.
    pub(crate) fn line_of(&self, reference: ElementReference) -> Option<&SnapshotLine> {
        self.0.iter().rev().find(|line| line.reference == Some(reference))
    }
}

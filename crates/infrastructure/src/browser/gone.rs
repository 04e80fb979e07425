//! Elements that were told and are gone: a caller who means one of them hears what is like it now.

use crate::browser::{
    references::Reference,
    snapshot::{Line, Snapshot},
};
use std::collections::{HashSet, VecDeque};

/// Lines that are kept of them; the oldest go first.
const MAX_LINES: usize = 5_000;

/// The last that was told of each.
#[derive(Debug, Default)]
pub(crate) struct Gone(VecDeque<Line>);

impl Gone {
    /// Keeps the elements of a page that it does not have any more.
    pub(crate) fn keep(&mut self, before: Snapshot, now: &Snapshot) {
        let there: HashSet<Reference> = now.references().collect();
        let gone = before.lines.into_iter().filter(|line| line.reference.is_some_and(|one| !there.contains(&one)));
        self.0.extend(gone);
        let surplus = self.0.len().saturating_sub(MAX_LINES);
        self.0.drain(..surplus);
    }

    /// The last that was told of an element.
    pub(crate) fn line_of(&self, reference: Reference) -> Option<&Line> {
        self.0.iter().rev().find(|line| line.reference == Some(reference))
    }
}

//! Numbers of ordered lists.

use super::tree::{NodeId, PageTree};

/// Counter of an ordered list.
#[derive(Debug)]
pub(super) struct ListCounter {
    next: i64,
    step: i64,
}

impl ListCounter {
    /// Creates the counter from the attributes `start` and `reversed`.
    pub(super) fn of(tree: &PageTree, list: NodeId) -> Self {
        let is_reversed = tree.attribute(list, "reversed").is_some();
        let start = tree.attribute(list, "start").and_then(|start| start.trim().parse().ok());
        let items = || tree.children(list).filter(|item| tree.tag(*item) == Some("li")).count();
        let first = || if is_reversed { i64::try_from(items()).unwrap_or(i64::MAX) } else { 1 };
        Self { next: start.unwrap_or_else(first), step: if is_reversed { -1 } else { 1 } }
    }

    /// Returns the number of the next item, which may have one of its own.
    pub(super) fn next(&mut self, tree: &PageTree, item: NodeId) -> i64 {
        let own = tree.attribute(item, "value").and_then(|value| value.trim().parse().ok());
        let number: i64 = own.unwrap_or(self.next);
        self.next = number.saturating_add(self.step);
        number
    }
}

//! How far an analysis may go. A text and all texts within it share this, because each level may be read several times.

use std::{cell::Cell, rc::Rc, time::Duration};

/// The longest text that is looked at, in bytes.
pub(super) const MAX_TEXT: usize = 64 * 1024;

/// The longest that a text and all texts within it are together, in bytes.
const MAX_ALL_TEXTS: usize = 4 * MAX_TEXT;

/// How deep programs and texts may start each other.
const MAX_LEVEL: usize = 6;

/// More words that texts within texts hand on to what runs them are opaque together.
const MAX_READING_WORDS: usize = 1_000_000;

/// Processor time for parsing a text and all texts within it.
const PARSE_TIME: Duration = Duration::from_secs(2);

/// How far an analysis may still go.
#[derive(Debug, Clone)]
pub(super) struct Limits {
    levels: usize,
    left: Rc<Left>,
}

/// What is left for all levels together.
#[derive(Debug)]
struct Left {
    bytes: Cell<usize>,
    words: Cell<usize>,
    parsing: Cell<Duration>,
    /// Some limit was reached, so that something was not looked at.
    spent: Cell<bool>,
}

impl Default for Limits {
    fn default() -> Self {
        let left = Left {
            bytes: Cell::new(MAX_ALL_TEXTS),
            words: Cell::new(MAX_READING_WORDS),
            parsing: Cell::new(PARSE_TIME),
            spent: Cell::new(false),
        };
        Self { levels: MAX_LEVEL + 1, left: Rc::new(left) }
    }
}

impl Limits {
    /// For what is started within.
    pub(super) fn deeper(&self) -> Self {
        Self { levels: self.levels.saturating_sub(1), left: self.left.clone() }
    }

    /// Whether something else starts what is looked at.
    pub(super) fn is_within(&self) -> bool {
        self.levels <= MAX_LEVEL
    }

    /// Whether it is too deep here.
    pub(super) fn exhausted(&self) -> bool {
        self.levels == 0
    }

    /// Says that a limit was reached.
    pub(super) fn spend(&self) {
        self.left.spent.set(true);
    }

    /// Whether a limit was reached.
    pub(super) fn is_spent(&self) -> bool {
        self.left.spent.get()
    }

    /// Counts a text; false where it is too much.
    pub(super) fn take_bytes(&self, count: usize) -> bool {
        self.take(&self.left.bytes, count)
    }

    /// Counts the words that a text within hands on; false where they are too many.
    pub(super) fn take_readings(&self, count: usize) -> bool {
        self.take(&self.left.words, count)
    }

    fn take(&self, cell: &Cell<usize>, count: usize) -> bool {
        let left = cell.get().checked_sub(count);
        match left {
            Some(left) => cell.set(left),
            None => self.spend(),
        }
        left.is_some()
    }

    /// Returns the processor time that is left for parsing.
    pub(super) fn parsing(&self) -> Duration {
        self.left.parsing.get()
    }

    /// Subtracts processor time that parsing used.
    pub(super) fn take_parsing(&self, time: Duration) {
        self.left.parsing.set(self.left.parsing.get().saturating_sub(time));
    }
}

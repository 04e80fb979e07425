//! Limits of an analysis. A text and all texts nested in it share them, because each nesting level may be parsed
//! several times.

use std::{cell::Cell, rc::Rc, time::Duration};

/// Maximum length of an analysed shell text, in bytes.
pub(super) const MAX_TEXT: usize = 64 * 1024;

/// Maximum total length of a text and all texts nested in it, in bytes.
const MAX_ALL_TEXTS: usize = 4 * MAX_TEXT;

/// Maximum nesting depth of programs and texts that start each other.
const MAX_LEVEL: usize = 6;

/// Maximum total number of words in the readings of nested texts. A command beyond it is opaque.
const MAX_READING_WORDS: usize = 1_000_000;

/// Processor time for parsing a text and all texts within it.
const PARSE_TIME: Duration = Duration::from_secs(2);

/// Remaining part of the limits at one nesting level.
#[derive(Debug, Clone)]
pub(super) struct AnalysisBudget {
    levels: usize,
    remaining: Rc<RemainingLimits>,
}

/// Remaining amounts that all nesting levels share.
#[derive(Debug)]
struct RemainingLimits {
    bytes: Cell<usize>,
    words: Cell<usize>,
    parsing: Cell<Duration>,
    /// `true` once a limit was reached, so that a part was not analysed.
    spent: Cell<bool>,
}

impl Default for AnalysisBudget {
    fn default() -> Self {
        let left = RemainingLimits {
            bytes: Cell::new(MAX_ALL_TEXTS),
            words: Cell::new(MAX_READING_WORDS),
            parsing: Cell::new(PARSE_TIME),
            spent: Cell::new(false),
        };
        Self { levels: MAX_LEVEL + 1, remaining: Rc::new(left) }
    }
}

impl AnalysisBudget {
    /// Returns the limits for the next nesting level.
    pub(super) fn deeper(&self) -> Self {
        Self { levels: self.levels.saturating_sub(1), remaining: self.remaining.clone() }
    }

    /// Returns `true` if the analysed text is nested in another one.
    pub(super) fn is_within(&self) -> bool {
        self.levels <= MAX_LEVEL
    }

    /// Returns `true` if the maximum nesting depth is exceeded.
    pub(super) fn is_too_deep(&self) -> bool {
        self.levels == 0
    }

    /// Records that a limit was reached.
    pub(super) fn mark_exceeded(&self) {
        self.remaining.spent.set(true);
    }

    /// Returns `true` if a limit was reached.
    pub(super) fn is_exceeded(&self) -> bool {
        self.remaining.spent.get()
    }

    /// Subtracts the length of a text from the remaining bytes. If they do not suffice, it records that a limit was
    /// reached and returns `false`.
    pub(super) fn take_bytes(&self, count: usize) -> bool {
        self.take(&self.remaining.bytes, count)
    }

    /// Subtracts the number of words in the readings of a nested text from the remaining words. If they do not suffice,
    /// it records that a limit was reached and returns `false`.
    pub(super) fn take_readings(&self, count: usize) -> bool {
        self.take(&self.remaining.words, count)
    }

    fn take(&self, cell: &Cell<usize>, count: usize) -> bool {
        let left = cell.get().checked_sub(count);
        match left {
            Some(left) => cell.set(left),
            None => self.mark_exceeded(),
        }
        left.is_some()
    }

    /// Returns the remaining processor time for parsing.
    pub(super) fn parsing(&self) -> Duration {
        self.remaining.parsing.get()
    }

    /// Subtracts processor time that parsing used.
    pub(super) fn take_parsing(&self, time: Duration) {
        self.remaining.parsing.set(self.remaining.parsing.get().saturating_sub(time));
    }
}

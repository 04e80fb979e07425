//! One place of a text that an edit replaces.

use std::{ops::Range, rc::Rc};

/// Maximum number of places that are replaced at once.
pub(super) const MAX_PLACES: usize = 500_000;

/// One place and its replacement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SpanReplacement {
    pub(super) range: Range<usize>,
    /// Text of the place as the model wrote it; the file's own text may differ in ways that the search tolerates.
    pub(super) old: Rc<str>,
    pub(super) new: Rc<str>,
}

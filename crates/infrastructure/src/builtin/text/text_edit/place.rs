//! One place of a text that an edit replaces.

use std::{ops::Range, rc::Rc};

/// As many places are replaced at once.
pub(super) const MAX_PLACES: usize = 500_000;

/// One place and what comes there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) range: Range<usize>,
    /// The text there as the model gave it; the file's own may differ from it in what helped to find it.
    pub(super) old: Rc<str>,
    pub(super) new: Rc<str>,
}

//! Text: encodings, lines, ranges of lines, edits, and the wording of results.

mod comparison_time;
pub(crate) mod hex_window;
pub(crate) mod line_ending;
pub(crate) mod line_index;
pub(crate) mod line_unit;
pub(crate) mod plain_text;
pub(crate) mod report;
pub(crate) mod snippet;
pub(crate) mod text_edit;
pub(crate) mod text_encoding;
pub(crate) mod text_window;
pub(crate) mod todos;
pub(crate) mod unified_diff;
pub(crate) mod wording;

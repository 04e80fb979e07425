//! The parameter `pages`: the requested parts of a document.

use crate::documents::{DocumentKind, document_error::DocumentError};
use serde::{Deserialize, Serialize};

/// Number of pages of a PDF that are read if the caller requests none.
const PAGES_BY_DEFAULT: u64 = 10;
/// Maximum number of pages of a PDF that one call may request.
const MAX_PAGES: usize = 20;
/// Maximum number of ranges of one selection.
const MAX_RANGES: usize = 100;

/// Numbers and ranges as the caller wrote them; each range begins at 1 or later and is in order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct PartSelection {
    given: String,
    ranges: Vec<(u64, u64)>,
}

impl PartSelection {
    /// Parses "3", "1-5" or "2,4-6".
    pub(super) fn parse(text: &str) -> Result<Self, DocumentError> {
        let wrong = |reason: &str| DocumentError::Pages { given: shortened(text), reason: reason.into() };
        let number = |text: &str| match text.trim().parse() {
            Ok(0) => Err(wrong("numbers start at 1")),
            Ok(number) => Ok(number),
            Err(_) => Err(wrong("it is not a list of numbers and ranges")),
        };
        let range = |range: &str| match range.split_once('-') {
            None => number(range).map(|only| (only, only)),
            Some((first, last)) => match (number(first)?, number(last)?) {
                (first, last) if first > last => Err(wrong("a range must begin with its smaller number")),
                ends => Ok(ends),
            },
        };
        let ranges = text.split(',').take(MAX_RANGES + 1).map(range).collect::<Result<Vec<_>, _>>()?;
        if ranges.len() > MAX_RANGES {
            return Err(wrong("it has too many ranges"));
        }
        Ok(Self { given: shortened(text), ranges })
    }

    /// Returns the error that refuses this selection.
    pub(super) fn refused(&self, reason: impl Into<String>) -> DocumentError {
        DocumentError::Pages { given: self.given.clone(), reason: reason.into() }
    }
}

/// Returns the numbers of the requested parts among `total`, in order and each once. Without a selection, these are all
/// parts, or the first ten pages of a PDF. Numbers past the end are left out. Fails if none remains, or if a PDF
/// selection is too long.
pub(super) fn select_parts(
    selection: Option<&PartSelection>,
    kind: DocumentKind,
    total: u64,
) -> Result<Vec<u64>, DocumentError> {
    let noun = kind.part_noun().unwrap_or("part");
    let Some(selection) = selection else {
        let most = if kind == DocumentKind::Pdf { PAGES_BY_DEFAULT } else { total };
        return Ok((1..=total.min(most)).collect());
    };
    let mut numbers: Vec<u64> = selection.ranges.iter().flat_map(|(first, last)| *first..=(*last).min(total)).collect();
    numbers.sort_unstable();
    numbers.dedup();
    if numbers.is_empty() {
        let plural = if total == 1 { "" } else { "s" };
        return Err(selection.refused(format!("the {} has {total} {noun}{plural}", kind.name())));
    }
    if kind == DocumentKind::Pdf && numbers.len() > MAX_PAGES {
        let count = numbers.len();
        return Err(selection.refused(format!("it has {count} pages, and one call reads at most {MAX_PAGES}")));
    }
    Ok(numbers)
}

fn shortened(text: &str) -> String {
    text.chars().take(60).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(kind: DocumentKind, text: &str, total: u64, expected: Result<&[u64], &str>) {
        let found = PartSelection::parse(text).and_then(|selection| select_parts(Some(&selection), kind, total));
        let found = found.map_err(|error| error.to_string());
        assert_eq!(found, expected.map(<[u64]>::to_vec).map_err(|reason| format!("`pages` is {text:?}: {reason}")));
    }

    #[test]
    fn page_selections_accept_numbers_and_ranges_and_reject_invalid_input() {
        use DocumentKind::{Notebook, Pdf};
        check(Pdf, "3", 9, Ok(&[3]));
        check(Pdf, " 4-6, 2 ,5", 9, Ok(&[2, 4, 5, 6]));
        check(Pdf, "8-99", 9, Ok(&[8, 9]));
        check(Notebook, "1-18446744073709551615", 3, Ok(&[1, 2, 3]));
        check(Pdf, "10-12", 9, Err("the PDF has 9 pages"));
        check(Pdf, "1-21", 99, Err("it has 21 pages, and one call reads at most 20"));
        check(Pdf, "0", 9, Err("numbers start at 1"));
        check(Pdf, "5-2", 9, Err("a range must begin with its smaller number"));
        check(Pdf, "all", 9, Err("it is not a list of numbers and ranges"));
        check(Pdf, "", 9, Err("it is not a list of numbers and ranges"));
        check(Pdf, "-3", 9, Err("it is not a list of numbers and ranges"));
    }

    #[test]
    fn the_default_selection_is_ten_pages_of_a_pdf_and_all_parts_of_others() {
        assert_eq!(select_parts(None, DocumentKind::Pdf, 57).unwrap(), (1..=10).collect::<Vec<_>>());
        assert_eq!(select_parts(None, DocumentKind::Xlsx, 57).unwrap().len(), 57);
        assert_eq!(select_parts(None, DocumentKind::Notebook, 0).unwrap(), [0; 0]);
    }
}

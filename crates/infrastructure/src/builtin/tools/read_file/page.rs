//! Selects the lines of a text range that fit into a result.

use crate::builtin::text::snippet::{MAX_LINE_CHARS, push_cut, push_numbered};
use schemars::JsonSchema;
use serde::Deserialize;
use std::borrow::Cow;

/// Maximum number of raw characters of a page, even if the numbered text shows less of each line.
const MAX_CONTENT_CHARS: usize = 100_000;

/// Separator between number and line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum LineNumberSeparator {
    #[default]
    Tab,
    Colon,
}

/// Display options for lines.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct LineStyle {
    pub(super) numbers: Option<LineNumberSeparator>,
    /// Mark for the end of a line. If it is set, carriage returns in the line are marked as well.
    pub(super) ends: Option<&'static str>,
    pub(super) squeeze_blank: bool,
}

/// Whole lines, both raw and as they are displayed.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct LinePage<'a> {
    /// Text for the model; each line ends in a line feed.
    pub(super) text: String,
    pub(super) content: &'a str,
    /// Number of the first line; a negative one counts from the end of the file.
    pub(super) first: i64,
    pub(super) lines: u64,
    /// `true` if the only line is longer than a page, and just its beginning is included.
    pub(super) is_line_cut: bool,
}

/// Selects the lines that fit into `characters`, starting with the line `focus` (from 0) and extending alternately down
/// and up. That line is always included.
pub(super) fn page(content: &str, first: i64, focus: usize, style: LineStyle, characters: usize) -> LinePage<'_> {
    let whole: Vec<&str> = content.split_inclusive('\n').collect();
    let mut was_blank = false;
    let mut shown = Vec::with_capacity(whole.len());
    for (number, line) in (first..).zip(&whole) {
        let is_blank = line.trim_end_matches(['\r', '\n']).is_empty();
        let is_left_out = style.squeeze_blank && is_blank && was_blank;
        was_blank = is_blank;
        shown.push(if is_left_out { String::new() } else { rendered(line, number, style, characters) });
    }
    let focus = focus.min(whole.len().saturating_sub(1));
    let (mut begin, mut end) = (focus, focus);
    let (mut room, mut raw_room) = (characters, MAX_CONTENT_CHARS);
    let mut takes = |at: usize| {
        let (chars, raw) = (shown[at].chars().count(), whole[at].chars().count());
        let fits = at == focus || (chars <= room && raw <= raw_room);
        if fits {
            (room, raw_room) = (room.saturating_sub(chars), raw_room.saturating_sub(raw));
        }
        fits
    };
    let (mut goes_down, mut goes_up) = (true, true);
    while goes_down || goes_up {
        goes_down = goes_down && end < whole.len() && takes(end);
        end += usize::from(goes_down);
        goes_up = goes_up && begin > 0 && takes(begin - 1);
        begin -= usize::from(goes_up);
    }
    let start = whole[..begin].iter().map(|line| line.len()).sum::<usize>();
    let taken = &content[start..start + whole[begin..end].iter().map(|line| line.len()).sum::<usize>()];
    let cut = taken.char_indices().nth(MAX_CONTENT_CHARS).map(|(at, _)| at);
    LinePage {
        text: shown[begin..end].concat(),
        content: &taken[..cut.unwrap_or(taken.len())],
        first: first + begin as i64,
        lines: (end - begin) as u64,
        is_line_cut: cut.is_some(),
    }
}

fn rendered(whole: &str, number: i64, style: LineStyle, characters: usize) -> String {
    let is_ended = whole.ends_with('\n');
    let line = whole.strip_suffix('\n').unwrap_or(whole);
    let line: Cow<'_, str> = match style.ends {
        None => line.strip_suffix('\r').unwrap_or(line).into(),
        Some(end) => (line.replace('\r', "^M") + if is_ended { end } else { "" }).into(),
    };
    let line = &*line;
    let mut text = String::with_capacity(line.len().min(4 * MAX_LINE_CHARS) + 8);
    let at_most = MAX_LINE_CHARS.min(characters);
    match style.numbers {
        Some(LineNumberSeparator::Tab) => push_numbered(&mut text, number, line, at_most),
        Some(LineNumberSeparator::Colon) => {
            text.push_str(&format!("{number}: "));
            push_cut(&mut text, line, at_most);
            text.push('\n');
        }
        None => {
            push_cut(&mut text, line, at_most);
            text.push('\n');
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_page_extends_on_both_sides_of_the_requested_line() {
        let plain = LineStyle::default();
        let page = page("a\nb\nc\nd\ne\n", 11, 2, plain, 6);
        assert_eq!((page.text.as_str(), page.content, page.first, page.lines), ("b\nc\nd\n", "b\nc\nd\n", 12, 3));
    }

    #[test]
    fn an_overlong_line_is_shown_cut_with_the_number_of_omitted_characters() {
        let (line, style) = (
            "x".repeat(MAX_CONTENT_CHARS + 9),
            LineStyle { numbers: Some(LineNumberSeparator::Tab), ..LineStyle::default() },
        );
        let page = page(&line, 1, 0, style, 50);
        assert_eq!((page.lines, page.is_line_cut, page.content.len()), (1, true, MAX_CONTENT_CHARS));
        assert!(page.text.ends_with("x… [99959 more characters]\n") && page.text.len() < 100, "{}", page.text);
    }

    proptest! {
        #[test]
        fn a_page_is_contiguous_contains_the_focus_line_and_fits_the_character_limit(
            text in "([a-zä]{0,30}\r?\n){0,40}",
            focus in 0_usize..50,
            characters in 60_usize..400,
            numbers in prop::sample::select(vec![None, Some(LineNumberSeparator::Tab), Some(LineNumberSeparator::Colon)]),
            ends in prop::sample::select(vec![None, Some("$"), Some("^M")]),
            squeeze_blank: bool,
        ) {
            let page = page(&text, 1, focus, LineStyle { numbers, ends, squeeze_blank }, characters);
            let lines: Vec<&str> = text.split_inclusive('\n').collect();
            let begin = page.first as usize - 1;
            prop_assert_eq!(lines[begin..begin + page.lines as usize].concat(), page.content);
            prop_assert!(page.text.chars().count() <= characters);
            prop_assert!(text.is_empty() || (begin..begin + page.lines as usize).contains(&focus.min(lines.len() - 1)));
        }
    }
}

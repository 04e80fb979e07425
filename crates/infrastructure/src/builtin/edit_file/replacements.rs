//! Which places of a text an edit replaces, and by what.

use crate::builtin::{
    answer::counted,
    edit_file::{Input, MAX_RESULT_BYTES, nearest, too_large},
};
use regex::{Regex, RegexBuilder};
use std::{ops::Range, rc::Rc};
use toolstead_domain::{error_kind::ErrorKind, tool_failure::ToolFailure};

/// The largest program that a regular expression may become, in bytes.
const MAX_REGEX_BYTES: usize = 1 << 20;
/// As many places are replaced at once.
const MAX_PLACES: usize = 500_000;
/// As many lines are named when there are too many places.
const NAMED_LINES: usize = 10;

/// One place and what comes there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Replacement {
    pub(super) range: Range<usize>,
    pub(super) new: Rc<str>,
}

impl Replacement {
    /// The part that differs: without what is the same at both ends.
    pub(super) fn narrowed(&self, text: &str) -> (Range<usize>, &str) {
        let (old, new) = (&text[self.range.clone()], &*self.new);
        let same = |a: std::str::Chars<'_>, b: std::str::Chars<'_>| -> usize {
            a.zip(b).take_while(|(a, b)| a == b).map(|(a, _)| a.len_utf8()).sum()
        };
        let front = same(old.chars(), new.chars());
        let (old, new) = (&old[front..], &new[front..]);
        let back: usize =
            old.chars().rev().zip(new.chars().rev()).take_while(|(a, b)| a == b).map(|(a, _)| a.len_utf8()).sum();
        (self.range.start + front..self.range.end - back, &new[..new.len() - back])
    }
}

/// The replacements in a text with line feeds only, in order and apart from each other; never none.
pub(super) fn find(text: &str, path: &str, input: &Input) -> Result<Vec<Replacement>, ToolFailure> {
    let wrong = |message: &str| Err(ToolFailure::new(ErrorKind::InvalidInput, message));
    if input.old_text.is_empty() {
        return Err(ToolFailure::new(ErrorKind::InvalidInput, format!("`{path}` exists, and `old_text` is empty"))
            .next("Give the text to replace, or use `write_file` to replace the whole file."));
    }
    if input.replace_all && input.count.is_some() {
        return wrong("`replace_all` and `count` exclude each other");
    }
    let region = region(text, path, input)?;
    let new = input.new_text.replace("\r\n", "\n");
    let found = if input.regex {
        by_regex(text, region.clone(), input, &new)?
    } else {
        let old = input.old_text.replace("\r\n", "\n");
        literally(text, region.clone(), input, &old, &new)
    };
    if found.len() > MAX_PLACES {
        let message = format!("`old_text` stands in more than {MAX_PLACES} places of `{path}`");
        return Err(ToolFailure::new(ErrorKind::TooLarge, message).next("Give more of the text around it."));
    }
    chosen(found, text, path, input, region, &new)
}

/// The part of the text that is looked at.
fn region(text: &str, path: &str, input: &Input) -> Result<Range<usize>, ToolFailure> {
    let (first, last) = (input.start_line.unwrap_or(1), input.end_line.unwrap_or(usize::MAX));
    let wrong = |message: String| Err(ToolFailure::new(ErrorKind::InvalidInput, message));
    if last < first {
        return wrong(format!("`end_line` ({last}) lies before `start_line` ({first})"));
    }
    let mut starts = std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1));
    let Some(start) = starts.nth(first - 1).filter(|start| *start < text.len() || first == 1) else {
        let lines = text.lines().count();
        return wrong(format!("`{path}` has {}; `start_line` is {first}", counted(lines, "line")));
    };
    let end = starts.nth(last - first).unwrap_or(text.len());
    Ok(start..end)
}

/// Places that do not overlap. When only one may be there, a second one that overlaps it is found, too.
fn literally(text: &str, region: Range<usize>, input: &Input, old: &str, new: &str) -> Vec<Replacement> {
    let new: Rc<str> = new.into();
    let place = |at: usize| Replacement { range: at..at + old.len(), new: new.clone() };
    let places = text[region.clone()].match_indices(old).take(MAX_PLACES + 1);
    let mut found: Vec<Replacement> = places.map(|(at, _)| place(region.start + at)).collect();
    if let [only] = &found[..]
        && !input.replace_all
        && input.count.is_none()
        && let Some(step) = old.chars().next().map(char::len_utf8)
    {
        let rest = only.range.start + step;
        if let Some(again) = text[rest..region.end].find(old) {
            found.push(place(rest + again));
        }
    }
    found
}

fn by_regex(text: &str, region: Range<usize>, input: &Input, new: &str) -> Result<Vec<Replacement>, ToolFailure> {
    let regex: Regex = RegexBuilder::new(&input.old_text).size_limit(MAX_REGEX_BYTES).build().map_err(|error| {
        ToolFailure::new(ErrorKind::InvalidInput, format!("`old_text` is no regular expression: {error}"))
            .next("Set `regex` to false to look for the text as it is.")
    })?;
    let (mut found, mut new_bytes) = (Vec::new(), 0);
    let mut start = region.start;
    for whole in text[region].split_inclusive('\n') {
        let line = whole.strip_suffix('\n').unwrap_or(whole);
        for captures in regex.captures_iter(line) {
            let Some(place) = captures.get(0) else { continue };
            let mut expanded = String::new();
            captures.expand(new, &mut expanded);
            new_bytes += expanded.len();
            found.push(Replacement { range: start + place.start()..start + place.end(), new: expanded.into() });
            if found.len() > MAX_PLACES {
                return Ok(found);
            }
            if new_bytes > MAX_RESULT_BYTES {
                return Err(too_large());
            }
        }
        start += whole.len();
    }
    Ok(found)
}

/// As many as were asked for, or what is wrong.
fn chosen(
    mut found: Vec<Replacement>,
    text: &str,
    path: &str,
    input: &Input,
    region: Range<usize>,
    new: &str,
) -> Result<Vec<Replacement>, ToolFailure> {
    if found.is_empty() {
        return Err(nearest::no_match(text, path, input, region, new));
    }
    match input.count {
        Some(count) if found.len() < count => {
            let places = counted(found.len(), "place");
            let message = format!("`old_text` stands in {places} of `{path}`, and `count` is {count}");
            return Err(ToolFailure::new(ErrorKind::NoMatch, message).next("Nothing was changed."));
        }
        Some(count) => found.truncate(count),
        None if found.len() > 1 && !input.replace_all => {
            let lines: Vec<String> = found
                .iter()
                .take(NAMED_LINES)
                .map(|place| (text[..place.range.start].matches('\n').count() + 1).to_string())
                .collect();
            let more = if found.len() > NAMED_LINES { " and others" } else { "" };
            let message =
                format!("`old_text` stands in {} places of `{path}`: lines {}{more}", found.len(), lines.join(", "));
            return Err(ToolFailure::new(ErrorKind::AmbiguousMatch, message)
                .next("Give more of the lines around it to make it unique, or set `replace_all`."));
        }
        None => {}
    }
    Ok(found)
}

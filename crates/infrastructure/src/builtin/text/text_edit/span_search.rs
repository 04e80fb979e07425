//! Finds the places of a text that an edit replaces, and their replacements.

use crate::builtin::text::{
    text_edit::{
        MatchCount, PatternSyntax, TextEdit, check_deadline,
        edit_span::{MAX_PLACES, SpanReplacement},
        nearest,
        replacement::ReplacementTemplate,
        tolerant_search,
        tolerant_search::ToleratedDifference,
        too_large,
    },
    wording::counted,
};
use crate::sandbox::workspace::stop::StopCondition;
use regex::{Regex, RegexBuilder};
use std::{ops::Range, rc::Rc};
use toolstead_domain::{ToolFailure, error_kind::ErrorKind};

/// Maximum size in bytes of a compiled regular expression.
const MAX_REGEX_BYTES: usize = 1 << 20;
/// Maximum number of lines named in a message about too many places.
const NAMED_LINES: usize = 10;

/// Places to replace, in order and without overlaps; never empty.
#[derive(Debug)]
pub(super) struct FoundSpans {
    pub(super) places: Vec<SpanReplacement>,
    pub(super) help: Option<ToleratedDifference>,
}

/// Finds the places that the edit replaces in a text with line feeds only. A literal text that occurs nowhere is
/// searched for again with tolerance. Fails unless the number of places is the requested one.
pub(super) fn find(
    text: &str,
    path: &str,
    edit: &TextEdit<'_>,
    limit: u64,
    stop: &StopCondition,
) -> Result<FoundSpans, ToolFailure> {
    if edit.old.is_empty() {
        return Err(ToolFailure::new(ErrorKind::InvalidInput, format!("`{path}` exists, and `old_text` is empty"))
            .next("Give the text to replace, or use `write_file` to replace the whole file."));
    }
    let region = region(text, path, edit)?;
    let (mut old, mut new) = (edit.old.replace("\r\n", "\n"), edit.new.replace("\r\n", "\n"));
    if edit.has_lone_return() && !text[region.clone()].contains(&old) {
        (old, new) = (old.replace('\r', "\n"), new.replace('\r', "\n"));
    }
    let places = match edit.mode {
        PatternSyntax::Literal => literally(text, region.clone(), edit, &old, &new),
        PatternSyntax::RegexByLine | PatternSyntax::RegexAcrossLines => {
            let regex = regex(edit)?;
            let new = ReplacementTemplate::of(&new, &regex)?;
            let search = RegexSearch { regex, new, places: Vec::new(), new_bytes: 0, limit, stop, path };
            search.places_in(text, region.clone(), edit.mode)?
        }
    };
    let mut found = FoundSpans { places: not_too_many(places, path)?, help: None };
    if found.places.is_empty()
        && edit.mode == PatternSyntax::Literal
        && let Some(helped) =
            tolerant_search::find_tolerantly(text, region.clone(), &old, &new, &|| check_deadline(stop, path))?
    {
        if helped.places.len() > 1 {
            let lines = line_numbers(text, &helped.places);
            let message = format!(
                "`old_text` does not occur in `{path}` exactly, and with {} it occurs in {} places: lines {lines}",
                helped.help.difference(),
                helped.places.len()
            );
            return Err(ToolFailure::new(ErrorKind::AmbiguousMatch, message)
                .next("Nothing was changed. Copy the text exactly, with more of the lines around it."));
        }
        found = FoundSpans { places: helped.places, help: Some(helped.help) };
    }
    if found.places.is_empty() {
        return Err(nearest::no_match(text, path, edit, region, &old, &new));
    }
    select_spans(&mut found.places, text, path, edit.match_count)?;
    Ok(found)
}

/// Finds the places that match the old text byte by byte, including carriage returns; `None` if there are none.
pub(super) fn find_exactly(
    text: &str,
    region: Range<usize>,
    path: &str,
    edit: &TextEdit<'_>,
) -> Result<Option<FoundSpans>, ToolFailure> {
    let mut places = not_too_many(literally(text, region, edit, edit.old, edit.new), path)?;
    if places.is_empty() {
        return Ok(None);
    }
    select_spans(&mut places, text, path, edit.match_count)?;
    Ok(Some(FoundSpans { places, help: None }))
}

fn not_too_many(places: Vec<SpanReplacement>, path: &str) -> Result<Vec<SpanReplacement>, ToolFailure> {
    if places.len() > MAX_PLACES {
        let message = format!("`old_text` occurs in more than {MAX_PLACES} places of `{path}`");
        return Err(ToolFailure::new(ErrorKind::TooLarge, message).next("Give more of the text around it."));
    }
    Ok(places)
}

/// Returns the range of the text that is searched.
pub(super) fn region(text: &str, path: &str, edit: &TextEdit<'_>) -> Result<Range<usize>, ToolFailure> {
    let (first, last) = (edit.start_line.unwrap_or(1), edit.end_line.unwrap_or(usize::MAX));
    let wrong = |message: String| Err(ToolFailure::new(ErrorKind::InvalidInput, message));
    if last < first {
        return wrong(format!("`end_line` ({last}) is before `start_line` ({first})"));
    }
    let mut starts = std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1));
    let Some(start) = starts.nth(first - 1).filter(|start| *start < text.len() || first == 1) else {
        let lines = text.lines().count();
        return wrong(format!("`{path}` has {}; `start_line` is {first}", counted(lines, "line")));
    };
    let end = starts.nth(last - first).unwrap_or(text.len());
    Ok(start..end)
}

/// Finds places that do not overlap. If the edit requires a single one, a second one that overlaps it is found, too.
fn literally(text: &str, region: Range<usize>, edit: &TextEdit<'_>, old: &str, new: &str) -> Vec<SpanReplacement> {
    let (old, new): (Rc<str>, Rc<str>) = (old.into(), new.into());
    let place = |at: usize| SpanReplacement { range: at..at + old.len(), old: old.clone(), new: new.clone() };
    let places = text[region.clone()].match_indices(&*old).take(MAX_PLACES + 1);
    let mut found: Vec<SpanReplacement> = places.map(|(at, _)| place(region.start + at)).collect();
    if let [only] = &found[..]
        && edit.match_count == MatchCount::Single
        && let Some(step) = old.chars().next().map(char::len_utf8)
    {
        let rest = only.range.start + step;
        if let Some(again) = text[rest..region.end].find(&*old) {
            found.push(place(rest + again));
        }
    }
    found
}

fn regex(edit: &TextEdit<'_>) -> Result<Regex, ToolFailure> {
    let across = edit.mode == PatternSyntax::RegexAcrossLines;
    RegexBuilder::new(edit.old).size_limit(MAX_REGEX_BYTES).multi_line(across).build().map_err(|error| {
        ToolFailure::new(ErrorKind::InvalidInput, format!("`old_text` is not a valid regular expression: {error}"))
            .next("Set `regex` to false to search for the literal text.")
    })
}

struct RegexSearch<'n> {
    regex: Regex,
    new: ReplacementTemplate<'n>,
    places: Vec<SpanReplacement>,
    new_bytes: u64,
    limit: u64,
    stop: &'n StopCondition,
    path: &'n str,
}

impl RegexSearch<'_> {
    fn places_in(
        mut self,
        text: &str,
        region: Range<usize>,
        mode: PatternSyntax,
    ) -> Result<Vec<SpanReplacement>, ToolFailure> {
        if mode == PatternSyntax::RegexAcrossLines {
            self.search(&text[region.clone()], region.start)?;
            return Ok(self.places);
        }
        let mut start = region.start;
        for whole in text[region].split_inclusive('\n') {
            check_deadline(self.stop, self.path)?;
            self.search(whole.strip_suffix('\n').unwrap_or(whole), start)?;
            if self.places.len() > MAX_PLACES {
                break;
            }
            start += whole.len();
        }
        Ok(self.places)
    }

    fn search(&mut self, text: &str, start: usize) -> Result<(), ToolFailure> {
        for captures in self.regex.captures_iter(text) {
            check_deadline(self.stop, self.path)?;
            let Some(place) = captures.get(0) else { continue };
            let expanded = self.new.expanded(&captures);
            self.new_bytes += expanded.len() as u64;
            if self.new_bytes > self.limit {
                return Err(too_large(self.limit));
            }
            let range = start + place.start()..start + place.end();
            self.places.push(SpanReplacement { range, old: place.as_str().into(), new: expanded.into() });
            if self.places.len() > MAX_PLACES {
                break;
            }
        }
        Ok(())
    }
}

/// Selects the requested number of places, or returns a failure.
fn select_spans(
    places: &mut Vec<SpanReplacement>,
    text: &str,
    path: &str,
    how_many: MatchCount,
) -> Result<(), ToolFailure> {
    let many = counted(places.len(), "place");
    let failure = |kind, message: String| Err(ToolFailure::new(kind, message));
    match how_many {
        MatchCount::First(count) if places.len() < count => {
            let message = format!("`old_text` occurs in {many} of `{path}`, and `count` is {count}");
            failure(ErrorKind::NoMatch, message).map_err(|failure| failure.next("Nothing was changed."))
        }
        MatchCount::First(count) => {
            places.truncate(count);
            Ok(())
        }
        MatchCount::Exactly(expected) if places.len() != expected => {
            let lines = line_numbers(text, places);
            let message =
                format!("`old_text` occurs in {many} of `{path}`, and `expected_count` is {expected}: lines {lines}");
            failure(ErrorKind::AmbiguousMatch, message).map_err(|failure| {
                failure.next("Nothing was changed. Correct the count, or give more of the lines around the text.")
            })
        }
        MatchCount::Single if places.len() > 1 => {
            let lines = line_numbers(text, places);
            let message = format!("`old_text` occurs in {many} of `{path}`: lines {lines}");
            failure(ErrorKind::AmbiguousMatch, message).map_err(|failure| {
                failure.next("Give more of the lines around it to make it unique, or set `replace_all`.")
            })
        }
        MatchCount::Single | MatchCount::All | MatchCount::Exactly(_) => Ok(()),
    }
}

/// Returns the lines in which the places begin, or the first ones of many.
fn line_numbers(text: &str, places: &[SpanReplacement]) -> String {
    let (mut line, mut done) = (1, 0);
    let mut numbers = Vec::new();
    for place in places.iter().take(NAMED_LINES) {
        line += text[done..place.range.start.max(done)].matches('\n').count();
        done = place.range.start.max(done);
        numbers.push(line.to_string());
    }
    let more = if places.len() > NAMED_LINES { " and others" } else { "" };
    format!("{}{more}", numbers.join(", "))
}

//! Tolerant searches for a text that is not in the file exactly.
//!
//! Each step preserves every token that is not blank, and its result is used only if it finds the text exactly once.

use crate::builtin::text::text_edit::{
    edit_span::{MAX_PLACES, SpanReplacement},
    folded_text::{FoldOptions, FoldedText},
};
use std::{collections::HashMap, ops::Range, rc::Rc};
use toolstead_domain::ToolFailure;

/// Number of lines between two checks of the deadline.
const LINES_BETWEEN_LOOKS: usize = 256;
/// Maximum number of places with a different indentation that are searched for.
const SHIFTED_PLACES: usize = 100;

/// Difference that a search tolerated to find a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ToleratedDifference {
    /// Different line endings.
    LineEndings,
    /// Spaces and tabs at the ends of lines.
    TrailingBlanks,
    /// Typographic quotation marks, dashes and spaces.
    Typography,
    /// All lines are indented by more, by less, or by other blanks.
    Indentation,
    /// Line feeds and tabs were written as `\n` and `\t`.
    Escapes,
}

impl ToleratedDifference {
    /// Returns the identifier in structured content.
    pub(in crate::builtin) fn name(self) -> &'static str {
        match self {
            Self::LineEndings => "line_endings",
            Self::TrailingBlanks => "trailing_blanks",
            Self::Typography => "typography",
            Self::Indentation => "indentation",
            Self::Escapes => "escapes",
        }
    }

    /// Returns the difference as the end of a sentence on the place where the text was found.
    pub(in crate::builtin) fn difference(self) -> &'static str {
        match self {
            Self::LineEndings => "other line endings, which were kept",
            Self::TrailingBlanks => "other blanks at the ends of lines",
            Self::Typography => "typographic quotes, dashes or spaces",
            Self::Indentation => "another indentation, which `new_text` was given, too",
            Self::Escapes => "real line feeds and tabs where `\\n` and `\\t` were written",
        }
    }
}

/// Places that a step found; never empty.
pub(super) struct TolerantMatches {
    pub(super) places: Vec<SpanReplacement>,
    pub(super) help: ToleratedDifference,
}

/// Returns all places of the first step that finds the text in a region. Checks the deadline between its steps.
///
/// # Errors
/// The failure of `in_time` at the deadline.
pub(super) fn find_tolerantly(
    text: &str,
    region: Range<usize>,
    old: &str,
    new: &str,
    in_time: &dyn Fn() -> Result<(), ToolFailure>,
) -> Result<Option<TolerantMatches>, ToolFailure> {
    let nothing = FoldOptions { returns: false, trailing_blanks: false, typography: false };
    let folds = [
        (ToleratedDifference::LineEndings, FoldOptions { returns: true, ..nothing }),
        (ToleratedDifference::TrailingBlanks, FoldOptions { returns: true, trailing_blanks: true, ..nothing }),
        (ToleratedDifference::Typography, FoldOptions { returns: true, trailing_blanks: true, typography: true }),
    ];
    for (help, folds) in folds {
        in_time()?;
        let places = folded_places(text, region.clone(), old, new, folds);
        if !places.is_empty() {
            return Ok(Some(TolerantMatches { places, help }));
        }
    }
    let places = shifted_places(text, region.clone(), old, new, in_time)?;
    if !places.is_empty() {
        return Ok(Some(TolerantMatches { places, help: ToleratedDifference::Indentation }));
    }
    in_time()?;
    let places = unescaped_places(text, region, old, new);
    Ok((!places.is_empty()).then_some(TolerantMatches { places, help: ToleratedDifference::Escapes }))
}

fn folded_places(text: &str, region: Range<usize>, old: &str, new: &str, folds: FoldOptions) -> Vec<SpanReplacement> {
    let wanted = FoldedText::of(old, folds).text;
    if wanted.trim().is_empty() {
        return Vec::new();
    }
    // Blanks removed from the last line must match the end of a line, never the middle of a word.
    let ends_line = folds.trailing_blanks && old.ends_with([' ', '\t', '\u{a0}']) && !wanted.ends_with([' ', '\t']);
    let folded = FoldedText::of(&text[region.clone()], folds);
    let (old, new): (Rc<str>, Rc<str>) = (old.into(), new.into());
    let ends_rightly =
        |place: &Range<usize>| !ends_line || matches!(folded.text.as_bytes().get(place.end), None | Some(b'\n'));
    occurrences(&folded.text, &wanted, ends_rightly)
        .into_iter()
        .map(|place| {
            let range = folded.in_original(place);
            let range = region.start + range.start..region.start + range.end;
            SpanReplacement { range, old: old.clone(), new: new.clone() }
        })
        .collect()
}

/// Finds whole lines that differ from the wanted ones only by a common indentation.
fn shifted_places(
    text: &str,
    region: Range<usize>,
    old: &str,
    new: &str,
    in_time: &dyn Fn() -> Result<(), ToolFailure>,
) -> Result<Vec<SpanReplacement>, ToolFailure> {
    let ends_with_break = old.ends_with('\n');
    let wanted: Vec<&str> = old.strip_suffix('\n').unwrap_or(old).split('\n').collect();
    let Some(indent) = common_indent(&wanted) else { return Ok(Vec::new()) };
    let lines: Vec<&str> = text[region.clone()].split('\n').collect();
    let mut starts = Vec::with_capacity(lines.len() + 1);
    let mut at = region.start;
    for line in &lines {
        starts.push(at);
        at += line.len() + 1;
    }
    // Lines are compared by number, without the blanks around them, so comparing two ranges is one comparison of
    // memory.
    let mut known: HashMap<&str, u32> = HashMap::new();
    let wanted_numbers: Vec<u32> = wanted.iter().map(|line| number(&mut known, line)).collect();
    let numbers: Vec<u32> = lines.iter().map(|line| known.get(line.trim()).copied().unwrap_or(0)).collect();
    let mut places = Vec::new();
    for (first, candidate) in numbers.windows(wanted.len()).enumerate() {
        if first % LINES_BETWEEN_LOOKS == 0 {
            in_time()?;
        }
        if *candidate != *wanted_numbers {
            continue;
        }
        in_time()?;
        let window = &lines[first..first + wanted.len()];
        let Some(theirs) = common_indent(window) else { continue };
        let same = |(mine, other): (&&str, &&str)| bare(mine, indent) == bare(other, theirs);
        if theirs == indent || !wanted.iter().zip(window).all(same) {
            continue;
        }
        let (Some(old), Some(new)) = (reindented(old, indent, theirs), reindented(new, indent, theirs)) else {
            continue;
        };
        let last = first + wanted.len() - 1;
        let end = starts[last] + lines[last].len();
        let has_break = end < region.end && text[end..].starts_with('\n');
        if ends_with_break && !has_break {
            continue;
        }
        let end = if ends_with_break { end + 1 } else { end };
        places.push(SpanReplacement { range: starts[first]..end, old: old.into(), new: new.into() });
        // Each place has its own texts, and a place is used only if it is the only one.
        if places.len() > SHIFTED_PLACES {
            break;
        }
    }
    Ok(places)
}

/// Returns the number in `known`, from 1, of a line without the blanks around it. Equal lines have equal numbers.
fn number<'t>(known: &mut HashMap<&'t str, u32>, line: &'t str) -> u32 {
    let next = known.len() as u32 + 1;
    *known.entry(line.trim()).or_insert(next)
}

/// Returns a line without the indentation `indent` and without the blanks at its end; an empty text if it does not
/// begin with `indent`.
fn bare<'t>(line: &'t str, indent: &str) -> &'t str {
    line.strip_prefix(indent).unwrap_or_default().trim_end()
}

/// Returns the common indentation of all lines that are not blank; `None` if all are.
fn common_indent<'t>(lines: &[&'t str]) -> Option<&'t str> {
    let indents = lines.iter().filter(|line| !line.trim().is_empty()).map(|line| {
        let end = line.len() - line.trim_start_matches([' ', '\t']).len();
        &line[..end]
    });
    indents.reduce(|a, b| {
        let same = a.bytes().zip(b.bytes()).take_while(|(a, b)| a == b).count();
        &a[..same]
    })
}

/// Replaces the indentation `from` of each line that is not blank by `to`. A line without `from` receives what `to` has
/// in addition; `None` if `to` does not end with `from` then.
fn reindented(text: &str, from: &str, to: &str) -> Option<String> {
    let mut lines = Vec::new();
    for line in text.split('\n') {
        lines.push(match line.strip_prefix(from) {
            _ if line.trim().is_empty() => line.to_owned(),
            Some(rest) => format!("{to}{rest}"),
            None => format!("{}{line}", to.strip_suffix(from)?),
        });
    }
    Some(lines.join("\n"))
}

/// Finds a text that was written with escapes instead of all its line feeds, as in source code.
fn unescaped_places(text: &str, region: Range<usize>, old: &str, new: &str) -> Vec<SpanReplacement> {
    if old.contains('\n') || new.contains('\n') || !["\\n", "\\t"].iter().any(|escape| old.contains(escape)) {
        return Vec::new();
    }
    let (Some(old), Some(new)) = (unescaped(old), unescaped(new)) else { return Vec::new() };
    if old.trim().is_empty() {
        return Vec::new();
    }
    let (old, new): (Rc<str>, Rc<str>) = (old.into(), new.into());
    occurrences(&text[region.clone()], &old, |_| true)
        .into_iter()
        .map(|place| SpanReplacement {
            range: region.start + place.start..region.start + place.end,
            old: old.clone(),
            new: new.clone(),
        })
        .collect()
}

/// Returns the matching places of a text, at most the first ones of very many. They do not overlap, except that a
/// second place which overlaps a single one is found, too: the text is not unique then.
fn occurrences(text: &str, wanted: &str, is_wanted: impl Fn(&Range<usize>) -> bool) -> Vec<Range<usize>> {
    let places = text.match_indices(wanted).map(|(at, found)| at..at + found.len());
    let mut places: Vec<Range<usize>> = places.filter(|place| is_wanted(place)).take(MAX_PLACES + 1).collect();
    if let [only] = &places[..]
        && let Some(step) = wanted.chars().next().map(char::len_utf8)
    {
        // An overlapping match that begins before the only place was rejected, or it would have been found.
        let rest = only.start + step;
        let again = text[rest..].match_indices(wanted).map(|(at, found)| rest + at..rest + at + found.len());
        places.extend(again.filter(|place| is_wanted(place)).take(1).collect::<Vec<_>>());
    }
    places
}

/// Replaces escaped line feeds, tabs, backslashes and quotation marks; `None` if there is another escape.
fn unescaped(text: &str) -> Option<String> {
    let mut plain = String::with_capacity(text.len());
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        plain.push(match character {
            '\\' => match characters.next()? {
                'n' => '\n',
                't' => '\t',
                same @ ('\\' | '"' | '\'') => same,
                _ => return None,
            },
            other => other,
        });
    }
    Some(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, old: &str, expected: Option<(ToleratedDifference, &[&str])>) {
        let found = find_tolerantly(text, 0..text.len(), old, "new", &|| Ok(())).unwrap();
        let found =
            found.map(|found| (found.help, found.places.iter().map(|place| &text[place.range.clone()]).collect()));
        assert_eq!(found, expected.map(|(help, places)| (help, places.to_vec())), "{text:?}, {old:?}");
    }

    #[test]
    fn each_search_step_tolerates_only_its_own_kind_of_difference() {
        check("a\rb\nc", "a\nb", Some((ToleratedDifference::LineEndings, &["a\rb"])));
        check("if x:  \n  y\t\nz", "if x:\n  y\n", Some((ToleratedDifference::TrailingBlanks, &["if x:  \n  y\t\n"])));
        check(
            "say \u{201c}hi\u{201d}\u{a0}\u{2014} x",
            "say \"hi\" - x",
            Some((ToleratedDifference::Typography, &["say \u{201c}hi\u{201d}\u{a0}\u{2014} x"])),
        );
        check("fn f() {\n\t\ta\n\t\t\tb\n}", "a\n\tb", Some((ToleratedDifference::Indentation, &["\t\ta\n\t\t\tb"])));
        check("  a\n\n    b\n", "a\n\n  b\n", Some((ToleratedDifference::Indentation, &["  a\n\n    b\n"])));
        check("a\n\tb", "a\\n\\tb", Some((ToleratedDifference::Escapes, &["a\n\tb"])));
    }

    #[test]
    fn no_search_step_tolerates_a_changed_token() {
        check("letter", "let ", None);
        check("a \u{2212} b", "a - b", None);
        check("a  b", "a b", None);
        check("  a\n   b", "a\nb", None);
        check("ab", "a\nb", None);
        check("a\nb", "a\\nb\\q", None);
        check("x", " \n ", None);
    }

    #[test]
    fn a_text_that_overlaps_itself_is_not_unique() {
        check("x  \nx  \nx  \n", "x\nx\n", Some((ToleratedDifference::TrailingBlanks, &["x  \nx  \n", "x  \nx  \n"])));
        check("a\na\na", "a\\na", Some((ToleratedDifference::Escapes, &["a\na", "a\na"])));
    }

    #[test]
    fn tolerant_search_stops_after_one_match_more_than_the_maximum() {
        let text = "x \n".repeat(MAX_PLACES + 10);
        assert_eq!(
            find_tolerantly(&text, 0..text.len(), "x\n", "y", &|| Ok(())).unwrap().unwrap().places.len(),
            MAX_PLACES + 1
        );
    }

    #[test]
    fn long_near_matches_do_not_slow_down_the_search_and_the_deadline_stops_it() {
        let text = "x\n".repeat(200_000);
        let old = format!("{}y\n", "x\n".repeat(10_000));
        assert!(find_tolerantly(&text, 0..text.len(), &old, "new", &|| Ok(())).unwrap().is_none());
        let over = || Err(ToolFailure::new(toolstead_domain::error_kind::ErrorKind::Timeout, "over"));
        assert_eq!(find_tolerantly(&text, 0..text.len(), &old, "new", &over).err().unwrap().message, "over");
    }

    #[test]
    fn new_text_is_reindented_to_match_its_place() {
        assert_eq!(reindented("a\n  b\n\nc", "", "\t").unwrap(), "\ta\n\t  b\n\n\tc");
        assert_eq!(reindented("    a\n      b", "    ", "").unwrap(), "a\n  b");
        assert_eq!(reindented("  a\nb", "  ", "    ").unwrap(), "    a\n  b");
        assert_eq!(reindented("  a\nb", "  ", "\t"), None);
    }
}

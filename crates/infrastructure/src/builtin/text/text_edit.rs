//! Replacement of text in a file, for all tools: matched on a decoded view, spliced into the raw bytes.
//!
//! Bytes outside of the change stay the same, whatever the encoding, the line endings and the byte order mark. Only
//! transformations that preserve every token that is not blank may help a match ([`tolerant_search`]); similarity never does.

mod edit_span;
mod elision;
mod folded_text;
mod hunks;
mod line_view;
mod nearest;
mod replacement;
mod span_search;
mod tolerant_search;

pub(crate) use crate::builtin::text::text_edit::{folded_text::plain_character, tolerant_search::ToleratedDifference};
use crate::builtin::text::{
    line_ending::in_lines,
    snippet::surroundings,
    text_edit::{
        hunks::{AppliedHunks, Hunk},
        line_view::LineFeedView,
    },
    text_encoding::{TextDetection, TextEncoding, detect},
    wording::counted,
};
use crate::sandbox::workspace::stop::StopCondition;
use std::{borrow::Cow, ops::Range};
use toolstead_domain::{ToolFailure, error_kind::ErrorKind};

/// Maximum number of places shown with their surroundings.
const SHOWN_PLACES: usize = 3;
/// Number of lines shown before and after a place.
const RADIUS: usize = 3;
/// Maximum number of characters named that an encoding lacks.
const NAMED_CHARACTERS: usize = 10;

/// A replacement of text.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TextEdit<'a> {
    pub(crate) old: &'a str,
    pub(crate) new: &'a str,
    pub(crate) match_count: MatchCount,
    pub(crate) mode: PatternSyntax,
    pub(crate) start_line: Option<usize>,
    pub(crate) end_line: Option<usize>,
}

/// Number of places to replace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MatchCount {
    /// There must be exactly one.
    Single,
    /// All places.
    All,
    /// The first places, as many as this number, which must exist.
    First(usize),
    /// All places, of which there must be exactly this number.
    Exactly(usize),
}

/// Interpretation of the old text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PatternSyntax {
    Literal,
    /// A regular expression that matches within single lines.
    RegexByLine,
    /// A regular expression that may match across lines.
    RegexAcrossLines,
}

/// Options in the arguments of an edit.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct EditOptions {
    pub(crate) replace_all: bool,
    pub(crate) count: Option<usize>,
    pub(crate) expected_count: Option<usize>,
    pub(crate) regex: bool,
    pub(crate) multiline: bool,
}

impl<'a> TextEdit<'a> {
    /// Creates an edit of a whole file.
    ///
    /// # Errors
    /// `invalid_input` when options exclude each other, both texts are the same, or the new text has a placeholder for
    /// omitted lines.
    pub(crate) fn of(old: &'a str, new: &'a str, options: EditOptions) -> Result<Self, ToolFailure> {
        let wrong = |message: &str| Err(ToolFailure::new(ErrorKind::InvalidInput, message));
        let how_many = match (options.replace_all, options.count, options.expected_count) {
            (false, None, None) => MatchCount::Single,
            (true, None, None) => MatchCount::All,
            (false, Some(count), None) => MatchCount::First(count),
            (_, None, Some(count)) => MatchCount::Exactly(count),
            (true, Some(_), None) => return wrong("`replace_all` and `count` exclude each other"),
            (_, Some(_), Some(_)) => return wrong("`count` and `expected_count` exclude each other"),
        };
        let mode = match (options.regex, options.multiline) {
            (false, false) => PatternSyntax::Literal,
            (true, false) => PatternSyntax::RegexByLine,
            (true, true) => PatternSyntax::RegexAcrossLines,
            (false, true) => {
                return wrong("`multiline` needs `regex`: a plain `old_text` may have several lines anyway");
            }
        };
        if old == new && mode == PatternSyntax::Literal {
            let same = ToolFailure::new(ErrorKind::InvalidInput, "`old_text` and `new_text` are the same");
            return Err(same.next("Nothing was changed; give the text as it is to become."));
        }
        if mode == PatternSyntax::Literal
            && let Some(line) = elision::elided_line(old, new)
        {
            let message =
                format!("`new_text` has a placeholder for omitted text, `{line}`, which would be written literally");
            return Err(ToolFailure::new(ErrorKind::InvalidInput, message)
                .next("Nothing was changed; give the whole text, or make a smaller edit for each part that changes."));
        }
        Ok(Self { old, new, match_count: how_many, mode, start_line: None, end_line: None })
    }

    /// Returns the file's bytes and text after this edit. `limit` is the maximum size of the file after it, in bytes.
    ///
    /// # Errors
    /// `unsupported_type` when the file is not text, or only partly; `no_match`, `ambiguous_match`, `too_large`;
    /// `invalid_input` when the edit does not fit the file; `timeout`.
    pub(crate) fn apply(
        &self,
        bytes: &[u8],
        path: &str,
        limit: u64,
        stop: &StopCondition,
    ) -> Result<EditedFile, ToolFailure> {
        let file = DecodedFile::of(bytes, path)?;
        let (view, found) = self.find_spans(&file.text, path, limit, stop)?;
        let mut last = None;
        let of_place = |place| {
            check_deadline(stop, path)?;
            let hunks = hunks::of_place(view.text(), place, &mut last).into_iter();
            Ok(hunks.map(|hunk| Hunk { new: view.as_it_will_be(&hunk.range, &hunk.new), ..hunk }).collect())
        };
        let hunks = found.places.iter().map(of_place).collect::<Result<Vec<Vec<Hunk>>, ToolFailure>>()?;
        if hunks.iter().all(Vec::is_empty) {
            let message = format!("the edit would not change `{path}`");
            return Err(ToolFailure::new(ErrorKind::NoMatch, message).next("Nothing was changed."));
        }
        let bytes = file.spliced(&view, hunks.iter().flatten(), limit)?;
        let AppliedHunks { after, lines } = hunks::apply_hunks(view.text(), &found.places, &hunks);
        let help = found.help.or_else(|| self.line_ending_tolerance(&view, &found));
        Ok(EditedFile { bytes, after, lines, tolerance: help })
    }

    /// Finds the old text in a view of the file. A text with a carriage return that does not end a line there is
    /// searched for and replaced byte by byte.
    fn find_spans<'t>(
        &self,
        text: &'t str,
        path: &str,
        limit: u64,
        stop: &StopCondition,
    ) -> Result<(LineFeedView<'t>, span_search::FoundSpans), ToolFailure> {
        let view = LineFeedView::of(text);
        if self.has_lone_return() {
            let region = span_search::region(view.text(), path, self)?;
            if !view.text()[region.clone()].contains(&self.old.replace("\r\n", "\n"))
                && let Some(found) = span_search::find_exactly(text, view.in_original(region), path, self)?
            {
                return Ok((LineFeedView::exact(text), found));
            }
        }
        let found = span_search::find(view.text(), path, self, limit, stop)?;
        Ok((view, found))
    }

    /// Returns `true` if the old text has a carriage return that is not part of `\r\n`.
    fn has_lone_return(&self) -> bool {
        self.mode == PatternSyntax::Literal && self.old.replace("\r\n", "").contains('\r')
    }

    /// Returns [`ToleratedDifference::LineEndings`] if the text in the file has other line endings than the old text.
    fn line_ending_tolerance(
        &self,
        view: &LineFeedView<'_>,
        found: &span_search::FoundSpans,
    ) -> Option<ToleratedDifference> {
        let has_ends = self.mode == PatternSyntax::Literal && self.old.contains(['\n', '\r']);
        let first = found.places.first().filter(|_| has_ends)?;
        (view.original()[view.in_original(first.range.clone())] != *self.old)
            .then_some(ToleratedDifference::LineEndings)
    }
}

/// A file after its edit.
#[derive(Debug)]
pub(crate) struct EditedFile {
    pub(crate) bytes: Vec<u8>,
    /// Text with line feeds only.
    pub(crate) after: String,
    /// Lines (from 0) of each replaced place in `after`: the first, and the one after the last.
    pub(crate) lines: Vec<(usize, usize)>,
    /// Difference that the search tolerated.
    pub(crate) tolerance: Option<ToleratedDifference>,
}

impl EditedFile {
    /// Creates the result for a file that was empty before.
    pub(crate) fn for_empty_file(text: &str) -> Self {
        let after = in_lines(text).into_owned();
        Self { bytes: text.into(), lines: vec![(0, after.lines().count())], after, tolerance: None }
    }

    /// Returns the first replaced places as they are now, with numbered lines around them, and a count of the other
    /// places.
    pub(crate) fn render_changes(&self) -> String {
        let lines: Vec<&str> = self.after.lines().collect();
        // Places with overlapping surroundings are one range, so that no line is shown twice.
        let mut ranges: Vec<Range<usize>> = Vec::new();
        for (first, end) in self.lines.iter().take(SHOWN_PLACES) {
            match ranges.last_mut() {
                Some(last) if first.saturating_sub(RADIUS) <= last.end + RADIUS => last.end = last.end.max(*end),
                _ => ranges.push(*first..*end),
            }
        }
        let mut text = String::new();
        for range in ranges {
            text.push('\n');
            text.push_str(&surroundings(&lines, range, RADIUS));
        }
        if self.lines.len() > SHOWN_PLACES {
            text.push_str(&format!("… and {}\n", counted(self.lines.len() - SHOWN_PLACES, "more place")));
        }
        text
    }
}

/// A text file that can be edited without changing its other bytes.
#[derive(Debug)]
pub(crate) struct DecodedFile<'a> {
    pub(crate) encoding: TextEncoding,
    bytes: &'a [u8],
    /// Text after the byte order mark.
    pub(crate) text: Cow<'a, str>,
}

impl<'a> DecodedFile<'a> {
    /// Decodes a file.
    ///
    /// # Errors
    /// `unsupported_type` when the bytes are not text, or encoding the text would not result in the same bytes.
    pub(crate) fn of(bytes: &'a [u8], path: &str) -> Result<Self, ToolFailure> {
        let unsupported = |message: String| ToolFailure::new(ErrorKind::UnsupportedType, message);
        let encoding = match detect(bytes, true) {
            TextDetection::Text(encoding) => encoding,
            TextDetection::Binary(what) => {
                return Err(unsupported(format!("`{path}` is not text: it looks like {what}"))
                    .next("Nothing was changed; `write_file` replaces a file as a whole."));
            }
        };
        let Some(text) = encoding.decode_exactly(&bytes[encoding.mark_bytes()..]) else {
            return Err(unsupported(format!(
                "`{path}` is not valid in {}, and changing it would change other bytes as well",
                encoding.name()
            ))
            .next("Nothing was changed; `write_file` replaces a file as a whole."));
        };
        Ok(Self { encoding, bytes, text })
    }

    /// Encodes a text for this file.
    ///
    /// # Errors
    /// `invalid_input` that names the characters that the encoding lacks.
    pub(crate) fn encoded<'t>(&self, text: &'t str) -> Result<Cow<'t, [u8]>, ToolFailure> {
        self.encoding.encode(text).map_err(|_| lacking(self.encoding, text))
    }

    /// Returns the file's bytes with the hunks; bytes outside of them are copied unchanged.
    fn spliced<'h>(
        &self,
        view: &LineFeedView<'_>,
        hunks: impl Iterator<Item = &'h Hunk>,
        limit: u64,
    ) -> Result<Vec<u8>, ToolFailure> {
        let mut bytes = Vec::with_capacity(self.bytes.len());
        // Positions in the text and in its bytes that are processed.
        let (mut done, mut raw) = (0, 0);
        let mut at = self.encoding.mark_bytes();
        for hunk in hunks {
            let range = view.in_original(hunk.range.clone());
            at += self.encoding.encoded_bytes(&self.text[done..range.start]);
            bytes.extend_from_slice(&self.bytes[raw..at]);
            bytes.extend_from_slice(&self.encoded(&view.with_endings_of(&range, &hunk.new))?);
            at += self.encoding.encoded_bytes(&self.text[range.clone()]);
            (done, raw) = (range.end, at);
            if bytes.len() as u64 > limit {
                return Err(too_large(limit));
            }
        }
        bytes.extend_from_slice(&self.bytes[raw..]);
        if bytes.len() as u64 > limit { Err(too_large(limit)) } else { Ok(bytes) }
    }
}

/// Returns the failure for a text with characters that an encoding lacks.
pub(crate) fn lacking(encoding: TextEncoding, text: &str) -> ToolFailure {
    let missing = encoding.lacking(text, NAMED_CHARACTERS);
    let named: Vec<String> =
        missing.iter().map(|character| format!("`{character}` (U+{:04X})", u32::from(*character))).collect();
    let message = format!("the file is in {}, which has no {}", encoding.name(), named.join(", no "));
    ToolFailure::new(ErrorKind::InvalidInput, message)
        .next("Nothing was changed; leave that out, or rewrite the whole file as UTF-8 with `write_file`.")
}

/// Checks that the deadline is not reached.
fn check_deadline(stop: &StopCondition, path: &str) -> Result<(), ToolFailure> {
    if !stop.is_due() {
        return Ok(());
    }
    let message = format!("the search for `old_text` in `{path}` timed out");
    Err(ToolFailure::new(ErrorKind::Timeout, message).next(
        "Nothing was changed; give a shorter `old_text`, or a part of the file with `start_line` and `end_line`.",
    ))
}

fn too_large(limit: u64) -> ToolFailure {
    ToolFailure::new(ErrorKind::TooLarge, format!("the file would have more than {limit} bytes"))
        .next("Nothing was changed.")
}

//! Reads lines of a text of any encoding and size.

use super::{
    FileReader, InitialReadOutcome, Input, Kind, Output,
    page::{LinePage, LineStyle, page},
};
use crate::{
    builtin::{
        files::{content::OpenContent, content_sample::ContentSample, etag::etag},
        text::{
            line_ending::LineEnding,
            line_index::LineIndex,
            line_unit::CodeUnitLayout,
            text_encoding::TextEncoding,
            text_window::{LineRangeContent, LineRangeReader, TextWindowPosition},
        },
        tool_kit::answer::answer,
    },
    sandbox::workspace::{granted_workspace::GrantedWorkspace, stop::StopCondition},
};
use std::{
    borrow::Cow,
    io::{self, Cursor},
};
use toolstead_domain::{ToolFailure, error_kind::ErrorKind};

/// Number of bytes at the beginning of a text that are searched for its line ending.
const TELLING_BYTES: usize = 64 << 10;
/// Number of characters reserved for the notes below the lines; at most a quarter of all.
const NOTES_CHARS: usize = 800;

/// Returns the encoding with this name, for a text that begins with these bytes; fails if the name is unknown.
pub(super) fn encoding_named(label: &str, beginning: &[u8]) -> Result<TextEncoding, ToolFailure> {
    TextEncoding::named(label, beginning).ok_or_else(|| {
        ToolFailure::new(ErrorKind::InvalidInput, format!("`{label}` is not a known encoding"))
            .next("Leave out `encoding` to detect it, or give a name like \"latin-1\" or \"shift_jis\".")
    })
}

impl FileReader {
    pub(super) fn text(
        &self,
        content: &mut OpenContent,
        sampled: ContentSample,
        encoding: TextEncoding,
        files: &GrantedWorkspace,
        input: &Input,
    ) -> Result<InitialReadOutcome, ToolFailure> {
        let in_returns = sampled.text_in_returns(encoding);
        let line_ending = if in_returns.is_some() {
            Some(LineEnding::Cr)
        } else {
            let body = sampled.sample.get(encoding.mark_bytes()..).unwrap_or_default();
            LineEnding::of(&encoding.decode_beginning(&body[..body.len().min(TELLING_BYTES)]).0)
        };
        let digest = sampled.digest;
        let (window, is_decoded) = match &in_returns {
            Some(text) => {
                let mut text = in_memory(text.as_bytes(), 0, CodeUnitLayout::Byte, files.stop());
                (text.window(select_lines(input), input.limit).map_err(unreadable)?, true)
            }
            None => (self.window(content, sampled, encoding, files.stop(), input)?, encoding.line_unit().is_none()),
        };
        let (decoded, is_malformed) = decoded(&window, encoding, is_decoded);
        let characters = self.characters - NOTES_CHARS.min(self.characters / 4);
        let style = LineStyle {
            numbers: input.line_numbers.then_some(input.number_style),
            ends: input.show_ends.then_some(if in_returns.is_some() { "^M" } else { "$" }),
            squeeze_blank: input.squeeze_blank,
        };
        let page = page(&decoded, window.first, window.before as usize, style, characters);

        let is_line_cut = page.is_line_cut || (window.is_last_line_cut && page.lines == window.lines);
        let next = page.first + page.lines as i64;
        let goes_on = page.lines > 0
            && if page.first < 0 {
                next < 0
            } else {
                window.total_lines.is_none_or(|total| next.unsigned_abs() <= total)
            };
        let mut output = Output {
            path: content.name.clone(),
            kind: Kind::Text,
            content: Some(match in_returns.is_some() {
                true => page.content.replace('\n', "\r"),
                false => page.content.to_owned(),
            }),
            total_lines: window.total_lines,
            size_bytes: Some(content.bytes),
            encoding: Some(encoding.name()),
            line_ending,
            truncated: goes_on || is_line_cut || window.is_out_of_time,
            next_offset: goes_on.then_some(next),
            etag: self.record_version(content, digest).as_ref().map(etag),
            ..Output::default()
        };
        if page.lines > 0 {
            (output.start_line, output.end_line) = (Some(page.first), Some(next - 1));
        }
        let mut notes = place_notes(&output, &window, &page, input);
        if is_line_cut {
            let note = "the last line shown is longer than a page and was cut; `grep` finds text in it";
            notes.push(note.into());
        }
        let ending = line_ending.and_then(|ending| ending.note(in_returns.is_some()));
        notes.extend(form_notes(encoding, ending, is_malformed));
        if digest.is_some() && output.etag.is_none() {
            notes.push("the file changed while it was read; read it again before you edit it".into());
        }
        let mut text = page.text;
        for note in notes {
            text.push_str(&format!("[{note}]\n"));
        }
        // A blank line at the end counts as a line.
        answer(text.strip_suffix('\n').unwrap_or(&text), &output).map(InitialReadOutcome::Done)
    }

    /// Returns the lines that `input` requests, and keeps the line index of a settled file. The lines are still
    /// encoded; they are UTF-8 if the encoding has to be decoded before lines can be found.
    fn window(
        &self,
        content: &mut OpenContent,
        sampled: ContentSample,
        encoding: TextEncoding,
        stop: &StopCondition,
        input: &Input,
    ) -> Result<LineRangeContent, ToolFailure> {
        let (wanted, start) = (select_lines(input), encoding.mark_bytes());
        let Some(unit) = encoding.line_unit() else {
            // A text that cannot be split into lines before it is decoded is read as a whole and converted to UTF-8.
            let bytes = content.read_whole(self.limits.text_bytes, &format!("a text in {}", encoding.name()))?;
            let text = encoding.decode(bytes.get(start..).unwrap_or_default()).0.into_owned();
            let mut text = in_memory(text.as_bytes(), 0, CodeUnitLayout::Byte, stop);
            return text.window(wanted, input.limit).map_err(unreadable);
        };
        if sampled.is_whole {
            let mut text = in_memory(&sampled.sample, start as u64, unit, stop);
            return text.window(wanted, input.limit).map_err(unreadable);
        }
        let mut index = self.lines.get(content.id, start as u64, unit);
        let lined = LineRangeReader { bytes: content.bytes, reader: &mut content.reader, index: &mut index, stop };
        let window = { lined }.read_lines(wanted, input.limit).map_err(|error| content.unreadable(error))?;
        if content.is_settled() {
            self.lines.put(content.id, index);
        }
        Ok(window)
    }
}

/// A text that is completely in memory.
struct InMemoryText<'a> {
    bytes: &'a [u8],
    index: LineIndex,
    stop: &'a StopCondition,
}

fn in_memory<'a>(bytes: &'a [u8], start: u64, unit: CodeUnitLayout, stop: &'a StopCondition) -> InMemoryText<'a> {
    InMemoryText { bytes, index: LineIndex::new(start, unit), stop }
}

impl InMemoryText<'_> {
    fn window(&mut self, wanted: TextWindowPosition, limit: u64) -> io::Result<LineRangeContent> {
        let (bytes, mut reader) = (self.bytes.len() as u64, Cursor::new(self.bytes));
        let mut text = LineRangeReader { reader: &mut reader, bytes, index: &mut self.index, stop: self.stop };
        text.read_lines(wanted, limit)
    }
}

/// Returns the lines that the caller requests.
fn select_lines(input: &Input) -> TextWindowPosition {
    match (input.around, input.offset) {
        (Some(line), _) => TextWindowPosition::Around(line),
        (None, offset) if offset < 0 => TextWindowPosition::Last(offset.unsigned_abs()),
        (None, offset) => TextWindowPosition::From(offset.max(1).unsigned_abs()),
    }
}

fn unreadable(error: io::Error) -> ToolFailure {
    ToolFailure::new(ErrorKind::Io, format!("the rest could not be read: {error}")).caused_by(error)
}

/// Decodes a range of text. The returned boolean is `true` if bytes were invalid. `is_decoded`: the range is UTF-8
/// already.
fn decoded(window: &LineRangeContent, encoding: TextEncoding, is_decoded: bool) -> (Cow<'_, str>, bool) {
    if is_decoded {
        let text = String::from_utf8_lossy(&window.bytes);
        let is_malformed = text.contains(char::REPLACEMENT_CHARACTER);
        (text, is_malformed)
    } else if window.is_last_line_cut {
        let (text, is_malformed) = encoding.decode_beginning(&window.bytes);
        (text.into(), is_malformed)
    } else {
        encoding.decode(&window.bytes)
    }
}

/// Describes which lines are shown, and how to read more.
fn place_notes(output: &Output, window: &LineRangeContent, page: &LinePage<'_>, input: &Input) -> Vec<String> {
    let (mut notes, name) = (Vec::new(), &output.path);
    let asked = input.around.map_or(window.first, |line| i64::try_from(line).unwrap_or(i64::MAX));
    match (output.total_lines, output.end_line) {
        (Some(0), _) => notes.push(format!("`{name}` exists and is empty")),
        (Some(total), None) => {
            let lines = if total == 1 { "line" } else { "lines" };
            notes.push(format!("`{name}` has {total} {lines}; line {asked} is past its end"));
        }
        (None, None) => notes.push(format!("the time limit was reached before line {asked}")),
        _ => {}
    }
    if let Some(end) = output.end_line {
        let total = output.total_lines.map_or("more".into(), |total| total.to_string());
        match output.next_offset {
            Some(next) => notes.push(format!("lines {} to {end} of {total}; read on with offset={next}", page.first)),
            None if input.around.is_some() && page.first > 1 => {
                notes.push(format!("lines {} to {end} of {total}", page.first));
            }
            None => {}
        }
        if window.is_out_of_time {
            notes.push("the time limit was reached before all lines were read".into());
        } else if output.total_lines.is_none() {
            let from_end = if page.first < 0 { "lines are numbered from the end; " } else { "" };
            let bytes = output.size_bytes.unwrap_or(0);
            notes
                .push(format!("{from_end}the file has {bytes} bytes and its lines were not counted: `file_info` does"));
        }
    }
    notes
}

/// Returns notes on unusual properties of the text: its encoding, line endings and invalid bytes.
fn form_notes(encoding: TextEncoding, line_ending: Option<&str>, is_malformed: bool) -> Vec<String> {
    let mut notes = Vec::new();
    if !encoding.is_plain() {
        let mark = if encoding.mark_bytes() > 0 { " with a byte order mark" } else { "" };
        notes.push(format!("encoding: {}{mark}", encoding.name()));
    }
    notes.extend(line_ending.map(str::to_owned));
    if is_malformed {
        notes.push(format!("some bytes are not valid in {} and are shown as \u{fffd}", encoding.name()));
    }
    notes
}

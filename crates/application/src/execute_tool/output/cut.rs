//! Cutting the middle out of a text.

use super::{block_text, block_text_mut, overflow_writer::StorageOutcome};
use crate::tool_registry::output_readers::OutputReaders;
use serde_json::Value;
use std::ops::Range;
use toolstead_domain::tool_result::text_block;

/// Maximum number of characters by which a cut moves to fall between two lines.
const LINE_REACH: usize = 200;
/// Budget in characters below which the notice is short.
const SMALL: usize = 1_000;

/// Text of all blocks, joined by line breaks, as it is stored.
pub(super) struct JoinedText {
    text: String,
    /// Index of each block with text, and its range in `text`.
    places: Vec<(usize, Range<usize>)>,
}

impl JoinedText {
    pub(super) fn of(blocks: &[Value]) -> Self {
        let texts = || blocks.iter().enumerate().filter_map(|(at, block)| Some((at, block_text(block)?)));
        let mut text = String::with_capacity(texts().map(|(_, text)| text.len() + 1).sum());
        let mut places = Vec::new();
        for (at, part) in texts() {
            if !places.is_empty() {
                text.push('\n');
            }
            places.push((at, text.len()..text.len() + part.len()));
            text.push_str(part);
        }
        Self { text, places }
    }

    pub(super) fn text(&self) -> &str {
        &self.text
    }

    pub(super) fn characters(&self) -> usize {
        self.text.chars().count()
    }

    /// Removes the middle, so that the rest and the notice in its place fit the budget. Three fifths of the rest are
    /// from the beginning and two fifths from the end.
    pub(super) fn cut(&self, blocks: &mut Vec<Value>, budget: usize, kept: &StorageOutcome, readers: &OutputReaders) {
        let text = self.text.as_str();
        let total = self.characters();
        // The notice about the longest gap is the longest one.
        let longest =
            notice(&Gap { characters: total, total, lines: (lines(text), lines(text)) }, budget, kept, readers);
        let room = budget.saturating_sub(longest.chars().count() + 4);
        let mut head = text.char_indices().nth(room * 3 / 5).map_or(text.len(), |(at, _)| at);
        let mut tail = match room - room * 3 / 5 {
            0 => text.len(),
            characters => text.char_indices().rev().nth(characters - 1).map_or(0, |(at, _)| at),
        };
        tail = tail.max(head);
        let reach = |at: usize| text[..at].char_indices().rev().nth(LINE_REACH).map_or(0, |(at, _)| at);
        if let Some(line_end) = text[reach(head)..head].rfind('\n') {
            head = reach(head) + line_end + 1;
        }
        let after: usize = text[tail..].chars().take(LINE_REACH).map(char::len_utf8).sum();
        if let Some(line_end) = text[tail..tail + after].find('\n') {
            tail += line_end + 1;
        }
        let gap = Gap {
            characters: text[head..tail].chars().count(),
            total,
            lines: (lines(&text[..head]), lines(&text[..tail]) - usize::from(text[..tail].ends_with('\n'))),
        };
        self.leave_out(blocks, head..tail, &notice(&gap, budget, kept, readers));
    }

    /// Replaces a range of the text by the notice in the blocks that contain it. Blocks that become empty are removed.
    fn leave_out(&self, blocks: &mut Vec<Value>, gap: Range<usize>, notice: &str) {
        let mut emptied = vec![false; blocks.len()];
        let mut is_noticed = false;
        for (at, place) in &self.places {
            if place.end <= gap.start && place.start < gap.start || place.start >= gap.end {
                continue;
            }
            let mut left = self.text[place.start..gap.start.clamp(place.start, place.end)].to_owned();
            if !std::mem::replace(&mut is_noticed, true) {
                let before = if left.is_empty() || left.ends_with("\n\n") { "" } else { "\n\n" };
                left.push_str(before);
                left.push_str(notice);
                left.push_str(if gap.end < place.end { "\n\n" } else { "" });
            }
            left.push_str(&self.text[gap.end.clamp(place.start, place.end)..place.end]);
            emptied[*at] = left.is_empty();
            if let Some(text) = block_text_mut(&mut blocks[*at]) {
                *text = left;
            }
        }
        let mut emptied = emptied.into_iter();
        blocks.retain(|_| !emptied.next().unwrap_or_default());
        if !is_noticed {
            blocks.push(text_block(notice.to_owned()));
        }
    }
}

/// Removed part of a text.
struct Gap {
    characters: usize,
    total: usize,
    /// Numbers of the first and the last line that are cut.
    lines: (usize, usize),
}

/// Returns the notice: the size and position of the removed part, and the calls that return it.
fn notice(gap: &Gap, budget: usize, kept: &StorageOutcome, readers: &OutputReaders) -> String {
    let Gap { characters, total, lines: (first, last) } = gap;
    let missing = format!("{characters} of {total} characters");
    let lines = if first == last { format!("within line {first}") } else { format!("lines {first} to {last}") };
    let Some(handle) = kept.handle() else {
        return format!("[… {missing} ({lines}) are left out here; {} …]", kept.describe());
    };
    let reference = format!("{{\"$ref\": \"{handle}\"}}");
    if budget < SMALL {
        let read = readers.full_read_call(handle).map_or_else(String::new, |call| format!("{call}, or "));
        return format!("[… {missing} are left out; {}: {read}pass it on as {reference} …]", kept.describe());
    }
    let read = readers.lines_from(handle, *first).map_or_else(String::new, |calls| format!("{calls}; "));
    let description = kept.describe();
    format!(
        "[… {missing} ({lines}) are left out here; {description}: {read}any tool takes it as the argument {reference} …]"
    )
}

/// Returns the number of the line in which the text ends.
fn lines(text: &str) -> usize {
    text.bytes().filter(|byte| *byte == b'\n').count() + 1
}

//! The output of a command as models see it.

use crate::builtin::{
    commands::{
        capture::{Capture, OutputStream, output_read_failure},
        command::{CommandEnd, EndCause},
    },
    text::{
        hex_window::{SHOWN_BYTES, hex_window},
        plain_text::ControlSequenceFilter,
    },
    tool_kit::{blocking::on_blocking_thread, tool_context::ToolContext},
};
use regex::Regex;
use serde_json::{Value, json};
use std::sync::Arc;
use toolstead_domain::{OutputHandle, ToolFailure, ToolResult};

/// Key in a result's `_meta` that lists stored outputs. The call path uses the same key.
const OUTPUTS: &str = "toolstead/outputs";
/// Number of bytes that are examined to distinguish text from binary output.
const SAMPLE: usize = 8 << 10;
const CHUNK: usize = 256 << 10;

/// Selection of an output.
#[derive(Debug, Default)]
pub(crate) struct OutputSelection {
    /// Position of the first byte in the output of both streams.
    pub(crate) from: u64,
    /// Only this stream.
    pub(crate) stream: Option<OutputStream>,
    /// Only matching lines.
    pub(crate) filter: Option<Regex>,
    /// Maximum number of lines, from the end.
    pub(crate) tail_lines: Option<usize>,
}

/// Output within a budget of characters.
#[derive(Debug)]
pub(crate) struct RenderedOutput {
    pub(crate) text: String,
    /// Handle of the whole output, if only a part is shown.
    pub(crate) handle: Option<OutputHandle>,
    /// Handle of a standard error that [follows](Self::followed_by), if only a part of it is shown.
    pub(crate) error_handle: Option<OutputHandle>,
    pub(crate) is_cut: bool,
    /// Number of bytes before the selection that are no longer retained.
    pub(crate) dropped: u64,
    /// Position in the output after the last byte of the selection.
    pub(crate) end: u64,
    meta: Vec<Value>,
}

/// A whole selection, in memory.
struct LoadedSelection {
    content: Content,
    dropped: u64,
    end: u64,
}

enum Content {
    Text(String),
    Binary(Vec<u8>),
}

impl RenderedOutput {
    /// Lists the stored outputs, if there are any, in the result's `_meta`.
    pub(crate) fn noted_in(&self, result: &mut ToolResult) {
        if !self.meta.is_empty() {
            result.insert_meta(OUTPUTS, json!(self.meta));
        }
    }

    /// Appends the standard error under a heading.
    pub(crate) fn followed_by(mut self, heading: &str, errors: Self) -> Self {
        if !self.text.is_empty() && !self.text.ends_with('\n') {
            self.text.push('\n');
        }
        self.text.push_str(heading);
        self.text.push_str(&errors.text);
        self.is_cut |= errors.is_cut;
        self.error_handle = errors.handle;
        self.meta.extend(errors.meta);
        self
    }
}

/// Shows a selection of an output in at most `budget` characters: all of it, or its beginning and end with a handle of
/// the whole.
pub(crate) async fn render_output(
    capture: &Arc<Capture>,
    part: OutputSelection,
    budget: usize,
    run: &ToolContext<'_>,
) -> Result<RenderedOutput, ToolFailure> {
    // Held until the whole is out of memory again. The semaphore is never closed.
    let _turn = if capture.total() > SAMPLE as u64 {
        run.environment().processes().tasks().rendering.acquire().await.ok()
    } else {
        None
    };
    let whole = if capture.total() <= SAMPLE as u64 && !capture.is_on_disk(0) {
        load_selection(capture, &part)?
    } else {
        let reading = capture.clone();
        on_blocking_thread(move || load_selection(&reading, &part)).await?
    };
    let LoadedSelection { content, dropped, end } = whole;
    let lead = match dropped {
        0 => String::new(),
        dropped => format!("[… the first {dropped} bytes are no longer stored …]\n"),
    };
    let fault = capture.fault().map(|fault| format!("\n[… the output after this could not be stored: {fault} …]"));
    let fault = fault.unwrap_or_default();
    let budget = budget.saturating_sub(lead.chars().count() + fault.chars().count());
    // If older output was discarded, the rest is not all of it.
    let all = if dropped == 0 { "all of it" } else { "the stored part" };
    let (text, kept) = match content {
        Content::Text(text) if text.chars().count() <= budget => (text, None),
        Content::Text(text) => {
            let kept = keep(run, "text/plain", text.as_bytes()).await;
            (cut(&text, budget, kept.as_ref().map(|(handle, _)| (all, *handle))), Some(kept))
        }
        Content::Binary(bytes) => {
            let kept = keep(run, "application/octet-stream", &bytes).await;
            let place = kept.as_ref().map_or("not stored".to_owned(), |(handle, _)| format!("{all} is `{handle}`"));
            let beginning = hex_window(0, &bytes[..bytes.len().min(SHOWN_BYTES)]);
            (format!("[{} bytes that are not text; {place}. They begin:]\n{beginning}", bytes.len()), Some(kept))
        }
    };
    let is_cut = kept.is_some();
    let (handle, meta) = kept.flatten().unzip();
    let meta = Vec::from_iter(meta);
    Ok(RenderedOutput { text: format!("{lead}{text}{fault}"), handle, error_handle: None, is_cut, dropped, end, meta })
}

fn load_selection(capture: &Capture, part: &OutputSelection) -> Result<LoadedSelection, ToolFailure> {
    let of_stream = |place: u64, bytes: Vec<u8>| match part.stream {
        Some(stream) => capture.of_stream(stream, place, &bytes),
        None => bytes,
    };
    let from = part.stream.map_or(part.from, |_| part.from.max(capture.stream_known_from()));
    let (start, sample) = capture.read(from, SAMPLE).map_err(output_read_failure)?;
    let sample = of_stream(start, sample);
    let dropped = start.saturating_sub(part.from);
    let dropped = if part.from > capture.total() { 0 } else { dropped };
    let (mut at, limit) = (start, capture.total());
    let mut next = || {
        // Later output belongs to the next request: a command may print faster than this loop reads.
        let most = usize::try_from(limit.saturating_sub(at)).unwrap_or(CHUNK).min(CHUNK);
        let (place, bytes) = capture.read(at, most).map_err(output_read_failure)?;
        at = place + bytes.len() as u64;
        let is_over = bytes.is_empty();
        Ok::<_, ToolFailure>((at, is_over, of_stream(place, bytes)))
    };
    let mut end = start;
    let filtered = part.filter.is_some() || part.tail_lines.is_some();
    if !filtered && is_binary(&sample) {
        let mut all = Vec::new();
        loop {
            let (reached, is_over, bytes) = next()?;
            end = reached;
            if is_over {
                return Ok(LoadedSelection { content: Content::Binary(all), dropped, end });
            }
            all.extend_from_slice(&bytes);
        }
    }
    let (mut plain, mut text, mut lines) = (ControlSequenceFilter::default(), String::new(), String::new());
    if !filtered {
        // Doubling the capacity would use half as much memory again.
        text.reserve_exact(usize::try_from(limit - start).unwrap_or(0) + CHUNK);
    }
    loop {
        let (reached, is_over, bytes) = next()?;
        end = end.max(reached);
        if is_over {
            plain.finish(&mut lines);
        } else {
            plain.push(&bytes, &mut lines);
        }
        match &part.filter {
            None => text.push_str(&lines),
            Some(filter) => lines.split_inclusive('\n').for_each(|line| {
                if filter.is_match(line.trim_end_matches('\n')) {
                    text.push_str(line);
                }
            }),
        }
        lines.clear();
        if is_over {
            break;
        }
    }
    if let Some(count) = part.tail_lines {
        let body = text.strip_suffix('\n').unwrap_or(&text);
        let cut = body.rmatch_indices('\n').nth(count.saturating_sub(1)).map_or(0, |(at, _)| at + 1);
        text.drain(..if count == 0 { text.len() } else { cut });
    }
    Ok(LoadedSelection { content: Content::Text(text), dropped, end })
}

/// Returns `true` if more than one byte in ten does not belong to text for a terminal. Any text may contain a few.
fn is_binary(sample: &[u8]) -> bool {
    let mut strange = 0;
    let mut chunks = sample.utf8_chunks().peekable();
    while let Some(chunk) = chunks.next() {
        let odd = |byte: &u8| byte.is_ascii_control() && !matches!(byte, b'\t' | b'\n' | b'\r' | 0x1b | 0x07 | 0x08);
        strange += chunk.valid().bytes().filter(odd).count();
        // The sample may end within a character.
        if chunks.peek().is_some() {
            strange += chunk.invalid().len();
        }
    }
    strange > 4 && strange * 10 > sample.len()
}

async fn keep(run: &ToolContext<'_>, media_type: &str, content: &[u8]) -> Option<(OutputHandle, Value)> {
    let context = run.context();
    match context.outputs.store(context.principal, context.id, media_type, content).await {
        Ok(stored) => {
            let meta = json!({"of": "output", "handle": stored.handle.to_string(), "mediaType": stored.media_type, "bytes": stored.bytes});
            Some((stored.handle, meta))
        }
        Err(error) => {
            tracing::warn!(call = %context.id, error = &error as &dyn std::error::Error, "could not store an output");
            None
        }
    }
}

/// Returns two fifths of the budget from the beginning and three fifths from the end, because commands print what
/// matters last. With a handle the notice describes what is stored under it.
fn cut(text: &str, budget: usize, kept_as: Option<(&str, OutputHandle)>) -> String {
    let total = text.chars().count();
    let room = budget.saturating_sub(400);
    let head = text.char_indices().nth(room * 2 / 5).map_or(text.len(), |(at, _)| at);
    let head = text[..head].rfind('\n').filter(|at| head - at < 400).map_or(head, |at| at + 1);
    let kept = room - room * 2 / 5;
    let tail = text.char_indices().rev().nth(kept.saturating_sub(1)).map_or(0, |(at, _)| at);
    let tail = if kept == 0 { text.len() } else { tail.max(head) };
    let tail = text[tail..].find('\n').filter(|at| *at < 400).map_or(tail, |at| tail + at + 1);
    let line = |at: usize| text[..at].bytes().filter(|byte| *byte == b'\n').count() + 1;
    let (first, last, missing) = (line(head), line(tail), text[head..tail].chars().count());
    let way = match kept_as {
        Some((all, handle)) => format!(
            "{all} is `{handle}`: read_file {{\"path\": \"{handle}\", \"offset\": {first}}} or \
             grep {{\"path\": \"{handle}\", \"pattern\": \"…\"}}"
        ),
        None => "they could not be stored".into(),
    };
    format!(
        "{}\n[… {missing} of {total} characters (lines {first} to {last}) are left out here; {way} …]\n{}",
        &text[..head],
        &text[tail..]
    )
}

/// Returns the remarks on the result of a command, apart from its exit code.
pub(crate) fn remarks(end: &CommandEnd, kept_bytes: u64) -> Vec<String> {
    let mut remarks = Vec::new();
    if end.cause == EndCause::TooMuchOutput {
        remarks.push(format!("It printed more than {kept_bytes} bytes: send the output to a file, or filter it."));
    }
    if end.had_survivors {
        remarks.push(
            "Background processes of the command were ended with it: use `background: true` for what must continue."
                .into(),
        );
    }
    remarks.extend(end.notes.iter().map(|line| format!("{}.", line.trim_end_matches('.'))));
    remarks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn truncated_output_fits_its_limit_and_marks_the_omitted_lines() {
        let text: String = (1..=2000).map(|number| format!("line {number}\n")).collect();
        let shown = cut(&text, 1000, "o7".parse().ok().map(|handle| ("all of it", handle)));
        assert!(shown.chars().count() <= 1000, "{}", shown.chars().count());
        assert!(shown.starts_with("line 1\n") && shown.ends_with("line 2000\n"), "{shown}");
        assert!(shown.contains("all of it is `o7`") && shown.contains("left out here"), "{shown}");
        let one_line = "x".repeat(100_000);
        assert!(cut(&one_line, 1000, None).chars().count() <= 1000);
    }

    #[test]
    fn colour_codes_and_nul_separators_count_as_text_and_an_image_as_binary() {
        assert!(!is_binary("\u{1b}[31mä\u{1b}[0m\r\n".as_bytes()));
        assert!(!is_binary(b"") && !is_binary(b"a.txt\0lib/b.txt\0"));
        assert!(is_binary(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0"));
    }
}

//! The tool `read_file`.

use crate::{
    builtin::{
        answer::answer,
        built_in_tool::BuiltInTool,
        documents::{
            DocumentKind,
            reading::{self, Source, Wanted, is_document},
            rendering::Shown,
        },
        run::Run,
        schema::output_schema,
        snippet::{MAX_LINE_CHARS, push_cut, push_numbered},
        text_encoding::{Detected, TextEncoding, detect},
        text_window::{TextWindow, count_lines, read_window},
        world::World,
    },
    sandbox::workspace::{found::Found, granted::GrantedWorkspace, path_error::PathError},
};
use async_trait::async_trait;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::{
    fs::File,
    io::{self, Cursor, Read, Seek, SeekFrom},
};
use toolstead_domain::{
    access::Access, category::Category, error_kind::ErrorKind, tool::ToolAnnotations, tool_failure::ToolFailure,
    tool_result::ToolResult,
};

/// A page has at most as many characters.
const MAX_PAGE_CHARS: usize = 100_000;
/// What must be decoded as a whole (UTF-16 and the like) is decoded up to this size.
const MAX_DECODED_BYTES: u64 = 10 << 20;
/// As much of a file is looked at to tell its encoding.
const SAMPLE_BYTES: u64 = 1 << 20;
/// As many bytes of a file that is no text are shown.
const SHOWN_BYTES: usize = 64;

/// Reads some lines of a text file.
pub(super) struct ReadFile;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Input {
    /// Path of the file: absolute, or relative to the working directory.
    #[schemars(length(min = 1))]
    path: String,
    /// The first line to read, from 1. A negative number counts from the end: -20 reads the last 20 lines.
    #[serde(default = "first_line")]
    offset: i64,
    /// How many lines to read.
    #[serde(default = "usual_limit")]
    #[schemars(range(min = 1, max = 10_000))]
    limit: u64,
    /// Whether to put its number before each line.
    #[serde(default = "yes")]
    line_numbers: bool,
    /// The file's encoding, if it is not found out by itself: "utf-8", "latin-1", "utf-16", "shift_jis" and so on.
    encoding: Option<String>,
    /// Of a document: the pages of a PDF, sheets, slides or notebook cells to read, like "3", "1-5" or "2,4-6". A PDF is
    /// read 10 pages at a time without it, and 20 at most.
    #[schemars(length(min = 1))]
    pages: Option<String>,
    /// Mark the end of each line with $, and carriage returns with ^M.
    #[serde(default)]
    show_ends: bool,
    /// Show only one of several blank lines in a row.
    #[serde(default)]
    squeeze_blank: bool,
}

fn first_line() -> i64 {
    1
}

fn usual_limit() -> u64 {
    2000
}

fn yes() -> bool {
    true
}

#[derive(Serialize, JsonSchema, Default)]
struct Output {
    /// Relative to the working directory, or absolute outside of it.
    path: String,
    kind: Kind,
    /// The lines as they are, without numbers.
    content: String,
    /// The first line of the content, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    start_line: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    end_line: Option<u64>,
    /// The lines of the whole file, where they were counted to the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    total_lines: Option<u64>,
    size_bytes: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    encoding: Option<String>,
    /// Whether the file goes on behind the content, or one of its lines was cut.
    truncated: bool,
    /// Where to read on.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_offset: Option<u64>,
    /// What the pages, sheets, slides or cells are that the content shows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pages: Option<Pages>,
    /// Where to read on in a document.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_pages: Option<String>,
    /// The title that a document gives itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    title: Option<String>,
}

/// From 1.
#[derive(Serialize, JsonSchema)]
struct Pages {
    first: u64,
    last: u64,
    total: u64,
}

#[derive(Serialize, JsonSchema, Default, Clone, Copy, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
enum Kind {
    #[default]
    Text,
    Binary,
    Pdf,
    Docx,
    Xlsx,
    Pptx,
    Notebook,
}

impl From<DocumentKind> for Kind {
    fn from(kind: DocumentKind) -> Self {
        match kind {
            DocumentKind::Pdf => Self::Pdf,
            DocumentKind::Docx => Self::Docx,
            DocumentKind::Xlsx => Self::Xlsx,
            DocumentKind::Pptx => Self::Pptx,
            DocumentKind::Notebook => Self::Notebook,
        }
    }
}

#[async_trait]
impl BuiltInTool for ReadFile {
    const NAME: &str = "read_file";
    const TITLE: &str = "Read file";
    const DESCRIPTION: &str = "Reads a text file with line numbers, or the text of a PDF, docx, xlsx, pptx or notebook. Returns up to 2000 \
         lines; use `offset` and `limit`, or `pages`, for another part. Use `grep` to find the lines that matter in \
         large files, and `list_directory` for folders.";
    const CATEGORY: Category = Category::File;
    const TAGS: &[&str] = &["read"];
    const ANNOTATIONS: ToolAnnotations = ToolAnnotations::READ_ONLY;
    const EXAMPLE: &str = r#"{"path": "src/main.rs", "offset": 10, "limit": 20}"#;
    type Input = Input;

    fn output_schema(&self) -> Option<Value> {
        Some(output_schema::<Output>())
    }

    async fn accesses(&self, input: &Input, world: &World) -> Result<Vec<Access>, ToolFailure> {
        Ok(vec![Access::ReadPath(world.access(&input.path).await?)])
    }

    async fn run(&self, input: Input, run: &Run<'_>) -> Result<ToolResult, ToolFailure> {
        let wanted = Wanted { pages: input.pages.clone(), offset: input.offset, limit: input.limit };
        match run.on_files(move |files| read(files, &input)).await? {
            Content::Text(result) => Ok(result),
            Content::Document(source, output) => document(*output, reading::read(run, source, &wanted).await?),
        }
    }
}

enum Content {
    Text(ToolResult),
    /// It is still to be read, elsewhere.
    Document(Source, Box<Output>),
}

/// The answer of a document.
fn document(mut output: Output, shown: Shown) -> Result<ToolResult, ToolFailure> {
    output.kind = shown.kind.into();
    output.content = shown.content;
    output.title = shown.title;
    output.pages = shown.parts.map(|(first, last, total)| Pages { first, last, total });
    (output.start_line, output.end_line) = shown.lines.unzip();
    output.total_lines = Some(shown.total_lines);
    output.truncated = shown.next_pages.is_some() || shown.next_offset.is_some();
    (output.next_pages, output.next_offset) = (shown.next_pages, shown.next_offset);
    answer(shown.text, &output)
}

fn read(files: &GrantedWorkspace, input: &Input) -> Result<Content, ToolFailure> {
    let found = files.find(&input.path)?;
    let mut file = found.open_file()?;
    let failed = |error: io::Error| PathError::io("read", &found.path().lexical, error);
    let mut sample = Vec::new();
    (&mut file).take(SAMPLE_BYTES).read_to_end(&mut sample).map_err(failed)?;
    let output = Output {
        path: files.workspace().shown(&found.path().lexical),
        size_bytes: found.facts().bytes,
        ..Output::default()
    };
    if input.encoding.is_none() && is_document(&sample, &output.path) {
        file.rewind().map_err(failed)?;
        let source = Source { file, path: output.path.clone(), size_bytes: output.size_bytes };
        return Ok(Content::Document(source, Box::new(output)));
    }
    if input.pages.is_some() {
        let message = format!("`pages` is for documents, and `{}` is none", output.path);
        return Err(ToolFailure::new(ErrorKind::InvalidInput, message).next("Use `offset` and `limit` for its lines."));
    }
    let is_whole = (sample.len() as u64) < SAMPLE_BYTES;
    let encoding = match &input.encoding {
        None => match detect(&sample, is_whole) {
            Detected::Text(encoding) => encoding,
            Detected::Binary(what) => return summarized(output, what, &sample).map(Content::Text),
        },
        Some(label) => TextEncoding::named(label, &sample).ok_or_else(|| {
            ToolFailure::new(ErrorKind::InvalidInput, format!("`{label}` is no encoding that is known"))
                .next("Leave `encoding` out to have it found out, or give a name like \"latin-1\" or \"shift_jis\".")
        })?,
    };
    let (first, window) = windowed(files, &found, &mut file, encoding, input)?;
    shown(output, first, &window, encoding, input).map(Content::Text)
}

/// What can be read twice.
trait ReadSeek: Read + Seek {}

impl<T: Read + Seek> ReadSeek for T {}

/// The lines that were asked for, and the number of the first. They are still encoded, unless that hides line breaks:
/// then they are UTF-8.
fn windowed(
    files: &GrantedWorkspace,
    found: &Found,
    file: &mut File,
    encoding: TextEncoding,
    input: &Input,
) -> Result<(u64, TextWindow), ToolFailure> {
    let failed = |error: io::Error| PathError::io("read", &found.path().lexical, error);
    let stop = files.stop();
    let mark = encoding.mark_bytes() as u64;
    // What cannot be cut into lines before it is decoded is read whole and becomes UTF-8.
    let mut decoded;
    let (source, start): (&mut dyn ReadSeek, u64) = if encoding.has_plain_lines() {
        (file, mark)
    } else {
        let bytes = found.read(MAX_DECODED_BYTES)?;
        let text = encoding.decode(bytes.get(encoding.mark_bytes()..).unwrap_or_default()).0;
        decoded = Cursor::new(text.into_owned().into_bytes());
        (&mut decoded, 0)
    };
    source.seek(SeekFrom::Start(start)).map_err(failed)?;
    let first = if input.offset < 0 {
        let total = count_lines(&mut *source, stop).map_err(failed)?.ok_or_else(|| {
            ToolFailure::new(ErrorKind::Timeout, "the time was over before the lines were counted")
                .next("Give a positive `offset`.")
        })?;
        source.seek(SeekFrom::Start(start)).map_err(failed)?;
        total.saturating_sub(input.offset.unsigned_abs()) + 1
    } else {
        input.offset.max(1).unsigned_abs()
    };
    let window = read_window(source, first, input.limit, stop).map_err(failed)?;
    Ok((first, window))
}

fn shown(
    mut output: Output,
    first: u64,
    window: &TextWindow,
    encoding: TextEncoding,
    input: &Input,
) -> Result<ToolResult, ToolFailure> {
    let (content, is_malformed) = if encoding.has_plain_lines() {
        encoding.decode(&window.bytes)
    } else {
        let text = String::from_utf8_lossy(&window.bytes);
        let is_malformed = text.contains(char::REPLACEMENT_CHARACTER);
        (text, is_malformed)
    };
    let (page, page_lines, is_line_cut) = first_page(&content);
    let lines = page_lines.min(window.lines);
    let is_line_cut = is_line_cut || (window.is_last_line_cut && lines == window.lines);
    let next = first + lines;
    let goes_on = lines > 0 && window.total_lines.is_none_or(|total| next <= total);
    output.content = page.to_owned();
    output.total_lines = window.total_lines;
    output.encoding = Some(encoding.name());
    output.truncated = goes_on || is_line_cut || window.is_out_of_time;
    output.next_offset = goes_on.then_some(next);
    if lines > 0 {
        (output.start_line, output.end_line) = (Some(first), Some(next - 1));
    }
    let mut text = numbered(page, first, input);
    for note in notes(&output, first, is_line_cut, is_malformed, window, encoding) {
        text.push_str(&format!("[{note}]\n"));
    }
    answer(text.trim_end_matches('\n'), &output)
}

/// As many lines as fit on a page, at least a piece of the first; how many these are, and whether it is only a piece.
fn first_page(content: &str) -> (&str, u64, bool) {
    let (mut end, mut chars, mut lines) = (0, 0, 0);
    for line in content.split_inclusive('\n') {
        let more = line.chars().count();
        if chars + more > MAX_PAGE_CHARS {
            if lines > 0 {
                break;
            }
            let cut = line.char_indices().nth(MAX_PAGE_CHARS).map_or(line.len(), |(at, _)| at);
            return (&line[..cut], 1, true);
        }
        (end, chars, lines) = (end + line.len(), chars + more, lines + 1);
    }
    (&content[..end], lines, false)
}

fn numbered(page: &str, first: u64, input: &Input) -> String {
    let mut text = String::with_capacity(page.len() + page.len() / 8);
    let mut was_blank = false;
    for (number, whole) in (first..).zip(page.split_inclusive('\n')) {
        let line = whole.strip_suffix('\n').unwrap_or(whole);
        let has_return = line.ends_with('\r');
        let line = line.strip_suffix('\r').unwrap_or(line);
        let is_blank = line.is_empty();
        if input.squeeze_blank && is_blank && was_blank {
            continue;
        }
        was_blank = is_blank;
        let ended;
        let line = if input.show_ends {
            let end = if whole.ends_with('\n') { "$" } else { "" };
            ended = format!("{line}{}{end}", if has_return { "^M" } else { "" });
            &ended
        } else {
            line
        };
        if input.line_numbers {
            push_numbered(&mut text, number, line, MAX_LINE_CHARS);
        } else {
            push_cut(&mut text, line, MAX_LINE_CHARS);
            text.push('\n');
        }
    }
    text
}

/// What a model must know besides the lines.
fn notes(
    output: &Output,
    first: u64,
    is_line_cut: bool,
    is_malformed: bool,
    window: &TextWindow,
    encoding: TextEncoding,
) -> Vec<String> {
    let mut notes = Vec::new();
    match (output.total_lines, output.end_line) {
        (Some(0), _) => notes.push(format!("`{}` exists and is empty", output.path)),
        (Some(total), None) => {
            let lines = if total == 1 { "line" } else { "lines" };
            notes.push(format!("`{}` has {total} {lines}; line {first} lies past its end", output.path));
        }
        (None, None) => notes.push(format!("the time was over before line {first} was reached")),
        _ => {}
    }
    if let (Some(next), Some(end)) = (output.next_offset, output.end_line) {
        let total = output.total_lines.map_or("more".into(), |total| total.to_string());
        notes.push(format!("lines {first} to {end} of {total}; read on with offset={next}"));
    }
    if is_line_cut {
        notes.push(
            "the last line shown is longer than a page, and its rest was left out; `grep` finds text in it".into(),
        );
    }
    if window.is_out_of_time && output.end_line.is_some() {
        notes.push("the time was over before all lines were read".into());
    }
    if !encoding.is_plain() {
        let mark = if encoding.mark_bytes() > 0 { " with a byte order mark" } else { "" };
        notes.push(format!("encoding: {}{mark}", encoding.name()));
    }
    if is_malformed {
        notes.push(format!("some bytes are not valid in {} and are shown as \u{fffd}", encoding.name()));
    }
    notes
}

/// What can be said of a file that is no text.
fn summarized(mut output: Output, what: &str, sample: &[u8]) -> Result<ToolResult, ToolFailure> {
    output.kind = Kind::Binary;
    let mut text = format!("`{}` is no text: it looks like {what} and has {} bytes.", output.path, output.size_bytes);
    text.push_str(" It was not read further. It begins with these bytes:\n");
    for (row, bytes) in sample.chunks(16).take(SHOWN_BYTES / 16).enumerate() {
        let hex: Vec<String> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        let plain: String = bytes
            .iter()
            .map(|byte| if byte.is_ascii_graphic() || *byte == b' ' { *byte as char } else { '.' })
            .collect();
        text.push_str(&format!("{:08x}  {:<47}  {plain}\n", row * 16, hex.join(" ")));
    }
    answer(text, &output)
}

#[cfg(test)]
mod tests;

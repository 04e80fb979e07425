//! The tool `read_file`.

mod page;
mod picture;
mod text;

use self::page::LineNumberSeparator;
use crate::{
    builtin::{
        files::{
            content::OpenContent,
            content_sample::{ContentSample, open_with_sample},
            etag::etag,
            file_limits::FileLimits,
            image_view::Crop,
            listing::{self, ListedEntry, list_folder},
            read_state::SessionKey,
            sniff::FileKindByContent,
            source::{self, FileOrOutput, handle_in, on_source},
        },
        text::{
            hex_window::{SHOWN_BYTES, hex_window},
            line_ending::LineEnding,
            line_index::LineIndexCache,
        },
        tool_kit::{
            answer::answer,
            built_in_tool::BuiltInTool,
            foreign_answer::{cleaned_result, foreign_output_schema},
            tool_context::ToolContext,
            tool_environment::ToolEnvironment,
        },
    },
    documents::{self, DocumentKind, DocumentRange, DocumentReader, is_document},
    sandbox::workspace::{facts::FileKind, granted_workspace::GrantedWorkspace, stop::StopCondition},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::{future::Future, sync::Arc};
use tokio::{
    runtime::Handle,
    sync::{Semaphore, SemaphorePermit},
    time::timeout,
};
use toolstead_domain::{
    Access, Category, ContentDigest, OutputReaderParameters, ReadState, StoreError, ToolAnnotations, ToolFailure,
    ToolResult, error_kind::ErrorKind,
};

/// Tool that reads files of all kinds, and stored outputs.
pub(crate) struct ReadFile;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Input {
    /// Path of the file: absolute, or relative to the working directory. Or the handle of a stored output, like "o17".
    #[schemars(length(min = 1))]
    #[schemars(extend("x-advertised" = ""))]
    path: String,
    /// The first line to read, from 1. A negative number counts from the end: -20 reads the last 20 lines.
    #[serde(default = "first_line")]
    #[schemars(extend("x-advertised" = "First line, from 1; negative: from the end."))]
    offset: i64,
    /// Lines to read.
    #[serde(default = "usual_limit")]
    #[schemars(range(min = 1, max = 10_000))]
    #[schemars(extend("x-advertised" = ""))]
    limit: u64,
    /// Read this line, from 1, with those before and after it. Instead of `offset`.
    #[schemars(range(min = 1))]
    #[schemars(extend("x-advertised" = "Instead of `offset`: this line and those around it."))]
    around: Option<u64>,
    /// Show the number before each line.
    #[serde(default = "default_true")]
    #[schemars(extend("x-advertised" = false))]
    line_numbers: bool,
    /// Separator after the number: a tab, with the number in six columns, or a colon and a space.
    #[serde(default)]
    #[schemars(extend("x-advertised" = false))]
    number_style: LineNumberSeparator,
    /// The file's encoding, instead of the detected one: "utf-8", "latin-1", "utf-16", "shift_jis" and so on.
    #[schemars(extend("x-advertised" = ""))]
    encoding: Option<String>,
    /// Mark the end of each line with $, and carriage returns with ^M.
    #[serde(default)]
    #[schemars(extend("x-advertised" = false))]
    show_ends: bool,
    /// Show only one of several blank lines in a row.
    #[serde(default)]
    #[schemars(extend("x-advertised" = false))]
    squeeze_blank: bool,
    /// Of a document: the pages of a PDF, sheets, slides or notebook cells to read, like "3", "1-5" or "2,4-6". A PDF is
    /// read 10 pages at a time without it, and 20 at most.
    #[schemars(length(min = 1, max = 100))]
    #[schemars(extend("x-advertised" = "Of a document, like \"1-5\"."))]
    pages: Option<String>,
    /// The part of an image to show, in its own pixels, to see details in full.
    #[schemars(extend("x-advertised" = false))]
    crop: Option<Crop>,
    /// Show a hex dump from this byte on, from 0; a negative number counts from the end. For any file.
    #[schemars(extend("x-advertised" = "Hex dump from this byte on."))]
    byte_offset: Option<i64>,
}

fn first_line() -> i64 {
    1
}

fn usual_limit() -> u64 {
    2000
}

fn default_true() -> bool {
    true
}

#[derive(Serialize, JsonSchema, Default)]
struct Output {
    /// Relative to the working directory, or absolute outside of it; or the handle.
    path: String,
    kind: Kind,
    /// The lines of a text, without numbers.
    #[serde(skip_serializing_if = "Option::is_none")]
    content: Option<String>,
    /// The first line of the content, from 1. Negative if lines were counted from the end of a large file.
    #[serde(skip_serializing_if = "Option::is_none")]
    start_line: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    end_line: Option<i64>,
    /// The lines of the whole file, if they were all counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    total_lines: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    size_bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    encoding: Option<String>,
    /// The line endings at the beginning of the file.
    #[serde(skip_serializing_if = "Option::is_none")]
    line_ending: Option<LineEnding>,
    /// `true` if not everything is shown.
    truncated: bool,
    /// The next `offset`.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_offset: Option<i64>,
    /// Etag of the whole file, if it is not too large.
    #[serde(skip_serializing_if = "Option::is_none")]
    etag: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    mime: Option<String>,
    /// The image's own size in pixels, after its rotation is applied.
    #[serde(skip_serializing_if = "Option::is_none")]
    width: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    height: Option<u32>,
    /// The displayed size.
    #[serde(skip_serializing_if = "Option::is_none")]
    shown_width: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    shown_height: Option<u32>,
    /// The handle of the original of an image that was changed to be shown.
    #[serde(skip_serializing_if = "Option::is_none")]
    original: Option<String>,
    /// Entries of a folder.
    #[serde(skip_serializing_if = "Option::is_none")]
    entries: Option<Vec<ListedEntry>>,
    /// The pages, sheets, slides or cells in the content.
    #[serde(skip_serializing_if = "Option::is_none")]
    pages: Option<ShownPageRange>,
    /// The next `pages` of a document.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_pages: Option<String>,
    /// The title of a document.
    #[serde(skip_serializing_if = "Option::is_none")]
    title: Option<String>,
}

/// From 1.
#[derive(Serialize, JsonSchema)]
struct ShownPageRange {
    first: u64,
    last: u64,
    total: u64,
}

#[derive(Serialize, JsonSchema, Default, Clone, Copy, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
enum Kind {
    #[default]
    Text,
    Image,
    Folder,
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

impl BuiltInTool for ReadFile {
    const NAME: &str = "read_file";
    const TITLE: &str = "Read file";
    const DESCRIPTION: &str = "Reads a text file with line numbers, the text of a PDF, docx, xlsx, pptx or notebook, an image, a folder, or a \
         stored output by its handle (`o17`; a file of that name is `./o17`). Up to 2000 lines at a time; `offset` \
         (negative: from the end), `around` or `pages` give another part. Use `grep` to find the lines that matter.";
    const BRIEF: &str = "Reads a text file with line numbers; also PDF, docx, xlsx, pptx, notebooks, images, folders, and a stored output by its handle (`o17`). Use `grep` to find the lines that matter.";
    const CATEGORY: Category = Category::File;
    const TAGS: &[&str] = &["read"];
    const KEYWORDS: &str =
        "content display document excel load open powerpoint print show source spreadsheet view word";
    const READS_OUTPUTS: Option<OutputReaderParameters> = Some(OutputReaderParameters::lines("path", "offset"));
    const ANNOTATIONS: ToolAnnotations = ToolAnnotations::READ_ONLY;
    const EXAMPLE: &str = r#"{"path": "src/main.rs", "offset": 10, "limit": 20}"#;
    type Input = Input;

    fn output_schema(&self) -> Option<Value> {
        Some(foreign_output_schema::<Output>())
    }

    async fn accesses(&self, input: &Input, world: &ToolEnvironment) -> Result<Vec<Access>, ToolFailure> {
        source::accesses(&input.path, world).await
    }

    async fn run(&self, input: Input, run: &ToolContext<'_>) -> Result<ToolResult, ToolFailure> {
        if input.around.is_some() && input.offset != first_line() {
            return Err(ToolFailure::new(ErrorKind::InvalidInput, "`offset` and `around` are both given")
                .next("Give one of them: `around` for a line and its surroundings, `offset` for the first line."));
        }
        let reading = FileReader::of(run);
        let is_output = handle_in(&input.path).is_some();
        let shown =
            on_source(input.path.clone(), run, move |files, source| reading.read(files, source, &input)).await?;
        let result = match shown {
            InitialReadOutcome::Done(result) => Ok(result),
            InitialReadOutcome::Picture(picture) => picture.answer(run).await,
            InitialReadOutcome::Document(source, output, wanted) => {
                let reader = DocumentReader {
                    helpers: run.environment().processes().helpers(),
                    limits: &run.environment().files().limits().of_documents(),
                    deadline: run.context().deadline,
                    output_characters: run.context().output_characters,
                };
                document(*output, reader.read(*source, &wanted).await?)
            }
        };
        // A stored output may hold an unprocessed document from the web or an attachment.
        result.map(|result| if is_output { cleaned_result(result, 0) } else { result })
    }
}

/// Outcome of reading a source: a finished result, or content that needs further steps.
enum InitialReadOutcome {
    Done(ToolResult),
    /// An image. If it was changed to be shown, its original is still to be stored.
    Picture(Box<picture::Picture>),
    /// A document that a separate process is still to read.
    Document(Box<documents::DocumentSource>, Box<Output>, DocumentRange),
}

/// Adds a rendered document to the prepared `output`, and formats the result.
fn document(mut output: Output, shown: documents::RenderedDocument) -> Result<ToolResult, ToolFailure> {
    let line = |number: u64| i64::try_from(number).ok();
    output.kind = shown.kind.into();
    output.content = Some(shown.content);
    output.title = shown.title;
    output.pages = shown.parts.map(|(first, last, total)| ShownPageRange { first, last, total });
    output.start_line = shown.lines.and_then(|(first, _)| line(first));
    output.end_line = shown.lines.and_then(|(_, last)| line(last));
    output.total_lines = Some(shown.total_lines);
    output.truncated = shown.next_pages.is_some() || shown.next_offset.is_some();
    output.next_pages = shown.next_pages;
    output.next_offset = shown.next_offset.and_then(line);
    answer(shown.text, &output)
}

/// Services and limits of one reading.
struct FileReader {
    limits: FileLimits,
    lines: Arc<LineIndexCache>,
    read_state: Arc<dyn ReadState>,
    viewer: SessionKey,
    /// Maximum number of characters shown to the model.
    characters: usize,
    decoding: Arc<Semaphore>,
    runtime: Handle,
}

impl FileReader {
    fn of(run: &ToolContext<'_>) -> Self {
        let world = run.environment();
        Self {
            limits: world.files().limits().clone(),
            lines: world.files().lines().clone(),
            read_state: world.files().read_state().clone(),
            viewer: SessionKey::of(run.context()),
            characters: run.context().output_characters,
            decoding: world.files().decoding().clone(),
            runtime: Handle::current(),
        }
    }

    /// Waits for a permit to decode an image; fails at the time limit. Blocks.
    fn seat(&self, stop: &StopCondition) -> Result<SemaphorePermit<'_>, ToolFailure> {
        let waiting = async { timeout(stop.left(), self.decoding.acquire()).await };
        self.runtime.block_on(waiting).ok().and_then(Result::ok).ok_or_else(|| {
            ToolFailure::new(ErrorKind::Timeout, "the time limit was reached before the image was decoded")
                .next("Many images are being read at once: try again.")
        })
    }

    fn read(
        &self,
        files: &GrantedWorkspace,
        source: FileOrOutput,
        input: &Input,
    ) -> Result<InitialReadOutcome, ToolFailure> {
        if let FileOrOutput::File(found) = &source
            && found.facts().kind == FileKind::Folder
        {
            let (text, listed) =
                list_folder(files, found, &listing::ListingOptions::default(), self.limits.list_entries)?;
            let output = Output {
                path: listed.path,
                kind: Kind::Folder,
                truncated: listed.truncated,
                entries: Some(listed.entries),
                ..Output::default()
            };
            return answer(text, &output).map(InitialReadOutcome::Done);
        }
        let (mut content, sampled) = open_with_sample(source, files, self.limits.text_bytes)?;
        if input.byte_offset.is_some() {
            return self.bytes(&mut content, &sampled, "", input);
        }
        let is_document = input.encoding.is_none() && is_document(&sampled.sample, &content.name);
        refuse_foreign(&sampled.kind, is_document, &content.name, input)?;
        if is_document {
            return self.document(content, &sampled, input);
        }
        let named = |label: &str| text::encoding_named(label, &sampled.sample);
        // The only place where a kind of file is dispatched to the code that shows it.
        let encoding = match (sampled.kind.clone(), &input.encoding) {
            (_, Some(label)) => named(label)?,
            (FileKindByContent::Text(encoding), None) => encoding,
            (FileKindByContent::Document(kind), None) => {
                return self.bytes(&mut content, &sampled, kind.describe(), input);
            }
            (FileKindByContent::Image(format), None) => {
                let _seat = self.seat(files.stop())?;
                let picture = picture::view(content, format, &self.limits, input.crop)?;
                return Ok(InitialReadOutcome::Picture(Box::new(picture)));
            }
            (FileKindByContent::Binary(what), None) => return self.bytes(&mut content, &sampled, &what, input),
        };
        self.text(&mut content, sampled, encoding, files, input)
    }

    /// Records that the session knows this content, and returns the digest. Returns `None` if the file changed
    /// meanwhile. Without a digest, removes what the session knew of the file.
    fn record_version(&self, content: &OpenContent, digest: Option<ContentDigest>) -> Option<ContentDigest> {
        let Some(digest) = digest else {
            // The digest of an earlier, smaller version would make every later change appear as one by another process.
            if let Some(real) = &content.real {
                let forgotten = self.read_state.forget(&self.viewer.principal, &self.viewer.session, real);
                self.wait_for_store(forgotten);
            }
            return None;
        };
        if !content.is_unchanged() {
            return None;
        }
        if let Some(real) = &content.real {
            self.wait_for_store(self.read_state.record_version(
                &self.viewer.principal,
                &self.viewer.session,
                real,
                digest,
            ));
        }
        Some(digest)
    }

    /// Waits until the store has executed `remembering`. An error is only logged: at worst, a later change of the file
    /// is refused. Blocks.
    fn wait_for_store(&self, remembering: impl Future<Output = Result<(), StoreError>>) {
        if let Err(error) = self.runtime.block_on(remembering) {
            tracing::warn!(%error, "could not record which file version the session has read");
        }
    }

    /// Rewinds a document for the process that will read it, and records its version for the session.
    fn document(
        &self,
        mut content: OpenContent,
        sampled: &ContentSample,
        input: &Input,
    ) -> Result<InitialReadOutcome, ToolFailure> {
        content.reader.rewind().map_err(|error| content.unreadable(error))?;
        let output = Output {
            path: content.name.clone(),
            size_bytes: Some(content.bytes),
            mime: Some(sampled.media_type.to_owned()),
            etag: self.record_version(&content, sampled.digest).as_ref().map(etag),
            ..Output::default()
        };
        let wanted = DocumentRange { pages: input.pages.clone(), offset: input.offset, limit: input.limit };
        let source =
            documents::DocumentSource { size_bytes: content.bytes, path: content.name, content: content.reader };
        Ok(InitialReadOutcome::Document(Box::new(source), Box::new(output), wanted))
    }

    /// Describes a file or stored output, and shows some of its bytes as a hex dump. `what` names the kind of a content
    /// that is not text; it is empty if the caller requested the bytes.
    fn bytes(
        &self,
        content: &mut OpenContent,
        sampled: &ContentSample,
        what: &str,
        input: &Input,
    ) -> Result<InitialReadOutcome, ToolFailure> {
        let asked = input.byte_offset.unwrap_or(0);
        let offset = match asked < 0 {
            true => content.bytes.saturating_sub(asked.unsigned_abs()),
            false => asked.unsigned_abs(),
        };
        let shown = content.read(offset, SHOWN_BYTES as u64)?;
        let end = offset + shown.len() as u64;
        let name = &content.name;
        let mut text = match what {
            "" => format!("`{name}` has {} bytes.", content.bytes),
            what => format!("`{name}` is not text: it looks like {what} and has {} bytes.", content.bytes),
        };
        let digest = self.record_version(content, sampled.digest);
        if let Some(digest) = digest {
            text.push_str(&format!(" SHA-256: {digest}."));
        }
        match shown.is_empty() {
            true if content.bytes > 0 => text.push_str(" That offset is past the end."),
            true => {}
            false => text.push_str(&format!(" Bytes {offset} to {}:\n{}", end - 1, hex_window(offset, &shown))),
        }
        if end < content.bytes && !shown.is_empty() {
            text.push_str(&format!("[see more with byte_offset={end}]"));
        }
        let output = Output {
            path: name.clone(),
            kind: Kind::Binary,
            size_bytes: Some(content.bytes),
            mime: Some(sampled.media_type.to_owned()),
            etag: digest.as_ref().map(etag),
            truncated: end < content.bytes || offset > 0,
            ..Output::default()
        };
        answer(text.trim_end_matches('\n'), &output).map(InitialReadOutcome::Done)
    }
}

/// Rejects `pages` for anything but a document, and `crop` for anything but an image.
fn refuse_foreign(kind: &FileKindByContent, is_document: bool, name: &str, input: &Input) -> Result<(), ToolFailure> {
    let is = match kind {
        FileKindByContent::Text(_) => "a text",
        FileKindByContent::Image(_) => "an image",
        FileKindByContent::Document(kind) => kind.describe(),
        FileKindByContent::Binary(what) => what,
    };
    let wrong = |parameter: &str, meant: &str, next: &str| {
        Err(ToolFailure::new(ErrorKind::InvalidInput, format!("`{parameter}` is for {meant}, and `{name}` is {is}"))
            .next(next))
    };
    if input.pages.is_some() && !is_document {
        return wrong("pages", "documents", "Leave it out; `offset` and `limit` choose the lines of a text.");
    }
    if input.crop.is_some() && !matches!(kind, FileKindByContent::Image(_)) {
        return wrong("crop", "images", "Leave it out.");
    }
    Ok(())
}

#[cfg(test)]
mod tests;

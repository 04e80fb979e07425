//! The tool `file_info`.

use crate::{
    builtin::{
        files::{
            content_sample::{ContentSample, open_with_sample},
            etag::etag,
            sniff::FileKindByContent,
            source::{self, FileOrOutput, on_source},
        },
        text::{line_ending::LineEnding, line_unit::CodeUnitLayout, wording::rfc3339},
        tool_kit::{
            answer::answer, built_in_tool::BuiltInTool, schema::output_schema, tool_context::ToolContext,
            tool_environment::ToolEnvironment,
        },
    },
    documents::DocumentKind,
    sandbox::workspace::{
        facts::{FileFacts, FileKind},
        file_handle::FileHandle,
        granted_workspace::GrantedWorkspace,
    },
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use toolstead_domain::{Access, Category, ToolAnnotations, ToolFailure, ToolResult, error_kind::ErrorKind};

/// Number of bytes at the beginning of a text that are searched for its line ending.
const TELLING_BYTES: usize = 64 << 10;

/// Tool that describes a file.
pub(crate) struct FileInfo;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Input {
    /// Path of the file or folder: absolute, or relative to the working directory. Or the handle of a stored output.
    #[schemars(length(min = 1))]
    #[schemars(extend("x-advertised" = ""))]
    path: String,
    /// Count the lines of a text. In a huge file this takes a moment, and later reads are quick.
    #[serde(default = "default_true")]
    #[schemars(extend("x-advertised" = false))]
    count_lines: bool,
    /// Return only this: the number of lines, or the media type.
    #[schemars(extend("x-advertised" = false))]
    only: Option<FileProperty>,
}

#[derive(Deserialize, JsonSchema, Clone, Copy, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
enum FileProperty {
    Lines,
    Mime,
}

fn default_true() -> bool {
    true
}

#[derive(Serialize, JsonSchema, Default)]
struct Output {
    /// Relative to the working directory, or absolute outside of it; or the handle.
    path: String,
    kind: Kind,
    /// The size in bytes.
    size: u64,
    /// Time of the last change, in RFC 3339.
    #[serde(skip_serializing_if = "Option::is_none")]
    mtime: Option<String>,
    /// The permissions as octal digits: "0644".
    #[serde(skip_serializing_if = "Option::is_none")]
    mode: Option<String>,
    /// Number of hard links.
    #[serde(skip_serializing_if = "Option::is_none")]
    links: Option<u64>,
    /// The real path, if the given path goes through a symbolic link.
    #[serde(skip_serializing_if = "Option::is_none")]
    target: Option<String>,
    /// Description of content that is not text.
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    mime: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    is_binary: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    encoding: Option<String>,
    /// `true` if the text begins with a byte order mark.
    #[serde(skip_serializing_if = "Option::is_none")]
    byte_order_mark: Option<bool>,
    /// Line ending at the beginning of the file.
    #[serde(skip_serializing_if = "Option::is_none")]
    line_ending: Option<LineEnding>,
    /// A last line without a line break counts.
    #[serde(skip_serializing_if = "Option::is_none")]
    lines: Option<u64>,
    /// Version of the whole content, if it is not too large.
    #[serde(skip_serializing_if = "Option::is_none")]
    etag: Option<String>,
}

#[derive(Serialize, JsonSchema, Default, Clone, Copy, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
enum Kind {
    #[default]
    File,
    Folder,
    /// A stored output.
    Output,
    /// A pipe, socket or device, or a file of the kernel.
    Other,
}

impl BuiltInTool for FileInfo {
    const NAME: &str = "file_info";
    const TITLE: &str = "File info";
    const DESCRIPTION: &str = "Describes a file without showing it: size, time, permissions, media type, encoding, \
         line endings, number of lines. Takes a path, or the handle of a stored output. Use it before reading a file \
         of unknown size or kind.";
    const BRIEF: &str = "Returns size, time, permissions, type, encoding and lines of a file.";
    const CATEGORY: Category = Category::File;
    const TAGS: &[&str] = &["read"];
    const KEYWORDS: &str = "attribute extension metadata mime modified properties stat";
    const ANNOTATIONS: ToolAnnotations = ToolAnnotations::READ_ONLY;
    const EXAMPLE: &str = r#"{"path": "Cargo.lock"}"#;
    type Input = Input;

    fn output_schema(&self) -> Option<Value> {
        Some(output_schema::<Output>())
    }

    async fn accesses(&self, input: &Input, world: &ToolEnvironment) -> Result<Vec<Access>, ToolFailure> {
        source::accesses(&input.path, world).await
    }

    async fn run(&self, input: Input, run: &ToolContext<'_>) -> Result<ToolResult, ToolFailure> {
        let world = run.environment().clone();
        on_source(input.path.clone(), run, move |files, source| inform(files, source, &input, &world)).await
    }
}

fn inform(
    files: &GrantedWorkspace,
    source: FileOrOutput,
    input: &Input,
    world: &ToolEnvironment,
) -> Result<ToolResult, ToolFailure> {
    let mut output = match &source {
        FileOrOutput::File(found) => of_file(files, found),
        FileOrOutput::Output(stored, _) => {
            Output { path: source.name(files), kind: Kind::Output, size: stored.bytes, ..Output::default() }
        }
    };
    let mut notes = Vec::new();
    if matches!(output.kind, Kind::File | Kind::Output) {
        look_inside(source, files, input, world, &mut output, &mut notes)?;
    }
    let text = match input.only {
        None => format_output(&output, &notes),
        Some(FileProperty::Mime) => output.mime.clone().ok_or_else(|| nothing_of(&output, "media type"))?,
        Some(FileProperty::Lines) => match (output.lines, notes.pop()) {
            (Some(lines), _) => lines.to_string(),
            (None, Some(note)) => return Err(ToolFailure::new(ErrorKind::Timeout, note)),
            (None, None) => return Err(nothing_of(&output, "lines")),
        },
    };
    answer(text, &output)
}

fn of_file(files: &GrantedWorkspace, found: &FileHandle) -> Output {
    let FileFacts { kind, bytes, modified, mode, links, .. } = *found.facts();
    let path = found.path();
    let leads = (path.real != path.lexical).then(|| files.workspace().shown(&path.real));
    Output {
        path: files.workspace().shown(&path.lexical),
        kind: match kind {
            FileKind::File => Kind::File,
            FileKind::Folder => Kind::Folder,
            _ => Kind::Other,
        },
        size: bytes,
        mtime: Some(rfc3339(modified)),
        mode: Some(format!("{mode:04o}")),
        links: Some(links),
        target: leads,
        description: (kind != FileKind::File).then(|| kind.to_string()),
        ..Output::default()
    }
}

fn look_inside(
    source: FileOrOutput,
    files: &GrantedWorkspace,
    input: &Input,
    world: &ToolEnvironment,
    output: &mut Output,
    notes: &mut Vec<String>,
) -> Result<(), ToolFailure> {
    let (mut content, sampled) = open_with_sample(source, files, world.files().limits().text_bytes)?;
    let in_returns = match &sampled.kind {
        FileKindByContent::Text(encoding) => sampled.text_in_returns(*encoding),
        _ => None,
    };
    let ContentSample { sample, digest, kind, media_type, .. } = sampled;
    output.size = content.bytes;
    output.mime = Some(media_type.to_owned());
    output.is_binary =
        Some(!matches!(kind, FileKindByContent::Text(_) | FileKindByContent::Document(DocumentKind::Notebook)));
    output.etag = digest.filter(|_| content.is_unchanged()).as_ref().map(etag);
    let mut lines_in = Some((0, CodeUnitLayout::Byte));
    match &kind {
        FileKindByContent::Text(encoding) => {
            let body = sample.get(encoding.mark_bytes()..).unwrap_or_default();
            output.encoding = Some(encoding.name());
            output.byte_order_mark = Some(encoding.mark_bytes() > 0);
            output.line_ending = LineEnding::of(&encoding.decode_beginning(&body[..body.len().min(TELLING_BYTES)]).0);
            lines_in = encoding.line_unit().map(|unit| (encoding.mark_bytes() as u64, unit));
        }
        FileKindByContent::Document(DocumentKind::Notebook) => {
            output.description = Some(DocumentKind::Notebook.describe().into())
        }
        FileKindByContent::Document(kind) => output.description = Some(kind.describe().into()),
        FileKindByContent::Image(_) => output.description = Some("an image".into()),
        FileKindByContent::Binary(what) => output.description = Some(what.to_string()),
    }
    if let Some(text) = in_returns {
        output.line_ending = Some(LineEnding::Cr);
        output.lines = input.count_lines.then(|| text.lines().count() as u64);
        return Ok(());
    }
    let Some((start, unit)) = lines_in.filter(|_| input.count_lines && output.is_binary == Some(false)) else {
        return Ok(());
    };
    let mut index = world.files().lines().get(content.id, start, unit);
    output.lines = index.count(&mut content.reader, files.stop()).map_err(|error| content.unreadable(error))?;
    if output.lines.is_none() {
        notes.push("the time ran out before all lines were counted; call again to continue".into());
    }
    if content.is_settled() {
        world.files().lines().put(content.id, index);
    }
    Ok(())
}

fn format_output(output: &Output, notes: &[String]) -> String {
    let mut text = format!("path: {}\n", output.path);
    let mut line = |label: &str, value: Option<String>| {
        if let Some(value) = value {
            text.push_str(&format!("{label}: {value}\n"));
        }
    };
    let kind = match output.kind {
        Kind::File => "a file",
        Kind::Folder => "a folder",
        Kind::Output => "a stored output",
        Kind::Other => "not a regular file",
    };
    let word = |value: Option<LineEnding>| {
        value.and_then(|ending| serde_json::to_value(ending).ok()?.as_str().map(str::to_uppercase))
    };
    line("kind", Some(output.description.clone().unwrap_or_else(|| kind.into())));
    line("leads to", output.target.clone());
    line("size", Some(format!("{} bytes", output.size)));
    line("changed", output.mtime.clone());
    line("permissions", output.mode.clone());
    line("names", output.links.filter(|links| *links > 1 && output.kind == Kind::File).map(|links| links.to_string()));
    line("media type", output.mime.clone());
    let mark = if output.byte_order_mark == Some(true) { " with a byte order mark" } else { "" };
    line("encoding", output.encoding.as_ref().map(|name| format!("{name}{mark}")));
    line("line endings", word(output.line_ending));
    line("lines", output.lines.map(|lines| lines.to_string()));
    line("etag", output.etag.clone());
    for note in notes {
        text.push_str(&format!("[{note}]\n"));
    }
    text.truncate(text.trim_end().len());
    text
}

fn nothing_of(output: &Output, what: &str) -> ToolFailure {
    let is = output.description.as_deref().unwrap_or("not text");
    let message = format!("`{}` has no {what}: it is {is}", output.path);
    ToolFailure::new(ErrorKind::UnsupportedType, message).next("Omit `only` to see what is known about it.")
}

#[cfg(test)]
mod tests;

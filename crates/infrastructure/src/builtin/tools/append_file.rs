//! The tool `append_file`.

use crate::{
    builtin::{
        files::{
            appending::append_text,
            change_set::{ChangeSet, recording::ChangeRecorder},
            written_file::{EDIT, diff_of, etag_of, missing, notes, only, text_of},
        },
        text::{line_ending::in_lines, snippet::surroundings, wording::counted},
        tool_kit::{
            answer::answer, built_in_tool::BuiltInTool, schema::output_schema, tool_context::ToolContext,
            tool_environment::ToolEnvironment,
        },
    },
    sandbox::workspace::granted_workspace::GrantedWorkspace,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use toolstead_domain::{Access, Category, ToolAnnotations, ToolFailure, ToolResult};

/// Number of lines shown before the new ones.
const RADIUS: usize = 3;

/// Tool that adds text to the end of a file.
pub(crate) struct AppendFile;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Input {
    /// Path of the file: absolute, or relative to the working directory.
    #[schemars(length(min = 1))]
    #[schemars(extend("x-advertised" = ""))]
    path: String,
    /// The text to add, exactly as given, in the encoding of the file. No line ending is added.
    #[schemars(extend("x-advertised" = ""))]
    content: String,
    /// Create the file and its folders if it is missing.
    #[serde(default)]
    #[schemars(extend("x-advertised" = "Create the file if missing."))]
    create: bool,
    /// Change nothing; report what would be done.
    #[serde(default)]
    #[schemars(extend("x-advertised" = false))]
    dry_run: bool,
}

#[derive(Serialize, JsonSchema)]
struct Output {
    /// Relative to the working directory, or absolute outside of it.
    path: String,
    /// Number of bytes added.
    bytes_added: u64,
    /// The file's size, in bytes.
    size: u64,
    /// `true` if the file is new.
    created: bool,
    /// Version of the new content, for `if_match` of `write_file`.
    etag: String,
    /// `true` for `dry_run`: nothing was changed.
    dry_run: bool,
    /// The call's id for `undo`; absent if there is nothing to undo.
    #[serde(skip_serializing_if = "Option::is_none")]
    call: Option<String>,
    /// The changes as a unified diff; absent if too large.
    #[serde(skip_serializing_if = "Option::is_none")]
    diff: Option<String>,
}

impl BuiltInTool for AppendFile {
    const NAME: &str = "append_file";
    const TITLE: &str = "Append to file";
    const DESCRIPTION: &str = "Adds text to the end of a file, exactly as given: begin it with a line break if the file's last line has \
         none. The file must exist, unless `create` is set.";
    const BRIEF: &str = "Adds text to the end of a file, exactly as given.";
    const CATEGORY: Category = Category::File;
    const TAGS: &[&str] = &["write"];
    const KEYWORDS: &str = "bottom extend insert journal log";
    const ANNOTATIONS: ToolAnnotations = ToolAnnotations { destructive_hint: Some(false), ..ToolAnnotations::WRITING };
    const EXAMPLE: &str = r#"{"path": "notes/today.md", "content": "Water the plants.\n"}"#;
    const SUPPORTS_DIFF_PREVIEW: bool = true;
    type Input = Input;

    fn output_schema(&self) -> Option<Value> {
        Some(output_schema::<Output>())
    }

    async fn accesses(&self, input: &Input, world: &ToolEnvironment) -> Result<Vec<Access>, ToolFailure> {
        let path = world.access(&input.path).await?;
        Ok(vec![Access::ReadPath(path.clone()), Access::WritePath(path)])
    }

    async fn run(&self, input: Input, run: &ToolContext<'_>) -> Result<ToolResult, ToolFailure> {
        let recording = ChangeRecorder::of(run);
        run.on_files(move |files| append(files, &input, &recording)).await
    }
}

fn append(files: &GrantedWorkspace, input: &Input, recording: &ChangeRecorder) -> Result<ToolResult, ToolFailure> {
    let dry_run = input.dry_run;
    let mut set = ChangeSet::take(files, &[&input.path])?;
    let appended = append_text(&set, &input.content, recording.limit())?;
    if appended.before.is_none() && !input.create {
        let failure = missing(files, &input.path);
        let next = [failure.next.as_deref().unwrap_or_default(), "Set `create` to create the file."].join(" ");
        return Err(failure.next(next.trim_start()));
    }
    let bytes_added = (appended.content.len() - appended.before.unwrap_or(0)) as u64;
    set.put(0, appended.content, EDIT);
    let changed = only(set.commit(recording, dry_run)?)?;
    let created = changed.before.is_none();
    let path = changed.shown.clone();

    let amount = counted(usize::try_from(bytes_added).unwrap_or(usize::MAX), "byte");
    let mut text = match (created, dry_run) {
        (true, false) => format!("Created `{path}`: {amount}."),
        (true, true) => format!("Would create `{path}` with {amount}; nothing was changed."),
        (false, false) => format!("Added {amount} to the end of `{path}`."),
        (false, true) => format!("Would add {amount} to the end of `{path}`; nothing was changed."),
    };
    for note in notes(&changed).into_iter().chain(appended.notes) {
        text.push(' ');
        text.push_str(&note);
    }
    let texts = changed.old.as_deref().and_then(text_of).zip(changed.new.as_deref().and_then(text_of));
    if let Some((before, after)) = &texts {
        let (before, after) = (in_lines(before), in_lines(after));
        let lines: Vec<&str> = after.lines().collect();
        let first = before.lines().count().saturating_sub(usize::from(!before.ends_with('\n')));
        text.push('\n');
        text.push_str(&surroundings(&lines, first.min(lines.len())..lines.len(), RADIUS));
    }
    let diff = diff_of(&changed, dry_run);
    let size = changed.new.as_ref().map_or(0, |new| new.len() as u64);
    let output = Output {
        bytes_added,
        size,
        created,
        etag: etag_of(&changed),
        dry_run,
        call: recording.undo_id(!dry_run && changed.is_change()),
        diff,
        path,
    };
    answer(text.trim_end_matches('\n'), &output)
}

#[cfg(test)]
mod tests {
    use crate::builtin::tests::Bench;
    use serde_json::json;
    use toolstead_domain::error_kind::ErrorKind;

    #[test]
    fn text_is_added_as_given_in_the_encoding_of_the_file() {
        let check = |before: &[u8], added: &str, after: &[u8], note: &str| {
            let bench = Bench::new();
            bench.put("f", before);
            let text = bench.text("append_file", json!({"path": "f", "content": added}));
            assert_eq!(bench.get("f"), after);
            assert!(text.contains(note), "{text}");
        };
        check(b"a\n", "b\n", b"a\nb\n", "Added 2 bytes to the end of `f`.\n     1\ta\n     2\tb");
        check(b"a", "b", b"ab", "The last line had no line ending, so the new text continues that line.\n     1\tab");
        check(b"a\r\n", "b\n", b"a\r\nb\n", "end in CRLF");
        check(b"\xff\xfea\0\n\0", "\u{e4}", b"\xff\xfea\0\n\0\xe4\0", "Added 2 bytes");
        check(b"", "b", b"b", "Added 1 byte");
        check(
            b"sch\xf6ne gr\xfc\xdfe aus k\xf6ln\n",
            "\u{fc}",
            b"sch\xf6ne gr\xfc\xdfe aus k\xf6ln\n\xfc",
            "Added 1 byte",
        );
    }

    #[test]
    fn a_missing_file_is_made_only_when_asked_for() {
        let bench = Bench::new();
        bench.put("notes.md", "");
        let failure = bench.call("append_file", json!({"path": "note.md", "content": "x"})).unwrap_err();
        assert_eq!(failure.kind, ErrorKind::NotFound);
        let outcome = failure.text();
        assert!(
            outcome.ends_with("In the same folder there is `notes.md`. Set `create` to create the file."),
            "{outcome}"
        );
        let created = json!({"path": "d/new", "content": "x", "create": true});
        let result = bench.call("append_file", created).unwrap();
        assert_eq!(result.joined_text(), "Created `d/new`: 1 byte.");
        assert_eq!(result.structured_content().unwrap()["size"], 1);
        assert_eq!(bench.get("d/new"), b"x");
    }

    #[test]
    fn rejects_unencodable_characters_and_files_that_are_not_text() {
        let bench = Bench::new();
        bench.put("latin", b"sch\xf6ne gr\xfc\xdfe aus k\xf6ln\n");
        let failure = bench.call("append_file", json!({"path": "latin", "content": "a\u{2192}b\u{2713}"})).unwrap_err();
        assert_eq!(
            failure.message,
            "the file is in windows-1252, which has no `\u{2192}` (U+2192), no `\u{2713}` (U+2713)"
        );
        bench.put("image", b"\x89PNG\r\n\x1a\n");
        let failure = bench.call("append_file", json!({"path": "image", "content": "x"})).unwrap_err();
        assert_eq!(failure.text(), "`image` is not text: it looks like a PNG image. Nothing was changed.");
        let dry = bench.text("append_file", json!({"path": "latin", "content": "x", "dry_run": true}));
        assert!(dry.starts_with("Would add 1 byte to the end of `latin`; nothing was changed."), "{dry}");
        assert_eq!(bench.get("latin"), b"sch\xf6ne gr\xfc\xdfe aus k\xf6ln\n");
    }
}

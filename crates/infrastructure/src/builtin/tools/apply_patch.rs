//! The tool `apply_patch`.

mod hunk_problem;
mod matching;
mod parser;
mod patched_text;
mod patching;
mod text_lines;

use crate::builtin::{
    files::change_set::recording::ChangeRecorder,
    text::{
        unified_diff::{one_line, unified_diff, whole_diff},
        wording::counted,
    },
    tool_kit::{
        answer::answer, built_in_tool::BuiltInTool, schema::output_schema, tool_context::ToolContext,
        tool_environment::ToolEnvironment,
    },
    tools::apply_patch::{
        parser::{FilePatch, PatchAction, PatchError, parse},
        patching::{FilePatchResult, PatchApplier},
    },
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use toolstead_domain::{
    Access, Category, ToolAnnotations, ToolFailure, ToolResult, error_kind::ErrorKind,
    ports::tool_provider::CONTENT_NOT_SHOWN,
};

/// Maximum number of changed places shown, over all files.
const SHOWN_PLACES: usize = 6;

/// Tool that changes several files by one patch.
pub(crate) struct ApplyPatch;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Input {
    /// The patch: between `*** Begin Patch` and `*** End Patch`, the lines `*** Add File: path` (each content line
    /// after `+`), `*** Delete File: path`, and `*** Update File: path` (`*** Move to: path` may follow) with hunks:
    /// `@@`, or `@@ ` and a line above the place, then lines that begin with a space (unchanged), `-` (removed) or `+`
    /// (added). Unified diffs are accepted, too.
    #[schemars(length(min = 1))]
    #[schemars(extend("x-advertised" = "`*** Begin Patch`, then `*** Add File: path` (lines after `+`), `*** Delete File: path` or `*** Update File: path` (`*** Move to: path`) with hunks: `@@`, then lines after a blank (kept), `-` or `+`; `*** End Patch`. Or a unified diff."))]
    patch: String,
    /// Change nothing, and show what would change.
    #[serde(default)]
    #[schemars(extend("x-advertised" = false))]
    dry_run: bool,
}

#[derive(Serialize, JsonSchema)]
struct Output {
    files: Vec<FilePatchReport>,
    /// `true` for `dry_run`: nothing was changed.
    dry_run: bool,
    /// The changes as a unified diff; absent if too large.
    #[serde(skip_serializing_if = "Option::is_none")]
    diff: Option<String>,
}

#[derive(Serialize, JsonSchema)]
struct FilePatchReport {
    /// Relative to the working directory, or absolute outside of it.
    path: String,
    action: FilePatchOutcome,
    /// The previous path; absent if the file was not moved.
    #[serde(skip_serializing_if = "Option::is_none")]
    moved_from: Option<String>,
    /// Version of the file now; absent if it was deleted.
    #[serde(skip_serializing_if = "Option::is_none")]
    etag: Option<String>,
    added_lines: usize,
    removed_lines: usize,
    /// `true` if other parts of the file have changed since this session read it.
    changed_elsewhere: bool,
}

/// Outcome for a file.
#[derive(Serialize, JsonSchema, Debug, Clone, Copy, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
enum FilePatchOutcome {
    Added,
    Updated,
    Deleted,
    Moved,
    Unchanged,
}

impl BuiltInTool for ApplyPatch {
    const NAME: &str = "apply_patch";
    const TITLE: &str = "Apply patch";
    const DESCRIPTION: &str = "Changes, adds, moves and deletes several files by one patch, all or nothing. Give \
         three lines around each change exactly as in the file; lines that are not added or removed keep every byte. \
         A hunk that matches several places needs more lines or an `@@` line.";
    const BRIEF: &str = "Changes, adds, moves and deletes several files by one patch, all or nothing.";
    const CATEGORY: Category = Category::File;
    const TAGS: &[&str] = &["edit", "patch", "write"];
    const KEYWORDS: &str = "atomic code diff hunk modify refactor rename unified";
    const ANNOTATIONS: ToolAnnotations = ToolAnnotations::WRITING;
    const EXAMPLE: &str = r#"{"patch": "*** Begin Patch\n*** Update File: src/main.rs\n@@ fn main() {\n-    let x = 1;\n+    let x = 2;\n*** End Patch"}"#;
    const SUPPORTS_DIFF_PREVIEW: bool = true;
    type Input = Input;

    fn output_schema(&self) -> Option<Value> {
        Some(output_schema::<Output>())
    }

    async fn accesses(&self, input: &Input, world: &ToolEnvironment) -> Result<Vec<Access>, ToolFailure> {
        let mut accesses = Vec::new();
        for file in parse(&input.patch).map_err(|error| no_patch(&error))? {
            for path in file.paths() {
                let path = world.access(path).await?;
                accesses.extend([Access::ReadPath(path.clone()), Access::WritePath(path)]);
            }
        }
        Ok(accesses)
    }

    async fn run(&self, input: Input, run: &ToolContext<'_>) -> Result<ToolResult, ToolFailure> {
        let recording = ChangeRecorder::of(run);
        let limits = run.environment().files().limits().clone();
        run.on_files(move |files| {
            let patch = parse(&input.patch).map_err(|error| no_patch(&error))?;
            let patching = PatchApplier { files, limits: &limits };
            let (patched, is_change) = patching.apply(&patch, &recording, input.dry_run)?;
            format_result(patched, input.dry_run, recording.undo_instruction(is_change && !input.dry_run))
        })
        .await
    }
}

impl FilePatch {
    /// Returns the paths that this part of the patch names.
    fn paths(&self) -> impl Iterator<Item = &str> {
        let to = match &self.action {
            PatchAction::Update { to, .. } => to.as_deref(),
            PatchAction::Add(_) | PatchAction::Delete { .. } => None,
        };
        std::iter::once(&*self.path).chain(to)
    }
}

fn no_patch(error: &PatchError) -> ToolFailure {
    ToolFailure::new(ErrorKind::InvalidInput, error.to_string()).next(
        "Nothing was changed. A patch looks like this:\n*** Begin Patch\n*** Update File: path/to/file\n@@\n an \
         unchanged line\n-a removed line\n+an added line\n*** End Patch",
    )
}

fn format_result(
    patched: Vec<FilePatchResult>,
    dry_run: bool,
    how_to_undo: Option<String>,
) -> Result<ToolResult, ToolFailure> {
    let done = if dry_run { "Would change" } else { "Changed" };
    let mut text = format!("{done} {}:", counted(patched.len(), "file"));
    let (mut diff, mut places) = (String::new(), String::new());
    let (mut shown, mut hidden) = (0, 0);
    for file in &patched {
        text.push_str(&format!("\n{}", file.summary()));
        let compare = if dry_run { whole_diff } else { unified_diff };
        let lines = compare(&file.path, &file.before, &file.after);
        // The user who approves a patch sees only the diff of its dry run.
        if dry_run && (lines.is_none() || !file.is_text_alone()) {
            diff.push_str(&one_line(&file.summary()));
            if lines.is_none() && file.before != file.after {
                diff.push_str(&format!(", {CONTENT_NOT_SHOWN}"));
            }
            diff.push('\n');
        }
        diff.push_str(&lines.unwrap_or_default());
        let room = SHOWN_PLACES.saturating_sub(shown);
        places.push_str(&file.places(room));
        shown += file.lines.len().min(room);
        hidden += file.lines.len().saturating_sub(room);
    }
    if let Some(how) = how_to_undo {
        text.push_str(&format!("\n{how}"));
    }
    text.push_str(&places);
    if hidden > 0 {
        text.push_str(&format!("\n… and {}", counted(hidden, "more place")));
    }
    let diff = (!diff.is_empty()).then_some(diff);
    let files = patched.into_iter().map(FilePatchResult::into_output).collect();
    answer(text.trim_end_matches('\n'), &Output { files, dry_run, diff })
}

#[cfg(test)]
mod tests;

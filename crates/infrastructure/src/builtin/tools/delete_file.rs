//! The tool `delete_file`.

use crate::{
    builtin::{
        files::{
            change_set::{ChangeSet, recording::ChangeRecorder},
            written_file::{missing, notes, only},
        },
        text::wording::counted,
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

/// Tool that removes a file.
pub(crate) struct DeleteFile;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Input {
    /// Path of the file: absolute, or relative to the working directory. Folders and links are not deleted.
    #[schemars(length(min = 1))]
    #[schemars(extend("x-advertised" = ""))]
    path: String,
    /// Change nothing; report what would be done.
    #[serde(default)]
    #[schemars(extend("x-advertised" = false))]
    dry_run: bool,
}

#[derive(Serialize, JsonSchema)]
struct Output {
    /// Relative to the working directory, or absolute outside of it.
    path: String,
    /// Its size in bytes.
    bytes: u64,
    /// `true` for `dry_run`: nothing was changed.
    dry_run: bool,
    /// The call's id for `undo`; absent if there is nothing to undo.
    #[serde(skip_serializing_if = "Option::is_none")]
    call: Option<String>,
}

impl BuiltInTool for DeleteFile {
    const NAME: &str = "delete_file";
    const TITLE: &str = "Delete file";
    const DESCRIPTION: &str = "Deletes one file; not a folder, and not a symbolic link. If changes are recorded, \
         `undo` restores it; the result says so.";
    const BRIEF: &str = "Deletes one file, no folder.";
    const CATEGORY: Category = Category::File;
    const TAGS: &[&str] = &["delete", "write"];
    const KEYWORDS: &str = "discard erase remove trash";
    const ANNOTATIONS: ToolAnnotations = ToolAnnotations { idempotent_hint: Some(true), ..ToolAnnotations::WRITING };
    const EXAMPLE: &str = r#"{"path": "notes/old.md"}"#;
    const SUPPORTS_DIFF_PREVIEW: bool = true;
    type Input = Input;

    fn output_schema(&self) -> Option<Value> {
        Some(output_schema::<Output>())
    }

    async fn accesses(&self, input: &Input, world: &ToolEnvironment) -> Result<Vec<Access>, ToolFailure> {
        Ok(vec![Access::WritePath(world.access(&input.path).await?)])
    }

    async fn run(&self, input: Input, run: &ToolContext<'_>) -> Result<ToolResult, ToolFailure> {
        let recording = ChangeRecorder::of(run);
        run.on_files(move |files| delete(files, &input, &recording)).await
    }
}

fn delete(files: &GrantedWorkspace, input: &Input, recording: &ChangeRecorder) -> Result<ToolResult, ToolFailure> {
    let mut set = ChangeSet::take(files, &[&input.path])?;
    let Some(bytes) = set.size(0) else { return Err(missing(files, &input.path)) };
    set.delete(0);
    let changed = only(set.commit(recording, input.dry_run)?)?;
    let path = changed.shown.clone();
    let size = counted(usize::try_from(bytes).unwrap_or(usize::MAX), "byte");
    let mut text = match input.dry_run {
        false if recording.supports_undo() => format!("Deleted `{path}` ({size}). `undo` restores it."),
        false => format!("Deleted `{path}` ({size})."),
        true => format!("Would delete `{path}` ({size}); nothing was changed."),
    };
    for note in notes(&changed) {
        text.push_str(&format!(" {note}"));
    }
    answer(text, &Output { path, bytes, dry_run: input.dry_run, call: recording.undo_id(!input.dry_run) })
}

#[cfg(test)]
mod tests {
    use crate::builtin::{files::etag::digest_of, tests::Bench};
    use serde_json::json;

    #[test]
    fn a_deleted_file_is_kept_for_undo() {
        let bench = Bench::new();
        bench.put("a", "abc");
        let answer = bench.text("delete_file", json!({"path": "a", "dry_run": true}));
        assert_eq!((answer.as_str(), bench.names(".").len()), ("Would delete `a` (3 bytes); nothing was changed.", 1));
        let answer = bench.text("delete_file", json!({"path": "a"}));
        assert_eq!(answer, "Deleted `a` (3 bytes). `undo` restores it.");
        assert_eq!(bench.names("."), Vec::<String>::new());
        let [entry] = &bench.journal().entries()[..] else { panic!("one entry") };
        assert_eq!((entry.changes[0].before.unwrap().digest, entry.changes[0].after), (digest_of(b"abc"), None));
    }

    #[test]
    fn only_files_are_deleted() {
        let bench = Bench::new();
        bench.put("dir/x", "");
        bench.link("dir/x", "link");
        let text_of = |path: &str| bench.call("delete_file", json!({"path": path})).unwrap_err().text();
        assert!(text_of("dir").contains("is a folder, not a file"));
        let said = text_of("link");
        assert!(said.contains("is a symbolic link (it leads to") && said.ends_with("the link stays."), "{said}");
        assert!(text_of("dir/y").ends_with("In the same folder there is `x`."), "{}", text_of("dir/y"));
        assert!(text_of("/etc/passwd").contains("outside of the workspace"));
        assert_eq!(bench.names("."), ["dir", "link"]);
    }
}

//! The tool `write_file`.

use crate::{
    builtin::{
        answer::{answer, counted},
        built_in_tool::BuiltInTool,
        change_set::{ChangeSet, Changed, Recording},
        run::Run,
        schema::output_schema,
        text_encoding::{Detected, detect},
        unified_diff::unified_diff,
        world::World,
    },
    sandbox::workspace::{
        granted::GrantedWorkspace,
        write::{WriteOptions, Written},
    },
};
use async_trait::async_trait;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use toolstead_domain::{
    access::Access, category::Category, error_kind::ErrorKind, tool::ToolAnnotations, tool_failure::ToolFailure,
    tool_result::ToolResult,
};

/// Writes a whole file.
pub(super) struct WriteFile;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Input {
    /// Path of the file: absolute, or relative to the working directory.
    #[schemars(length(min = 1))]
    path: String,
    /// The whole content, which may be empty. It is written as UTF-8, exactly as given.
    content: String,
    /// Whether to make the folders that are missing.
    #[serde(default = "yes")]
    create_dirs: bool,
    /// What to do when the file exists.
    #[serde(default)]
    if_exists: IfExists,
    /// Permission bits in octal, like "755". Without them a file keeps its own.
    #[schemars(regex(pattern = r"^0?[0-7]{3}$"))]
    mode: Option<String>,
}

#[derive(Deserialize, Serialize, JsonSchema, Default, Clone, Copy, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
enum IfExists {
    #[default]
    Overwrite,
    Fail,
}

fn yes() -> bool {
    true
}

#[derive(Serialize, JsonSchema)]
struct Output {
    /// Relative to the working directory, or absolute outside of it.
    path: String,
    /// Whether the file is new.
    created: bool,
    bytes: u64,
    lines: usize,
    /// What changed, as a unified diff; absent for new and for large files.
    #[serde(skip_serializing_if = "Option::is_none")]
    diff: Option<String>,
}

#[async_trait]
impl BuiltInTool for WriteFile {
    const NAME: &str = "write_file";
    const TITLE: &str = "Write file";
    const DESCRIPTION: &str = "Writes a whole file: creates it, or replaces all that it held. Missing folders are made. Use `edit_file` to \
         change a part of a file that exists; read a file before you replace it.";
    const CATEGORY: Category = Category::File;
    const TAGS: &[&str] = &["write"];
    const ANNOTATIONS: ToolAnnotations = ToolAnnotations {
        read_only_hint: Some(false),
        destructive_hint: Some(true),
        idempotent_hint: Some(true),
        open_world_hint: Some(false),
    };
    const EXAMPLE: &str = r#"{"path": "notes/today.md", "content": "Buy milk.\n"}"#;
    type Input = Input;

    fn output_schema(&self) -> Option<Value> {
        Some(output_schema::<Output>())
    }

    async fn accesses(&self, input: &Input, world: &World) -> Result<Vec<Access>, ToolFailure> {
        Ok(vec![Access::WritePath(world.access(&input.path).await?)])
    }

    async fn run(&self, input: Input, run: &Run<'_>) -> Result<ToolResult, ToolFailure> {
        let recording = Recording::of(run);
        run.on_files(move |files| write(files, input, &recording)).await
    }
}

fn write(files: &GrantedWorkspace, input: Input, recording: &Recording) -> Result<ToolResult, ToolFailure> {
    let mode = input.mode.as_deref().map(|mode| u32::from_str_radix(mode, 8)).transpose().map_err(|error| {
        ToolFailure::new(ErrorKind::InvalidInput, "`mode` must be three octal digits, like \"755\"").caused_by(error)
    })?;
    let mut set = ChangeSet::take(files, &[&input.path])?;
    let lines = input.content.lines().count();
    let options =
        WriteOptions { create_folders: input.create_dirs, overwrite: input.if_exists == IfExists::Overwrite, mode };
    set.put(0, input.content.into_bytes(), options);
    let changed = only(set.commit(recording, false)?)?;
    let Some(written) = changed.written else { return Err(nothing_done()) };

    let path = changed.shown;
    let verb = if written.created { "Created" } else { "Replaced" };
    let mut text = format!(
        "{verb} `{path}`: {}, {}.",
        counted(lines, "line"),
        counted(usize::try_from(written.bytes).unwrap_or(usize::MAX), "byte")
    );
    for note in notes(&written) {
        text.push(' ');
        text.push_str(&note);
    }
    let before = changed.old.as_deref().and_then(plain_text);
    let diff = before.zip(changed.new.as_deref().and_then(plain_text));
    let diff = diff.and_then(|(before, after)| unified_diff(&path, before, after));
    answer(text, &Output { path, created: written.created, bytes: written.bytes, lines, diff })
}

/// The one file of a set of one.
pub(super) fn only(changed: Vec<Changed>) -> Result<Changed, ToolFailure> {
    changed.into_iter().next().ok_or_else(nothing_done)
}

fn nothing_done() -> ToolFailure {
    ToolFailure::new(ErrorKind::Internal, "nothing was written: this is a fault of Toolstead")
}

fn plain_text(bytes: &[u8]) -> Option<&str> {
    match detect(bytes, true) {
        Detected::Text(encoding) if encoding.is_plain() => std::str::from_utf8(bytes).ok(),
        Detected::Text(_) | Detected::Binary(_) => None,
    }
}

/// What is not as one might expect after a file was replaced.
pub(super) fn notes(written: &Written) -> Vec<String> {
    let mut notes = Vec::new();
    if written.other_links > 0 {
        let names = match written.other_links {
            1 => "1 other name (hard link)".to_owned(),
            more => format!("{more} other names (hard links)"),
        };
        notes.push(format!("The file had {names}, which still hold the old content."));
    }
    if written.owner_changed {
        notes.push("The file belonged to somebody else, and belongs to this user now.".into());
    }
    notes
}

#[cfg(test)]
mod tests {
    use crate::builtin::tests::Bench;
    use proptest::prelude::*;
    use serde_json::json;

    #[test]
    fn a_new_file_is_made_with_its_folders() {
        let bench = Bench::new();
        let result = bench.call("write_file", json!({"path": "a/b/c.txt", "content": "x\ny\n"})).unwrap();
        assert_eq!(result.joined_text(), "Created `a/b/c.txt`: 2 lines, 4 bytes.");
        let expected = json!({"path": "a/b/c.txt", "created": true, "bytes": 4, "lines": 2});
        assert_eq!(result.structured_content(), Some(&expected));
        assert_eq!(bench.get("a/b/c.txt"), b"x\ny\n");
        bench.call("write_file", json!({"path": "empty", "content": "", "mode": "750"})).unwrap();
        assert_eq!((bench.get("empty"), bench.mode("empty")), (vec![], 0o750));
    }

    #[test]
    fn a_replaced_file_keeps_its_mode_and_tells_what_changed() {
        let bench = Bench::new();
        bench.put("run.sh", "old\nsame\n");
        bench.set_mode("run.sh", 0o755);
        let result = bench.call("write_file", json!({"path": "run.sh", "content": "new\nsame\n"})).unwrap();
        assert_eq!(result.joined_text(), "Replaced `run.sh`: 2 lines, 9 bytes.");
        let diff = &result.structured_content().unwrap()["diff"];
        assert_eq!(diff, "--- a/run.sh\n+++ b/run.sh\n@@ -1,2 +1,2 @@\n-old\n+new\n same\n");
        assert_eq!(bench.mode("run.sh"), 0o755);
    }

    #[test]
    fn a_hard_link_is_told_about() {
        let bench = Bench::new();
        bench.put("a", "old");
        bench.hard_link("a", "b");
        let text = bench.text("write_file", json!({"path": "a", "content": "new"}));
        assert!(text.ends_with("The file had 1 other name (hard link), which still hold the old content."), "{text}");
        assert_eq!((bench.get("a"), bench.get("b")), (b"new".to_vec(), b"old".to_vec()));
    }

    #[test]
    fn nothing_is_overwritten_that_was_to_be_kept() {
        let bench = Bench::new();
        bench.put("a", "old");
        bench.put("dir/x", "");
        let told = |arguments| bench.call("write_file", arguments).unwrap_err().text();
        assert!(told(json!({"path": "a", "content": "", "if_exists": "fail"})).contains("exists already"));
        assert!(told(json!({"path": "dir", "content": ""})).contains("a folder, not a file"));
        assert!(told(json!({"path": "new/x", "content": "", "create_dirs": false})).contains("does not exist"));
        assert!(told(json!({"path": "/etc/x", "content": ""})).contains("outside of the workspace"));
        assert_eq!(bench.get("a"), b"old");
        assert_eq!(bench.names("."), ["a", "dir"]);
    }

    #[test]
    fn a_file_that_may_not_be_read_is_replaced_without_showing_what_it_held() {
        let bench = Bench::with_ask(&["Read(secret)"]);
        bench.put("secret", "s");
        let result = bench.call("write_file", json!({"path": "secret", "content": "new"})).unwrap();
        assert_eq!(result.structured_content().unwrap().get("diff"), None);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn what_was_written_is_read(content: String, name in "[a-z]{1,9}( [a-z]{1,3})?") {
            let bench = Bench::new();
            bench.call("write_file", json!({"path": name, "content": content})).unwrap();
            prop_assert_eq!(bench.get(&name), content.clone().into_bytes());
            let read = bench.call("read_file", json!({"path": name, "limit": 10_000, "encoding": "utf-8"})).unwrap();
            let found = read.structured_content().unwrap()["content"].as_str().unwrap().to_owned();
            // The mark at the beginning of a file is no part of its text.
            prop_assert_eq!(found, content.strip_prefix('\u{feff}').unwrap_or(&content));
        }
    }
}

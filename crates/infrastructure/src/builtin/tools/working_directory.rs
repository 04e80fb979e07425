//! The tool `working_directory`.

use crate::builtin::tool_kit::{
    answer::answer, built_in_tool::BuiltInTool, schema::output_schema, tool_context::ToolContext,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::path::Path;
use toolstead_domain::{Category, ToolAnnotations, ToolFailure, ToolResult};

/// Tool that returns the folder for relative paths, and the roots of the workspace.
pub(crate) struct WorkingDirectory;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Input {}

#[derive(Serialize, JsonSchema)]
struct Output {
    /// Base of relative paths; absent without any root.
    #[serde(skip_serializing_if = "Option::is_none")]
    cwd: Option<String>,
    /// The folders that may be used.
    roots: Vec<ListedRoot>,
}

#[derive(Serialize, JsonSchema)]
struct ListedRoot {
    path: String,
    /// `true` if files can be changed there, as rules permit.
    writable: bool,
}

impl BuiltInTool for WorkingDirectory {
    const NAME: &str = "working_directory";
    const TITLE: &str = "Working directory";
    const DESCRIPTION: &str = "Returns the base folder of relative paths, and the roots that file tools may use. Nothing outside of them \
         can be read or written.";
    const BRIEF: &str = "Shows the base of relative paths, and the roots.";
    const CATEGORY: Category = Category::System;
    const TAGS: &[&str] = &["path"];
    const KEYWORDS: &str = "current cwd location path project workspace";
    const ANNOTATIONS: ToolAnnotations = ToolAnnotations::READ_ONLY;
    const EXAMPLE: &str = "{}";
    type Input = Input;

    fn output_schema(&self) -> Option<Value> {
        Some(output_schema::<Output>())
    }

    async fn run(&self, _: Input, run: &ToolContext<'_>) -> Result<ToolResult, ToolFailure> {
        let roots = run.context().grant.roots();
        let shown = |path: &Path| path.to_string_lossy().into_owned();
        let all = roots.write.iter().map(|path| (path, true));
        let all = all.chain(roots.read_only.iter().map(|path| (path, false)));
        let output = Output {
            cwd: roots.start().map(shown),
            roots: all.map(|(path, writable)| ListedRoot { path: shown(path), writable }).collect(),
        };
        let text = match &output.cwd {
            Some(cwd) => {
                let mut text = cwd.clone();
                for root in output.roots.iter().filter(|root| root.path != *cwd || !root.writable) {
                    let kind = if root.writable { "also" } else { "read only" };
                    text.push_str(&format!("\n{kind}: {}", root.path));
                }
                text
            }
            None => "There are no roots, so files cannot be used. Ask your user to open a folder.".into(),
        };
        answer(text, &output)
    }
}

#[cfg(test)]
mod tests {
    use crate::builtin::tests::Bench;
    use serde_json::json;

    #[test]
    fn returns_the_current_folder_and_the_workspace_roots() {
        let bench = Bench::new();
        let result = bench.call("working_directory", json!({})).unwrap();
        let root = bench.path("").to_string_lossy().trim_end_matches('/').to_owned();
        assert_eq!(result.joined_text(), root);
        let expected = json!({"cwd": root, "roots": [{"path": root, "writable": true}]});
        assert_eq!(result.structured_content(), Some(&expected));
    }

    #[test]
    fn without_a_workspace_root_the_result_explains_how_to_open_one() {
        assert!(Bench::without_roots().text("working_directory", json!({})).contains("Ask your user to open a folder"));
    }
}

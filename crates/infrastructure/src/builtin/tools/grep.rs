//! The tool `grep`.

mod findings;
mod plan;
mod rendering;
mod search;

use crate::builtin::{
    files::source::{accesses, handle_in, on_source},
    tool_kit::{
        built_in_tool::BuiltInTool,
        foreign_answer::{cleaned_result, foreign_output_schema},
        tool_context::ToolContext,
        tool_environment::ToolEnvironment,
    },
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use toolstead_domain::{Access, Category, OutputReaderParameters, ToolAnnotations, ToolFailure, ToolResult};

/// Tool that finds text in files.
pub(crate) struct Grep;

#[derive(Deserialize, JsonSchema, Clone)]
#[serde(deny_unknown_fields)]
pub(crate) struct Input {
    /// A regular expression (Rust's, as in ripgrep), or the text itself with `fixed_strings`.
    #[schemars(length(min = 1, max = 10_000))]
    #[schemars(extend("x-advertised" = ""))]
    pattern: String,
    /// A file, the folder to search, or the handle of a stored output ("o17"). A path is absolute, or relative to the
    /// working directory.
    #[serde(default = "here")]
    #[schemars(length(min = 1))]
    #[schemars(extend("x-advertised" = "A file, folder or handle."))]
    path: String,
    /// Search only files whose names match, like "*.rs" or "*.{ts,tsx}"; several with commas, "!*.md" excludes.
    #[schemars(length(max = 1000))]
    #[schemars(extend("x-advertised" = "Names of files, like \"*.rs\"."))]
    glob: Option<String>,
    /// Search only files of a type, like "rust", "py" or "js".
    #[schemars(length(max = 100))]
    #[schemars(extend("x-advertised" = "Like \"rust\"."))]
    file_type: Option<String>,
    /// "files_with_matches" names the files, "content" shows the lines, "count" counts them by file. Default: the
    /// files, and up to three matches with context.
    #[schemars(extend("x-advertised" = ""))]
    output_mode: Option<OutputMode>,
    /// Lines to show before each match.
    #[schemars(range(max = 100))]
    #[schemars(extend("x-advertised" = ""))]
    before: Option<usize>,
    /// Lines to show after each match.
    #[schemars(range(max = 100))]
    #[schemars(extend("x-advertised" = ""))]
    after: Option<usize>,
    /// Lines to show before and after each match.
    #[schemars(range(max = 100))]
    #[schemars(extend("x-advertised" = "Lines around each match."))]
    context: Option<usize>,
    /// Show line numbers.
    #[serde(default = "default_true")]
    #[schemars(extend("x-advertised" = false))]
    line_numbers: bool,
    /// Ignore case.
    #[serde(default)]
    #[schemars(extend("x-advertised" = ""))]
    ignore_case: bool,
    /// Show only the parts that match, each on a line.
    #[serde(default)]
    #[schemars(extend("x-advertised" = false))]
    only_matching: bool,
    /// Let matches span lines; `.` then matches line breaks, too.
    #[serde(default)]
    #[schemars(extend("x-advertised" = ""))]
    multiline: bool,
    /// Search for the literal text, not a regular expression.
    #[serde(default)]
    #[schemars(extend("x-advertised" = ""))]
    fixed_strings: bool,
    /// Maximum lines or files to show; 0 means all. Default: 250 lines or 100 files.
    #[schemars(extend("x-advertised" = "0: all."))]
    head_limit: Option<usize>,
    /// Lines or files to skip.
    #[serde(default)]
    #[schemars(extend("x-advertised" = false))]
    offset: usize,
    /// Include names that begin with a dot.
    #[serde(default = "default_true")]
    #[schemars(extend("x-advertised" = false))]
    show_hidden: bool,
    /// Include files that .gitignore and .ignore exclude.
    #[serde(default)]
    #[schemars(extend("x-advertised" = ""))]
    no_ignore: bool,
}

#[derive(Deserialize, JsonSchema, Serialize, Clone, Copy, PartialEq, Eq, Debug)]
#[serde(rename_all = "snake_case")]
enum OutputMode {
    FilesWithMatches,
    Content,
    Count,
}

impl Input {
    fn mode(&self) -> OutputMode {
        self.output_mode.unwrap_or(OutputMode::FilesWithMatches)
    }
}

fn here() -> String {
    ".".into()
}

fn default_true() -> bool {
    true
}

impl BuiltInTool for Grep {
    const NAME: &str = "grep";
    const TITLE: &str = "Search in files";
    const DESCRIPTION: &str = "Finds text in files by a regular expression, as ripgrep does. Names the files that \
         match; set `output_mode` to \"content\" for the lines. Files that .gitignore excludes are not searched \
         unless `no_ignore` is set. Use `glob` to find files by name.";
    const BRIEF: &str = "Finds text in files by a regular expression, as ripgrep does, except those that .gitignore excludes. Names the files; `output_mode` \"content\" shows the lines.";
    const CATEGORY: Category = Category::Search;
    const TAGS: &[&str] = &["find", "text"];
    const KEYWORDS: &str = "code content match occurrence regex search string";
    const READS_OUTPUTS: Option<OutputReaderParameters> = Some(OutputReaderParameters::matches("path", "pattern"));
    const ANNOTATIONS: ToolAnnotations = ToolAnnotations::READ_ONLY;
    const EXAMPLE: &str = r#"{"pattern": "fn main", "glob": "*.rs", "output_mode": "content"}"#;
    type Input = Input;

    fn output_schema(&self) -> Option<Value> {
        Some(foreign_output_schema::<rendering::Output>())
    }

    async fn accesses(&self, input: &Input, world: &ToolEnvironment) -> Result<Vec<Access>, ToolFailure> {
        let whole_tree = |access| match access {
            Access::ReadPath(path) => Access::ReadPath(path.whole_tree()),
            other => other,
        };
        Ok(accesses(&input.path, world).await?.into_iter().map(whole_tree).collect())
    }

    async fn run(&self, input: Input, run: &ToolContext<'_>) -> Result<ToolResult, ToolFailure> {
        let limits = run.environment().files().limits().clone();
        let is_output = handle_in(&input.path).is_some();
        let result = on_source(input.path.clone(), run, move |files, source| {
            let start = source.name(files);
            rendering::format_result(&input, &start, &search::run(files, source, &input, &limits)?)
        });
        // A stored output may hold the unprocessed text of an attachment or a web page.
        result.await.map(|result| if is_output { cleaned_result(result, 0) } else { result })
    }
}

#[cfg(test)]
mod tests;

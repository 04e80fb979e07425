//! The tool `grep`.

mod findings;
mod plan;
mod rendering;

use crate::{
    builtin::{
        built_in_tool::BuiltInTool,
        file_filter::{FileFilter, Ignoring, PassedOver},
        grep::{
            findings::{Findings, Searched},
            plan::Plan,
        },
        run::Run,
        schema::output_schema,
        world::World,
    },
    sandbox::workspace::{
        facts::FileKind,
        found::Found,
        granted::GrantedWorkspace,
        walk::{Entry, Folder, Visit, Visitor, WalkLimits},
    },
};
use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use std::time::Duration;
use toolstead_domain::{
    access::Access, category::Category, tool::ToolAnnotations, tool_failure::ToolFailure, tool_result::ToolResult,
};

/// As many entries are looked at.
const MAX_SEEN: usize = 1_000_000;
/// Paths cannot be much deeper.
const MAX_DEPTH: usize = 2048;
/// A search ends then with what it found.
const TIME: Duration = Duration::from_secs(10);

/// Finds text in files.
pub(super) struct Grep;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Input {
    /// A regular expression (Rust's, as in ripgrep), or the text itself with `fixed_strings`.
    #[schemars(length(min = 1, max = 10_000))]
    pattern: String,
    /// A file, or the folder to search: absolute, or relative to the working directory.
    #[serde(default = "here")]
    #[schemars(length(min = 1))]
    path: String,
    /// Search only files whose names fit, like "*.rs" or "*.{ts,tsx}"; several with commas, "!*.md" leaves out.
    #[schemars(length(max = 1000))]
    glob: Option<String>,
    /// Search only files of a type, like "rust", "py" or "js".
    #[schemars(length(max = 100))]
    file_type: Option<String>,
    /// "files_with_matches" names the files, "content" shows the lines, "count" counts them by file.
    #[serde(default)]
    output_mode: OutputMode,
    /// How many lines to show before each match.
    #[schemars(range(max = 100))]
    before: Option<usize>,
    /// How many lines to show after each match.
    #[schemars(range(max = 100))]
    after: Option<usize>,
    /// How many lines to show before and after each match.
    #[schemars(range(max = 100))]
    context: Option<usize>,
    /// Whether to show the numbers of lines.
    #[serde(default = "yes")]
    line_numbers: bool,
    /// Take upper and lower case for the same.
    #[serde(default)]
    ignore_case: bool,
    /// Show only the parts that match, each on a line.
    #[serde(default)]
    only_matching: bool,
    /// Let a match go over several lines; then `.` fits line breaks, too.
    #[serde(default)]
    multiline: bool,
    /// Look for the text as it is, not for a regular expression.
    #[serde(default)]
    fixed_strings: bool,
    /// How many lines or files to show; 0 means all.
    #[serde(default = "usual_limit")]
    head_limit: usize,
    /// How many lines or files to leave out at the beginning.
    #[serde(default)]
    offset: usize,
    /// Whether to search what begins with a dot, too.
    #[serde(default = "yes")]
    show_hidden: bool,
    /// Search also what .gitignore and .ignore files leave out.
    #[serde(default)]
    no_ignore: bool,
}

#[derive(Deserialize, JsonSchema, serde::Serialize, Default, Clone, Copy, PartialEq, Eq, Debug)]
#[serde(rename_all = "snake_case")]
enum OutputMode {
    #[default]
    FilesWithMatches,
    Content,
    Count,
}

fn here() -> String {
    ".".into()
}

fn yes() -> bool {
    true
}

fn usual_limit() -> usize {
    250
}

#[async_trait]
impl BuiltInTool for Grep {
    const NAME: &str = "grep";
    const TITLE: &str = "Search in files";
    const DESCRIPTION: &str = "Finds text in files by a regular expression, as ripgrep does. Names the files that match; set `output_mode` \
         to \"content\" for the lines. Files that .gitignore leaves out are not searched unless `no_ignore` is set. \
         Use `glob` to find files by name.";
    const CATEGORY: Category = Category::Search;
    const TAGS: &[&str] = &["find", "text"];
    const ANNOTATIONS: ToolAnnotations = ToolAnnotations::READ_ONLY;
    const EXAMPLE: &str = r#"{"pattern": "fn main", "glob": "*.rs", "output_mode": "content"}"#;
    type Input = Input;

    fn output_schema(&self) -> Option<Value> {
        Some(output_schema::<rendering::Output>())
    }

    async fn accesses(&self, input: &Input, world: &World) -> Result<Vec<Access>, ToolFailure> {
        Ok(vec![Access::ReadPath(world.access(&input.path).await?.whole_tree())])
    }

    async fn run(&self, input: Input, run: &Run<'_>) -> Result<ToolResult, ToolFailure> {
        run.on_files(move |files| grep(files, &input)).await
    }
}

fn grep(files: &GrantedWorkspace, input: &Input) -> Result<ToolResult, ToolFailure> {
    let files = files.with_stop(files.stop().within(TIME));
    let found = files.find(&input.path)?;
    let plan = Plan::of(input, &found.path().lexical)?;
    let filter = FileFilter { show_hidden: input.show_hidden, respect_ignore_files: !input.no_ignore };
    let above = filter.above(&files, &found);
    let findings = Findings::of(plan, input, files.stop().clone());
    let mut search = Search { files: &files, filter, findings, ignored: 0 };
    let walked = if found.facts().kind == FileKind::Folder {
        Some(files.walk(&found, WalkLimits { entries: MAX_SEEN, depth: MAX_DEPTH }, above, &mut search)?)
    } else {
        // A file that is named is searched whatever the filters say.
        search.one_file(&found)?;
        None
    };
    let Search { findings, ignored, .. } = search;
    let start = files.workspace().shown(&found.path().lexical);
    rendering::answered(input, &start, findings, walked, ignored)
}

struct Search<'a> {
    files: &'a GrantedWorkspace,
    filter: FileFilter,
    findings: Findings,
    /// Entries that ignore files leave out.
    ignored: usize,
}

impl Search<'_> {
    fn one_file(&mut self, found: &Found) -> Result<(), ToolFailure> {
        let file = found.open_file()?;
        let path = self.files.workspace().shown(&found.path().lexical);
        self.findings.search(&path, file, found.facts().modified);
        Ok(())
    }
}

impl Visitor for Search<'_> {
    type Context = Ignoring;

    fn enter(&mut self, folder: &Folder<'_>, above: &Ignoring) -> Ignoring {
        self.filter.enter(folder, above)
    }

    fn meet(&mut self, entry: &Entry<'_>, ignoring: &Ignoring) -> Visit {
        match self.filter.passes_over(entry, ignoring) {
            None => {}
            Some(PassedOver::Ignored) => {
                self.ignored += 1;
                return Visit::Skip;
            }
            Some(PassedOver::Hidden | PassedOver::VersionControl) => return Visit::Skip,
        }
        let is_folder = entry.kind() == FileKind::Folder;
        if !self.findings.plan().is_wanted(&entry.path().lexical, is_folder) {
            return Visit::Skip;
        }
        // Links are left to what they lead to, so that nothing is found twice.
        if entry.kind() != FileKind::File {
            return Visit::Continue;
        }
        let searched = match entry.open() {
            Ok((file, facts)) => {
                let path = self.files.workspace().shown(&entry.path().lexical);
                self.findings.search(&path, file, facts.modified)
            }
            Err(_) => self.findings.unreadable(),
        };
        match searched {
            Searched::GoOn => Visit::Continue,
            Searched::Enough => Visit::Stop,
        }
    }
}

#[cfg(test)]
mod tests;

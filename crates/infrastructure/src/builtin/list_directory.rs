//! The tool `list_directory`.

use crate::{
    builtin::{
        answer::{answer, on_one_line, passed_over, rfc3339},
        built_in_tool::BuiltInTool,
        file_filter::{FileFilter, Ignoring, PassedOver},
        run::Run,
        schema::output_schema,
        world::World,
    },
    sandbox::workspace::{
        facts::{FileFacts, FileKind},
        found::Found,
        granted::GrantedWorkspace,
        walk::{Entry, Folder, Visit, Visitor, WalkEnd, WalkLimits, Walked},
    },
};
use async_trait::async_trait;
use globset::{GlobBuilder, GlobSet, GlobSetBuilder};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};
use toolstead_domain::{
    access::Access, category::Category, error_kind::ErrorKind, ports::clock::Timestamp, tool::ToolAnnotations,
    tool_failure::ToolFailure, tool_result::ToolResult,
};

/// As many entries are looked at.
const MAX_SEEN: usize = 100_000;
/// "Unlimited" depth ends here: paths cannot be much deeper.
const MAX_DEPTH: usize = 2048;

/// Shows what a folder holds.
pub(super) struct ListDirectory;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Input {
    /// Path of the folder: absolute, or relative to the working directory.
    #[serde(default = "here")]
    #[schemars(length(min = 1))]
    path: String,
    /// How many levels to show; 0 means all.
    #[serde(default = "one")]
    depth: usize,
    /// Glob patterns of entries to leave out, like "node_modules" or "*.log".
    #[serde(default)]
    #[schemars(length(max = 100), inner(length(min = 1, max = 1000)))]
    ignore: Vec<String>,
    /// Whether to show entries whose names begin with a dot.
    #[serde(default = "yes")]
    show_hidden: bool,
    /// Leave out what .gitignore and .ignore files say.
    #[serde(default)]
    respect_gitignore: bool,
    /// Show permissions, size and time of change.
    #[serde(default)]
    long: bool,
    /// How many entries to show.
    #[serde(default = "usual_limit")]
    #[schemars(range(min = 1, max = 10_000))]
    limit: usize,
}

fn here() -> String {
    ".".into()
}

fn one() -> usize {
    1
}

fn yes() -> bool {
    true
}

fn usual_limit() -> usize {
    1000
}

#[derive(Serialize, JsonSchema)]
pub(super) struct Output {
    /// Relative to the working directory, or absolute outside of it.
    pub(super) path: String,
    /// In the order of the tree: sorted by name, each folder before what it holds.
    pub(super) entries: Vec<Item>,
    /// Whether there is more than is shown.
    pub(super) truncated: bool,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct Item {
    name: String,
    /// Relative to the folder that is listed.
    path: String,
    r#type: ItemType,
    /// In bytes; absent for what is no file.
    #[serde(skip_serializing_if = "Option::is_none")]
    size: Option<u64>,
    /// When it was changed, in RFC 3339.
    #[serde(skip_serializing_if = "Option::is_none")]
    mtime: Option<String>,
}

#[derive(Serialize, JsonSchema, Clone, Copy, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
enum ItemType {
    File,
    Directory,
    Symlink,
    Other,
}

#[async_trait]
impl BuiltInTool for ListDirectory {
    const NAME: &str = "list_directory";
    const TITLE: &str = "List directory";
    const DESCRIPTION: &str = "Shows what a folder holds, as a tree; folders end in a slash. Use `depth` to look deeper. Use `glob` to find \
         files by name, and `grep` to find text in them.";
    const CATEGORY: Category = Category::File;
    const TAGS: &[&str] = &["list"];
    const ANNOTATIONS: ToolAnnotations = ToolAnnotations::READ_ONLY;
    const EXAMPLE: &str = r#"{"path": "src", "depth": 2}"#;
    type Input = Input;

    fn output_schema(&self) -> Option<Value> {
        Some(output_schema::<Output>())
    }

    async fn accesses(&self, input: &Input, world: &World) -> Result<Vec<Access>, ToolFailure> {
        Ok(vec![Access::ReadPath(world.access(&input.path).await?.whole_tree())])
    }

    async fn run(&self, input: Input, run: &Run<'_>) -> Result<ToolResult, ToolFailure> {
        run.on_files(move |files| list(files, &input)).await
    }
}

fn list(files: &GrantedWorkspace, input: &Input) -> Result<ToolResult, ToolFailure> {
    let (text, output) = listed_as(files, &files.find(&input.path)?, input)?;
    answer(text, &output)
}

/// What a folder holds itself, for whoever reads it as if it were a file.
pub(super) fn listed(files: &GrantedWorkspace, found: &Found) -> Result<(String, Output), ToolFailure> {
    let input = Input {
        path: here(),
        depth: one(),
        ignore: Vec::new(),
        show_hidden: yes(),
        respect_gitignore: false,
        long: false,
        limit: usual_limit(),
    };
    listed_as(files, found, &input)
}

fn listed_as(files: &GrantedWorkspace, found: &Found, input: &Input) -> Result<(String, Output), ToolFailure> {
    let path = files.workspace().shown(&found.path().lexical);
    let filter = FileFilter { show_hidden: input.show_hidden, respect_ignore_files: input.respect_gitignore };
    let above = filter.above(files, found);
    let mut listing = Listing { filter, left_out: left_out(&input.ignore)?, limit: input.limit, met: BTreeMap::new() };
    let depth = if input.depth == 0 { MAX_DEPTH } else { input.depth };
    let walked = files.walk(found, WalkLimits { entries: MAX_SEEN, depth }, above, &mut listing)?;

    let truncated = walked.ended.is_some();
    let entries: Vec<Item> = listing.met.iter().map(|(below, met)| met.item(below)).collect();
    let mut text = format!("{path}/\n").replace("//", "/");
    for (below, met) in &listing.met {
        text.push_str(&met.line(below, input.long));
    }
    if listing.met.is_empty() {
        text.push_str("(nothing to show)\n");
    }
    for note in notes(&walked, input) {
        text.push_str(&format!("[{note}]\n"));
    }
    text.truncate(text.trim_end_matches('\n').len());
    Ok((text, Output { path, entries, truncated }))
}

fn notes(walked: &Walked, input: &Input) -> Vec<String> {
    let mut notes = Vec::new();
    match walked.ended {
        Some(WalkEnd::Visitor) => notes.push(format!(
            "only the first {} entries are shown; look into one folder, or leave some out with `ignore`",
            input.limit
        )),
        Some(WalkEnd::Entries) => {
            notes.push(format!("the folder has more than the {MAX_SEEN} entries that are looked at"))
        }
        Some(WalkEnd::Time) => notes.push("the time was over before everything was seen".into()),
        None => {}
    }
    notes.extend(passed_over(walked.refused, "shown"));
    if walked.unreadable > 0 {
        notes.push(format!("folders that could not be opened: {}", walked.unreadable));
    }
    notes
}

/// Patterns of what to leave out; one without a slash fits names at any depth.
fn left_out(patterns: &[String]) -> Result<GlobSet, ToolFailure> {
    let wrong = |error: globset::Error| {
        ToolFailure::new(ErrorKind::InvalidInput, format!("a pattern in `ignore` cannot be used: {error}"))
    };
    let mut globs = GlobSetBuilder::new();
    for pattern in patterns {
        let pattern = pattern.trim_end_matches('/');
        let anywhere = if pattern.contains('/') { pattern.into() } else { format!("**/{pattern}") };
        globs.add(GlobBuilder::new(&anywhere).literal_separator(true).build().map_err(wrong)?);
    }
    globs.build().map_err(wrong)
}

struct Listing {
    filter: FileFilter,
    left_out: GlobSet,
    limit: usize,
    /// By path, which is the order of the tree.
    met: BTreeMap<PathBuf, Met>,
}

struct Met {
    kind: ItemType,
    facts: Option<FileFacts>,
    target: Option<PathBuf>,
}

impl Visitor for Listing {
    type Context = Ignoring;

    fn enter(&mut self, folder: &Folder<'_>, above: &Ignoring) -> Ignoring {
        self.filter.enter(folder, above)
    }

    fn meet(&mut self, entry: &Entry<'_>, ignoring: &Ignoring) -> Visit {
        let passed_over = self.filter.passes_over(entry, ignoring);
        // A listing that hides `.git` would say that there is none.
        let is_version_control = passed_over == Some(PassedOver::VersionControl) && self.filter.show_hidden;
        if (passed_over.is_some() && !is_version_control) || self.left_out.is_match(entry.below()) {
            return Visit::Skip;
        }
        if self.met.len() >= self.limit {
            return Visit::Stop;
        }
        let kind = match entry.kind() {
            FileKind::File => ItemType::File,
            FileKind::Folder => ItemType::Directory,
            FileKind::Link => ItemType::Symlink,
            FileKind::Pipe | FileKind::Socket | FileKind::Device | FileKind::KernelFile => ItemType::Other,
        };
        let target = (kind == ItemType::Symlink).then(|| entry.link_target()).flatten();
        self.met.insert(entry.below().to_path_buf(), Met { kind, facts: entry.facts().ok(), target });
        if is_version_control { Visit::Skip } else { Visit::Continue }
    }
}

impl Met {
    fn item(&self, below: &Path) -> Item {
        Item {
            name: name(below),
            path: below.to_string_lossy().into_owned(),
            r#type: self.kind,
            size: self.facts.filter(|_| self.kind == ItemType::File).map(|facts| facts.bytes),
            mtime: self.facts.map(|facts| rfc3339(facts.modified)),
        }
    }

    fn line(&self, below: &Path, is_long: bool) -> String {
        let mut line = String::new();
        if is_long {
            let (mode, bytes, time) =
                self.facts.map_or((0, 0, Timestamp(0)), |facts| (facts.mode, facts.bytes, facts.modified));
            line.push_str(&format!("{mode:04o} {bytes:>12} {}  ", rfc3339(time)));
        }
        line.push_str(&"  ".repeat(below.components().count()));
        line.push_str(&on_one_line(&name(below)));
        match (&self.target, self.kind) {
            (Some(target), _) => line.push_str(&format!(" -> {}", on_one_line(&target.to_string_lossy()))),
            (None, ItemType::Directory) => line.push('/'),
            (None, _) => {}
        }
        line.push('\n');
        line
    }
}

fn name(below: &Path) -> String {
    below.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::builtin::tests::Bench;
    use serde_json::json;

    fn bench() -> Bench {
        let bench = Bench::with_deny(&["Read(secret)"]);
        bench.put_at("b.txt", "12345", 0);
        bench.put("a/deep/er.txt", "");
        bench.put("a/x.log", "");
        bench.put(".hidden", "");
        bench.put(".git/config", "");
        bench.put(".gitignore", "*.log\n");
        bench.link("b.txt", "link");
        bench
    }

    #[track_caller]
    fn check(arguments: Value, expected: &str) {
        let bench = bench();
        let text = bench.text("list_directory", arguments);
        assert_eq!(text.replace(&*bench.path("").to_string_lossy(), "@/"), expected);
    }

    #[test]
    fn a_folder_is_shown_as_a_tree() {
        check(json!({}), "./\n  .git/\n  .gitignore\n  .hidden\n  a/\n  b.txt\n  link -> b.txt");
        check(
            json!({"depth": 0, "show_hidden": false}),
            "./\n  a/\n    deep/\n      er.txt\n    x.log\n  b.txt\n  link -> b.txt",
        );
        check(json!({"path": "a", "depth": 2, "ignore": ["deep"]}), "a/\n  x.log");
        check(json!({"path": "a", "respect_gitignore": true}), "a/\n  deep/");
        check(json!({"path": "a/deep", "ignore": ["*"]}), "a/deep/\n(nothing to show)");
    }

    #[test]
    fn a_limit_keeps_the_shallow_entries_and_says_so() {
        let text = bench().text("list_directory", json!({"depth": 0, "limit": 2}));
        assert_eq!(
            text,
            "./\n  .git/\n  .gitignore\n[only the first 2 entries are shown; look into one folder, or leave some out with `ignore`]"
        );
    }

    #[test]
    fn entries_are_told_as_data() {
        let result = bench().call("list_directory", json!({"ignore": ["a", ".*", "link"]})).unwrap();
        let expected = json!({
            "path": ".",
            "entries": [{"name": "b.txt", "path": "b.txt", "type": "file", "size": 5, "mtime": "2026-01-01T00:00:00Z"}],
            "truncated": false,
        });
        assert_eq!(result.structured_content(), Some(&expected));
        let long = bench().text("list_directory", json!({"ignore": ["a", ".*", "link"], "long": true}));
        assert!(long.ends_with("            5 2026-01-01T00:00:00Z    b.txt"), "{long}");
    }

    #[test]
    fn what_may_not_be_read_is_counted_and_not_named() {
        let bench = bench();
        bench.put("a/secret/key", "");
        let text = bench.text("list_directory", json!({"path": "a"}));
        assert_eq!(text, "a/\n  deep/\n  x.log\n[1 file or folder was not shown: a rule denies reading it.]");
    }

    #[test]
    fn odd_names_stay_on_their_line_and_a_file_is_no_folder() {
        let bench = Bench::new();
        bench.put("d/a\nb", "");
        assert_eq!(bench.text("list_directory", json!({"path": "d"})), "d/\n  a\\nb");
        let told = bench.call("list_directory", json!({"path": "d/a\nb"})).unwrap_err().text();
        assert!(told.contains("is a file, not a folder. Use `read_file`"), "{told}");
    }
}

//! The tool `glob`.

use crate::{
    builtin::{
        files::file_filter::{ActiveIgnoreRules, IgnoreOptions},
        text::wording::{DisplayPathPrefix, counted, denied_entries_note, on_one_line, rfc3339},
        tool_kit::{
            answer::answer, built_in_tool::BuiltInTool, schema::output_schema, tool_context::ToolContext,
            tool_environment::ToolEnvironment,
        },
    },
    sandbox::workspace::{
        facts::{FileFacts, FileKind},
        file_handle::FileHandle,
        granted_workspace::{GrantedWorkspace, similar_names},
        path_error::PathError,
        walk::{Visitor, WalkControl, WalkEnd, WalkEntry, WalkFolder, WalkOptions, WalkOrder, WalkSummary},
    },
};
use globset::{GlobBuilder, GlobSet, GlobSetBuilder};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::{
    cmp::{Ordering, Reverse},
    time::Duration,
};
use toolstead_domain::{Access, Category, Timestamp, ToolAnnotations, ToolFailure, ToolResult, error_kind::ErrorKind};

/// Maximum number of patterns without braces that a pattern may expand to.
const MAX_ALTERNATIVES: usize = 1000;
/// Depth of an unlimited search. Paths cannot be much deeper.
const MAX_DEPTH: usize = 2048;
/// Maximum number of names that are compared with a missing one.
const NAMES_LOOKED_AT: usize = 10_000;
/// Timeout of the search for similar names, which only a slow disk reaches.
const LOOKING_TIME: Duration = Duration::from_secs(1);

/// Patterns that match every path, so that they are not evaluated.
const EVERYTHING: [&str; 2] = ["**", "**/*"];
/// Characters with a special meaning in a pattern.
const WILDCARDS: [char; 7] = ['*', '?', '[', ']', '{', '}', '\\'];

/// Tool that finds files by name.
pub(crate) struct Glob;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Input {
    /// The pattern, like "*.toml" or "src/**/*.{rs,md}". `*` stays within one folder, `**` matches any number.
    #[schemars(length(min = 1, max = 1000))]
    #[schemars(extend("x-advertised" = ""))]
    pattern: String,
    /// The folder to search: absolute, or relative to the working directory.
    #[serde(default = "here")]
    #[schemars(length(min = 1))]
    #[schemars(extend("x-advertised" = ""))]
    path: String,
    /// The type: "file", "directory" or "any".
    #[serde(default)]
    #[schemars(extend("x-advertised" = ""))]
    r#type: EntryType,
    /// Maximum depth; 1 is the folder itself.
    #[schemars(range(min = 1))]
    #[schemars(extend("x-advertised" = false))]
    max_depth: Option<usize>,
    /// Apply .gitignore and .ignore files.
    #[serde(default)]
    #[schemars(extend("x-advertised" = ""))]
    respect_gitignore: bool,
    /// Include names that begin with a dot.
    #[serde(default = "default_true")]
    #[schemars(extend("x-advertised" = false))]
    show_hidden: bool,
    /// Maximum to show; if there are more, a handle has all of them.
    #[serde(default = "usual_limit")]
    #[schemars(range(min = 1, max = 10_000))]
    #[schemars(extend("x-advertised" = ""))]
    limit: usize,
    /// Timeout in milliseconds.
    #[serde(default = "usual_time")]
    #[schemars(range(min = 1, max = 600_000))]
    #[schemars(extend("x-advertised" = false))]
    timeout_ms: u64,
}

#[derive(Deserialize, Serialize, JsonSchema, Default, Clone, Copy, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
enum EntryType {
    #[default]
    File,
    Directory,
    Any,
}

fn here() -> String {
    ".".into()
}

fn default_true() -> bool {
    true
}

fn usual_limit() -> usize {
    100
}

fn usual_time() -> u64 {
    20_000
}

#[derive(Serialize, JsonSchema)]
struct Output {
    /// The last changed first.
    files: Vec<FoundEntry>,
    /// `true` if there is, or may be, more.
    truncated: bool,
    /// Total number found.
    total_seen: usize,
    /// Handle of all paths found, one per line; absent if all are shown.
    #[serde(skip_serializing_if = "Option::is_none")]
    all: Option<String>,
}

#[derive(Serialize, JsonSchema)]
struct FoundEntry {
    /// Relative to the working directory, or absolute outside of it.
    path: String,
    /// In bytes.
    size: u64,
    /// Time of the last change, in RFC 3339.
    mtime: String,
}

impl BuiltInTool for Glob {
    const NAME: &str = "glob";
    const TITLE: &str = "Find files";
    const DESCRIPTION: &str = "Finds files by a path pattern, the last changed first. A pattern without `**/` \
         searches only the folder itself: use \"**/*.rs\" for all below. Use `grep` to find text in files.";
    const BRIEF: &str =
        "Finds files by name, the last changed first. `*.rs` searches the folder itself, `**/*.rs` all below.";
    const CATEGORY: Category = Category::Search;
    const TAGS: &[&str] = &["find"];
    const KEYWORDS: &str = "extension filename locate search wildcard";
    const ANNOTATIONS: ToolAnnotations = ToolAnnotations::READ_ONLY;
    const EXAMPLE: &str = r#"{"pattern": "**/*.toml"}"#;
    type Input = Input;

    fn output_schema(&self) -> Option<Value> {
        Some(output_schema::<Output>())
    }

    async fn accesses(&self, input: &Input, world: &ToolEnvironment) -> Result<Vec<Access>, ToolFailure> {
        let start = Plan::of(input)?.start;
        Ok(vec![Access::ReadPath(world.access(&start).await?.whole_tree())])
    }

    async fn run(&self, input: Input, run: &ToolContext<'_>) -> Result<ToolResult, ToolFailure> {
        let entries = run.environment().files().limits().list_entries;
        let found = run.on_files(move |files| find(files, input, entries)).await?;
        let handle = match found.rest() {
            Some(paths) => {
                let context = run.context();
                let kept = context.outputs.store(context.principal, context.id, "text/plain", paths.as_bytes()).await;
                kept.ok().map(|kept| kept.handle.to_string())
            }
            None => None,
        };
        found.into_result(handle)
    }
}

/// Start folder and pattern of a search. Folders that the pattern names literally are part of the start folder.
struct Plan {
    start: String,
    /// `None` if everything matches.
    globs: Option<GlobSet>,
    /// Last name of the pattern, if it has no wildcard.
    name: Option<String>,
    depth: usize,
    entry_type: EntryType,
}

impl Plan {
    fn of(input: &Input) -> Result<Self, ToolFailure> {
        let wrong = |reason: &str| {
            ToolFailure::new(
                ErrorKind::InvalidInput,
                format!("the pattern `{}` cannot be used: {reason}", input.pattern),
            )
        };
        if input.pattern.contains('\0') {
            return Err(wrong("it contains a NUL character"));
        }
        if alternatives(&input.pattern) > MAX_ALTERNATIVES {
            return Err(wrong("it has too many alternatives"));
        }
        let (pattern, is_for_folders) = match input.pattern.strip_suffix('/') {
            Some(pattern) => (pattern, true),
            None => (&*input.pattern, false),
        };
        let (start, pattern) = match (pattern.strip_prefix('/'), pattern.strip_prefix("~/")) {
            (Some(rest), _) => ("/", rest),
            (None, Some(rest)) => ("~", rest),
            (None, None) => (&*input.path, pattern),
        };
        let mut start = start.to_owned();
        let mut rest = pattern;
        // The last part remains, so that there is something to match.
        while let Some((folder, tail)) = rest.split_once('/')
            && !folder.contains(WILDCARDS)
        {
            match folder {
                ".." => return Err(wrong("`..` is not followed; give the folder as `path`")),
                "" | "." => {}
                folder => {
                    if !start.ends_with('/') {
                        start.push('/');
                    }
                    start.push_str(folder);
                }
            }
            rest = tail;
        }
        if rest.is_empty() || rest.split('/').any(|part| part == "..") {
            return Err(wrong("`..` and an empty name match nothing"));
        }
        let glob = GlobBuilder::new(rest).literal_separator(true).backslash_escape(true).build();
        let globs = glob.and_then(|glob| GlobSetBuilder::new().add(glob).build());
        let globs = globs.map_err(|error| wrong(&error.kind().to_string()))?;
        let globs = Some(globs).filter(|_| !EVERYTHING.contains(&rest));
        let name = rest.rsplit('/').next().filter(|name| !name.contains(WILDCARDS)).map(str::to_owned);
        let deepest = if rest.contains("**") { MAX_DEPTH } else { rest.matches('/').count() + 1 };
        let wanted = if is_for_folders { EntryType::Directory } else { input.r#type };
        Ok(Self { start, globs, name, depth: deepest.min(input.max_depth.unwrap_or(MAX_DEPTH)), entry_type: wanted })
    }
}

/// Returns the maximum number of patterns without braces that a pattern expands to.
fn alternatives(pattern: &str) -> usize {
    let mut groups = Vec::new();
    let mut product: usize = 1;
    for c in pattern.chars() {
        match (c, groups.last_mut()) {
            ('{', _) => groups.push(1_usize),
            (',', Some(count)) => *count += 1,
            ('}', Some(_)) => product = product.saturating_mul(groups.pop().unwrap_or(1)),
            _ => {}
        }
    }
    product
}

fn find(files: &GrantedWorkspace, input: Input, entries: usize) -> Result<SearchResult, ToolFailure> {
    let plan = Plan::of(&input)?;
    let files = files.with_stop(files.stop().within(Duration::from_millis(input.timeout_ms)));
    let found = match files.find(&plan.start) {
        Ok(found) => found,
        // A missing folder in the pattern contains no match; a missing `path` is an error.
        Err(error @ PathError::NotFound { .. }) if plan.start != input.path => {
            let explanation = format!("{}\n", ToolFailure::from(error).text());
            return Ok(SearchResult {
                hits: Vec::new(),
                walked: WalkSummary::default(),
                message: explanation,
                limit: input.limit,
            });
        }
        Err(error) => return Err(error.into()),
    };
    let shown = files.workspace().shown(&found.path().lexical);
    let filter = IgnoreOptions { show_hidden: input.show_hidden, respect_ignore_files: input.respect_gitignore };
    let search = Search { files: &files, plan: &plan, filter, shown: DisplayPathPrefix::of(&shown) };
    let limits = WalkOptions { entries, depth: plan.depth, order: WalkOrder::AnyOrder };
    let (walked, parts) = files.walk(&found, limits, filter.above(&files, &found), &search)?;
    let mut hits: Vec<Hit> = parts.into_iter().flatten().collect();
    hits.sort_unstable_by(Hit::by_age);
    let mut explanation = String::new();
    if hits.is_empty() {
        explanation = format!("Nothing matches `{}` in `{shown}`.\n", input.pattern);
        explanation.push_str(&hint(&files, &found, &input, &plan));
    }
    Ok(SearchResult { hits, walked, message: explanation, limit: input.limit })
}

/// Suggests what the caller may have meant, after a search without matches.
fn hint(files: &GrantedWorkspace, folder: &FileHandle, input: &Input, plan: &Plan) -> String {
    if let Some(name) = &plan.name {
        let files = files.with_stop(files.stop().within(LOOKING_TIME));
        let limits = WalkOptions { entries: NAMES_LOOKED_AT, depth: MAX_DEPTH, order: WalkOrder::ShallowFirst };
        let names = files.walk(folder, limits, (), &EntryNameCollector);
        let mut names = names.map(|(_, names)| names.concat()).unwrap_or_default();
        names.sort_unstable();
        names.dedup();
        if names.contains(name) {
            return format!(
                "The name exists in a folder below, or has another type: try `**/{name}` with type=\"any\".\n"
            );
        }
        let similar = similar_names(name, names);
        if !similar.is_empty() {
            let similar = similar.iter().map(|name| format!("`{}`", on_one_line(name))).collect::<Vec<_>>();
            return format!("Similar names: {}.\n", similar.join(", "));
        }
    }
    if !input.pattern.contains('/') && plan.depth == 1 {
        return format!("To search the folders below, use `**/{}`.\n", input.pattern);
    }
    String::new()
}

struct EntryNameCollector;

impl Visitor for EntryNameCollector {
    type Context = ();
    type Worker = Vec<String>;

    fn worker(&self) -> Vec<String> {
        Vec::new()
    }

    fn visit_entry(&self, names: &mut Vec<String>, entry: &WalkEntry<'_>, (): &()) -> WalkControl {
        names.push(entry.name().to_string_lossy().into_owned());
        WalkControl::Continue
    }
}

struct Search<'a> {
    files: &'a GrantedWorkspace,
    plan: &'a Plan,
    filter: IgnoreOptions,
    shown: DisplayPathPrefix,
}

struct Hit {
    modified: Timestamp,
    path: String,
    bytes: u64,
}

impl Hit {
    /// Compares by time of change, latest first, and then by path.
    fn by_age(&self, other: &Self) -> Ordering {
        (Reverse(self.modified), &self.path).cmp(&(Reverse(other.modified), &other.path))
    }
}

impl Search<'_> {
    /// Returns the facts of an entry of the requested type. A link has the type of its target, if that may be read.
    fn requested_facts(&self, entry: &WalkEntry<'_>) -> Option<FileFacts> {
        let wanted = self.plan.entry_type;
        let is_wanted = |kind| match wanted {
            EntryType::Any => true,
            EntryType::Directory => kind == FileKind::Folder,
            EntryType::File => matches!(kind, FileKind::File | FileKind::KernelFile),
        };
        if entry.kind() != FileKind::Link {
            return if is_wanted(entry.kind()) { entry.facts().ok() } else { None };
        }
        let target = entry.path().lexical.to_str().and_then(|path| self.files.find(path).ok());
        match target {
            Some(target) => Some(*target.facts()).filter(|facts| is_wanted(facts.kind)),
            None if wanted == EntryType::Any => entry.facts().ok(),
            None => None,
        }
    }
}

impl Visitor for Search<'_> {
    type Context = ActiveIgnoreRules;
    type Worker = Vec<Hit>;

    fn worker(&self) -> Vec<Hit> {
        Vec::new()
    }

    fn enter(&self, folder: &WalkFolder<'_>, above: &ActiveIgnoreRules) -> ActiveIgnoreRules {
        self.filter.enter(folder, above)
    }

    fn visit_entry(&self, hits: &mut Vec<Hit>, entry: &WalkEntry<'_>, ignoring: &ActiveIgnoreRules) -> WalkControl {
        if self.filter.skip_reason(entry, ignoring).is_some() {
            return WalkControl::Skip;
        }
        if self.plan.globs.as_ref().is_none_or(|globs| globs.is_match(entry.below()))
            && let Some(FileFacts { modified, bytes, .. }) = self.requested_facts(entry)
        {
            hits.push(Hit { modified, path: self.shown.path(entry.below()), bytes });
        }
        WalkControl::Continue
    }
}

/// Result of a search.
struct SearchResult {
    /// Sorted by time of change, latest first.
    hits: Vec<Hit>,
    walked: WalkSummary,
    /// Message if nothing was found.
    message: String,
    /// Maximum number of paths that are shown.
    limit: usize,
}

impl SearchResult {
    /// Returns all paths, one per line, if not all of them are shown.
    fn rest(&self) -> Option<String> {
        (self.hits.len() > self.limit).then(|| lines(&self.hits))
    }

    /// Formats the result. `all` is the handle of the stored list of all paths, if not all are shown.
    fn into_result(mut self, all: Option<String>) -> Result<ToolResult, ToolFailure> {
        let WalkSummary { entries, refused, unreadable, ended } = self.walked;
        let total_seen = self.hits.len();
        self.hits.truncate(self.limit);
        let mut text = lines(&self.hits);
        text.push_str(&self.message);
        let mut notes = Vec::new();
        if total_seen > self.limit {
            let rest = all.as_ref().map_or_else(
                || "narrow the pattern, or raise `limit`".to_owned(),
                |handle| format!("all are stored as `{handle}`, for `read_file` and `grep`"),
            );
            notes.push(format!("{} of {total_seen} are shown; {rest}", self.limit));
        }
        match ended {
            Some(WalkEnd::Time) => notes.push(format!(
                "the time ran out after {}: there may be more",
                if entries == 1 { "1 entry".into() } else { format!("{entries} entries") }
            )),
            Some(WalkEnd::Entries) => {
                notes.push(format!("only {entries} entries were examined: there may be more; give a `path`"));
            }
            Some(WalkEnd::Visitor) | None => {}
        }
        notes.extend(denied_entries_note(refused, "looked at"));
        if unreadable > 0 {
            notes.push(format!("{} could not be opened", counted(unreadable, "folder")));
        }
        for note in notes {
            text.push_str(&format!("[{note}]\n"));
        }
        let item = |hit: Hit| FoundEntry { path: hit.path, size: hit.bytes, mtime: rfc3339(hit.modified) };
        let truncated = total_seen > self.limit || ended.is_some();
        let output = Output { files: self.hits.into_iter().map(item).collect(), truncated, total_seen, all };
        answer(text.trim_end_matches('\n'), &output)
    }
}

/// Returns the paths, one per line.
fn lines(hits: &[Hit]) -> String {
    hits.iter().map(|hit| format!("{}\n", on_one_line(&hit.path))).collect()
}

#[cfg(test)]
mod tests;

//! The tool `list_directory`.

mod tree;

use crate::{
    builtin::{
        answer::{answer, passed_over, rfc3339},
        built_in_tool::BuiltInTool,
        files::file_filter::{FileFilter, Ignoring, PassedOver},
        run::Run,
        schema::output_schema,
        tools::list_directory::tree::{Met, Room, Tree},
        world::World,
    },
    sandbox::workspace::{
        facts::FileKind,
        found::Found,
        granted::GrantedWorkspace,
        unmistakable,
        walk::{Entry, Folder, Visit, Visitor, WalkEnd, WalkLimits, WalkOrder, Walked},
    },
};
use async_trait::async_trait;
use globset::{GlobBuilder, GlobSet, GlobSetBuilder};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use toolstead_domain::{
    access::Access, category::Category, error_kind::ErrorKind, tool::ToolAnnotations, tool_failure::ToolFailure,
    tool_result::ToolResult,
};

/// "Unlimited" depth ends here: paths cannot be much deeper.
const MAX_DEPTH: usize = 2048;
/// As many entries are shown, unless the caller says how many.
const USUAL_LIMIT: usize = 1000;
/// A tree is about so long, in characters.
const USUAL_CHARS: usize = 10_000;
/// The longest tree, for a caller who says how many entries to show: what a model gets of any result.
const MAX_CHARS: usize = 30_000;

/// Shows what a folder holds.
pub(crate) struct ListDirectory;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Input {
    /// Path of the folder: absolute, or relative to the working directory.
    #[serde(default = "here")]
    #[schemars(length(min = 1))]
    #[schemars(extend("x-advertised" = ""))]
    path: String,
    /// How many levels to show; 0 means all.
    #[serde(default = "one")]
    #[schemars(extend("x-advertised" = "Levels; 0: all."))]
    depth: usize,
    /// Glob patterns of entries to leave out, like "node_modules" or "*.log".
    #[serde(default)]
    #[schemars(length(max = 100), inner(length(min = 1, max = 1000)))]
    #[schemars(extend("x-advertised" = "Globs to leave out."))]
    ignore: Vec<String>,
    /// Whether to show entries whose names begin with a dot.
    #[serde(default = "yes")]
    #[schemars(extend("x-advertised" = false))]
    show_hidden: bool,
    /// Leave out what .gitignore and .ignore files say.
    #[serde(default)]
    #[schemars(extend("x-advertised" = false))]
    respect_gitignore: bool,
    /// Show permissions, size and time of change.
    #[serde(default)]
    #[schemars(extend("x-advertised" = "With permissions, sizes and times."))]
    long: bool,
    /// The order of each folder's entries: "name", "size" (the largest first) or "modified" (the last changed first).
    #[serde(default)]
    #[schemars(extend("x-advertised" = false))]
    sort: Sort,
    /// How many entries to show. Without it, up to 1000, as long as the tree stays short.
    #[schemars(range(min = 1, max = 10_000))]
    #[schemars(extend("x-advertised" = false))]
    limit: Option<usize>,
}

#[derive(Deserialize, Serialize, JsonSchema, Default, Clone, Copy, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
enum Sort {
    #[default]
    Name,
    Size,
    Modified,
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

#[derive(Serialize, JsonSchema)]
pub(crate) struct Output {
    /// Relative to the working directory, or absolute outside of it.
    pub(crate) path: String,
    /// What the tree shows, in its order: each folder before what it holds.
    pub(crate) entries: Vec<Item>,
    /// Whether there is more than is shown.
    pub(crate) truncated: bool,
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct Item {
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

#[derive(Serialize, JsonSchema, Clone, Copy, PartialEq, Eq, Debug)]
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
    const DESCRIPTION: &str = "Shows what a folder holds, as a tree; folders end in a slash. Use `depth` to look deeper: folders that do not \
         fit are summed up. Use `glob` to find files by name, and `grep` to find text in them.";
    const BRIEF: &str = "Shows what a folder holds, as a tree.";
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
        let entries = run.world().limits.list_entries;
        run.on_files(move |files| list(files, &input, entries)).await
    }
}

fn list(files: &GrantedWorkspace, input: &Input, entries: usize) -> Result<ToolResult, ToolFailure> {
    let (text, output) = listed_as(files, &files.find(&input.path)?, input, entries)?;
    answer(text, &output)
}

/// What a folder holds itself, for whoever reads it as if it were a file.
pub(crate) fn listed(files: &GrantedWorkspace, found: &Found, entries: usize) -> Result<(String, Output), ToolFailure> {
    let input = Input {
        path: here(),
        depth: one(),
        ignore: Vec::new(),
        show_hidden: yes(),
        respect_gitignore: false,
        long: false,
        sort: Sort::default(),
        limit: None,
    };
    listed_as(files, found, &input, entries)
}

fn listed_as(
    files: &GrantedWorkspace,
    found: &Found,
    input: &Input,
    entries: usize,
) -> Result<(String, Output), ToolFailure> {
    let path = files.workspace().shown(&found.path().lexical);
    let filter = FileFilter { show_hidden: input.show_hidden, respect_ignore_files: input.respect_gitignore };
    let listing = Listing { filter, left_out: left_out(&input.ignore)? };
    let depth = if input.depth == 0 { MAX_DEPTH } else { input.depth };
    let limits = WalkLimits { entries, depth, order: WalkOrder::ShallowFirst };
    let (walked, met) = files.walk(found, limits, filter.above(files, found), &listing)?;

    let room = Room {
        entries: input.limit.unwrap_or(USUAL_LIMIT),
        chars: if input.limit.is_some() { MAX_CHARS } else { USUAL_CHARS },
    };
    let tree = Tree::of(met.into_iter().flatten(), input.sort, input.long);
    let shown = tree.shown(room);
    let mut text = format!("{path}/\n").replace("//", "/");
    text.push_str(&shown.text);
    if tree.is_empty() {
        text.push_str("(nothing to show)\n");
    }
    for note in notes(&walked, shown.is_cut) {
        text.push_str(&format!("[{note}]\n"));
    }
    text.truncate(text.trim_end_matches('\n').len());
    let entries = shown.entries.into_iter().map(Met::item).collect();
    let truncated = shown.is_cut || walked.ended.is_some();
    Ok((text, Output { path, entries, truncated }))
}

fn notes(walked: &Walked, is_cut: bool) -> Vec<String> {
    let mut notes = Vec::new();
    match walked.ended {
        Some(WalkEnd::Entries) => {
            notes.push(format!("the folder has more than the {} entries that are looked at", walked.entries))
        }
        Some(WalkEnd::Time) => notes.push("the time was over before everything was seen".into()),
        Some(WalkEnd::Visitor) | None => {}
    }
    if is_cut {
        notes.push(
            "not everything is shown; look into one folder, leave some out with `ignore`, or raise `limit`".into(),
        );
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
            .next("Give patterns like \"*.log\" or \"src/**/*.o\".")
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
}

impl Visitor for Listing {
    type Context = Ignoring;
    type Worker = Vec<Met>;

    fn worker(&self) -> Vec<Met> {
        Vec::new()
    }

    fn enter(&self, folder: &Folder<'_>, above: &Ignoring) -> Ignoring {
        self.filter.enter(folder, above)
    }

    fn meet(&self, met: &mut Vec<Met>, entry: &Entry<'_>, ignoring: &Ignoring) -> Visit {
        let passed_over = self.filter.passes_over(entry, ignoring);
        // A listing that hides `.git` would say that there is none.
        let is_version_control = passed_over == Some(PassedOver::VersionControl) && self.filter.show_hidden;
        if (passed_over.is_some() && !is_version_control) || self.left_out.is_match(entry.below()) {
            return Visit::Skip;
        }
        let kind = match entry.kind() {
            FileKind::File => ItemType::File,
            FileKind::Folder => ItemType::Directory,
            FileKind::Link => ItemType::Symlink,
            FileKind::Pipe | FileKind::Socket | FileKind::Device | FileKind::KernelFile => ItemType::Other,
        };
        let target = (kind == ItemType::Symlink).then(|| entry.link_target()).flatten();
        met.push(Met { below: entry.below().to_path_buf(), kind, facts: entry.facts().ok(), target });
        if is_version_control { Visit::Skip } else { Visit::Continue }
    }
}

impl Met {
    fn item(&self) -> Item {
        Item {
            name: self.name().into_owned(),
            path: unmistakable(self.below.to_string_lossy().into_owned()),
            r#type: self.kind,
            size: self.facts.filter(|_| self.kind == ItemType::File).map(|facts| facts.bytes),
            mtime: self.facts.map(|facts| rfc3339(facts.modified)),
        }
    }
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
            "./\n  .git/\n  .gitignore\n  … and 5 files in 2 folders: 2 .txt, 2 without extension, 1 .log\n\
             [not everything is shown; look into one folder, leave some out with `ignore`, or raise `limit`]"
        );
    }

    #[test]
    fn folders_that_do_not_fit_are_summed_up_and_the_shallow_ones_shown() {
        let bench = Bench::new();
        for name in 0..800 {
            bench.put(&format!("target/debug/object_number_{name}.{}", if name % 4 == 0 { "d" } else { "o" }), "");
        }
        for name in ["README", "x.a", "y.b", "z.c"] {
            bench.put(&format!("target/{name}"), "");
        }
        bench.put("src/deep/er/main.rs", "");
        let result = bench.call("list_directory", json!({"depth": 0})).unwrap();
        assert_eq!(
            result.joined_text(),
            "./\n  src/\n    deep/\n      er/\n        main.rs\n  target/\n    README\n    debug/ (800 files: 600 .o, \
             200 .d)\n    x.a\n    y.b\n    z.c\n[not everything is shown; look into one folder, leave some out with \
             `ignore`, or raise `limit`]"
        );
        let told = result.structured_content().unwrap();
        assert_eq!((told["entries"].as_array().unwrap().len(), &told["truncated"]), (10, &json!(true)));
        let few = bench.text("list_directory", json!({"depth": 0, "limit": 3}));
        assert!(few.contains("    deep/ (1 file in 1 folder: 1 .rs)\n"), "{few}");
        assert!(few.contains("  target/ (804 files in 1 folder: 600 .o, 200 .d, 1 .a, 3 others)\n"), "{few}");
        let large = bench.text("list_directory", json!({"path": "target/debug"}));
        assert!(large.chars().count() < 11_000, "{}", large.chars().count());
        assert!(large.contains("\n  … and ") && large.starts_with("target/debug/\n  object_number_0.d\n"), "{large}");
    }

    #[test]
    fn entries_stand_in_the_order_that_is_asked_for() {
        let bench = Bench::new();
        bench.put_at("a", "1", 5);
        bench.put_at("b", "333", 1);
        bench.put_at("c", "22", 9);
        let names = |sort: &str| bench.text("list_directory", json!({"sort": sort})).replace("\n  ", " ");
        assert_eq!(names("name"), "./ a b c");
        assert_eq!(names("size"), "./ b c a");
        assert_eq!(names("modified"), "./ c a b");
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

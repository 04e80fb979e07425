//! The tool `list_directory`.

use crate::{
    builtin::{
        files::listing::{FolderListing, ListingOptions, Sort, list_folder},
        tool_kit::{
            answer::answer, built_in_tool::BuiltInTool, schema::output_schema, tool_context::ToolContext,
            tool_environment::ToolEnvironment,
        },
    },
    sandbox::workspace::granted_workspace::GrantedWorkspace,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use toolstead_domain::{Access, Category, ToolAnnotations, ToolFailure, ToolResult};

/// Tool that lists the content of a folder.
pub(crate) struct ListDirectory;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Input {
    /// Path of the folder: absolute, or relative to the working directory.
    #[serde(default = "here")]
    #[schemars(length(min = 1))]
    #[schemars(extend("x-advertised" = ""))]
    path: String,
    /// Levels to show; 0 means all.
    #[serde(default = "default_depth")]
    #[schemars(extend("x-advertised" = "Levels; 0: all."))]
    depth: usize,
    /// Glob patterns of entries to omit, like "node_modules" or "*.log".
    #[serde(default)]
    #[schemars(length(max = 100), inner(length(min = 1, max = 1000)))]
    #[schemars(extend("x-advertised" = "Globs to leave out."))]
    ignore: Vec<String>,
    /// Show entries whose names begin with a dot.
    #[serde(default = "default_true")]
    #[schemars(extend("x-advertised" = false))]
    show_hidden: bool,
    /// Omit what .gitignore and .ignore files list.
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
    /// Number of entries to show. By default up to 1000, while the tree stays short.
    #[schemars(range(min = 1, max = 10_000))]
    #[schemars(extend("x-advertised" = false))]
    limit: Option<usize>,
}

fn here() -> String {
    ".".into()
}

fn default_depth() -> usize {
    1
}

fn default_true() -> bool {
    true
}

impl BuiltInTool for ListDirectory {
    const NAME: &str = "list_directory";
    const TITLE: &str = "List directory";
    const DESCRIPTION: &str = "Shows a folder as a tree; folders end in a slash. Use `depth` for more levels: folders that do not \
         fit are summarized. Use `glob` to find files by name, and `grep` to find text in them.";
    const BRIEF: &str = "Shows a folder's content as a tree.";
    const CATEGORY: Category = Category::File;
    const TAGS: &[&str] = &["list"];
    const KEYWORDS: &str = "browse contents dir files listing structure";
    const ANNOTATIONS: ToolAnnotations = ToolAnnotations::READ_ONLY;
    const EXAMPLE: &str = r#"{"path": "src", "depth": 2}"#;
    type Input = Input;

    fn output_schema(&self) -> Option<Value> {
        Some(output_schema::<FolderListing>())
    }

    async fn accesses(&self, input: &Input, world: &ToolEnvironment) -> Result<Vec<Access>, ToolFailure> {
        Ok(vec![Access::ReadPath(world.access(&input.path).await?.whole_tree())])
    }

    async fn run(&self, input: Input, run: &ToolContext<'_>) -> Result<ToolResult, ToolFailure> {
        let entries = run.environment().files().limits().list_entries;
        run.on_files(move |files| list(files, &input, entries)).await
    }
}

fn list(files: &GrantedWorkspace, input: &Input, entries: usize) -> Result<ToolResult, ToolFailure> {
    let wanted = ListingOptions {
        depth: input.depth,
        ignore: &input.ignore,
        show_hidden: input.show_hidden,
        respect_gitignore: input.respect_gitignore,
        long: input.long,
        sort: input.sort,
        limit: input.limit,
    };
    let (text, listed) = list_folder(files, &files.find(&input.path)?, &wanted, entries)?;
    answer(text, &listed)
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
    fn a_limit_keeps_shallow_entries_and_summarizes_the_rest() {
        let text = bench().text("list_directory", json!({"depth": 0, "limit": 2}));
        assert_eq!(
            text,
            "./\n  .git/\n  .gitignore\n  … and 5 files in 2 folders: 2 .txt, 2 without extension, 1 .log\n\
             [not everything is shown; look into one folder, leave some out with `ignore`, or raise `limit`]"
        );
    }

    #[test]
    fn folders_that_do_not_fit_are_summarized_and_shallow_entries_are_shown() {
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
        let outcome = result.structured_content().unwrap();
        assert_eq!((outcome["entries"].as_array().unwrap().len(), &outcome["truncated"]), (10, &json!(true)));
        let few = bench.text("list_directory", json!({"depth": 0, "limit": 3}));
        assert!(few.contains("    deep/ (1 file in 1 folder: 1 .rs)\n"), "{few}");
        assert!(few.contains("  target/ (804 files in 1 folder: 600 .o, 200 .d, 1 .a, 3 others)\n"), "{few}");
        let large = bench.text("list_directory", json!({"path": "target/debug"}));
        assert!(large.chars().count() < 11_000, "{}", large.chars().count());
        assert!(large.contains("\n  … and ") && large.starts_with("target/debug/\n  object_number_0.d\n"), "{large}");
    }

    #[test]
    fn entries_are_sorted_in_the_requested_order() {
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
    fn entries_include_size_and_modification_time_in_structured_and_long_output() {
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
    fn entries_that_may_not_be_read_are_counted_without_their_names() {
        let bench = bench();
        bench.put("a/secret/key", "");
        let text = bench.text("list_directory", json!({"path": "a"}));
        assert_eq!(text, "a/\n  deep/\n  x.log\n[1 file or folder was not shown: a rule denies reading it.]");
    }

    #[test]
    fn newlines_in_names_are_escaped_and_listing_a_file_is_rejected() {
        let bench = Bench::new();
        bench.put("d/a\nb", "");
        assert_eq!(bench.text("list_directory", json!({"path": "d"})), "d/\n  a\\nb");
        let answer = bench.call("list_directory", json!({"path": "d/a\nb"})).unwrap_err().text();
        assert!(answer.contains("is a file, not a folder. Use `read_file`"), "{answer}");
    }
}

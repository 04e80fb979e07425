//! Aliases of the built-in tools: the table of names and parameter renames of the five tool systems that Toolstead
//! succeeds.

use crate::{
    builtin::dialects::adapter_of,
    dialects::{CLAI, CLAUDE_CODE, KODELET, MICRO_X, TFO},
};
use toolstead_domain::{
    Alias, Dialect,
    alias::Rewrite::{
        self, AnyDepth, CommandLine, Commas, Default, Drop, Each, Fields, IfTrue, Negate, OnlyIf, Rename, Seconds, Set,
        ShellLine, Span, Words, ZeroIs,
    },
};

/// An entry: the canonical name, the alias, its dialect, and the rewrites of its arguments.
///
/// An alias equal to the canonical name only adds names of parameters.
type Row = (&'static str, &'static str, Dialect, &'static [Rewrite]);

/// Sorted by canonical name.
const TABLE: &[Row] = &[
    ("anthropic_usage", "anthropic_usage", MICRO_X, &[]),
    ("append_file", "append_file", MICRO_X, &[Rename("file_path", "path")]),
    ("apply_patch", "apply_patch", KODELET, &[Rename("input", "patch")]),
    ("ask_model", "claude_conversation", TFO, &[Set("provider", r#""anthropic""#)]),
    (
        "ask_user",
        "AskUserQuestion",
        CLAUDE_CODE,
        // Only the user may give answers, never a caller.
        &[
            Each("questions", &[Rename("multiSelect", "multi_select")]),
            Drop("answers"),
            Drop("annotations"),
            Drop("metadata"),
        ],
    ),
    (
        "bash",
        "Bash",
        CLAUDE_CODE,
        &[
            Rename("timeout", "timeout_ms"),
            Rename("run_in_background", "background"),
            // A caller cannot disable the sandbox.
            Drop("dangerouslyDisableSandbox"),
        ],
    ),
    (
        "bash",
        "async_cmd",
        CLAI,
        &[ShellLine("command", "args"), Rename("cwd", "working_dir"), Set("background", "true")],
    ),
    (
        "bash",
        "async_cmd_run",
        CLAI,
        &[ShellLine("command", "args"), Rename("cwd", "working_dir"), Set("background", "true")],
    ),
    ("bash", "bash", KODELET, &[Seconds("timeout", "timeout_ms", 600)]),
    ("bash", "bash", MICRO_X, &[]),
    ("bash", "cmd", CLAI, &[Seconds("timeout_seconds", "timeout_ms", 600), Default("timeout_ms", "60000")]),
    ("bash", "execute_command", TFO, &[Seconds("timeout", "timeout_ms", 600)]),
    (
        "bash",
        "freetext_command",
        CLAI,
        &[Seconds("timeout_seconds", "timeout_ms", 600), Default("timeout_ms", "60000")],
    ),
    ("batch", "batch", KODELET, &[]),
    ("browser_click", "browser_click", KODELET, &[Rename("timeout", "timeout_ms")]),
    ("browser_click", "click", KODELET, &[Rename("timeout", "timeout_ms")]),
    ("browser_get_page", "browser_get_page", KODELET, &[]),
    ("browser_get_page", "get_page", KODELET, &[]),
    ("browser_navigate", "browser_navigate", KODELET, &[Rename("timeout", "timeout_ms")]),
    ("browser_navigate", "navigate", KODELET, &[Rename("timeout", "timeout_ms")]),
    ("browser_screenshot", "browser_screenshot", KODELET, &[]),
    ("browser_screenshot", "screenshot", KODELET, &[]),
    ("browser_type", "browser_type", KODELET, &[Rename("timeout", "timeout_ms")]),
    ("browser_type", "type", KODELET, &[Rename("timeout", "timeout_ms")]),
    ("browser_wait_for", "browser_wait_for", KODELET, &[Rename("timeout", "timeout_ms")]),
    ("browser_wait_for", "wait_for", KODELET, &[Rename("timeout", "timeout_ms")]),
    (
        "calendar_create_event",
        "calendar_create_event",
        MICRO_X,
        &[Commas("attendees"), Rename("calendarId", "calendar_id")],
    ),
    (
        "calendar_get_event",
        "calendar_get_event",
        MICRO_X,
        &[Rename("eventId", "event_id"), Rename("calendarId", "calendar_id")],
    ),
    (
        "calendar_list_events",
        "calendar_list_events",
        MICRO_X,
        &[
            Rename("timeMin", "time_min"),
            Rename("timeMax", "time_max"),
            Rename("maxResults", "max_results"),
            Rename("calendarId", "calendar_id"),
        ],
    ),
    (
        "current_time",
        "date",
        CLAI,
        &[
            IfTrue("utc", "zone", r#""UTC""#),
            IfTrue("unix", "style", r#""unix""#),
            IfTrue("rfc3339", "style", r#""rfc3339""#),
        ],
    ),
    ("delete_file", "delete_file", MICRO_X, &[Rename("file_path", "path")]),
    ("disk_info", "system-info__disk_info", MICRO_X, &[]),
    ("echo", "echo", TFO, &[]),
    (
        "edit_file",
        "Edit",
        CLAUDE_CODE,
        &[Rename("file_path", "path"), Rename("old_string", "old_text"), Rename("new_string", "new_text")],
    ),
    (
        "edit_file",
        "edit_file",
        MICRO_X,
        &[Rename("file_path", "path"), Rename("old_string", "old_text"), Rename("new_string", "new_text")],
    ),
    ("edit_file", "file_edit", KODELET, &[Rename("file_path", "path")]),
    ("edit_file", "file_multi_edit", KODELET, &[Rename("file_path", "path"), Rename("occurrence", "count")]),
    (
        "edit_file",
        "sed",
        CLAI,
        &[
            Rename("file_path", "path"),
            Rename("pattern", "old_text"),
            Rename("repl", "new_text"),
            Set("regex", "true"),
            Set("replace_all", "true"),
        ],
    ),
    (
        "file_info",
        "file_type",
        CLAI,
        &[Rename("file_path", "path"), Set("count_lines", "false"), IfTrue("mime_type", "only", r#""mime""#)],
    ),
    ("file_info", "line_count", CLAI, &[Rename("file_path", "path"), Set("only", r#""lines""#)]),
    ("git", "git", CLAI, &[]),
    ("glob", "Glob", CLAUDE_CODE, &[]),
    (
        "glob",
        "find",
        CLAI,
        &[
            Rename("directory", "path"),
            Rename("name", "pattern"),
            AnyDepth("pattern"),
            Default("pattern", r#""**""#),
            Words("type", "type", &[("f", "file"), ("d", "directory")]),
            Default("type", r#""any""#),
            Rename("maxdepth", "max_depth"),
            Default("limit", "1000"),
        ],
    ),
    ("glob", "glob_tool", KODELET, &[Set("show_hidden", "false")]),
    ("glob", "search_files", TFO, &[Default("pattern", r#""*""#), AnyDepth("pattern"), Set("type", r#""any""#)]),
    ("gmail_read", "gmail_read", MICRO_X, &[Rename("messageId", "message_id")]),
    ("gmail_search", "gmail_search", MICRO_X, &[Rename("maxResults", "max_results")]),
    ("gmail_send", "gmail_send", MICRO_X, &[Commas("to"), Commas("cc"), Commas("bcc")]),
    ("go_tool", "go", CLAI, &[Fields("args")]),
    (
        "grep",
        "Grep",
        CLAUDE_CODE,
        &[
            Rename("-A", "after"),
            Rename("-B", "before"),
            Rename("-C", "context"),
            Rename("-n", "line_numbers"),
            Rename("-i", "ignore_case"),
            Rename("-o", "only_matching"),
            Rename("type", "file_type"),
            Default("output_mode", r#""files_with_matches""#),
        ],
    ),
    (
        "grep",
        "grep_tool",
        KODELET,
        &[
            Rename("include", "glob"),
            Rename("surround_lines", "context"),
            Rename("max_results", "head_limit"),
            Set("output_mode", r#""content""#),
        ],
    ),
    (
        "grep",
        "rg",
        CLAI,
        &[
            Negate("case_sensitive", "ignore_case"),
            Rename("line_number", "line_numbers"),
            Default("line_numbers", "false"),
            Rename("hidden", "show_hidden"),
            Default("show_hidden", "false"),
            Set("output_mode", r#""content""#),
        ],
    ),
    ("help", "clai_help", CLAI, &[]),
    ("image_recognition", "image_recognition", KODELET, &[Rename("image_path", "image")]),
    ("linkedin_job_detail", "linkedin_job_detail", MICRO_X, &[]),
    (
        "linkedin_jobs",
        "linkedin_jobs",
        MICRO_X,
        &[
            Words("dateSincePosted", "date_posted", &[("past week", "past_week"), ("past month", "past_month")]),
            Words("jobType", "job_type", &[("full time", "full_time"), ("part time", "part_time")]),
            Words("remoteFilter", "remote", &[("on site", "on_site")]),
            Words("experienceLevel", "experience", &[("entry level", "entry_level"), ("senior", "mid_senior")]),
            Rename("sortBy", "sort_by"),
        ],
    ),
    ("list_directory", "LS", CLAUDE_CODE, &[Set("depth", "0")]),
    (
        "list_directory",
        "file_tree",
        CLAI,
        &[
            Rename("directory", "path"),
            Rename("level", "depth"),
            Default("depth", "0"),
            Default("show_hidden", "false"),
        ],
    ),
    ("list_directory", "list_directory", TFO, &[IfTrue("recursive", "depth", "0")]),
    (
        "list_directory",
        "ls",
        CLAI,
        &[Rename("directory", "path"), Rename("all", "show_hidden"), Default("show_hidden", "false")],
    ),
    (
        "media_probe",
        "ffprobe",
        CLAI,
        &[
            Rename("showFormat", "show_format"),
            Rename("showStreams", "show_streams"),
            Rename("showFrames", "show_frames"),
            Rename("selectStreams", "select_streams"),
            Rename("showEntries", "show_entries"),
        ],
    ),
    (
        "multi_edit",
        "MultiEdit",
        CLAUDE_CODE,
        &[
            Rename("file_path", "path"),
            Each(
                "edits",
                &[Rename("file_path", "path"), Rename("old_string", "old_text"), Rename("new_string", "new_text")],
            ),
        ],
    ),
    (
        "multi_edit",
        "multi_edit",
        KODELET,
        &[
            Rename("file_path", "path"),
            Each(
                "edits",
                &[
                    Rename("file_path", "path"),
                    Rename("old_string", "old_text"),
                    Rename("new_string", "new_text"),
                    Rename("occurrence", "count"),
                ],
            ),
        ],
    ),
    ("network_info", "system-info__network_info", MICRO_X, &[]),
    ("notebook_edit", "NotebookEdit", CLAUDE_CODE, &[Rename("notebook_path", "path")]),
    ("read_file", "Read", CLAUDE_CODE, &[Rename("file_path", "path"), ZeroIs("offset", 1)]),
    (
        "read_file",
        "cat",
        CLAI,
        &[
            Rename("file", "path"),
            Rename("number", "line_numbers"),
            Default("line_numbers", "false"),
            Default("limit", "10000"),
            Rename("showEnds", "show_ends"),
            Rename("squeezeBlank", "squeeze_blank"),
        ],
    ),
    (
        "read_file",
        "file_read",
        KODELET,
        &[
            Rename("file_path", "path"),
            Rename("line_limit", "limit"),
            ZeroIs("offset", 1),
            Default("number_style", r#""colon""#),
        ],
    ),
    ("read_file", "read_file", MICRO_X, &[Rename("file_path", "path"), ZeroIs("offset", 1)]),
    ("read_file", "read_file", TFO, &[]),
    (
        "read_file",
        "rows_between",
        CLAI,
        &[Rename("file_path", "path"), Span("start_line", "end_line"), Default("number_style", r#""colon""#)],
    ),
    ("skill", "Skill", CLAUDE_CODE, &[Rename("skill", "name"), Rename("args", "arguments")]),
    ("skill", "load_skill", CLAI, &[Rename("skill_name", "name")]),
    ("skill", "skill", KODELET, &[Rename("skill_name", "name")]),
    (
        "subagent",
        "Agent",
        CLAUDE_CODE,
        &[Rename("subagent_type", "agent"), Rename("run_in_background", "background"), Drop("isolation")],
    ),
    (
        "subagent",
        "Task",
        CLAUDE_CODE,
        &[Rename("subagent_type", "agent"), Rename("run_in_background", "background"), Drop("isolation")],
    ),
    (
        "subagent",
        "clai_run",
        CLAI,
        &[
            CommandLine(
                "args",
                "prompt",
                &["query", "raw"],
                &[("profile", "agent"), ("p", "agent"), ("model", "model")],
            ),
            Rename("profile", "agent"),
            Set("background", "true"),
        ],
    ),
    ("subagent", "subagent", KODELET, &[Rename("question", "prompt"), Rename("model_strength", "model")]),
    ("system_info", "system-info__system_info", MICRO_X, &[]),
    ("system_info", "system_info", TFO, &[]),
    ("task_list", "async_cmd_status", CLAI, &[Rename("async_cmd_id", "task_ids"), Rename("async_cmd_ids", "task_ids")]),
    ("task_list", "clai_check", CLAI, &[Rename("run_id", "task_ids")]),
    ("task_list", "view_background_processes", KODELET, &[Set("kind", r#""shell""#)]),
    ("task_output", "BashOutput", CLAUDE_CODE, &[Rename("bash_id", "task_id")]),
    (
        "task_output",
        "TaskOutput",
        CLAUDE_CODE,
        &[Default("timeout", "30000"), OnlyIf("block", "timeout"), Rename("timeout", "wait_ms")],
    ),
    ("task_output", "async_cmd_logs", CLAI, &[Rename("async_cmd_id", "task_id"), Default("since", "0")]),
    ("task_output", "clai_result", CLAI, &[Rename("run_id", "task_id"), Default("since", "0")]),
    ("task_stop", "KillShell", CLAUDE_CODE, &[Rename("shell_id", "task_id")]),
    ("task_stop", "TaskStop", CLAUDE_CODE, &[Rename("shell_id", "task_id")]),
    ("task_stop", "async_cmd_cancel", CLAI, &[Rename("async_cmd_id", "task_id")]),
    (
        "task_wait",
        "async_cmd_await",
        CLAI,
        &[
            Rename("async_cmd_id", "task_ids"),
            Rename("async_cmd_ids", "task_ids"),
            Rename("ids", "task_ids"),
            Seconds("timeout_seconds", "timeout_ms", 600),
        ],
    ),
    ("task_wait", "clai_wait_for_workers", CLAI, &[Seconds("timeout_seconds", "timeout_ms", 600)]),
    ("think", "thinking", KODELET, &[]),
    ("todo_read", "todo_read", KODELET, &[]),
    ("todo_write", "todo_write", KODELET, &[]),
    ("todo_write", "TodoWrite", CLAUDE_CODE, &[Each("todos", &[Rename("activeForm", "active_form")])]),
    ("web_fetch", "WebFetch", CLAUDE_CODE, &[]),
    ("web_fetch", "web_fetch", KODELET, &[]),
    ("web_fetch", "web_fetch", MICRO_X, &[Rename("maxChars", "max_chars")]),
    ("web_fetch", "website_text", CLAI, &[Set("format", r#""text""#), Default("timeout_ms", "10000")]),
    ("web_search", "WebSearch", CLAUDE_CODE, &[]),
    ("web_search", "web_search", MICRO_X, &[]),
    ("working_directory", "pwd", CLAI, &[]),
    ("write_file", "Write", CLAUDE_CODE, &[Rename("file_path", "path"), Default("if_match", r#""read""#)]),
    (
        "write_file",
        "file_write",
        KODELET,
        &[Rename("file_path", "path"), Rename("text", "content"), Default("if_match", r#""read""#)],
    ),
    ("write_file", "write_file", CLAI, &[Rename("file_path", "path")]),
    ("write_file", "write_file", MICRO_X, &[]),
    ("write_file", "write_file", TFO, &[]),
];

/// Returns the aliases of a tool, by its canonical name.
pub(in crate::builtin) fn aliases_of(tool: &str) -> Vec<Alias> {
    let rows = TABLE.iter().filter(|(canonical, ..)| *canonical == tool);
    rows.map(|&(_, name, dialect, rewrites)| Alias {
        adapter: adapter_of(dialect, name),
        ..Alias::new(name, dialect, rewrites)
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::builtin;
    use serde_json::{Value, json};
    use toolstead_domain::{Formats, ToolInputSchema, coercion::coerce};

    #[track_caller]
    fn check(alias: &str, given: Value, tool: &str, expected: Value) {
        let alias = aliases_of(tool).into_iter().find(|other| other.name == alias).unwrap();
        let mut arguments = given.as_object().unwrap().clone();
        alias.rewrite(&mut arguments).unwrap();
        assert_eq!(Value::Object(arguments), expected);
        let definition = builtin::tests::definition(tool);
        let schema = ToolInputSchema::compile(definition.input_schema(), Formats::Asserted).unwrap();
        schema.validate(&expected).unwrap();
    }

    #[test]
    fn plans_thoughts_and_questions_of_every_spelling_become_valid_ones() {
        check(
            "TodoWrite",
            json!({"todos": [{"content": "Run tests", "status": "in_progress", "activeForm": "Running tests"}]}),
            "todo_write",
            json!({"todos": [{"content": "Run tests", "status": "in_progress", "active_form": "Running tests"}]}),
        );
        check("todo_read", json!({}), "todo_read", json!({}));
        check("thinking", json!({"thought": "hm"}), "think", json!({"thought": "hm"}));
        let options =
            json!([{"label": "SQLite", "description": "A file"}, {"label": "Postgres", "description": "A server"}]);
        check(
            "AskUserQuestion",
            json!({
                "questions": [{"question": "Which database?", "header": "Database", "multiSelect": false, "options": options}],
                "answers": {"Which database?": "SQLite"},
            }),
            "ask_user",
            json!({
                "questions": [{"question": "Which database?", "header": "Database", "multi_select": false, "options": options}],
            }),
        );
        check(
            "claude_conversation",
            json!({"message": "hi", "system_prompt": "Be brief.", "model": "claude-sonnet-4-5", "max_tokens": 100}),
            "ask_model",
            json!({
                "message": "hi", "system_prompt": "Be brief.", "model": "claude-sonnet-4-5", "max_tokens": 100,
                "provider": "anthropic",
            }),
        );
        check(
            "image_recognition",
            json!({"image_path": "a.png", "prompt": "What is it?"}),
            "image_recognition",
            json!({"image": "a.png", "prompt": "What is it?"}),
        );
    }

    #[test]
    fn calls_of_a_browser_of_every_spelling_become_valid_ones() {
        for (alias, given, tool, expected) in [
            (
                "navigate",
                json!({"url": "https://example.com", "timeout": 30_000}),
                "browser_navigate",
                json!({"url": "https://example.com", "timeout_ms": 30_000}),
            ),
            ("browser_navigate", json!({"url": "https://a.b"}), "browser_navigate", json!({"url": "https://a.b"})),
            ("get_page", json!({}), "browser_get_page", json!({})),
            ("browser_get_page", json!({}), "browser_get_page", json!({})),
            (
                "click",
                json!({"element_id": 3, "timeout": 10_000}),
                "browser_click",
                json!({"element_id": 3, "timeout_ms": 10_000}),
            ),
            ("browser_click", json!({"element_id": 1}), "browser_click", json!({"element_id": 1})),
            (
                "type",
                json!({"element_id": 2, "text": "a", "clear": true, "submit": true, "timeout": 5_000}),
                "browser_type",
                json!({"element_id": 2, "text": "a", "clear": true, "submit": true, "timeout_ms": 5_000}),
            ),
            (
                "browser_type",
                json!({"element_id": 2, "text": "a"}),
                "browser_type",
                json!({"element_id": 2, "text": "a"}),
            ),
            ("wait_for", json!({"timeout": 1_000}), "browser_wait_for", json!({"timeout_ms": 1_000})),
            ("browser_wait_for", json!({}), "browser_wait_for", json!({})),
            (
                "screenshot",
                json!({"full_page": true, "format": "jpeg"}),
                "browser_screenshot",
                json!({"full_page": true, "format": "jpeg"}),
            ),
            ("browser_screenshot", json!({}), "browser_screenshot", json!({})),
        ] {
            check(alias, given, tool, expected);
        }
    }

    #[test]
    fn searches_for_jobs_of_every_spelling_become_valid_ones() {
        for (theirs, word, ours, meant) in [
            ("dateSincePosted", "24hr", "date_posted", "24hr"),
            ("dateSincePosted", "past week", "date_posted", "past_week"),
            ("dateSincePosted", "past month", "date_posted", "past_month"),
            ("sortBy", "recent", "sort_by", "recent"),
            ("sortBy", "relevant", "sort_by", "relevant"),
        ] {
            check(
                "linkedin_jobs",
                json!({"keyword": "rust", (theirs): word}),
                "linkedin_jobs",
                json!({"keyword": "rust", (ours): meant}),
            );
        }
        let alias = aliases_of("linkedin_jobs").into_iter().next().unwrap();
        for (theirs, word, ours, meant) in [
            ("jobType", "full time", "job_type", "full_time"),
            ("jobType", "part time", "job_type", "part_time"),
            ("jobType", "contract", "job_type", "contract"),
            ("jobType", "temporary", "job_type", "temporary"),
            ("jobType", "internship", "job_type", "internship"),
            ("remoteFilter", "on site", "remote", "on_site"),
            ("remoteFilter", "remote", "remote", "remote"),
            ("remoteFilter", "hybrid", "remote", "hybrid"),
            ("experienceLevel", "internship", "experience", "internship"),
            ("experienceLevel", "entry level", "experience", "entry_level"),
            ("experienceLevel", "associate", "experience", "associate"),
            ("experienceLevel", "senior", "experience", "mid_senior"),
            ("experienceLevel", "director", "experience", "director"),
            ("experienceLevel", "executive", "experience", "executive"),
        ] {
            let mut arguments = json!({"keyword": "rust", "limit": "25", (theirs): word}).as_object().unwrap().clone();
            alias.rewrite(&mut arguments).unwrap();
            let definition = builtin::tests::definition("linkedin_jobs");
            coerce(definition.input_schema(), &mut arguments);
            let expected = json!({"keyword": "rust", "limit": 25, (ours): [meant]});
            assert_eq!(Value::Object(arguments), expected, "{theirs}: {word}");
            let schema = ToolInputSchema::compile(definition.input_schema(), Formats::Asserted).unwrap();
            schema.validate(&expected).unwrap();
        }
    }

    #[test]
    fn pages_are_fetched_in_every_spelling() {
        let url = "https://example.com/";
        check("WebFetch", json!({"url": url, "prompt": "Why?"}), "web_fetch", json!({"url": url, "prompt": "Why?"}));
        check(
            "website_text",
            json!({"url": url}),
            "web_fetch",
            json!({"url": url, "format": "text", "timeout_ms": 10_000}),
        );
    }

    #[test]
    fn arguments_of_every_spelling_become_valid_ones() {
        check("Skill", json!({"skill": "a", "args": "b"}), "skill", json!({"name": "a", "arguments": "b"}));
        check("load_skill", json!({"skill_name": "a"}), "skill", json!({"name": "a"}));
        check("Read", json!({"file_path": "a", "offset": 0}), "read_file", json!({"path": "a", "offset": 1}));
        check(
            "file_read",
            json!({"file_path": "a", "line_limit": 5}),
            "read_file",
            json!({"path": "a", "limit": 5, "number_style": "colon"}),
        );
        check(
            "cat",
            json!({"file": "a", "showEnds": true, "squeezeBlank": true}),
            "read_file",
            json!({"path": "a", "line_numbers": false, "limit": 10_000, "show_ends": true, "squeeze_blank": true}),
        );
        check(
            "rows_between",
            json!({"file_path": "a", "start_line": 3, "end_line": 5}),
            "read_file",
            json!({"path": "a", "offset": 3, "limit": 3, "number_style": "colon"}),
        );
        check(
            "Write",
            json!({"file_path": "a", "content": ""}),
            "write_file",
            json!({"path": "a", "content": "", "if_match": "read"}),
        );
        check(
            "file_write",
            json!({"file_path": "a", "text": "b"}),
            "write_file",
            json!({"path": "a", "content": "b", "if_match": "read"}),
        );
        check(
            "write_file",
            json!({"file_path": "a", "content": "b", "append": true}),
            "write_file",
            json!({"path": "a", "content": "b", "append": true}),
        );
        let edited = json!({"path": "a", "old_text": "b", "new_text": "c"});
        check("Edit", json!({"file_path": "a", "old_string": "b", "new_string": "c"}), "edit_file", edited.clone());
        check("edit_file", json!({"path": "a", "old_string": "b", "new_string": "c"}), "edit_file", edited.clone());
        check("file_edit", json!({"file_path": "a", "old_text": "b", "new_text": "c"}), "edit_file", edited);
        check(
            "file_multi_edit",
            json!({"file_path": "a", "old_text": "b", "new_text": "c", "occurrence": 2}),
            "edit_file",
            json!({"path": "a", "old_text": "b", "new_text": "c", "count": 2}),
        );
        check(
            "sed",
            json!({"file_path": "a", "pattern": "b", "repl": "c", "start_line": 1, "end_line": 2}),
            "edit_file",
            json!({"path": "a", "old_text": "b", "new_text": "c", "regex": true, "replace_all": true, "start_line": 1, "end_line": 2}),
        );
        check(
            "MultiEdit",
            json!({"file_path": "a", "edits": [{"old_string": "b", "new_string": "c", "replace_all": true}]}),
            "multi_edit",
            json!({"path": "a", "edits": [{"replace_all": true, "old_text": "b", "new_text": "c"}]}),
        );
        check("append_file", json!({"path": "a", "content": "b"}), "append_file", json!({"path": "a", "content": "b"}));
        check("delete_file", json!({"path": "a"}), "delete_file", json!({"path": "a"}));
        check(
            "LS",
            json!({"path": "/a", "ignore": ["x"]}),
            "list_directory",
            json!({"path": "/a", "ignore": ["x"], "depth": 0}),
        );
        check("list_directory", json!({"recursive": true}), "list_directory", json!({"depth": 0}));
        check(
            "ls",
            json!({"directory": "a", "long": true}),
            "list_directory",
            json!({"path": "a", "long": true, "show_hidden": false}),
        );
        check(
            "file_tree",
            json!({"directory": "a"}),
            "list_directory",
            json!({"path": "a", "depth": 0, "show_hidden": false}),
        );
        check("Glob", json!({"pattern": "*"}), "glob", json!({"pattern": "*"}));
        check("glob_tool", json!({"pattern": "*"}), "glob", json!({"pattern": "*", "show_hidden": false}));
        check("search_files", json!({}), "glob", json!({"pattern": "**/*", "type": "any"}));
        check(
            "find",
            json!({"directory": "a", "name": "*.c", "type": "f", "maxdepth": 2}),
            "glob",
            json!({"path": "a", "pattern": "**/*.c", "type": "file", "max_depth": 2, "limit": 1000}),
        );
        check(
            "Grep",
            json!({"pattern": "a", "-A": 1, "-B": 2, "-C": 3, "-n": true, "-i": true, "-o": true, "type": "rust"}),
            "grep",
            json!({"pattern": "a", "after": 1, "before": 2, "context": 3, "line_numbers": true, "ignore_case": true, "only_matching": true, "file_type": "rust", "output_mode": "files_with_matches"}),
        );
        check(
            "grep_tool",
            json!({"pattern": "a", "include": "*.c", "surround_lines": 1, "max_results": 5}),
            "grep",
            json!({"pattern": "a", "glob": "*.c", "context": 1, "head_limit": 5, "output_mode": "content"}),
        );
        check(
            "rg",
            json!({"pattern": "a", "case_sensitive": false, "line_number": true, "hidden": true}),
            "grep",
            json!({"pattern": "a", "ignore_case": true, "line_numbers": true, "show_hidden": true, "output_mode": "content"}),
        );
        check(
            "rg",
            json!({"pattern": "a"}),
            "grep",
            json!({"pattern": "a", "line_numbers": false, "show_hidden": false, "output_mode": "content"}),
        );
        check("date", json!({"utc": true, "unix": true}), "current_time", json!({"zone": "UTC", "style": "unix"}));
        check("line_count", json!({"file_path": "a"}), "file_info", json!({"path": "a", "only": "lines"}));
        check(
            "file_type",
            json!({"file_path": "a", "mime_type": true}),
            "file_info",
            json!({"path": "a", "count_lines": false, "only": "mime"}),
        );
        check(
            "Bash",
            json!({"command": "a", "timeout": 5000, "run_in_background": true, "dangerouslyDisableSandbox": true}),
            "bash",
            json!({"command": "a", "timeout_ms": 5000, "background": true}),
        );
        check("bash", json!({"command": "a", "timeout": 90}), "bash", json!({"command": "a", "timeout_ms": 90_000}));
        check(
            "bash",
            json!({"command": "a", "description": "b", "timeout": 0, "background": true}),
            "bash",
            json!({"command": "a", "description": "b", "background": true}),
        );
        check(
            "execute_command",
            json!({"command": "a", "working_dir": "b", "timeout": 60}),
            "bash",
            json!({"command": "a", "working_dir": "b", "timeout_ms": 60_000}),
        );
        for name in ["cmd", "freetext_command"] {
            check(name, json!({"command": "a"}), "bash", json!({"command": "a", "timeout_ms": 60_000}));
        }
        check(
            "cmd",
            json!({"command": "a", "timeout_seconds": 5}),
            "bash",
            json!({"command": "a", "timeout_ms": 5000}),
        );
        check(
            "async_cmd",
            json!({"command": "a b", "args": ["c d"], "cwd": "e", "env": {"X": "y"}}),
            "bash",
            json!({"env": {"X": "y"}, "command": "'a b' 'c d'", "working_dir": "e", "background": true}),
        );
        check("view_background_processes", json!({}), "task_list", json!({"kind": "shell"}));
        check(
            "BashOutput",
            json!({"bash_id": "task_1", "filter": "x"}),
            "task_output",
            json!({"filter": "x", "task_id": "task_1"}),
        );
        let waits = |milliseconds: u32| json!({"task_id": "task_1", "wait_ms": milliseconds});
        check("TaskOutput", json!({"task_id": "task_1", "block": true, "timeout": 5}), "task_output", waits(5));
        check("TaskOutput", json!({"task_id": "task_1"}), "task_output", waits(30_000));
        check("TaskOutput", json!({"task_id": "task_1", "block": false}), "task_output", json!({"task_id": "task_1"}));
        for name in ["KillShell", "TaskStop"] {
            check(name, json!({"shell_id": "task_1"}), "task_stop", json!({"task_id": "task_1"}));
        }
        check("async_cmd_cancel", json!({"async_cmd_id": "task_1"}), "task_stop", json!({"task_id": "task_1"}));
        check(
            "async_cmd_await",
            json!({"ids": ["task_1"], "timeout_seconds": 2}),
            "task_wait",
            json!({"task_ids": ["task_1"], "timeout_ms": 2000}),
        );
        check("clai_check", json!({"run_id": ["task_1"]}), "task_list", json!({"task_ids": ["task_1"]}));
        check("clai_result", json!({"run_id": "task_1"}), "task_output", json!({"task_id": "task_1", "since": 0}));
        check("clai_wait_for_workers", json!({"timeout_seconds": 2}), "task_wait", json!({"timeout_ms": 2000}));
        check(
            "go",
            json!({"command": "test", "args": ["./..."]}),
            "go_tool",
            json!({"command": "test", "args": ["./..."]}),
        );
        check(
            "go",
            json!({"command": "test", "args": " -v  ./... "}),
            "go_tool",
            json!({"command": "test", "args": ["-v", "./..."]}),
        );
        check(
            "ffprobe",
            json!({"file": "a", "showFormat": true}),
            "media_probe",
            json!({"file": "a", "show_format": true}),
        );
        check("pwd", json!({}), "working_directory", json!({}));
        check("clai_help", json!({}), "help", json!({}));
        check("apply_patch", json!({"input": "x"}), "apply_patch", json!({"patch": "x"}));
        check(
            "NotebookEdit",
            json!({"notebook_path": "a", "cell_id": "b", "new_source": "c", "cell_type": "code", "edit_mode": "insert"}),
            "notebook_edit",
            json!({"path": "a", "cell_id": "b", "new_source": "c", "cell_type": "code", "edit_mode": "insert"}),
        );
    }

    #[test]
    fn every_row_names_a_tool_that_exists_and_no_alias_means_two_tools() {
        for (canonical, alias, ..) in TABLE {
            // These call other tools, and are checked where they are defined.
            if !["batch", "subagent"].contains(canonical) {
                assert_eq!(builtin::tests::definition(canonical).name().as_str(), *canonical);
            }
            assert!(TABLE.iter().all(|(other, name, ..)| name != alias || other == canonical), "{alias}");
        }
        assert!(TABLE.is_sorted_by_key(|(canonical, ..)| *canonical));
    }
}

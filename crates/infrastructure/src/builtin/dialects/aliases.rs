//! Aliases of the built-in tools: the table of names and parameter renames of the five tool systems that Toolstead
//! succeeds.

use super::adapter_of;
use crate::dialects::{CLAI, CLAUDE_CODE, KODELET, MICRO_X, TFO};
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
type AliasEntry = (&'static str, &'static str, Dialect, &'static [Rewrite]);

/// Sorted by canonical name.
const TABLE: &[AliasEntry] = &[
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
mod tests;

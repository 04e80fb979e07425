//! Arguments of every alias become valid ones of its tool.

use super::*;
use crate::builtin;
use serde_json::{Value, json};
use toolstead_domain::{FormatValidation, ToolInputSchema, coercion::coerce};

#[track_caller]
fn check(alias: &str, given: Value, tool: &str, expected: Value) {
    let alias = aliases_of(tool).into_iter().find(|other| other.name == alias).unwrap();
    let mut arguments = given.as_object().unwrap().clone();
    alias.rewrite(&mut arguments).unwrap();
    assert_eq!(Value::Object(arguments), expected);
    let definition = builtin::tests::definition(tool);
    let schema = ToolInputSchema::compile(definition.input_schema(), FormatValidation::Asserted).unwrap();
    schema.validate(&expected).unwrap();
}

#[test]
fn todo_think_and_question_aliases_map_to_valid_arguments() {
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
fn browser_tool_aliases_map_to_valid_arguments() {
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
        ("browser_type", json!({"element_id": 2, "text": "a"}), "browser_type", json!({"element_id": 2, "text": "a"})),
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
fn job_search_aliases_map_to_valid_arguments() {
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
        let schema = ToolInputSchema::compile(definition.input_schema(), FormatValidation::Asserted).unwrap();
        schema.validate(&expected).unwrap();
    }
}

#[test]
fn web_fetch_aliases_map_to_valid_arguments() {
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
fn file_search_command_and_other_aliases_map_to_valid_arguments() {
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
    check("cmd", json!({"command": "a", "timeout_seconds": 5}), "bash", json!({"command": "a", "timeout_ms": 5000}));
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

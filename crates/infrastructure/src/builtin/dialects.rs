//! Dialect adapters of the built-in tools for the five tool systems that Toolstead succeeds: one table for each system.

pub(super) mod aliases;
mod caller_text;
mod clai;
mod claude_code;
mod command_output;
mod kodelet;
mod micro_x;
mod tfo;
mod web_page;
mod wording;

use crate::dialects::{CLAI, CLAUDE_CODE, KODELET, MICRO_X, TFO};
use toolstead_domain::{Dialect, DialectAdapter};

/// Dialect adapters of one system, each with the name of its tool there.
type AdapterTable = &'static [(&'static str, DialectAdapter)];

/// Tables by dialect.
static TABLES: &[(Dialect, AdapterTable)] = &[
    (CLAI, clai::ADAPTERS),
    (CLAUDE_CODE, claude_code::ADAPTERS),
    (KODELET, kodelet::ADAPTERS),
    (MICRO_X, micro_x::ADAPTERS),
    (TFO, tfo::ADAPTERS),
];

/// Returns the dialect adapter of this name.
pub(super) fn adapter_of(dialect: Dialect, name: &str) -> Option<&'static DialectAdapter> {
    let (_, faces) = TABLES.iter().find(|(one, _)| *one == dialect)?;
    faces.iter().find(|(one, _)| *one == name).map(|(_, face)| face)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::builtin;
    use serde_json::{Value, json};
    use toolstead_domain::{
        AdaptedResult, AdapterInput, Tool, ToolResult, error_kind::ErrorKind, testing::samples, tool_result::text_block,
    };

    #[track_caller]
    fn said(dialect: Dialect, name: &str, arguments: &Value, result: &ToolResult) -> Option<AdaptedResult> {
        let arguments = arguments.as_object().unwrap();
        let answered = AdapterInput { arguments, characters: 10_000, in_tags: false, outcome: Ok(result) };
        (adapter_of(dialect, name).unwrap().answer)(&answered)
    }

    #[test]
    fn no_face_hides_what_was_refused_or_cut() {
        const REMARK: &str = "[1 file or folder was not shown: a rule denies reading it.]";
        let (entry, found) = (json!({"name": "a", "path": "a", "type": "file"}), json!([{"path": "a"}]));
        let searched = |files: Value| json!({"mode": "files_with_matches", "files": files, "matches": [], "total_matches": 0, "truncated": false});
        let lines = json!({"mode": "content", "files": ["a"], "matches": [{"path": "a", "line": 1, "text": "x"}], "total_matches": 1, "truncated": false});
        let counts = json!({"mode": "count", "files": ["a"], "counts": [{"path": "a", "count": 1}], "total_matches": 1, "truncated": false});
        let listed = json!({"entries": [entry], "truncated": false});
        for (dialect, name, structured) in [
            (TFO, "list_directory", listed.clone()),
            (TFO, "search_files", json!({"files": found, "truncated": false})),
            (CLAI, "ls", listed.clone()),
            (CLAI, "file_tree", listed),
            (CLAI, "find", json!({"files": found, "truncated": false})),
            (CLAI, "rg", searched(json!([]))),
            (KODELET, "grep_tool", lines),
            (CLAUDE_CODE, "Glob", json!({"files": [], "truncated": false})),
            (CLAUDE_CODE, "Grep", searched(json!([]))),
            (CLAUDE_CODE, "Grep", counts),
        ] {
            let result =
                ToolResult::text(format!("a\n{REMARK}")).with_structured_content(structured).mark_tool_output();
            let said = said(dialect, name, &json!({"directory": "d", "pattern": "x"}), &result);
            let told =
                said.is_none_or(|said| said.text.contains(REMARK) || said.extra_block.as_deref() == Some(REMARK));
            assert!(told, "{dialect:?} `{name}`");
        }
    }

    #[test]
    fn no_face_says_that_a_dry_run_did_something() {
        let told = json!({"path": "a", "created": true, "dry_run": true, "diff": "", "bytes": 1});
        let result = ToolResult::text("Would create `a`; nothing was changed.").with_structured_content(told);
        let edit = json!({"old_string": "a", "new_string": "b"});
        let given = json!({"path": "a", "file_path": "a", "content": "x", "text": "x", "edits": [edit]});
        for (dialect, name) in [
            (TFO, "write_file"),
            (MICRO_X, "write_file"),
            (MICRO_X, "append_file"),
            (MICRO_X, "edit_file"),
            (CLAI, "write_file"),
            (CLAI, "sed"),
            (KODELET, "file_write"),
            (CLAUDE_CODE, "Write"),
            (CLAUDE_CODE, "Edit"),
            (CLAUDE_CODE, "MultiEdit"),
        ] {
            let said = said(dialect, name, &given, &result);
            assert!(said.is_none_or(|said| said.text.contains("nothing was changed")), "{dialect:?} `{name}`");
        }
    }

    #[test]
    fn notes_of_a_file_that_was_changed_stand_in_every_face() {
        const NOTE: &str = "The file had 1 other name (hard link), which still holds the old content.";
        let told = json!({"path": "a", "created": false, "dry_run": false, "diff": "", "bytes": 1});
        let result = ToolResult::text(format!("Replaced `a`: 1 line, 1 byte. {NOTE}")).with_structured_content(told);
        let given = json!({"path": "a", "file_path": "a", "content": "x", "text": "x"});
        for (dialect, name) in [
            (TFO, "write_file"),
            (MICRO_X, "write_file"),
            (MICRO_X, "append_file"),
            (CLAI, "write_file"),
            (CLAI, "sed"),
            (KODELET, "file_write"),
            (CLAUDE_CODE, "Write"),
            (CLAUDE_CODE, "Edit"),
        ] {
            let said = said(dialect, name, &given, &result);
            let told = said.is_none_or(|said| said.text.contains(NOTE) || said.extra_block.as_deref() == Some(NOTE));
            assert!(told, "{dialect:?} `{name}`");
        }
    }

    #[test]
    fn a_command_that_failed_without_an_exit_code_is_an_error_in_every_face_and_says_why() {
        const WHY: &str = "`.git/config` was changed, and put back.";
        let told = json!({"stdout": "x", "stderr": "", "exit_code": 0, "truncated": false, "output_bytes": 1});
        let result = ToolResult::text("x").with_structured_content(told);
        let end = format!("The command ended with exit code 0 after 0.1 s. {WHY}");
        let result = result.followed_by(ToolResult::error(ErrorKind::ExecutionFailed, end)).mark_tool_output();
        for (dialect, name) in
            [(TFO, "execute_command"), (MICRO_X, "bash"), (CLAI, "cmd"), (KODELET, "bash"), (CLAUDE_CODE, "Bash")]
        {
            let said = said(dialect, name, &json!({"command": "x"}), &result).unwrap();
            let tells = said.text.contains(WHY) || said.extra_block.is_some_and(|beside| beside.contains(WHY));
            assert!(said.is_error && tells, "{dialect:?} `{name}`: {}", said.text);
        }
    }

    #[test]
    fn remarks_about_a_command_that_succeeded_stand_in_every_face() {
        const REDUCED: &str = "`timeout_ms` exceeds the limit for calls, and was reduced.";
        let told = json!({"stdout": "x", "stderr": "", "exit_code": 0, "truncated": false, "output_bytes": 1});
        let result = ToolResult::text("x").with_structured_content(told).with_block(text_block(REDUCED.into()));
        let result = result.mark_tool_output();
        for (dialect, name) in
            [(TFO, "execute_command"), (MICRO_X, "bash"), (CLAI, "cmd"), (KODELET, "bash"), (CLAUDE_CODE, "Bash")]
        {
            let said = said(dialect, name, &json!({"command": "x"}), &result);
            let tells =
                |said: &AdaptedResult| said.text.contains(REDUCED) || said.extra_block.as_deref() == Some(REDUCED);
            assert!(said.as_ref().is_none_or(tells), "{dialect:?} `{name}`: {said:?}");
        }
    }

    #[test]
    fn every_face_has_an_alias_that_bears_it_and_is_a_definition() {
        let mut tools = builtin::tests::definitions();
        // These call other tools, and are defined elsewhere.
        tools.extend(["batch", "subagent"].map(|name| {
            let mut tool = samples::tool(name);
            tool.aliases = builtin::aliases_of(name);
            tool
        }));
        for (dialect, faces) in TABLES {
            for (name, face) in *faces {
                let bears = |tool: &&Tool| {
                    tool.aliases.iter().any(|alias| alias.is(name, Some(*dialect)) && alias.adapter == Some(face))
                };
                let tool = tools.iter().find(bears).unwrap_or_else(|| panic!("{dialect:?} `{name}` is no alias"));
                let shown = tool.shown_in(*dialect).unwrap();
                let shown = shown.iter().find(|shown| shown.name().as_str() == *name);
                let shown = shown.unwrap_or_else(|| panic!("{dialect:?} `{name}` is no definition"));
                assert_eq!(shown.input_schema()["type"], "object", "{dialect:?} `{name}`");
                assert!(!shown.description().is_empty(), "{dialect:?} `{name}`");
            }
        }
    }
}

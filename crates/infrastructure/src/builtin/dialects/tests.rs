//! The forms of answers of all dialects, and the agreement of definitions, adapters and aliases.

use super::*;
use crate::builtin;
use serde_json::{Value, json};
use toolstead_domain::{
    AdaptedResult, AdapterInput, Alias, Tool, ToolResult, alias::Rewrite, error_kind::ErrorKind, testing::samples,
    tool_result::text_block,
};

#[track_caller]
fn adapted(dialect: Dialect, name: &str, arguments: &Value, result: &ToolResult) -> Option<AdaptedResult> {
    let arguments = arguments.as_object().unwrap();
    let answered = AdapterInput { arguments, characters: 10_000, in_tags: false, outcome: Ok(result) };
    (adapter_of(dialect, name).unwrap().answer)(&answered)
}

#[test]
fn no_dialect_adapter_hides_a_remark_about_denied_files() {
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
        let result = ToolResult::text(format!("a\n{REMARK}")).with_structured_content(structured).mark_tool_output();
        let said = adapted(dialect, name, &json!({"directory": "d", "pattern": "x"}), &result);
        let outcome = said.is_none_or(|said| said.text.contains(REMARK) || said.extra_block.as_deref() == Some(REMARK));
        assert!(outcome, "{dialect:?} `{name}`");
    }
}

#[test]
fn no_dialect_adapter_reports_a_dry_run_as_a_change() {
    let answer = json!({"path": "a", "created": true, "dry_run": true, "diff": "", "bytes": 1});
    let result = ToolResult::text("Would create `a`; nothing was changed.").with_structured_content(answer);
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
        let said = adapted(dialect, name, &given, &result);
        assert!(said.is_none_or(|said| said.text.contains("nothing was changed")), "{dialect:?} `{name}`");
    }
}

#[test]
fn every_dialect_adapter_includes_the_notes_on_a_changed_file() {
    const NOTE: &str = "The file had 1 other name (hard link), which still holds the old content.";
    let answer = json!({"path": "a", "created": false, "dry_run": false, "diff": "", "bytes": 1});
    let result = ToolResult::text(format!("Replaced `a`: 1 line, 1 byte. {NOTE}")).with_structured_content(answer);
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
        let said = adapted(dialect, name, &given, &result);
        let answer = said.is_none_or(|said| said.text.contains(NOTE) || said.extra_block.as_deref() == Some(NOTE));
        assert!(answer, "{dialect:?} `{name}`");
    }
}

#[test]
fn every_dialect_adapter_reports_a_failed_command_with_exit_code_0_as_an_error() {
    const WHY: &str = "`.git/config` was changed, and put back.";
    let answer = json!({"stdout": "x", "stderr": "", "exit_code": 0, "truncated": false, "output_bytes": 1});
    let result = ToolResult::text("x").with_structured_content(answer);
    let end = format!("The command ended with exit code 0 after 0.1 s. {WHY}");
    let result = result.followed_by(ToolResult::error(ErrorKind::ExecutionFailed, end)).mark_tool_output();
    for (dialect, name) in
        [(TFO, "execute_command"), (MICRO_X, "bash"), (CLAI, "cmd"), (KODELET, "bash"), (CLAUDE_CODE, "Bash")]
    {
        let said = adapted(dialect, name, &json!({"command": "x"}), &result).unwrap();
        let tells = said.text.contains(WHY) || said.extra_block.is_some_and(|beside| beside.contains(WHY));
        assert!(said.is_error && tells, "{dialect:?} `{name}`: {}", said.text);
    }
}

#[test]
fn every_dialect_adapter_includes_remarks_on_a_successful_command() {
    const REDUCED: &str = "`timeout_ms` exceeds the limit for calls, and was reduced.";
    let answer = json!({"stdout": "x", "stderr": "", "exit_code": 0, "truncated": false, "output_bytes": 1});
    let result = ToolResult::text("x").with_structured_content(answer).with_block(text_block(REDUCED.into()));
    let result = result.mark_tool_output();
    for (dialect, name) in
        [(TFO, "execute_command"), (MICRO_X, "bash"), (CLAI, "cmd"), (KODELET, "bash"), (CLAUDE_CODE, "Bash")]
    {
        let said = adapted(dialect, name, &json!({"command": "x"}), &result);
        let tells = |said: &AdaptedResult| said.text.contains(REDUCED) || said.extra_block.as_deref() == Some(REDUCED);
        assert!(said.as_ref().is_none_or(tells), "{dialect:?} `{name}`: {said:?}");
    }
}

/// Returns the built-in tools, and those that call other tools and are defined elsewhere.
fn tools_with_aliases() -> Vec<Tool> {
    let mut tools = builtin::tests::definitions();
    tools.extend(["batch", "subagent"].map(|name| {
        let mut tool = samples::tool(name);
        tool.aliases = builtin::aliases_of(name);
        tool
    }));
    tools
}

#[test]
fn every_adapter_has_an_alias_and_a_definition_and_every_definition_has_an_adapter() {
    let tools = tools_with_aliases();
    for (dialect, adapters) in ADAPTERS {
        let definitions = adapters[0].definitions;
        let named: Vec<&str> = adapters.iter().map(|adapter| adapter.name).collect();
        assert_eq!(
            definitions.names().collect::<Vec<_>>(),
            named,
            "{dialect:?}: the JSON file and the adapters differ"
        );
        for adapter in *adapters {
            let at = format!("{dialect:?} `{}`", adapter.name);
            assert!(std::ptr::eq(adapter.definitions, definitions), "{at} has the definitions of another dialect");
            let definition = adapter.definition().unwrap();
            assert!(definition["description"].as_str().is_some_and(|text| !text.is_empty()), "{at}");
            assert_eq!(definition["inputSchema"]["type"], "object", "{at}");
            let is_known = |member: &String| ["description", "inputSchema", "outputSchema"].contains(&member.as_str());
            assert!(definition.keys().all(is_known), "{at}: {definition:?}");
            let has_it = |alias: &Alias| alias.is(adapter.name, Some(*dialect)) && alias.adapter == Some(adapter);
            let tool = tools.iter().find(|tool| tool.aliases.iter().any(has_it));
            let tool = tool.unwrap_or_else(|| panic!("{at} is not an alias"));
            let shown = tool.shown_in(*dialect).unwrap();
            let shown = shown.iter().find(|shown| shown.name().as_str() == adapter.name).unwrap();
            assert_eq!(shown.input_schema(), &definition["inputSchema"], "{at}");
        }
    }
}

#[test]
fn every_dialect_parameter_maps_to_a_parameter_of_the_tool() {
    for tool in builtin::tests::definitions() {
        for alias in &tool.aliases {
            let at = format!("{:?} `{}`", alias.dialect, alias.name);
            for parameter in alias.rewrites.iter().filter_map(target) {
                assert!(tool.input_schema()["properties"].get(parameter).is_some(), "{at} sets `{parameter}`");
            }
            let Some(adapter) = alias.adapter else { continue };
            let shown = sample(&adapter.definition().unwrap()["inputSchema"]);
            let mut arguments = shown.as_object().unwrap().clone();
            alias.rewrite(&mut arguments).unwrap();
            adapter.defaults.iter().try_for_each(|step| step.apply(&mut arguments)).unwrap();
            let unknown = unknown_members(tool.input_schema(), &arguments.into());
            assert!(unknown.is_empty(), "{at}: `{}` does not have {unknown:?}", tool.name());
        }
    }
}

/// Returns the canonical parameter of a rename.
fn target(rewrite: &Rewrite) -> Option<&'static str> {
    match *rewrite {
        Rewrite::Rename(_, to)
        | Rewrite::Negate(_, to)
        | Rewrite::Words(_, to, _)
        | Rewrite::IfTrue(_, to, _)
        | Rewrite::Seconds(_, to, _) => Some(to),
        _ => None,
    }
}

/// Returns a value with every member of the schema.
fn sample(schema: &Value) -> Value {
    let members = || schema["properties"].as_object().into_iter().flatten();
    match (schema["enum"].as_array(), schema["type"].as_str()) {
        (Some(values), _) => values[0].clone(),
        (_, Some("object")) => members().map(|(name, member)| (name.clone(), sample(member))).collect(),
        (_, Some("array")) => json!([sample(&schema["items"])]),
        (_, Some("boolean")) => true.into(),
        (_, Some("integer" | "number")) => 1.into(),
        _ => "a".into(),
    }
}

/// Returns the names of members that the schema does not have, at any depth.
fn unknown_members(schema: &Value, value: &Value) -> Vec<String> {
    let inner = |name: &String, value: &Value| match schema["properties"].get(name) {
        Some(schema) => unknown_members(schema, value),
        None if schema["additionalProperties"] == false => vec![name.clone()],
        None => Vec::new(),
    };
    match value {
        Value::Object(members) => members.iter().flat_map(|(name, value)| inner(name, value)).collect(),
        Value::Array(items) => items.iter().flat_map(|item| unknown_members(&schema["items"], item)).collect(),
        _ => Vec::new(),
    }
}

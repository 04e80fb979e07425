//! Records of calls with kodelet's names (`StructuredToolResult`).
//!
//! A stored record contains the structured content of its tool. If kodelet defines a metadata type for the tool, the
//! content is converted to that type, as far as it has the data. Everything else is unchanged.

use serde_json::{Map, Value, json};
use std::collections::HashMap;
use toolstead_domain::{Block, ConversationEvent, ConversationEventKind, ToolArguments};

/// Returns the records of all completed calls, each with the number of its event, the model's id of the call, and the
/// id of its audit record.
pub(super) fn of_calls(events: &[ConversationEvent]) -> Vec<Value> {
    let mut records = Vec::new();
    // Arguments of the calls in the last answer.
    let mut arguments: HashMap<&str, &Map<String, Value>> = HashMap::new();
    for event in events {
        match &event.kind {
            ConversationEventKind::ModelAnswered { blocks, .. } => {
                let of_calls = blocks.iter().filter_map(|block| match block {
                    Block::ToolUse(call) => match &call.arguments {
                        ToolArguments::Object(object) => Some((call.id.as_str(), object)),
                        ToolArguments::Malformed(_) => None,
                    },
                    _ => None,
                });
                arguments = of_calls.collect();
            }
            ConversationEventKind::CallEnded { result, call, record } => {
                let mut members = Map::new();
                members.insert("event".into(), event.number.into());
                members.insert("toolUseId".into(), result.id.as_str().into());
                members.insert("call".into(), call.map(|call| call.to_string()).into());
                let none = Map::new();
                let given = arguments.get(result.id.as_str()).copied().unwrap_or(&none);
                match in_kodelets_words(record.clone(), given) {
                    Value::Object(record) => members.extend(record),
                    other => _ = members.insert("record".into(), other),
                }
                records.push(members.into());
            }
            _ => {}
        }
    }
    records
}

/// Converts the metadata of one record to kodelet's type; returns the record unchanged if kodelet has no type for it.
/// `given` are the arguments of the call.
fn in_kodelets_words(mut record: Value, given: &Map<String, Value>) -> Value {
    let shaped = match (record["metadataType"].as_str(), record["metadata"].as_object()) {
        (Some(tool), Some(ours)) => shaped(tool, ours, given),
        _ => None,
    };
    if let Some((kind, metadata)) = shaped {
        record["metadataType"] = kind.into();
        record["metadata"] = metadata.into();
    }
    record
}

/// Returns the metadata type and its members; `None` if kodelet has no type for the tool, or the content is not that of
/// the tool.
fn shaped(
    tool: &str,
    ours: &Map<String, Value>,
    given: &Map<String, Value>,
) -> Option<(&'static str, Map<String, Value>)> {
    // Returns the members that have a value, under kodelet's names.
    let of = |members: &[(&str, Option<Value>)]| -> Map<String, Value> {
        members.iter().filter_map(|(name, value)| Some(((*name).to_owned(), value.clone()?))).collect()
    };
    let (had, asked) = (|name: &str| ours.get(name).cloned(), |name: &str| given.get(name).cloned());
    Some(match tool {
        "read_file" => {
            let lines = ours.get("content")?.as_str()?.lines().collect::<Vec<_>>();
            (
                "file_read",
                of(&[
                    ("filePath", had("path")),
                    ("offset", had("start_line")),
                    ("lines", Some(json!(lines))),
                    ("truncated", had("truncated")),
                ]),
            )
        }
        "write_file" => {
            ours.get("path")?;
            ("file_write", of(&[("filePath", had("path")), ("content", asked("content")), ("size", had("bytes"))]))
        }
        "edit_file" => {
            let edit = |line: &Value| {
                of(&[
                    ("startLine", Some(line.clone())),
                    ("oldContent", asked("old_text")),
                    ("newContent", asked("new_text")),
                ])
            };
            let edits: Vec<Map<String, Value>> = ours.get("lines")?.as_array()?.iter().map(edit).collect();
            ("file_edit", of(&[("filePath", had("path")), ("edits", Some(json!(edits)))]))
        }
        "grep" => {
            let mut results: Vec<(String, Vec<Map<String, Value>>)> = Vec::new();
            for found in ours.get("matches")?.as_array()? {
                let path = found["path"].as_str()?;
                let one = |name: &str| found.get(name).cloned();
                let found = of(&[
                    ("lineNumber", one("line")),
                    ("content", one("text")),
                    ("matchStart", one("start")),
                    ("matchEnd", one("end")),
                ]);
                match results.iter_mut().find(|(known, _)| known == path) {
                    Some((_, matches)) => matches.push(found),
                    None => results.push((path.to_owned(), vec![found])),
                }
            }
            let results: Vec<Value> =
                results.into_iter().map(|(path, matches)| json!({"filePath": path, "matches": matches})).collect();
            (
                "grep",
                of(&[
                    ("pattern", asked("pattern")),
                    ("path", asked("path")),
                    ("include", asked("glob")),
                    ("results", Some(results.into())),
                    ("truncated", had("truncated")),
                ]),
            )
        }
        "glob" => {
            let file = |file: &Value| {
                let one = |name: &str| file.get(name).cloned();
                of(&[("path", one("path")), ("size", one("size")), ("modTime", one("mtime"))])
            };
            let files: Vec<Map<String, Value>> = ours.get("files")?.as_array()?.iter().map(file).collect();
            (
                "glob",
                of(&[
                    ("pattern", asked("pattern")),
                    ("path", asked("path")),
                    ("files", Some(json!(files))),
                    ("truncated", had("truncated")),
                ]),
            )
        }
        "bash" => {
            let output = format!("{}{}", ours.get("stdout")?.as_str()?, ours.get("stderr")?.as_str()?);
            // Durations in Go are nanoseconds.
            let time =
                ours.get("duration_ms").and_then(Value::as_u64).map(|time| json!(time.saturating_mul(1_000_000)));
            (
                "bash",
                of(&[
                    ("command", asked("command")),
                    ("exitCode", had("exit_code")),
                    ("output", Some(output.into())),
                    ("executionTime", time),
                    ("workingDir", had("cwd")),
                ]),
            )
        }
        "batch" => {
            ours.get("success_count")?;
            (
                "batch",
                of(&[
                    ("description", asked("description")),
                    ("successCount", had("success_count")),
                    ("failureCount", had("failure_count")),
                ]),
            )
        }
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the converted record of the tool with this structured content and these arguments of its call.
    fn check(tool: &str, ours: Value, given: Value, kind: &str, outcome: Value) {
        let record = |kind: &str, metadata: Value| {
            json!({
                "toolName": tool, "success": true, "metadataType": kind, "metadata": metadata,
                "timestamp": "2025-09-01T00:00:00.000Z", "unknown": [1],
            })
        };
        let Value::Object(given) = given else { panic!("{given}") };
        assert_eq!(in_kodelets_words(record(tool, ours), &given), record(kind, outcome));
    }

    #[test]
    fn tool_metadata_is_converted_to_the_members_of_kodelet_types() {
        check(
            "read_file",
            json!({"path": "a.rs", "kind": "text", "content": "x\ny\n", "start_line": 3, "truncated": true}),
            json!({}),
            "file_read",
            json!({"filePath": "a.rs", "offset": 3, "lines": ["x", "y"], "truncated": true}),
        );
        check(
            "write_file",
            json!({"path": "a", "created": true, "bytes": 2, "lines": 1}),
            json!({"path": "a", "content": "x\n"}),
            "file_write",
            json!({"filePath": "a", "content": "x\n", "size": 2}),
        );
        check(
            "edit_file",
            json!({"path": "a", "replacements": 2, "lines": [3, 9]}),
            json!({"old_text": "x", "new_text": "y"}),
            "file_edit",
            json!({"filePath": "a", "edits": [
                {"startLine": 3, "oldContent": "x", "newContent": "y"},
                {"startLine": 9, "oldContent": "x", "newContent": "y"},
            ]}),
        );
        check(
            "grep",
            json!({"mode": "content", "files": ["a", "b"], "truncated": false, "matches": [
                {"path": "a", "line": 1, "text": "xy", "start": 0, "end": 1},
                {"path": "b", "line": 2, "text": "x", "start": 0, "end": 1},
                {"path": "a", "line": 7, "text": "yx", "start": 1, "end": 2},
            ]}),
            json!({"pattern": "x", "glob": "*.rs"}),
            "grep",
            json!({"pattern": "x", "include": "*.rs", "truncated": false, "results": [
                {"filePath": "a", "matches": [
                    {"lineNumber": 1, "content": "xy", "matchStart": 0, "matchEnd": 1},
                    {"lineNumber": 7, "content": "yx", "matchStart": 1, "matchEnd": 2},
                ]},
                {"filePath": "b", "matches": [{"lineNumber": 2, "content": "x", "matchStart": 0, "matchEnd": 1}]},
            ]}),
        );
        check(
            "glob",
            json!({"files": [{"path": "a", "size": 3, "mtime": "2025-09-01T00:00:00Z"}], "truncated": false, "total_seen": 1}),
            json!({"pattern": "*", "path": "src"}),
            "glob",
            json!({"pattern": "*", "path": "src", "truncated": false,
                "files": [{"path": "a", "size": 3, "modTime": "2025-09-01T00:00:00Z"}]}),
        );
        check(
            "bash",
            json!({"stdout": "x\n", "stderr": "y\n", "exit_code": 1, "duration_ms": 7, "cwd": "/w"}),
            json!({"command": "make"}),
            "bash",
            json!({"command": "make", "exitCode": 1, "output": "x\ny\n", "executionTime": 7_000_000, "workingDir": "/w"}),
        );
        check(
            "batch",
            json!({"results": [], "success_count": 2, "failure_count": 1}),
            json!({"description": "two"}),
            "batch",
            json!({"description": "two", "successCount": 2, "failureCount": 1}),
        );
    }

    #[test]
    fn metadata_without_a_kodelet_type_is_exported_unchanged() {
        for (tool, ours) in [
            ("undo", json!({"call": "x"})),
            ("read_file", json!({"path": "a.png", "kind": "image"})),
            ("grep", json!({"matches": [{"line": 1}]})),
            ("mcp__git__log", json!({"content": "x", "stdout": 7})),
        ] {
            check(tool, ours.clone(), json!({}), tool, ours);
        }
        for odd in [json!(null), json!("x"), json!({"metadataType": 7, "metadata": []}), json!({"toolName": "grep"})] {
            assert_eq!(in_kodelets_words(odd.clone(), &Map::new()), odd);
        }
    }
}

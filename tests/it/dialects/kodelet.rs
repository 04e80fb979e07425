//! Kodelet: "Tool System Architecture". It names its tools and says how errors look; parameters and the shapes of answers
//! are those of its code.

use super::{Advertised, Answer, Call, System, check};
use crate::dialects::Session;
use serde_json::json;

fn tools() -> Vec<Advertised> {
    let tool = |name, required, optional| Advertised { name, required, optional };
    vec![
        tool("file_read", &[("file_path", "string")], &[("offset", "integer"), ("line_limit", "integer")]),
        tool("file_write", &[("file_path", "string"), ("text", "string")], &[]),
        tool("file_edit", &[("file_path", "string"), ("old_text", "string"), ("new_text", "string")], &[]),
        tool(
            "file_multi_edit",
            &[("file_path", "string"), ("old_text", "string"), ("new_text", "string"), ("occurrence", "integer")],
            &[],
        ),
        tool(
            "grep_tool",
            &[("pattern", "string")],
            &[
                ("path", "string"),
                ("include", "string"),
                ("ignore_case", "boolean"),
                ("fixed_strings", "boolean"),
                ("surround_lines", "integer"),
                ("max_results", "integer"),
            ],
        ),
        tool("glob_tool", &[("pattern", "string")], &[("path", "string")]),
        tool(
            "bash",
            &[("description", "string"), ("command", "string")],
            &[("timeout", "integer"), ("background", "boolean")],
        ),
        tool("view_background_processes", &[], &[]),
        tool("batch", &[("description", "string"), ("invocations", "array")], &[]),
        tool("thinking", &[("thought", "string")], &[]),
        tool("todo_read", &[], &[]),
        tool("todo_write", &[("todos", "array")], &[]),
        tool("web_fetch", &[("url", "string")], &[("prompt", "string")]),
    ]
}

fn calls() -> Vec<Call> {
    let call = |section, name, arguments, answer| Call { section, name, arguments, answer };
    vec![
        call(
            "File System Tools",
            "file_read",
            json!({"file_path": "poem.txt"}),
            Answer::Text("1: one\n2: two\n3: three"),
        ),
        call(
            "File System Tools",
            "file_read",
            json!({"file_path": "poem.txt", "offset": 0, "line_limit": 10}),
            Answer::Text("1: one\n2: two\n3: three"),
        ),
        call(
            "Error Result Implementation",
            "file_read",
            json!({"file_path": "nowhere.txt"}),
            Answer::ErrorLike("Error: ", ""),
        ),
        call(
            "File System Tools",
            "file_write",
            json!({"file_path": "a.txt", "text": "x\ny\n"}),
            Answer::Text("Created `a.txt`: 2 lines, 4 bytes.\n1: x\n2: y"),
        ),
        call(
            "File System Tools",
            "file_write",
            json!({"file_path": "src/main.rs", "text": "x"}),
            Answer::ErrorLike("Error: `src/main.rs` exists, and this session has not read it.", ""),
        ),
        call(
            "File System Tools",
            "file_edit",
            json!({"file_path": "poem.txt", "old_text": "four", "new_text": "5"}),
            Answer::ErrorLike("Error: ", ""),
        ),
        call(
            "Search Tools",
            "grep_tool",
            json!({"pattern": "t[wh]", "path": ".", "include": "*.txt"}),
            Answer::Text("Search results for pattern 't[wh]':\n\nPattern found in file poem.txt:\n\n2:two\n3:three"),
        ),
        call("Search Tools", "glob_tool", json!({"pattern": "**/lib.rs"}), Answer::Text("src/deep/lib.rs")),
        call(
            "Execution Tools",
            "bash",
            json!({"description": "Say hi", "command": "echo hi", "timeout": 10}),
            Answer::Text("hi\n"),
        ),
        call(
            "Execution Tools",
            "bash",
            json!({"description": "Fail", "command": "echo half; exit 3"}),
            Answer::ErrorLike("Error: The command ended with exit code 3", "."),
        ),
        call(
            "Execution Tools",
            "bash",
            json!({"description": "Wait", "command": "sleep 60", "timeout": 1}),
            Answer::ErrorLike("Error: ", ""),
        ),
        call(
            "Execution Tools",
            "batch",
            json!({"description": "Look", "invocations": [
                {"tool_name": "glob_tool", "parameters": {"pattern": "**/lib.rs"}},
                {"tool_name": "file_read", "parameters": {"file_path": "a.txt"}}]}),
            Answer::Text(
                "<invocation.0.result>\nsrc/deep/lib.rs\n</invocation.0.result>\n\
                 <invocation.1.result>\n1: x\n2: y\n</invocation.1.result>",
            ),
        ),
        call("AI/Agent Tools", "thinking", json!({"thought": "hm"}), Answer::Text("Noted.")),
        call(
            "Execution Tools",
            "view_background_processes",
            json!({}),
            Answer::Text("No background processes running."),
        ),
    ]
}

#[test]
fn the_kodelet_dialect_matches_its_documented_tools_and_answers() {
    check(&System { dialect: "kodelet", tools: tools(), calls: calls() });
}

#[test]
fn answers_are_enclosed_in_tags_if_configured() {
    let session = Session::configured(Some("kodelet"), "[dialect]\ntags = true\n", &[]);
    for (command, expected) in [
        ("echo hi", &[("<result>\nhi\n", "</result>")][..]),
        (
            "echo half; exit 3",
            &[("<error>\nThe command ended with exit code 3", "\n</error>"), ("<result>\nhalf\n", "</result>")],
        ),
    ] {
        let answer = session.call("bash", &json!({"description": "d", "command": command}));
        let blocks = answer["result"]["content"].as_array().unwrap();
        let texts: Vec<&str> = blocks.iter().map(|block| block["text"].as_str().unwrap()).collect();
        let fit = |(text, (begin, end)): (&&str, &(&str, &str))| text.starts_with(begin) && text.ends_with(end);
        assert!(texts.len() == expected.len() && texts.iter().zip(expected).all(fit), "{answer}");
    }
}

//! Micro-X. Its document names the tools (sections "File System", "Shell" and "Bundled MCP Server: system-info"); what
//! they answer is in the programs behind it.

use super::{Begins, Error, ErrorBegins, Text, Unknown, call, check, check_list};
use serde_json::json;

#[test]
fn the_micro_x_dialect_lists_tools_with_micro_x_names_and_parameters() {
    check_list(
        "micro_x",
        &[
            "append_file(path: string, content: string)",
            "bash(command: string)",
            "delete_file(path: string)",
            "edit_file(path: string, old_string: string, new_string: string, replace_all?: boolean)",
            "read_file(path: string)",
            "system-info__disk_info()",
            "system-info__network_info()",
            "system-info__system_info()",
            "web_fetch(url: string, maxChars?: integer)",
            "write_file(path: string, content: string)",
        ],
        &[],
    );
}

#[test]
fn calls_of_micro_x_are_answered_as_plain_text() {
    check(
        "micro_x",
        &[
            call("read_file", json!({"path": "poem.txt"}), Text("one\ntwo\n\n\nthree\nfour\n")),
            call("read_file", json!({"path": "empty.txt"}), Text("(no output)")),
            call("read_file", json!({"path": "nope"}), ErrorBegins("Error reading file: `WORK/nope` does not exist.")),
            call("write_file", json!({"path": "new/a.txt", "content": "x\n"}), Text("Successfully wrote to new/a.txt")),
            call(
                "append_file",
                json!({"path": "new/a.txt", "content": "y\n"}),
                Text("Successfully appended to new/a.txt"),
            ),
            call("read_file", json!({"path": "new/a.txt"}), Text("x\ny\n")),
            call(
                "append_file",
                json!({"path": "none.txt", "content": "y\n"}),
                Error("Error: file does not exist: none.txt. Use write_file to create it first."),
            ),
            call(
                "edit_file",
                json!({"path": "new/a.txt", "old_string": "x", "new_string": "z"}),
                Begins("Replaced 1 place in `new/a.txt`."),
            ),
            call(
                "edit_file",
                json!({"path": "new/a.txt", "old_string": "q", "new_string": "z"}),
                ErrorBegins("Error editing file: "),
            ),
            call("delete_file", json!({"path": "new/a.txt"}), Begins("Deleted `new/a.txt`")),
            call("bash", json!({"command": "echo err >&2; echo out"}), Text("out\nerr")),
            call("bash", json!({"command": "echo out; exit 3"}), Error("out\n[exit code 3]")),
            call("bash", json!({"command": "grep nothing poem.txt"}), Text("\n[exit code 1]")),
            call("bash", json!({"command": "true"}), Text("(no output)")),
            call("bash", json!({"command": "echo out; sleep 600", "timeout_ms": 500}), Error("[timed out after 0.5s]")),
            call("bash", json!({}), ErrorBegins("Error executing command: ")),
            call("system-info__system_info", json!({}), Begins("System Information\n==================\nOS: ")),
            call("system-info__disk_info", json!({}), Begins("Disk Information\n================\n")),
            call("read_mail", json!({}), Unknown("Error: unknown tool \"read_mail\"")),
        ],
    );
}

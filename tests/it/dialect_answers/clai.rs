//! clai. Its document describes how tools are specified and called (sections "Registry" and "Tool call execution
//! model"). The tools themselves, and their answers, are defined only in its program.

use super::{Begins, Error, ErrorBegins, Members, Text, Unknown, call, check, check_list, in_session, listed};
use serde_json::{Value, json};

#[test]
fn the_clai_dialect_lists_tools_with_clai_names_and_parameters() {
    check_list(
        "clai",
        &[
            "async_cmd(command: string, args?: array, cwd?: string, env?: object)",
            "async_cmd_await(async_cmd_ids: array, timeout_seconds: number)",
            "async_cmd_cancel(async_cmd_id: string)",
            "async_cmd_logs(async_cmd_id: string)",
            "async_cmd_status(async_cmd_id: string)",
            "cat(file: string, number?: boolean, showEnds?: boolean, squeezeBlank?: boolean)",
            "clai_check(run_id: string)",
            "clai_help()",
            "clai_result(run_id: string)",
            "clai_wait_for_workers(timeout_seconds: number)",
            "cmd(command: string, timeout_seconds?: number)",
            "date(format?: string, utc?: boolean, rfc3339?: boolean, unix?: boolean)",
            "ffprobe(file: string, format?: string, showFormat?: boolean, showStreams?: boolean, showFrames?: boolean, selectStreams?: string, showEntries?: string)",
            "file_tree(directory: string, level?: integer)",
            "file_type(file_path: string, mime_type?: boolean)",
            "find(directory: string, name?: string, type?: string, maxdepth?: integer)",
            "freetext_command(command: string)",
            "git(operation: string, file?: string, commit?: string, range?: string, n?: integer, dir?: string)",
            "go(command: string, args?: string, dir?: string)",
            "line_count(file_path: string)",
            "ls(directory: string, all?: boolean, long?: boolean)",
            "pwd()",
            "rg(pattern: string, path?: string, case_sensitive?: boolean, line_number?: boolean, hidden?: boolean)",
            "rows_between(file_path: string, start_line: integer, end_line: integer)",
            "sed(file_path: string, pattern: string, repl: string, start_line?: integer, end_line?: integer)",
            "website_text(url: string)",
            "write_file(file_path: string, content: string, append?: boolean)",
        ],
        &["ffprobe", "git", "go"],
    );
}

#[test]
fn clai_schemas_use_only_the_keywords_that_clai_supports() {
    const TAKEN: [&str; 6] = ["type", "description", "items", "enum", "properties", "required"];
    fn foreign(schema: &Value) -> Vec<String> {
        let below = |name: &str| schema[name].as_object().into_iter().flatten().flat_map(|(_, one)| foreign(one));
        let words = schema.as_object().unwrap().keys().filter(|word| !TAKEN.contains(&word.as_str())).cloned();
        let items = schema.get("items").map(foreign).unwrap_or_default();
        words.chain(below("properties")).chain(items).collect()
    }
    let with_faces = ["cat", "find", "rg", "async_cmd", "cmd", "git", "write_file"];
    for tool in listed("clai").iter().filter(|tool| with_faces.contains(&tool["name"].as_str().unwrap())) {
        assert_eq!(foreign(&tool["inputSchema"]), [""; 0], "{tool}");
    }
}

#[test]
fn clai_calls_return_the_output_format_of_clai_tools() {
    check(
        "clai",
        &[
            call("cat", json!({"file": "poem.txt"}), Text("one\ntwo\n\n\nthree\nfour\n")),
            call(
                "cat",
                json!({"file": "poem.txt", "number": true, "showEnds": true, "squeezeBlank": true}),
                Text("     1\tone$\n     2\ttwo$\n     3\t$\n     5\tthree$\n     6\tfour$"),
            ),
            call("cat", json!({"file": "empty.txt"}), Text("<EMPTY-RESPONSE>")),
            call(
                "cat",
                json!({"file": "nope"}),
                ErrorBegins("ERROR: failed to run tool: cat, error: `WORK/nope` does not exist."),
            ),
            call(
                "rows_between",
                json!({"file_path": "poem.txt", "start_line": 2, "end_line": 5}),
                Text("2: two\n3: \n4: \n5: three"),
            ),
            call(
                "rows_between",
                json!({"file_path": "poem.txt", "start_line": 5, "end_line": 50}),
                Text("5: three\n6: four"),
            ),
            call("line_count", json!({"file_path": "poem.txt"}), Text("6")),
            call("file_type", json!({"file_path": "poem.txt", "mime_type": true}), Text("text/plain")),
            call("file_type", json!({"file_path": "poem.txt"}), Text("poem.txt: UTF-8 text")),
            call("file_type", json!({"file_path": "src"}), Text("src: directory")),
            call("ls", json!({"directory": "."}), Text("book.ipynb\nempty.txt\npoem.txt\nsrc")),
            call("ls", json!({"directory": "src", "all": true}), Text(".hidden.rs\nmain.rs")),
            call("ls", json!({"directory": "src", "long": true}), Begins("0644           35 ")),
            call(
                "file_tree",
                json!({"directory": "."}),
                Text(
                    ".\n├── book.ipynb\n├── empty.txt\n├── poem.txt\n└── src\n    └── main.rs\n\n1 directory, 4 files",
                ),
            ),
            call(
                "file_tree",
                json!({"directory": "src", "level": 1}),
                Text("src\n└── main.rs\n\n0 directories, 1 file"),
            ),
            call("find", json!({"directory": ".", "name": "*.txt", "type": "f", "maxdepth": 1}), Begins("./")),
            call("find", json!({"directory": "src", "name": "m*", "type": "f"}), Text("src/main.rs")),
            call("find", json!({"directory": "src", "name": "*.c"}), Text("<EMPTY-RESPONSE>")),
            call("rg", json!({"pattern": "two", "path": "src"}), Text("src/main.rs:    println!(\"two\");")),
            call(
                "rg",
                json!({"pattern": "TWO", "path": "src/.hidden.rs", "case_sensitive": false, "line_number": true, "hidden": true}),
                Text("1:// two"),
            ),
            call("rg", json!({"pattern": "TWO", "case_sensitive": true}), Text("found no hits with pattern: 'TWO'")),
            call(
                "sed",
                json!({"file_path": "poem.txt", "pattern": "^t", "repl": "T", "start_line": 1, "end_line": 4}),
                Text("sed: replaced occurrences of \"^t\" with \"T\" in poem.txt (1-4)"),
            ),
            call(
                "write_file",
                json!({"file_path": "new/b.txt", "content": "äb\n"}),
                Text("Successfully wrote 4 bytes to new/b.txt"),
            ),
            call(
                "write_file",
                json!({"file_path": "new/b.txt", "content": "cd\n", "append": true}),
                Text("Successfully wrote 3 bytes to new/b.txt"),
            ),
            call("cat", json!({"file": "new/b.txt"}), Text("äb\ncd\n")),
            call("freetext_command", json!({"command": "echo out; echo err >&2"}), Text("out\nerr\n")),
            call("freetext_command", json!({"command": "true"}), Text("<EMPTY-RESPONSE>")),
            call(
                "freetext_command",
                json!({"command": "echo out; exit 2"}),
                Error(
                    "ERROR: failed to run tool: freetext_command, error: run freetext command \"echo out; exit 2\": exit status 2, output: out\n",
                ),
            ),
            call(
                "cmd",
                json!({"command": "sleep 600", "timeout_seconds": 1}),
                ErrorBegins(
                    "ERROR: failed to run tool: cmd, error: run freetext command \"sleep 600\": command timed out after 1 seconds.",
                ),
            ),
            in_session(call(
                "async_cmd",
                json!({"command": "sh", "args": ["-c", "echo hi; sleep 600"]}),
                Members(json!({"async_cmd_id": "task_1", "status": "running"})),
            )),
            in_session(call(
                "async_cmd_status",
                json!({"async_cmd_id": "task_1"}),
                Members(json!({"async_cmd_id": "task_1", "status": "running", "finished_at": null, "exit_code": null})),
            )),
            in_session(call("clai_check", json!({"run_id": "task_1"}), Text("RUNNING"))),
            // Until it has printed.
            in_session(call(
                "task_output",
                json!({"task_id": "task_1", "since": 0, "wait_ms": 60_000}),
                Members(json!({"status": "running"})),
            )),
            in_session(call(
                "async_cmd_cancel",
                json!({"async_cmd_id": "task_1"}),
                Members(json!({"async_cmd_id": "task_1", "status": "cancelled"})),
            )),
            in_session(call(
                "async_cmd_logs",
                json!({"async_cmd_id": "task_1"}),
                Members(
                    json!({"async_cmd_id": "task_1", "status": "cancelled", "stdout": {"preview": "hi\n", "truncated": false}}),
                ),
            )),
            in_session(call(
                "async_cmd",
                json!({"command": "echo", "args": ["a b"]}),
                Members(json!({"async_cmd_id": "task_2"})),
            )),
            in_session(call(
                "async_cmd_await",
                json!({"async_cmd_ids": ["task_2"], "timeout_seconds": 60}),
                Members(json!({"result": "completed"})),
            )),
            in_session(call(
                "clai_result",
                json!({"run_id": "task_2"}),
                Text("Exit Code: 0\nStdout:\na b\n\nStderr:\n"),
            )),
            in_session(call("clai_check", json!({"run_id": "task_2"}), Text("COMPLETED"))),
            call("pwd", json!({}), Text("WORK")),
            call("clai_help", json!({}), Begins("Tools:\n")),
            call("recall", json!({}), Unknown("ERROR: unknown tool call: recall")),
        ],
    );
}

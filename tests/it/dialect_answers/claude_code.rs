//! Claude Code. The calls are those of the section "Built-in Tool Details" of the document, and those of its tools that
//! are listed under "Built-in Tools".

use super::{Begins, Error, ErrorBegins, Text, call, check, check_list, in_session, with};
use serde_json::json;

#[test]
fn the_claude_code_dialect_lists_tools_with_claude_code_names_and_parameters() {
    check_list(
        "claude_code",
        &[
            "AskUserQuestion(questions: array)",
            "Bash(command: string, timeout?: number, description?: string, run_in_background?: boolean)",
            "BashOutput(bash_id: string, filter?: string)",
            "Edit(file_path: string, old_string: string, new_string: string, replace_all?: boolean)",
            "Glob(pattern: string, path?: string)",
            "Grep(pattern: string, path?: string, glob?: string, type?: string, output_mode?: string, -A?: number, -B?: number, -C?: number, -n?: boolean, -i?: boolean, -o?: boolean, multiline?: boolean, head_limit?: number, offset?: number)",
            "KillShell(shell_id: string)",
            "LS(path: string, ignore?: array)",
            "MultiEdit(file_path: string, edits: array)",
            "NotebookEdit(notebook_path: string, cell_id?: string, new_source: string, cell_type?: string, edit_mode?: string)",
            "Read(file_path: string, offset?: number, limit?: number, pages?: string)",
            "TodoWrite(todos: array)",
            "WebFetch(url: string, prompt: string)",
            "Write(file_path: string, content: string)",
        ],
        &[],
    );
}

#[test]
fn claude_code_calls_return_plain_text_with_structured_members() {
    let ran = |stdout: &str, stderr: &str| json!({"stdout": stdout, "stderr": stderr, "interrupted": false, "isImage": false});
    check(
        "claude_code",
        &[
            call(
                "Write",
                json!({"file_path": "poem.txt", "content": "file contents here"}),
                ErrorBegins("File has not been read yet. Read it first before writing to it."),
            ),
            with(
                json!({"type": "text", "file": {"filePath": "poem.txt", "content": "one\ntwo\n\n\nthree\nfour\n", "numLines": 6, "startLine": 1, "totalLines": 6}}),
                call(
                    "Read",
                    json!({"file_path": "poem.txt", "offset": 0, "limit": 2000}),
                    Text("     1\tone\n     2\ttwo\n     3\t\n     4\t\n     5\tthree\n     6\tfour"),
                ),
            ),
            call(
                "Read",
                json!({"file_path": "nope"}),
                ErrorBegins("File does not exist.\n`WORK/nope` does not exist."),
            ),
            with(
                json!({"type": "create", "filePath": "path/to/file.ts", "content": "file contents here", "structuredPatch": []}),
                call(
                    "Write",
                    json!({"file_path": "path/to/file.ts", "content": "file contents here"}),
                    Text("File created successfully at: path/to/file.ts"),
                ),
            ),
            with(
                json!({"filePath": "poem.txt", "oldString": "two", "newString": "zwei", "userModified": false, "replaceAll": false,
                    "structuredPatch": [{"oldStart": 1, "oldLines": 5, "newStart": 1, "newLines": 5,
                        "lines": [" one", "-two", "+zwei", " ", " ", " three"]}]}),
                call(
                    "Edit",
                    json!({"file_path": "poem.txt", "old_string": "two", "new_string": "zwei", "replace_all": false}),
                    Text(
                        "The file poem.txt has been updated. These lines stand there now:\n     1\tone\n     2\tzwei\n     3\t\n     4\t\n     5\tthree",
                    ),
                ),
            ),
            call(
                "Edit",
                json!({"file_path": "poem.txt", "old_string": "zehn", "new_string": "elf"}),
                ErrorBegins("String to replace not found in file.\nString: zehn\n"),
            ),
            call(
                "Edit",
                json!({"file_path": "poem.txt", "old_string": "o", "new_string": "0"}),
                ErrorBegins("Found several matches of the string to replace, but replace_all is false."),
            ),
            call(
                "MultiEdit",
                json!({"file_path": "poem.txt", "edits": [{"old_string": "one", "new_string": "1"}, {"old_string": "zwei", "new_string": "2"}]}),
                Begins("Applied 2 edits to poem.txt:\n"),
            ),
            with(
                json!({"type": "update", "filePath": "poem.txt", "content": "1\n", "structuredPatch": [{"oldStart": 1, "oldLines": 6,
                    "newStart": 1, "newLines": 1, "lines": [" 1", "-2", "-", "-", "-three", "-four"]}]}),
                call(
                    "Write",
                    json!({"file_path": "poem.txt", "content": "1\n"}),
                    Text("The file poem.txt has been updated."),
                ),
            ),
            call(
                "NotebookEdit",
                json!({"notebook_path": "book.ipynb", "cell_id": "intro", "new_source": "# New"}),
                Begins("Replaced cell 0 (`intro`, markdown) of `book.ipynb`"),
            ),
            call("LS", json!({"path": "src"}), Text("src/\n  .hidden.rs\n  main.rs")),
            with(
                json!({"numFiles": 1, "filenames": ["path/to/file.ts"], "truncated": false}),
                call("Glob", json!({"pattern": "**/*.ts"}), Text("path/to/file.ts")),
            ),
            with(
                json!({"numFiles": 0, "filenames": [], "truncated": false}),
                call("Glob", json!({"pattern": "**/*.c", "path": "src"}), Text("No files found")),
            ),
            with(
                json!({"mode": "content", "numFiles": 1, "filenames": ["src/main.rs"], "numMatches": 1,
                    "content": "src/main.rs:1:fn main() {", "numLines": 1}),
                call(
                    "Grep",
                    json!({"pattern": "fn.*main", "path": "src", "glob": "*.rs", "output_mode": "content"}),
                    Text("src/main.rs:1:fn main() {"),
                ),
            ),
            with(
                json!({"mode": "files_with_matches", "numFiles": 1, "filenames": ["src/main.rs"], "numMatches": 1}),
                call("Grep", json!({"pattern": "println"}), Text("Found 1 file\nsrc/main.rs")),
            ),
            with(
                json!({"mode": "count", "numFiles": 1, "filenames": ["src/main.rs"], "numMatches": 1}),
                call(
                    "Grep",
                    json!({"pattern": "println", "output_mode": "count"}),
                    Text("src/main.rs:1\n\nFound 1 total occurrences across 1 file."),
                ),
            ),
            with(
                json!({"mode": "files_with_matches", "numFiles": 0, "filenames": [], "numMatches": 1}),
                call("Grep", json!({"pattern": "println", "offset": 5}), Begins("There are only 1 to show")),
            ),
            with(
                json!({"mode": "content", "numFiles": 0, "filenames": [], "numMatches": 0, "content": "", "numLines": 0}),
                call("Grep", json!({"pattern": "nothing", "output_mode": "content"}), Text("No matches found")),
            ),
            with(
                ran("out\n", "err\n"),
                call(
                    "Bash",
                    json!({"command": "echo out; echo err >&2", "description": "Print two lines", "timeout": 120_000, "run_in_background": false}),
                    Text("out\nerr"),
                ),
            ),
            with(ran("out\n", ""), call("Bash", json!({"command": "echo out; exit 3"}), Error("Exit code 3\nout"))),
            with(ran("", ""), call("Bash", json!({"command": "true"}), Text("(no output)"))),
            call(
                "Bash",
                json!({"command": "echo out; sleep 600", "timeout": 500}),
                Error("Command timed out after 0.5s"),
            ),
            in_session(with(
                json!({"oldTodos": [], "newTodos": [
                    {"content": "Implement feature X", "status": "in_progress", "activeForm": "Implementing feature X"},
                    {"content": "Write tests", "status": "pending", "activeForm": "Writing tests"}]}),
                call(
                    "TodoWrite",
                    json!({"todos": [
                        {"content": "Implement feature X", "status": "in_progress", "activeForm": "Implementing feature X"},
                        {"content": "Write tests", "status": "pending", "activeForm": "Writing tests"}]}),
                    Begins("2 todos: "),
                ),
            )),
            in_session(with(
                json!({"stdout": "", "stderr": "", "interrupted": false, "isImage": false, "backgroundTaskId": "task_1"}),
                call(
                    "Bash",
                    json!({"command": "sleep 600", "run_in_background": true}),
                    Text("Command running in background with ID: task_1"),
                ),
            )),
            in_session(call("BashOutput", json!({"bash_id": "task_1"}), Text("<status>running</status>"))),
            in_session(with(
                json!({"message": "Successfully killed shell: task_1 (sleep 600)", "shell_id": "task_1"}),
                call("KillShell", json!({"shell_id": "task_1"}), Text("Successfully killed shell: task_1 (sleep 600)")),
            )),
            in_session(call("BashOutput", json!({"bash_id": "task_1"}), Text("<status>killed</status>"))),
        ],
    );
}

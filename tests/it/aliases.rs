//! Every name and alias of the file and search tools works with its own parameters: over the wire, on real files.

use crate::binaries::{Home, Pipe};
use serde_json::{Value, json};
use std::fs;

/// One call: the name and the arguments as another system spells them, and what comes of it.
struct Row {
    name: &'static str,
    arguments: Value,
    /// `true` if the session reads the poem first.
    after_reading: bool,
    expected: Expected,
}

enum Expected {
    /// The text holds all of these and none of those.
    Tells(&'static [&'static str], &'static [&'static str]),
    /// The text is this.
    Is(&'static str),
    /// The file then holds this; `None`: it is gone.
    Leaves(&'static str, Option<&'static str>),
    /// It is an error whose text holds this, and the poem is as it was.
    Refuses(&'static str),
}

use Expected::{Is, Leaves, Refuses, Tells};

fn row(name: &'static str, arguments: Value, expected: Expected) -> Row {
    Row { name, arguments, after_reading: false, expected }
}

fn after_reading(name: &'static str, arguments: Value, expected: Expected) -> Row {
    Row { after_reading: true, ..row(name, arguments, expected) }
}

/// Each row begins with these files.
const FILES: &[(&str, &str)] = &[
    ("poem.txt", "one\ntwo\n\n\nthree\nfour\n"),
    ("src/main.rs", "fn main() {\n    println!(\"two\");\n}\n"),
    ("src/.hidden.rs", "// two\n"),
    (
        "book.ipynb",
        r##"{"cells": [{"cell_type": "markdown", "id": "intro", "metadata": {}, "source": ["# Title"]}], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}"##,
    ),
];

fn rows() -> Vec<Row> {
    let patch = "*** Begin Patch\n*** Update File: poem.txt\n@@\n-two\n+zwei\n*** End Patch\n";
    let edited = "one\nzwei\n\n\nthree\nfour\n";
    vec![
        row("read_file", json!({"path": "poem.txt", "offset": 2, "limit": 1}), Tells(&["     2\ttwo"], &["one"])),
        row("read_file", json!({"file_path": "poem.txt"}), Tells(&["one", "four"], &[])),
        row("Read", json!({"file_path": "poem.txt", "offset": 0, "limit": 1}), Tells(&["     1\tone"], &["two"])),
        row("file_read", json!({"file_path": "poem.txt", "offset": 2, "line_limit": 1}), Tells(&["two"], &["one"])),
        row(
            "cat",
            json!({"file": "poem.txt", "number": true, "showEnds": true, "squeezeBlank": true}),
            Tells(&["1\tone$", "     3\t$\n     5\tthree$"], &["     4\t"]),
        ),
        row("cat", json!({"file": "poem.txt"}), Tells(&["one\ntwo\n"], &["1\tone"])),
        row(
            "rows_between",
            json!({"file_path": "poem.txt", "start_line": 5, "end_line": 6}),
            Tells(&["three", "four"], &["two"]),
        ),
        row("line_count", json!({"file_path": "poem.txt"}), Is("6")),
        row("file_type", json!({"file_path": "poem.txt", "mime_type": true}), Is("text/plain")),
        row("file_type", json!({"file_path": "poem.txt"}), Tells(&["text"], &[])),
        row("write_file", json!({"path": "new/a.txt", "content": "x\n"}), Leaves("new/a.txt", Some("x\n"))),
        row("Write", json!({"file_path": "new/a.txt", "content": ""}), Leaves("new/a.txt", Some(""))),
        row("file_write", json!({"file_path": "new/a.txt", "text": "x"}), Leaves("new/a.txt", Some("x"))),
        row("file_write", json!({"file_path": "poem.txt", "text": "x"}), Refuses("has not read it")),
        row("Write", json!({"file_path": "poem.txt", "content": "x"}), Refuses("has not read it")),
        after_reading("file_write", json!({"file_path": "poem.txt", "text": "x"}), Leaves("poem.txt", Some("x"))),
        after_reading("Write", json!({"file_path": "poem.txt", "content": "x"}), Leaves("poem.txt", Some("x"))),
        row("write_file", json!({"file_path": "poem.txt", "content": "x"}), Leaves("poem.txt", Some("x"))),
        row(
            "write_file",
            json!({"file_path": "poem.txt", "content": "five\n", "append": true}),
            Leaves("poem.txt", Some("one\ntwo\n\n\nthree\nfour\nfive\n")),
        ),
        row(
            "write_file",
            json!({"file_path": "fresh.txt", "content": "five\n", "append": true}),
            Leaves("fresh.txt", Some("five\n")),
        ),
        row(
            "append_file",
            json!({"path": "poem.txt", "content": "five\n"}),
            Leaves("poem.txt", Some("one\ntwo\n\n\nthree\nfour\nfive\n")),
        ),
        row(
            "Edit",
            json!({"file_path": "poem.txt", "old_string": "two", "new_string": "zwei", "replace_all": false}),
            Leaves("poem.txt", Some(edited)),
        ),
        row(
            "edit_file",
            json!({"path": "poem.txt", "old_string": "two", "new_string": "zwei"}),
            Leaves("poem.txt", Some(edited)),
        ),
        row(
            "edit_file",
            json!({"path": "poem.txt", "old_text": "two", "new_text": "zwei"}),
            Leaves("poem.txt", Some(edited)),
        ),
        row(
            "file_edit",
            json!({"file_path": "poem.txt", "old_text": "two", "new_text": "zwei"}),
            Leaves("poem.txt", Some(edited)),
        ),
        row(
            "file_multi_edit",
            json!({"file_path": "poem.txt", "old_text": "o", "new_text": "oo", "occurrence": 2}),
            Leaves("poem.txt", Some("oone\ntwoo\n\n\nthree\nfour\n")),
        ),
        row(
            "MultiEdit",
            json!({"file_path": "poem.txt", "edits": [
                {"old_string": "one", "new_string": "two"},
                {"old_string": "two", "new_string": "2", "replace_all": true}]}),
            Leaves("poem.txt", Some("2\n2\n\n\nthree\nfour\n")),
        ),
        row(
            "multi_edit",
            json!({"path": "poem.txt", "edits": [{"old_text": "two", "new_text": "zwei"}]}),
            Leaves("poem.txt", Some(edited)),
        ),
        row(
            "sed",
            json!({"file_path": "poem.txt", "pattern": "^t", "repl": "T", "start_line": 1, "end_line": 4}),
            Leaves("poem.txt", Some("one\nTwo\n\n\nthree\nfour\n")),
        ),
        row("apply_patch", json!({"patch": patch}), Leaves("poem.txt", Some(edited))),
        row(
            "batch",
            json!({"description": "look around", "invocations": [
                {"tool_name": "file_read", "parameters": {"file_path": "poem.txt", "offset": 0, "line_limit": 1}},
                {"tool_name": "glob_tool", "parameters": {"pattern": "*.txt"}}]}),
            Tells(&["[0] file_read\n", "one"], &["two"]),
        ),
        row(
            "batch",
            json!({"description": "change", "invocations": [
                {"tool_name": "file_read", "parameters": {"file_path": "poem.txt"}},
                {"tool_name": "file_edit", "parameters": {"file_path": "poem.txt", "old_text": "two", "new_text": "zwei"}}]}),
            Leaves("poem.txt", Some(edited)),
        ),
        row(
            "batch",
            json!({"description": "nest", "invocations": [
                {"tool_name": "file_write", "parameters": {"file_path": "poem.txt", "text": "x"}},
                {"tool_name": "batch", "parameters": {"description": "d", "invocations": []}}]}),
            Refuses("invocations[1] (`batch`)"),
        ),
        row("apply_patch", json!({"input": patch}), Leaves("poem.txt", Some(edited))),
        row("delete_file", json!({"path": "poem.txt"}), Leaves("poem.txt", None)),
        row(
            "NotebookEdit",
            json!({"notebook_path": "book.ipynb", "cell_id": "intro", "new_source": "# New"}),
            Leaves(
                "book.ipynb",
                Some(
                    r##"{"cells": [{"cell_type": "markdown", "id": "intro", "metadata": {}, "source": ["# New"]}], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}"##,
                ),
            ),
        ),
        row(
            "LS",
            json!({"path": ".", "ignore": ["*.ipynb"]}),
            Tells(&["src/", "main.rs", "poem.txt"], &["book.ipynb"]),
        ),
        row("list_directory", json!({"path": ".", "recursive": true}), Tells(&["main.rs"], &[])),
        row("list_directory", json!({}), Tells(&["src/", "poem.txt"], &["main.rs"])),
        row("ls", json!({"directory": "src", "all": false, "long": true}), Tells(&["main.rs"], &[".hidden.rs"])),
        row("ls", json!({"directory": "src", "all": true}), Tells(&["main.rs", ".hidden.rs"], &[])),
        row("file_tree", json!({"directory": ".", "level": 1}), Tells(&["─ src"], &["main.rs"])),
        row("file_tree", json!({"directory": "."}), Tells(&["main.rs"], &[])),
        row("Glob", json!({"pattern": "**/*.rs", "path": "."}), Tells(&["src/main.rs", "src/.hidden.rs"], &["poem"])),
        row("glob_tool", json!({"pattern": "**/*.rs"}), Tells(&["src/main.rs"], &[".hidden"])),
        row("search_files", json!({"path": ".", "pattern": "*.rs"}), Tells(&["src/main.rs"], &["poem"])),
        row("search_files", json!({}), Tells(&["poem.txt", "src/main.rs"], &[])),
        row(
            "find",
            json!({"directory": ".", "name": "*.rs", "type": "f", "maxdepth": 2}),
            Tells(&["src/main.rs"], &["poem"]),
        ),
        row("find", json!({"directory": ".", "type": "d"}), Tells(&["src"], &["main.rs"])),
        row(
            "Grep",
            json!({"pattern": "TWO", "path": ".", "glob": "*.txt", "output_mode": "content", "-A": 1, "-B": 1, "-n": true, "-i": true}),
            Tells(&["poem.txt:2:two", "poem.txt-1-one"], &["main.rs"]),
        ),
        row(
            "Grep",
            json!({"pattern": "two", "type": "rust", "output_mode": "files_with_matches"}),
            Tells(&["src/main.rs"], &["poem.txt"]),
        ),
        row(
            "Grep",
            json!({"pattern": "t.o", "path": "poem.txt", "output_mode": "content", "-o": true, "-C": 0}),
            Tells(&["two"], &[]),
        ),
        row(
            "grep_tool",
            json!({"pattern": "two", "path": ".", "include": "*.txt", "surround_lines": 1, "max_results": 5}),
            Tells(&["poem.txt", "two", "one"], &["main.rs"]),
        ),
        row(
            "rg",
            json!({"pattern": "TWO", "path": ".", "case_sensitive": false, "line_number": true, "hidden": true}),
            Tells(&["poem.txt:2:two", "src/.hidden.rs:1:// two"], &[]),
        ),
        row("rg", json!({"pattern": "TWO", "path": ".", "case_sensitive": true}), Tells(&[], &["poem.txt"])),
    ]
}

#[test]
fn every_alias_of_the_file_tools_works_with_its_own_parameters() {
    let wrong: Vec<String> = rows().into_iter().filter_map(|row| fault(&row)).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

/// Returns what is wrong with the answer, if anything. Each call has a session and files of its own.
fn fault(Row { name, arguments, after_reading, expected }: &Row) -> Option<String> {
    let home = Home::new();
    for (path, content) in FILES {
        let path = home.work().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }
    let mut command = home.toolstead(&["mcp", "--config"]);
    command.arg(home.config("[permissions]\nallow = [\"Read\", \"Write\"]\n"));
    let mut pipe = Pipe::start(command);
    pipe.initialize();
    if *after_reading {
        let read = json!({"name": "read_file", "arguments": {"path": "poem.txt"}});
        pipe.send(json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": read}).to_string());
        assert_ne!(pipe.answer(2)["result"]["isError"], true);
    }
    let call = json!({"name": name, "arguments": arguments});
    pipe.send(json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}).to_string());
    let answer = pipe.answer(1);
    let is_error = answer["result"]["isError"] == true || answer["error"].is_object();
    let text = answer["result"]["content"][0]["text"].as_str().unwrap_or_default();
    let fits = match expected {
        Tells(these, those) => {
            these.iter().all(|part| text.contains(part)) && !those.iter().any(|part| text.contains(part))
        }
        Is(whole) => text == *whole,
        Refuses(part) => {
            is_error && text.contains(part) && home.work().join("poem.txt").metadata().unwrap().len() == 21
        }
        Leaves(path, content) => fs::read_to_string(home.work().join(path)).ok().as_deref() == *content,
    };
    let refuses = matches!(expected, Refuses(_));
    (is_error != refuses || !fits).then(|| format!("{call} answered {answer}"))
}

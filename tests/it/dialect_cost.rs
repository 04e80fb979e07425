//! The cost of a fixed set of tasks in each dialect: the definitions of the tools that do it, and their answers. The
//! table is in `docs/reference/dialects.md`.

use crate::binaries::{Home, Pipe};
use serde_json::{Value, json};
use std::{fmt::Write as _, fs, path::PathBuf};

/// The tasks, in the order in which they are done.
const TASKS: [&str; 8] = ["read", "write", "edit", "list", "search", "run", "fail", "time out"];

/// A system, and its call for each task. Where it has no tool for a task, it is ours that its list shows.
struct System {
    dialect: &'static str,
    calls: [(&'static str, Value); TASKS.len()],
}

const COUNTS: &str = "seq 1 20";
const FAILS: &str = "ls folder; echo 'no rule to make it' >&2; exit 2";
const WAITS: &str = "seq 1 5; sleep 600";

fn systems() -> Vec<System> {
    let text = text(40);
    let (old, new) = ("line 7 of the text", "line seven of the text");
    vec![
        System {
            dialect: "native",
            calls: [
                ("read_file", json!({"path": "text.txt"})),
                ("write_file", json!({"path": "new.txt", "content": text})),
                ("edit_file", json!({"path": "text.txt", "old_text": old, "new_text": new})),
                ("list_directory", json!({"path": "folder"})),
                ("grep", json!({"pattern": "5 of", "output_mode": "content"})),
                ("bash", json!({"command": COUNTS})),
                ("bash", json!({"command": FAILS})),
                ("bash", json!({"command": WAITS, "timeout_ms": 500})),
            ],
        },
        System {
            dialect: "micro_x",
            calls: [
                ("read_file", json!({"path": "text.txt"})),
                ("write_file", json!({"path": "new.txt", "content": text})),
                ("edit_file", json!({"path": "text.txt", "old_string": old, "new_string": new})),
                ("list_directory", json!({"path": "folder"})),
                ("grep", json!({"pattern": "5 of", "output_mode": "content"})),
                ("bash", json!({"command": COUNTS})),
                ("bash", json!({"command": FAILS})),
                ("bash", json!({"command": WAITS, "timeout_ms": 500})),
            ],
        },
        System {
            dialect: "clai",
            calls: [
                ("cat", json!({"file": "text.txt"})),
                ("write_file", json!({"file_path": "new.txt", "content": text})),
                ("sed", json!({"file_path": "text.txt", "pattern": old, "repl": new})),
                ("ls", json!({"directory": "folder"})),
                ("rg", json!({"pattern": "5 of", "line_number": true})),
                ("cmd", json!({"command": COUNTS})),
                ("cmd", json!({"command": FAILS})),
                ("cmd", json!({"command": WAITS, "timeout_seconds": 0.5})),
            ],
        },
        System {
            dialect: "claude_code",
            calls: [
                ("Read", json!({"file_path": "text.txt"})),
                ("Write", json!({"file_path": "new.txt", "content": text})),
                ("Edit", json!({"file_path": "text.txt", "old_string": old, "new_string": new})),
                ("LS", json!({"path": "folder"})),
                ("Grep", json!({"pattern": "5 of", "output_mode": "content"})),
                ("Bash", json!({"command": COUNTS})),
                ("Bash", json!({"command": FAILS})),
                ("Bash", json!({"command": WAITS, "timeout": 500})),
            ],
        },
        System {
            dialect: "tfo",
            calls: [
                ("read_file", json!({"path": "text.txt"})),
                ("write_file", json!({"path": "new.txt", "content": text})),
                ("edit_file", json!({"path": "text.txt", "old_text": old, "new_text": new})),
                ("list_directory", json!({"path": "folder"})),
                ("grep", json!({"pattern": "5 of", "output_mode": "content"})),
                ("execute_command", json!({"command": COUNTS})),
                ("execute_command", json!({"command": FAILS})),
                ("execute_command", json!({"command": WAITS, "timeout": 0.5})),
            ],
        },
        System {
            dialect: "kodelet",
            calls: [
                ("file_read", json!({"file_path": "text.txt"})),
                ("file_write", json!({"file_path": "new.txt", "text": text})),
                ("file_edit", json!({"file_path": "text.txt", "old_text": old, "new_text": new})),
                ("glob_tool", json!({"pattern": "folder/*"})),
                ("grep_tool", json!({"pattern": "5 of"})),
                ("bash", json!({"description": "Count", "command": COUNTS})),
                ("bash", json!({"description": "Fail", "command": FAILS})),
                ("bash", json!({"description": "Wait", "command": WAITS, "timeout": 0.5})),
            ],
        },
    ]
}

fn text(lines: usize) -> String {
    (1..=lines).map(|number| format!("line {number} of the text\n")).collect()
}

/// The tokens of the definitions, and of the answer to each task.
struct Cost {
    definitions: usize,
    answers: [usize; TASKS.len()],
}

fn cost(system: &System) -> Cost {
    let home = Home::new();
    fs::write(home.work().join("text.txt"), text(120)).unwrap();
    fs::create_dir(home.work().join("folder")).unwrap();
    (1..=30).for_each(|number| fs::write(home.work().join(format!("folder/file_{number}.rs")), "\n").unwrap());
    let mut command = home.toolstead(&["mcp", "--dialect", system.dialect, "--config"]);
    command.arg(home.config("[permissions]\nallow = [\"Read\", \"Write\", \"Bash\"]\n"));
    let mut client = Pipe::start(command);
    client.initialize();
    client.send(r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#);
    let listed: Vec<Value> = serde_json::from_value(client.answer(1)["result"]["tools"].take()).unwrap();
    let used = |tool: &&Value| system.calls.iter().any(|(name, _)| tool["name"] == *name);
    let definitions: usize = listed.iter().filter(used).map(|tool| tool.to_string().len() + 1).sum();
    let answers = system.calls.each_ref().map(|(name, arguments)| {
        assert!(listed.iter().any(|tool| tool["name"] == *name), "{}: `{name}` is not listed", system.dialect);
        let call = json!({"name": name, "arguments": arguments});
        client.send(json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": call}).to_string());
        let answer = client.answer(2);
        let blocks = answer["result"]["content"].as_array().unwrap_or_else(|| panic!("{call}: {answer}"));
        let texts = blocks.iter().filter_map(|block| block["text"].as_str());
        texts.map(|text| text.replace(&*home.work().to_string_lossy(), "/work").len() + 1).sum::<usize>()
    });
    Cost { definitions: definitions.div_ceil(4), answers: answers.map(|bytes| bytes.div_ceil(4)) }
}

/// Four bytes are about a token.
fn table() -> String {
    let mut table = format!("| dialect | definitions | {} | answers |\n", TASKS.join(" | "));
    writeln!(table, "|{}", " --- |".repeat(TASKS.len() + 3)).unwrap();
    for system in systems() {
        let Cost { definitions, answers } = cost(&system);
        let cells = answers.map(|tokens| tokens.to_string()).join(" | ");
        let sum: usize = answers.iter().sum();
        writeln!(table, "| `{}` | {definitions} | {cells} | {sum} |", system.dialect).unwrap();
    }
    table
}

#[test]
fn the_documentation_lists_the_token_cost_of_each_dialect() {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/dialects.md");
    let page = fs::read_to_string(&path).unwrap();
    let (before, rest) = page.split_once("<!-- tokens -->\n").unwrap();
    let (outcome, after) = rest.split_once("<!-- /tokens -->\n").unwrap();
    let table = table();
    println!("{table}");
    if std::env::var_os("TOOLSTEAD_WRITE_DOCS").is_some() {
        fs::write(&path, format!("{before}<!-- tokens -->\n{table}<!-- /tokens -->\n{after}")).unwrap();
        return;
    }
    assert!(
        is_about(outcome, &table),
        "the page tells\n{outcome}and it is\n{table}`make tool-docs` writes the table anew"
    );
}

/// True where the numbers of two tables are the same but for a tenth, and all else is the same.
fn is_about(outcome: &str, table: &str) -> bool {
    fn cells(table: &str) -> impl Iterator<Item = String> + '_ {
        table.lines().flat_map(|line| line.split('|')).map(|cell| cell.trim().to_owned())
    }
    let (outcome, table): (Vec<String>, Vec<String>) = (cells(outcome).collect(), cells(table).collect());
    let is_near = |(outcome, now): (&String, &String)| match (outcome.parse::<usize>(), now.parse::<usize>()) {
        (Ok(outcome), Ok(now)) => outcome.abs_diff(now) <= (now / 10).max(2),
        _ => outcome == now,
    };
    outcome.len() == table.len() && outcome.iter().zip(&table).all(is_near)
}

#[test]
fn a_token_count_that_differs_by_more_than_ten_percent_is_detected() {
    let page = "| `a` | 100 | 3 |\n";
    for (table, expected) in [
        ("| `a` | 100 | 3 |\n", true),
        ("| `a` | 109 | 5 |\n", true),
        ("| `a` | 112 | 3 |\n", false),
        ("| `a` | 100 | 6 |\n", false),
        ("| `b` | 100 | 3 |\n", false),
        ("| `a` | 100 |\n", false),
    ] {
        assert_eq!(is_about(page, table), expected, "{table}");
    }
}

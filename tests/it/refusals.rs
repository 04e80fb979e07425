//! Snapshot of what the command line prints for each kind of refusal and error, so that a change of wording is
//! reviewed. `INSTA_UPDATE=always` writes it.

use crate::binaries::{Home, stderr, stdout};
use std::fmt::Write as _;

/// Arguments of `toolstead`, one command a line. `#` separates groups.
const COMMANDS: &str = r#"
# arguments and tools
call echo {
call echo []
call echo {"message":7}
call echo {}
call echo {"message":"a","extra":1}
call ecko {}
call xyzzy {}
call
frobnicate
call echo {} --frobnicate
tools xyzzy
# permissions
call write_file {"path":"b","content":""}
call read_file {"path":"/etc/passwd"}
call bash {"command":"rm x"}
call bash {"command":"eval $x"}
call bash {"command":"curl https://example.com | sh"}
call echo {"message":"a"} --allow Read(
call echo {"message":"a"} --allow Frobnicate(x)
permissions allow Read(
permissions test deny bash {"command":"ls"}
permissions explain bash {"command":"git status; rm x"}
permissions explain xyzzy {}
# files
call read_file {"path":"missing.txt"}
call read_file {"path":"folder"}
call edit_file {"path":"a.txt","old_text":"x","new_text":"y"} --allow Write
call edit_file {"path":"a.txt","old_text":"l","new_text":"y"} --allow Write
call list_directory {"path":"a.txt"}
call grep {"pattern":"("}
call glob {"pattern":"["}
call apply_patch {"patch":"nothing"} --allow Write
call delete_file {"path":"missing.txt"} --allow Write
call notebook_edit {"path":"a.txt","cell_index":0,"new_source":"x"} --allow Write
# context
resources read foo
prompts get foo
# agents, models and accounts
query hello
query hello --agent missing
query hello --profile missing
query hello --model missing
conversations show 1
conversations undo 1
questions show 1
questions answer 1 yes
auth login google
auth login frobnicate
models missing
agents missing
skills missing
# servers and configuration
--config missing.toml tools
--root missing tools
config check missing.toml
hooks test missing
executions show 1
"#;

#[test]
fn refusals_and_errors_equal_their_snapshot() {
    let home = Home::new();
    std::fs::write(home.work().join("a.txt"), "hello\n").unwrap();
    std::fs::create_dir(home.work().join("folder")).unwrap();
    let work = home.work().display().to_string();
    let mut printed = String::new();
    for line in COMMANDS.lines().filter(|line| !line.is_empty()) {
        if line.starts_with('#') {
            writeln!(printed, "{line}\n").unwrap();
            continue;
        }
        let output = home.run(&arguments(line));
        let text = format!("{}{}", stdout(&output), stderr(&output)).replace(&work, "WORK");
        let indented: Vec<String> =
            text.trim_end().lines().map(|line| format!("    {line}").trim_end().into()).collect();
        writeln!(printed, "toolstead {line}\n  exit {:?}\n{}\n", output.status.code(), indented.join("\n")).unwrap();
    }
    let mut settings = insta::Settings::clone_current();
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.add_filter(r"/tmp/[^\s`']+", "TMP");
    settings.add_filter(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", "UUID");
    settings.bind(|| insta::assert_snapshot!("refusals", printed));
}

/// Splits a line at blanks outside of braces and brackets.
fn arguments(line: &str) -> Vec<&str> {
    let (mut depth, mut start, mut found) = (0_usize, 0, Vec::new());
    for (at, letter) in line.char_indices() {
        match letter {
            '{' | '[' => depth += 1,
            '}' | ']' => depth = depth.saturating_sub(1),
            ' ' if depth == 0 => {
                found.push(&line[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    found.push(&line[start..]);
    found
}

#![expect(clippy::disallowed_methods, reason = "tests look at processes behind the tools' back")]

use crate::builtin::tests::Bench;
use serde_json::{Value, json};
use std::{
    sync::Arc,
    time::{Duration, Instant},
};
use toolstead_domain::{Clock, Principal, Timestamp, ToolResult, error_kind::ErrorKind};

fn run(bench: &Bench, command: &str) -> ToolResult {
    bench.call("bash", json!({"command": command})).unwrap_or_else(|failure| failure.into_result())
}

#[track_caller]
fn check(command: &str, text: &str) {
    assert_eq!(run(&Bench::new(), command).joined_text(), text, "{command}");
}

fn structured(result: &ToolResult) -> &Value {
    result.structured_content().unwrap()
}

/// Returns a time to sleep that no other test on this machine uses, which identifies the command from outside its
/// sandbox.
fn long(test: u32) -> String {
    format!("300.{:07}{test}", std::process::id())
}

/// Returns `true` if a process with the mark in its command line is running.
fn lives(mark: &str) -> bool {
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let mut lines = processes.filter_map(|process| std::fs::read(process.path().join("cmdline")).ok());
    lines.any(|line| String::from_utf8_lossy(&line).contains(mark))
}

/// Waits until no such process is left.
#[track_caller]
fn gone(mark: &str) {
    let start = Instant::now();
    while lives(mark) {
        assert!(start.elapsed() < Duration::from_secs(120), "{mark} is still there");
        std::thread::yield_now();
    }
}

#[test]
fn output_and_exit_code_are_returned() {
    check("echo hi", "hi\n");
    check("true", "The command succeeded and printed nothing.");
    check("printf 'no line break'", "no line break");
    let failed = run(&Bench::new(), "echo out; echo err >&2; exit 3");
    assert!(failed.is_error() && failed.error_kind() == Some(ErrorKind::ExecutionFailed));
    assert!(failed.joined_text().contains("The command ended with exit code 3"), "{}", failed.joined_text());
    let outcome = structured(&failed);
    assert_eq!(
        (&outcome["stdout"], &outcome["stderr"], &outcome["exit_code"]),
        (&json!("out\n"), &json!("err\n"), &json!(3))
    );
    let killed = run(&Bench::new(), "kill -9 $$");
    assert!(killed.is_error() && structured(&killed)["signal"] == 9, "{}", killed.joined_text());
}

#[test]
fn both_streams_are_merged_in_the_order_of_their_output() {
    check(
        "for i in 1 2 3; do echo out $i; sleep 0.02; echo err $i >&2; sleep 0.02; done",
        "out 1\nerr 1\nout 2\nerr 2\nout 3\nerr 3\n",
    );
}

#[test]
fn the_streams_can_be_shown_apart() {
    let bench = Bench::new();
    let script = "echo one; echo two >&2; echo three";
    let answer = bench.text("bash", json!({"command": script, "merge_stderr": false}));
    assert_eq!(answer, "one\nthree\n[standard error]\ntwo\n");
    assert_eq!(bench.text("bash", json!({"command": "printf one", "merge_stderr": false})), "one");
    let silent = bench.text("bash", json!({"command": "true", "merge_stderr": false}));
    assert_eq!(silent, "The command succeeded and printed nothing.");
    let script = "seq 100000; echo two >&2; seq 100000 >&2";
    let long = bench.call("bash", json!({"command": script, "merge_stderr": false})).unwrap();
    let text = long.joined_text();
    assert!(text.starts_with("1\n2\n") && text.contains("\n100000\n[standard error]\ntwo\n1\n"), "{text}");
    assert!(text.chars().count() <= 30_000 && text.ends_with("\n100000\n"), "{}", text.chars().count());
    // Both streams are stored completely.
    let kept = structured(&long);
    for (handle, first) in [("output", "1"), ("error_output", "two")] {
        let handle = kept[handle].as_str().unwrap();
        assert!(text.contains(&format!("all of it is `{handle}`")), "{handle}: {text}");
        let lines = |from: usize| bench.text("read_file", json!({"path": handle, "offset": from, "limit": 1}));
        let (beginning, middle) = (lines(1), lines(50_000));
        assert!(
            beginning.contains(&format!("\t{first}\n")) && middle.contains("\t50000\n") == (first == "1"),
            "{beginning}{middle}"
        );
        assert!(first == "1" || lines(50_001).contains("\t50000\n"));
    }
    assert_ne!(kept["output"], kept["error_output"]);
    // Each stream of a task can be read separately.
    let task = start(&bench, json!({"command": "echo a; echo b >&2; echo c", "background": true}));
    bench.call("task_wait", json!({"task_ids": [task]})).unwrap();
    for (stream, expected) in [("stdout", "a\nc\n["), ("stderr", "b\n[")] {
        let answer = bench.text("task_output", json!({"task_id": task, "since": 0, "stream": stream}));
        assert!(answer.starts_with(expected), "{stream}: {answer}");
    }
}

#[test]
fn exit_code_1_of_a_search_is_not_an_error() {
    let result = run(&Bench::new(), "echo a | grep b");
    assert!(
        !result.is_error() && result.joined_text() == "[exit code 1: nothing was found]",
        "{}",
        result.joined_text()
    );
    assert_eq!(structured(&result)["meaning"], "nothing was found");
    assert!(run(&Bench::new(), "false").is_error());
}

#[test]
fn a_command_without_a_timeout_uses_the_default() {
    // Seed defect 8: the default was never applied, and the tool could not be used without a timeout.
    check("echo works", "works\n");
}

#[test]
fn a_command_that_times_out_returns_its_output_and_leaves_no_process() {
    // Seed defect 12.
    let bench = Bench::new();
    let mark = long(1);
    let script = format!("echo before; sleep {mark} & wait");
    let started = Instant::now();
    let failure = bench.call("bash", json!({"command": script, "timeout_ms": 3000})).unwrap_err();
    assert!(started.elapsed() < Duration::from_secs(300));
    assert_eq!(failure.kind, ErrorKind::Timeout);
    let result = failure.into_result();
    assert!(result.joined_text().starts_with("before\n"), "{}", result.joined_text());
    assert_eq!(structured(&result)["timed_out"], true);
    gone(&mark);
}

#[test]
fn the_timeout_of_a_command_starts_when_the_command_starts() {
    let bench = Bench::new();
    let failure = bench.call("bash", json!({"command": "sleep 300", "timeout_ms": 1500})).unwrap_err();
    let result = failure.into_result();
    assert!(structured(&result)["duration_ms"].as_u64().unwrap() >= 1500, "{}", result.joined_text());
}

#[test]
fn a_command_that_ignores_the_request_to_end_is_killed() {
    let bench = Bench::new();
    let mark = long(2);
    let script = format!("trap '' TERM; : {mark}; while :; do sleep 0.05; done");
    let failure = bench.call("bash", json!({"command": script, "timeout_ms": 3000})).unwrap_err();
    assert_eq!(failure.kind, ErrorKind::Timeout);
    gone(&mark);
}

#[test]
fn cancelling_a_call_ends_its_command() {
    let bench = Bench::new();
    let mark = long(3);
    let call = bench.call_given_up_after(
        || bench.exists("shell") && lives(&mark),
        "bash",
        json!({"command": format!("sleep {mark} & touch shell; wait")}),
    );
    assert!(call.is_none());
    gone(&mark);
}

#[test]
fn input_is_empty_unless_it_is_given() {
    check("cat; echo end", "end\n");
    let result = Bench::new().call("bash", json!({"command": "tr a-z A-Z", "stdin": "some text\n"})).unwrap();
    assert_eq!(result.joined_text(), "SOME TEXT\n");
    let megabyte = "x".repeat(1 << 20);
    let result = Bench::new().call("bash", json!({"command": "head -c 1; exit 0", "stdin": megabyte})).unwrap();
    assert_eq!(result.joined_text(), "x");
}

#[test]
fn background_processes_do_not_delay_the_result_and_are_ended() {
    let bench = Bench::new();
    let started = Instant::now();
    let mark = long(4);
    let result = run(&bench, &format!("sleep {mark} & echo done"));
    // The process in the background would run for much longer.
    assert!(started.elapsed() < Duration::from_secs(120));
    let text = result.joined_text();
    assert!(text.starts_with("done\n") && text.contains("`background: true`"), "{text}");
    gone(&mark);
    // Processes that cannot print get no extra time.
    let mark = long(5);
    let result = run(&bench, &format!("sleep {mark} > /dev/null 2>&1 & exec > /dev/null 2>&1; sleep 0.1"));
    assert!(result.joined_text().contains("`background: true`"));
    gone(&mark);
}

#[test]
fn output_passed_through_a_process_substitution_is_complete_when_the_command_ends() {
    let bench = Bench::new();
    for _ in 0..10 {
        let result = run(&bench, "exec > >(tee log) 2>&1; echo some text");
        assert_eq!(result.joined_text(), "some text\n");
        assert_eq!(bench.get("log"), b"some text\n");
    }
}

#[test]
fn a_terminals_sequences_do_not_reach_the_model_and_progress_bars_are_one_line() {
    check(r"printf '\033[31mred\033[0m\033]0;title\007\n 1%%\r 2%%\r100%%\n'", "red\n100%\n");
    check(r"printf 'a\377b\n'", "a\u{fffd}b\n");
}

#[test]
fn binary_output_is_summarized_and_stored() {
    let bench = Bench::new();
    let result = run(&bench, "head -c 5000 /dev/zero");
    let text = result.joined_text();
    assert!(text.starts_with("[5000 bytes that are not text; all of it is `o"), "{text}");
    assert!(text.len() < 3000 && structured(&result)["output"].is_string());
}

#[test]
fn a_long_output_is_shortened_in_the_middle_and_stored_in_full() {
    let bench = Bench::new();
    let result = run(&bench, "seq 1 100000; echo the end >&2");
    let text = result.joined_text();
    assert!(text.chars().count() <= 30_000 && text.starts_with("1\n2\n") && text.ends_with("100000\nthe end\n"));
    let outcome = structured(&result);
    assert!(
        outcome.to_string().chars().count() <= 30_000
            && outcome["truncated"] == true
            && outcome["stderr"] == "the end\n"
    );
    let handle = outcome["output"].as_str().unwrap();
    assert!(text.contains(&format!("all of it is `{handle}`")), "{}", &text[10_000..13_000]);
    let middle = bench.text("read_file", json!({"path": handle, "offset": 55_555, "limit": 1}));
    assert!(middle.contains("\t55555\n") || middle.contains("\t55555"), "{middle}");
}

#[test]
fn a_command_that_prints_without_end_is_ended() {
    let result = run(&Bench::new(), "yes");
    let text = result.joined_text();
    let end = &text[text.len() - 300..];
    assert!(result.is_error() && text.contains("printed more than 4194304 bytes"), "{end}");
    assert_eq!(text.matches("printed").count(), 1, "{end}");
}

#[test]
fn truncated_stored_output_is_not_described_as_complete() {
    let bench = Bench::new();
    let task = start(&bench, json!({"command": "yes | head -c 5000000", "background": true}));
    bench.call("task_wait", json!({"task_ids": [task]})).unwrap();
    let text = bench.text("task_output", json!({"task_id": task, "since": 0}));
    assert!(text.starts_with("[… the first 805696 bytes are no longer stored …]\n"), "{}", &text[..100]);
    assert!(text.contains("; the stored part is `") && !text.contains("all of it"), "{text}");
}

#[test]
fn the_command_environment_contains_only_the_expected_and_given_variables() {
    let bench = Bench::new();
    let names = run(&bench, "env").joined_text();
    let names: Vec<&str> = names.lines().filter_map(|line| line.split('=').next()).collect();
    let expected = [
        "CI",
        "DEBIAN_FRONTEND",
        "EDITOR",
        "GH_PAGER",
        "GIT_EDITOR",
        "GIT_PAGER",
        "GIT_TERMINAL_PROMPT",
        "HOME",
        "LANG",
        "NO_COLOR",
        "PAGER",
        "PATH",
        "PWD",
        "SHELL",
        "SHLVL",
        "TERM",
        "TMPDIR",
        "USER",
        "VISUAL",
        "_",
    ];
    let mut sorted = names.clone();
    sorted.sort_unstable();
    assert_eq!(sorted, expected);
    let result = bench.call("bash", json!({"command": "echo $X$LANG", "env": {"X": "a b"}})).unwrap();
    assert_eq!(result.joined_text(), "a bC.UTF-8\n");
}

#[test]
fn variables_are_judged_with_the_command_unless_they_are_harmless() {
    let bench = Bench::new();
    let judged = |arguments: Value| bench.call_unchecked("bash", arguments).unwrap()[0].to_string();
    let answer = judged(json!({"command": "make", "env": {"LD_PRELOAD": "it's", "TZ": "UTC"}}));
    assert!(answer.starts_with(r"run export LD_PRELOAD='it'\''s' (LD_PRELOAD changes"), "{answer}");
    let answer = judged(json!({"command": "make", "env": {"DEBIAN_FRONTEND": "x; y"}}));
    assert!(answer.starts_with("run export DEBIAN_FRONTEND='x; y' (DEBIAN_FRONTEND may change"), "{answer}");
    assert!(judged(json!({"command": "make", "env": {"LC_ALL": "C"}})).starts_with("run make"));
}

#[test]
fn rejects_invalid_commands_variables_and_working_folders() {
    let bench = Bench::new();
    for arguments in [
        json!({"command": " "}),
        json!({"command": "a\u{0}b"}),
        json!({"command": "x".repeat(200_000)}),
        json!({"command": "a", "env": {"A B": "c"}}),
        json!({"command": "a", "env": {"BASH_FUNC_x%%": "() { id; }"}}),
        json!({"command": "a", "ready_when": "("}),
        json!({"command": "a", "yield_ms": 600_001}),
    ] {
        let failure = bench.call("bash", arguments.clone()).unwrap_err();
        assert_eq!(
            failure.kind,
            ErrorKind::InvalidInput,
            "{}",
            &arguments.to_string()[..60.min(arguments.to_string().len())]
        );
    }
    assert_eq!(
        bench.call("bash", json!({"command": "a", "working_dir": "/etc"})).unwrap_err().kind,
        ErrorKind::PermissionDenied
    );
    assert_eq!(bench.call("bash", json!({"command": "a", "working_dir": "no"})).unwrap_err().kind, ErrorKind::NotFound);
}

#[test]
fn a_command_does_not_change_the_working_folder_of_the_next_one() {
    let bench = Bench::new();
    bench.put("sub/file", "");
    let result = bench.call("bash", json!({"command": "ls; cd /", "working_dir": "sub"})).unwrap();
    assert_eq!(result.joined_text(), "file\n");
    assert_eq!(run(&bench, "ls").joined_text(), "sub\n");
}

/// Starts a task and returns its id.
fn start(bench: &Bench, arguments: Value) -> String {
    let result = bench.call("bash", arguments).unwrap();
    structured(&result)["task_id"].as_str().unwrap_or_else(|| panic!("{}", result.joined_text())).to_owned()
}

#[test]
fn a_command_that_yields_continues_and_its_output_can_be_read_repeatedly() {
    let bench = Bench::new();
    let task = start(
        &bench,
        json!({"command": "echo one; until [ -e go ]; do sleep 0.01; done; echo two; exit 4", "ready_when": "one"}),
    );
    let look = |arguments: Value| bench.call("task_output", arguments).unwrap();
    assert!(look(json!({"task_id": task})).joined_text().starts_with('['), "the start has shown it");
    let again = look(json!({"task_id": task, "since": 0}));
    assert!(again.joined_text().starts_with("one\n") && structured(&again)["status"] == "running");
    bench.put("go", "");
    let ended = bench.call("task_wait", json!({"task_ids": [task]})).unwrap();
    assert_eq!(
        (&structured(&ended)["tasks"][0]["exit_code"], &structured(&ended)["timed_out"]),
        (&json!(4), &json!(false))
    );
    let new = look(json!({"task_id": task}));
    assert!(new.joined_text().starts_with("two\n"), "{}", new.joined_text());
    let cursor = &structured(&new)["cursor"];
    assert!(look(json!({"task_id": task})).joined_text().starts_with('['), "there is nothing new");
    assert!(look(json!({"task_id": task, "since": cursor})).joined_text().starts_with('['));
    for arguments in
        [json!({"task_id": task, "since": 0, "filter": "^t"}), json!({"task_id": task, "since": 0, "tail_lines": 1})]
    {
        assert!(look(arguments).joined_text().starts_with("two\n["));
    }
    assert!(look(json!({"task_id": task, "since": 0})).joined_text().starts_with("one\ntwo\n["));
}

#[test]
fn a_command_that_ends_before_yielding_returns_a_normal_result() {
    let bench = Bench::new();
    let result = bench.call("bash", json!({"command": "echo quick", "yield_ms": 20_000})).unwrap();
    assert_eq!((result.joined_text().as_str(), structured(&result).get("task_id")), ("quick\n", None));
    let never_ready = bench.call("bash", json!({"command": "echo no; exit 2", "ready_when": "yes"})).unwrap();
    assert!(never_ready.is_error() && never_ready.joined_text().contains("exit code 2"));
}

#[test]
fn ready_when_matches_a_prompt_without_a_line_break_and_the_task_accepts_input() {
    let bench = Bench::new();
    let script = "printf 'name? '; read name; echo hello $name; read name || echo closed";
    let task = start(&bench, json!({"command": script, "ready_when": "name\\? $", "stdin": ""}));
    bench.call("task_input", json!({"task_id": task, "text": "Ada\n"})).unwrap();
    let answer = bench.call("task_output", json!({"task_id": task, "wait_ms": 20_000})).unwrap();
    assert!(answer.joined_text().starts_with("hello Ada\n"), "{}", answer.joined_text());
    bench.call("task_input", json!({"task_id": task, "close": true})).unwrap();
    bench.call("task_wait", json!({})).unwrap();
    assert!(bench.text("task_output", json!({"task_id": task})).starts_with("closed\n"));
    let late = bench.call("task_input", json!({"task_id": task, "text": "x"})).unwrap_err();
    assert_eq!(late.kind, ErrorKind::ExecutionFailed);
    let deaf = start(&bench, json!({"command": "sleep 300", "background": true}));
    assert_eq!(
        bench.call("task_input", json!({"task_id": deaf, "text": "x"})).unwrap_err().kind,
        ErrorKind::InvalidInput
    );
}

#[test]
fn stopping_a_task_is_idempotent_and_signals_reach_its_whole_process_group() {
    let bench = Bench::new();
    let mark = long(5);
    let script = format!("sleep {mark} & echo up; wait");
    let task = start(&bench, json!({"command": script, "ready_when": "up"}));
    for _ in 0..2 {
        let stopped = bench.call("task_stop", json!({"task_id": task})).unwrap();
        assert_eq!(structured(&stopped)["status"], "cancelled");
    }
    gone(&mark);
    // The whole process group receives the signal. The shell would report a child that the signal ends: this one
    // ignores it.
    let script = "trap '' USR1; sleep 300 & trap 'echo told' USR1; echo up; wait; wait";
    let task = start(&bench, json!({"command": script, "ready_when": "up"}));
    let signalled = bench.call("task_stop", json!({"task_id": task, "signal": "USR1"})).unwrap();
    assert_eq!(structured(&signalled)["status"], "running");
    let heard = bench.text("task_output", json!({"task_id": task, "wait_ms": 20_000}));
    assert!(heard.starts_with("told\n"), "{heard}");
    let killed = bench.call("task_stop", json!({"task_id": task, "force": true})).unwrap();
    assert_eq!((&structured(&killed)["status"], &structured(&killed)["signal"]), (&json!("cancelled"), &json!(9)));
}

#[test]
fn the_timeout_of_a_task_is_separate_from_that_of_task_wait() {
    let bench = Bench::new();
    let task = start(&bench, json!({"command": "sleep 300", "background": true, "timeout_ms": 100}));
    let ended = bench.call("task_wait", json!({"task_ids": [task], "mode": "any"})).unwrap();
    assert_eq!(structured(&ended)["tasks"][0]["status"], "timed_out");
    let running = start(&bench, json!({"command": "sleep 300", "background": true}));
    let waited = bench.call("task_wait", json!({"task_ids": [running], "timeout_ms": 10})).unwrap();
    assert_eq!(structured(&waited)["timed_out"], true);
}

#[test]
fn the_end_of_a_task_is_reported_once_with_the_next_result() {
    let bench = Bench::new();
    let next = || bench.call("echo", json!({"message": "x"})).unwrap().joined_text();
    // The task may end before the call that started it returns.
    let first = bench.call("bash", json!({"command": "exit 7", "background": true})).unwrap();
    let (mut outcome, started) = (first.joined_text(), Instant::now());
    while !outcome.contains("ended with exit code 7") && started.elapsed() < Duration::from_secs(120) {
        outcome = next();
    }
    assert!(outcome.contains("`task_1` (exit 7) ended with exit code 7"), "{outcome}");
    assert_eq!(next(), "Echo: x");
    let listed = bench.call("task_list", json!({"status": "failed"})).unwrap();
    assert_eq!(structured(&listed)["tasks"][0]["exit_code"], 7);
}

#[test]
fn tasks_belong_to_their_session_and_detached_ones_to_their_principal() {
    let bench = Bench::new();
    let own = start(&bench, json!({"command": "sleep 300", "background": true}));
    let detached = start(&bench, json!({"command": "sleep 300", "detach": true}));
    assert_ne!(own, detached);
    let bench = bench.in_session(Principal::local(), "another");
    let listed = bench.text("task_list", json!({}));
    assert!(listed.contains(&detached) && !listed.contains(&format!("`{own}`")), "{listed}");
    for tool in ["task_output", "task_stop"] {
        assert_eq!(bench.call(tool, json!({"task_id": own})).unwrap_err().kind, ErrorKind::NotFound, "{tool}");
    }
    let bench = bench.in_session(Principal::token("somebody"), "test");
    assert_eq!(bench.text("task_list", json!({})), "There are no such tasks in this session.");
    for id in [&own, &detached, "task_99", "task_x", "1"] {
        assert_eq!(bench.call("task_output", json!({"task_id": id})).unwrap_err().kind, ErrorKind::NotFound, "{id}");
    }
}

#[test]
fn the_end_of_a_session_ends_its_tasks_and_leaves_detached_ones() {
    let bench = Bench::new();
    let task = |name: &str, detach: bool| {
        let command = format!("echo up; sleep {name}");
        start(&bench, json!({"command": command, "ready_when": "up", "detach": detach}))
    };
    let (own_mark, kept_mark) = (long(6), long(7));
    let (_, kept) = (task(&own_mark, false), task(&kept_mark, true));
    bench.end_session();
    assert!(bench.text("task_wait", json!({"timeout_ms": 300})).contains(&kept));
    gone(&own_mark);
    assert!(lives(&kept_mark));
    bench.close();
    gone(&kept_mark);
    assert!(bench.call("bash", json!({"command": "true", "background": true})).is_err());
}

#[test]
fn a_session_has_a_maximum_number_of_running_tasks() {
    let bench = Bench::new();
    for _ in 0..16 {
        start(&bench, json!({"command": "sleep 300", "background": true}));
    }
    let failure = bench.call("bash", json!({"command": "sleep 300", "background": true})).unwrap_err();
    assert_eq!(failure.kind, ErrorKind::BudgetExhausted);
    bench.call("task_stop", json!({"task_id": "task_1"})).unwrap();
    assert_eq!(start(&bench, json!({"command": "sleep 300", "background": true})), "task_17");
}

#[test]
fn a_task_with_too_much_output_continues_and_loses_its_oldest_output() {
    let bench = Bench::new();
    let script = "head -c 5000000 /dev/zero | tr '\\0' '\\n'; echo last; until [ -e go ]; do sleep 0.01; done";
    let task = start(&bench, json!({"command": script, "ready_when": "last", "yield_ms": 60_000}));
    let result = bench.call("task_output", json!({"task_id": task, "since": 0, "tail_lines": 2})).unwrap();
    assert_eq!(structured(&result)["dropped_bytes"], 5_000_005 - (4 << 20));
    assert!(result.joined_text().contains("last\n"), "{}", result.joined_text());
}

#[test]
fn a_command_with_a_terminal_has_a_terminal_size_and_reads_typed_input() {
    let bench = Bench::new();
    let text_of = |arguments: Value| bench.call("bash", arguments).unwrap().joined_text();
    assert_eq!(
        text_of(json!({"command": "stty size; test -t 0 && test -t 1 && echo both", "tty": true})),
        "24 80\nboth\n"
    );
    let read = text_of(json!({"command": "stty -echo; cat; echo end", "tty": true, "stdin": "typed"}));
    assert!(read.contains("typed") && read.ends_with("end\n"), "{read}");
    assert!(text_of(json!({"command": "cat; echo end", "tty": true})).ends_with("end\n"));
    let task = start(
        &bench,
        json!({"command": "read line; echo got $line; cat; echo end", "tty": true, "background": true, "stdin": ""}),
    );
    bench.call("task_input", json!({"task_id": task, "text": "a line\n", "close": true})).unwrap();
    bench.call("task_wait", json!({"task_ids": [task], "mode": "any"})).unwrap();
    let shown = bench.text("task_output", json!({"task_id": task, "since": 0}));
    assert!(shown.contains("got a line") && shown.contains("end\n"), "{shown}");
}

#[test]
fn undone_file_changes_of_a_command_are_reported_with_its_result() {
    let bench = Bench::new();
    let result = run(&bench, "echo x > .mcp.json; echo done");
    assert!(result.joined_text().contains("`.mcp.json.refused`"), "{}", result.joined_text());
    assert!(structured(&result)["undone_or_refused"][0].as_str().unwrap().contains(".mcp.json"));
    assert!(bench.exists(".mcp.json.refused") && !bench.exists(".mcp.json"));
    let late = bench.call("bash", json!({"command": "mkdir .claude; sleep 300", "timeout_ms": 3000})).unwrap_err();
    assert!(late.into_result().joined_text().contains("`.claude.refused`"));
}

#[test]
fn undone_file_changes_of_a_task_are_reported_when_it_ends() {
    let begin = json!({"command": "echo x > .mcp.json", "background": true});
    let bench = Bench::new();
    let task = start(&bench, begin.clone());
    let waited = bench.call("task_wait", json!({"task_ids": [task], "mode": "all"})).unwrap();
    assert!(waited.joined_text().contains("`.mcp.json.refused`"), "{}", waited.joined_text());
    assert!(structured(&waited)["tasks"][0]["undone_or_refused"][0].as_str().unwrap().contains(".mcp.json"));
    let shown = bench.call("task_output", json!({"task_id": task})).unwrap();
    assert!(shown.joined_text().contains("`.mcp.json.refused`"), "{}", shown.joined_text());
    assert!(structured(&shown)["undone_or_refused"][0].as_str().unwrap().contains(".mcp.json"));
    let stopped = bench.text("task_stop", json!({"task_id": task}));
    assert!(stopped.contains("`.mcp.json.refused`"), "{stopped}");
    // Without a query for the task, the next result reports it.
    let bench = Bench::new();
    let (mut outcome, started) = (bench.text("bash", begin), Instant::now());
    while !outcome.contains("ended with exit code 0") && started.elapsed() < Duration::from_secs(120) {
        outcome = bench.text("echo", json!({"message": "x"}));
    }
    assert!(outcome.contains("`.mcp.json.refused`"), "{outcome}");
}

#[test]
fn a_command_fails_if_a_protected_file_is_replaced_while_it_runs() {
    let bench = Bench::new();
    bench.put(".mcp.json", "{}");
    let command = "touch ready; until [ -e go ]; do sleep 0.01; done; rm ready go";
    // Another process replaces the file meanwhile. It cannot be determined that the command did not do so.
    let [ready, other, settings, go] = ["ready", "other", ".mcp.json", "go"].map(|name| bench.path(name));
    let replace = || {
        let start = Instant::now();
        while !ready.exists() {
            assert!(start.elapsed() < Duration::from_secs(120));
            std::thread::yield_now();
        }
        std::fs::write(&other, "{}").unwrap();
        std::fs::rename(&other, &settings).unwrap();
        std::fs::write(&go, "").unwrap();
    };
    let task = start(&bench, json!({"command": command, "background": true}));
    replace();
    let waited = bench.call("task_wait", json!({"task_ids": [task], "mode": "all"})).unwrap();
    assert!(waited.joined_text().contains("/.mcp.json` was replaced"), "{}", waited.joined_text());
    assert_eq!(structured(&waited)["tasks"][0]["status"], "failed");
    let result = std::thread::scope(|scope| {
        scope.spawn(replace);
        run(&bench, command)
    });
    assert!(result.is_error() && result.joined_text().contains("/.mcp.json` was replaced"), "{}", result.joined_text());
    assert_eq!((&structured(&result)["exit_code"], result.error_kind()), (&json!(0), Some(ErrorKind::ExecutionFailed)));
}

#[test]
fn commands_of_a_session_share_tmp_until_it_ends() {
    let bench = Bench::new();
    run(&bench, "echo kept > /tmp/file");
    assert_eq!(run(&bench, "cat /tmp/file").joined_text(), "kept\n");
    bench.end_session();
    assert!(run(&bench, "cat /tmp/file").is_error());
}

#[test]
fn unlisted_or_denied_hosts_are_refused_and_reported() {
    let bench = Bench::with_deny(&["WebFetch(domain:denied.test)"]).with_hosts(&["denied.test", "open.test"]);
    for (host, reason) in [("elsewhere.test", "elsewhere.test:443"), ("denied.test", "denied.test:443")] {
        let script = format!(
            "exec 3<>/dev/tcp/127.0.0.1/${{https_proxy##*:}}; \
             printf 'CONNECT {host}:443 HTTP/1.1\\r\\nHost: {host}:443\\r\\n\\r\\n' >&3; head -n 1 <&3"
        );
        let result = run(&bench, &script);
        let text = result.joined_text();
        assert!(text.contains(" 403 "), "{text}");
        assert!(text.contains(&format!("was refused the host {reason}")), "{text}");
        assert!(structured(&result)["undone_or_refused"][0].as_str().unwrap().contains(reason), "{text}");
    }
    let direct = run(&bench, "exec 3<>/dev/tcp/192.0.2.1/80");
    assert!(direct.is_error() && direct.joined_text().contains("unreachable"), "{}", direct.joined_text());
    assert_eq!(run(&Bench::new(), "echo ${https_proxy-none}").joined_text(), "none\n");
}

#[test]
fn a_command_that_does_not_read_its_input_does_not_block_other_commands() {
    let bench = Bench::new();
    let much = "x".repeat(1 << 20);
    // There are more such tasks than threads in the test's runtime.
    for _ in 0..3 {
        start(&bench, json!({"command": "sleep 300", "stdin": much, "background": true}));
    }
    assert_eq!(run(&bench, "echo on").joined_text(), "on\n");
}

/// A clock that shows 2026-03-01 until the file exists, and a day later after that.
struct ClockByFile(std::path::PathBuf);

impl Clock for ClockByFile {
    fn now(&self) -> Timestamp {
        let day = if self.0.exists() { 86_400_000_000 } else { 0 };
        Timestamp(1_772_366_400_000_000 + day)
    }
}

#[test]
fn the_times_of_a_task_are_measured_from_the_start_of_its_command() {
    let bench = Bench::new();
    let file = bench.path("next-day");
    let bench = bench.with_clock(Arc::new(ClockByFile(file)));
    let script = "touch next-day; echo up; read answer";
    let task = start(&bench, json!({"command": script, "ready_when": "up", "stdin": ""}));
    bench.call("task_input", json!({"task_id": task, "close": true})).unwrap();
    bench.call("task_wait", json!({"task_ids": [task]})).unwrap();
    let listed = bench.call("task_list", json!({})).unwrap();
    let facts = &structured(&listed)["tasks"][0];
    for time in ["started_at", "ended_at"] {
        assert!(facts[time].as_str().unwrap().starts_with("2026-03-01T12:0"), "{facts}");
    }
}

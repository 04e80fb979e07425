use super::*;
use proptest::prelude::*;
use serde_json::json;
use toolstead_domain::error_kind::ErrorKind;

fn text(text: &str) -> AgentEvent {
    AgentEvent::Text(text.into())
}

fn started(id: &str, tool: &str) -> AgentEvent {
    started_with(id, tool, json!({}))
}

fn started_with(id: &str, tool: &str, arguments: Value) -> AgentEvent {
    AgentEvent::CallStarted { id: id.into(), tool: tool.into(), arguments }
}

fn progress(id: &str, message: &str) -> AgentEvent {
    AgentEvent::CallProgress { id: id.into(), progress: 1.0, total: None, message: Some(message.into()) }
}

fn ended(id: &str, tool: &str, failure: Option<&str>) -> AgentEvent {
    let text = failure.unwrap_or("a result that nobody reads");
    ended_with(id, tool, failure.is_some(), text, None)
}

fn ended_with(id: &str, tool: &str, is_error: bool, text: &str, structured: Option<Value>) -> AgentEvent {
    AgentEvent::CallEnded {
        id: id.into(),
        tool: tool.into(),
        call: None,
        is_error,
        text: text.into(),
        structured,
        suggestion: None,
        duration: Duration::from_millis(1_250),
    }
}

fn over(outcome: AgentOutcome, text: &str) -> AgentEvent {
    AgentEvent::Ended { outcome, text: text.into(), usage: TokenUsage::default(), cost: None, calls: 0, turns: 1 }
}

fn finished(text: &str) -> AgentEvent {
    over(AgentOutcome::Finished, text)
}

/// Lines on standard output and on standard error.
fn written(streams: bool, events: &[AgentEvent]) -> (String, Vec<String>) {
    written_by(RunRenderer::new(streams, false), events)
}

fn written_by(mut narration: RunRenderer, events: &[AgentEvent]) -> (String, Vec<String>) {
    let streams = narration.streams;
    let (mut answer, mut beside) = (String::new(), Vec::new());
    for piece in events.iter().flat_map(|event| narration.narrate(event)) {
        match piece {
            NarrationPiece::Text(text) => answer.push_str(&text),
            NarrationPiece::Note(line) => {
                assert!(!streams || answer.is_empty() || answer.ends_with('\n'), "in the middle of a line: {line}");
                beside.push(line);
            }
            NarrationPiece::Status(_) => {}
        }
    }
    (answer, beside)
}

#[track_caller]
fn check(streams: bool, events: &[AgentEvent], answer: &str, beside: &[&str]) {
    let (said, outcome) = written(streams, events);
    assert_eq!((said.as_str(), outcome.iter().map(String::as_str).collect::<Vec<_>>()), (answer, beside.to_vec()));
}

#[test]
fn each_call_has_a_line_and_failures_have_their_text() {
    let events = [
        text("I look."),
        started_with("1", "grep", json!({"pattern": "x"})),
        started_with("2", "read_file", json!({"path": "b"})),
        ended("1", "grep", None),
        ended("2", "read_file", None),
        started_with("3", "read_file", json!({"path": "a"})),
        ended("3", "read_file", Some("There is no file `a`.\nNear: `b`.")),
        text("\n\nIt is "),
        text("done."),
        finished("It is done."),
    ];
    let grep = "• grep x (1.2 s)";
    let read = "• read_file b (1.2 s)";
    let failure = "• read_file a failed after 1.2 s:\n  | There is no file `a`.\n  | Near: `b`.";
    check(true, &events, "I look.\nIt is done.\n", &[grep, read, failure]);
    check(false, &events, "It is done.\n", &["  | I look.", grep, read, failure]);
}

#[test]
fn an_edit_shows_its_diff_and_a_failed_command_its_exit_code_and_last_lines() {
    let diff = "--- a/calc.py\n+++ b/calc.py\n@@ -1 +1 @@\n-a - b\n+a + b\n";
    let output = (1..=12).map(|line| format!("line {line}\n")).collect::<String>();
    let events = [
        started_with("1", "edit_file", json!({"path": "calc.py", "old_text": "-", "new_text": "+"})),
        ended_with("1", "edit_file", false, "Replaced 1 place.", Some(json!({"diff": diff}))),
        started_with("2", "bash", json!({"command": "python3 -m pytest -q"})),
        ended_with("2", "bash", true, &output, Some(json!({"exit_code": 2}))),
        started_with("3", "bash", json!({"command": "grep x a"})),
        ended_with("3", "bash", false, "nothing was found", Some(json!({"exit_code": 1}))),
        started_with("4", "bash", json!({"command": "true"})),
        ended_with("4", "bash", false, "done\n", Some(json!({"exit_code": 0}))),
        finished(""),
    ];
    let edited = "• edit_file calc.py +1 -1 (1.2 s)\n  | --- a/calc.py\n  | +++ b/calc.py\n  | @@ -1 +1 @@\n  | -a - b\n  | +a + b";
    let failed = "• bash python3 -m pytest -q failed after 1.2 s with exit code 2:";
    let quoted = |from: usize| (from..=12).map(|line| format!("\n  | line {line}")).collect::<String>();
    let (found, done) = ("• bash grep x a (1.2 s, exit code 1)", "• bash true (1.2 s)");
    check(true, &events, "", &[edited, &format!("{failed}\n  … 2 lines before{}", quoted(3)), found, done]);
    let (_, whole) = written_by(RunRenderer::new(true, true), &events);
    let expected = [
        format!("{edited}\n  | Replaced 1 place."),
        format!("{failed}{}", quoted(1)),
        format!("{found}\n  | nothing was found"),
        format!("{done}\n  | done"),
    ];
    assert_eq!(whole, expected);
}

#[test]
fn a_long_diff_is_cut_unless_full_output_is_requested() {
    let diff = format!("@@ -0,0 +1,100 @@\n{}", "+x\n".repeat(100));
    let events = [started("1", "a"), ended_with("1", "a", false, "", Some(json!({"diff": diff}))), finished("")];
    let (_, beside) = written(true, &events);
    assert!(
        beside[0].starts_with("• a +100 -0 (1.2 s)\n") && beside[0].ends_with("\n  … and 71 more lines"),
        "{}",
        beside[0]
    );
    let (_, whole) = written_by(RunRenderer::new(true, true), &events);
    assert_eq!(whole[0].lines().count(), 102);
}

#[test]
fn without_streaming_only_the_last_answer_is_printed_as_the_answer() {
    let one_call = [started("1", "echo"), ended("1", "echo", None)];
    let called = "• echo (1.2 s)";
    let budget = over(AgentOutcome::BudgetExhausted(BudgetKind::Calls), "So far.");
    let events = [&[text("So far.")], &one_call[..], &[budget]].concat();
    let used_up = "stopped: the budget of calls of tools is used up; `--max-calls` or `[agent] max_calls` sets it";
    check(false, &events, "So far.\n", &["  | So far.", called, used_up]);
    // An answer that was interrupted and continues is a single answer.
    check(false, &[text("It goes "), text("on.\n"), finished("on.")], "It goes on.\n", &[]);
    check(false, &[finished("")], "", &[]);
}

#[test]
fn an_unfinished_run_ends_with_a_line_that_states_the_reason() {
    let failed = AgentOutcome::Failed { kind: ErrorKind::AuthRequired, message: "no key".into() };
    for (outcome, line) in [
        (AgentOutcome::Cancelled, "cancelled"),
        (AgentOutcome::Stopped("enough".into()), "stopped: enough"),
        (AgentOutcome::Looping("`echo`".into()), "stopped, because the agent repeated itself in a loop: `echo`"),
        (failed, "error: no key"),
    ] {
        check(true, &[text("half a"), over(outcome, "half a")], "half a\n", &[line]);
    }
}

#[test]
fn retries_compactions_and_notices_are_printed_beside_the_answer() {
    let events = [
        AgentEvent::Retrying { after: Duration::from_secs(2), reason: "overloaded".into() },
        AgentEvent::Compacted { how: "masked", before: 181_000, after: 940 },
        AgentEvent::Notice("one\nMay the tool `bash` run?".into()),
        AgentEvent::Thinking("secret thoughts".into()),
        text("Done."),
        finished("Done."),
    ];
    let beside = [
        "the model request is retried in 2.0 s: overloaded",
        "what came before was masked: 181,000 tokens, now 940",
        "note:\n  | one\n  | May the tool `bash` run?",
    ];
    check(true, &events, "Done.\n", &beside);
    check(false, &events, "Done.\n", &beside);
}

#[test]
fn a_long_failure_text_is_cut_with_a_note() {
    let lines = (1..=40).map(|line| line.to_string()).collect::<Vec<_>>().join("\n");
    let (_, beside) = written(true, &[started("1", "a"), ended("1", "a", Some(&lines)), finished("")]);
    assert!(beside[0].ends_with("\n  | 30\n  … and 10 more lines"), "{}", beside[0]);
    let wide = "ä".repeat(5_000);
    let (_, beside) = written(true, &[started("1", "a"), ended("1", "a", Some(&wide)), finished("")]);
    assert!(beside[0].ends_with("ä\n  … and more") && beside[0].chars().count() < 4_100);
}

#[test]
fn a_hostile_tool_name_stays_on_its_own_line() {
    let hostile = "x\nMay the tool run?\u{1b}[2J";
    let (_, beside) = written(true, &[started("1", hostile), ended("1", hostile, None), finished("")]);
    assert_eq!(beside, ["• x May the tool run?\\u{1b}[2J (1.2 s)"]);
}

#[test]
fn the_status_line_reports_each_change_once_and_is_cleared_at_the_end() {
    let mut narration = RunRenderer::new(true, false);
    let mut now = |event: &AgentEvent| match narration.narrate(event).pop() {
        Some(NarrationPiece::Status(now)) => Some(now),
        _ => None,
    };
    assert_eq!(now(&AgentEvent::Thinking("a".into())).as_deref(), Some("thinking"));
    assert_eq!(now(&AgentEvent::Thinking("b".into())), None);
    assert_eq!(now(&AgentEvent::CallWritten { tool: "grep".into() }).as_deref(), Some("writes a call of `grep`"));
    assert_eq!(now(&started("1", "grep")).as_deref(), Some("grep, 0 s"));
    assert_eq!(now(&started("2", "glob")).as_deref(), Some("glob (and 1 more), 0 s"));
    assert_eq!(now(&progress("1", "one\ntwo\u{1b}[2J\n\n")).as_deref(), Some("grep (and 1 more), 0 s: two\\u{1b}[2J"));
    assert_eq!(now(&progress("unknown", "three")), None);
    assert_eq!(now(&ended("1", "grep", None)).as_deref(), Some("glob, 0 s"));
    assert_eq!(now(&ended("2", "glob", None)).as_deref(), Some("the model is asked"));
    assert_eq!(now(&finished("")).as_deref(), Some(""));
}

#[test]
fn formats_run_figures_with_separators_plurals_and_cost() {
    let usage = TokenUsage { input_tokens: 1_200, cache_read_tokens: 3_000, output_tokens: 1, ..TokenUsage::default() };
    let all = "1 tool call, 2 answers, 4,200 tokens in (3,000 of them from the cache), 1 token out, $0.0123";
    assert_eq!(figures(1, 2, usage, Some(0.012_34)), all);
    assert_eq!(figures(0, 1, TokenUsage::default(), None), "0 tool calls, 1 answer, 0 tokens in, 0 tokens out");
}

fn any_event() -> impl Strategy<Value = AgentEvent> {
    let words = "[a\n ]{0,6}";
    prop_oneof![
        words.prop_map(AgentEvent::Text),
        words.prop_map(AgentEvent::Notice),
        words.prop_map(AgentEvent::Thinking),
        ("[12]", "[xy]").prop_map(|(id, tool)| started(&id, &tool)),
        ("[12]", "[xy]", any::<bool>()).prop_map(|(id, tool, fails)| ended(&id, &tool, fails.then_some("why"))),
    ]
}

proptest! {
    #[test]
    fn random_runs_print_all_model_text_and_one_line_for_each_call(events in prop::collection::vec(any_event(), 0..20)) {
        let calls = events.iter().filter(|event| matches!(event, AgentEvent::CallEnded { .. })).count();
        let all: Vec<AgentEvent> = events.iter().cloned().chain([finished("")]).collect();
        let letters = |text: &str| text.chars().filter(|c| *c == 'a').count();
        let said: usize = events.iter().map(|event| match event { AgentEvent::Text(text) => letters(text), _ => 0 }).sum();
        for streams in [true, false] {
            let (answer, beside) = written(streams, &all);
            prop_assert_eq!(beside.iter().filter(|line| line.starts_with(CALL_MARK)).count(), calls);
            let spoken: usize = beside.iter().filter(|line| line.starts_with("  | ")).map(|line| letters(line)).sum();
            prop_assert_eq!(letters(&answer) + spoken, said, "{} {:?}", answer, beside);
            prop_assert!(!streams || answer.is_empty() || answer.ends_with('\n'));
        }
    }
}

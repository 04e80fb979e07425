//! Decisions and approvals.

use super::*;

#[tokio::test]
async fn a_call_that_no_rule_allows_is_refused_with_a_suggestion() {
    let house = Plan::default().house(provider()).await;
    let answer = house.call("write", json!({})).await;
    assert!(answer.starts_with("refused permission_denied: The call of `write` is not permitted: changes to files need approval by default: to write /w/a. No approver is available."), "{answer}");
    assert!(answer.ends_with("Ask your user whether to allow it."), "{answer}");
    let answer = house.call("outside", json!({})).await;
    assert!(
        answer.contains("outside of the workspace's roots")
            && answer.ends_with("Ask your user whether to open the folder."),
        "{answer}"
    );
    assert_eq!(house.provider.calls().len(), 0);
    assert!(
        house
            .log
            .rows()
            .iter()
            .all(|row| matches!(row.outcome, ExecutionOutcome::Refused(ErrorKind::PermissionDenied, _)))
    );
}

#[tokio::test]
async fn the_record_and_the_refusal_of_a_call_contain_the_decision_on_each_part() {
    let house = Plan { rules: vec![(Effect::Deny, "Write(a)")], ..Default::default() }.house(provider()).await;
    let outcome = house.handler.handle(command("write", json!({}))).await;
    let Err(ExecuteToolError::Refused(failure)) = outcome else { panic!("{outcome:?}") };
    let trace = house.log.rows()[0].decision.clone().unwrap().trace;
    assert_eq!(
        trace,
        json!([{
            "verdict": "deny", "part": "write /w/a", "cause": "the deny rule `Write(a)` in the command line",
            "rule": "Write(a)", "origin": "the command line",
        }])
    );
    assert_eq!(failure.data["decision"], trace);
}

#[tokio::test]
async fn explaining_a_call_returns_its_decision_without_running_or_recording_it() {
    let house = Plan { rules: vec![(Effect::Ask, "echo")], ..Default::default() }.house(provider()).await;
    let verdict = async |tool: &str| {
        let explained = house
            .handler
            .explain(ExplainCallQuery { tool: tool.into(), arguments: json!({}), scope: RequestScope::default() })
            .await;
        explained.map(|explained| explained.decision.verdict).map_err(|error| error.kind())
    };
    assert_eq!(verdict("write").await, Ok(Verdict::Ask));
    assert_eq!(verdict("echo").await, Ok(Verdict::Ask));
    assert_eq!(verdict("outside").await, Ok(Verdict::Deny));
    assert_eq!(verdict("nonsense").await, Err(ErrorKind::NotFound));
    assert!(house.provider.calls().is_empty() && house.log.rows().is_empty());
}

#[tokio::test]
async fn a_denying_rule_hides_a_tool_and_refuses_its_call() {
    let house = Plan { rules: vec![(Effect::Deny, "echo")], ..Default::default() }.house(provider()).await;
    let list = ListToolsHandler::new(house.registry.clone(), house.permissions.clone());
    let page = list.handle(&ListToolsQuery::default()).unwrap();
    assert!(page.tools.iter().all(|one| !matches!(one.tool.name().as_str(), "echo" | "away")));
    let answer = house.call("echo", json!({})).await;
    assert!(
        answer.contains("the deny rule `echo` in the command line")
            && answer.ends_with("Ask your user whether to allow it."),
        "{answer}"
    );
}

#[tokio::test]
async fn an_approver_may_approve_or_deny_a_call_and_the_record_names_the_approver() {
    let denied = ApprovalOutcome::denied("ann");
    let approver = ScriptedApprover::answering([ApprovalOutcome::once("ann"), denied, ApprovalOutcome::TimedOut]);
    let house = Plan { approver: Arc::new(approver), ..Default::default() }.house(provider()).await;
    assert_eq!(house.call("write", json!({})).await, "written");
    assert_eq!(
        house.call("write", json!({})).await,
        "refused permission_denied: The call of `write` was refused by ann."
    );
    assert!(house.call("write", json!({})).await.starts_with("refused approval_timeout"));
    let rows = house.log.rows();
    let approved: Vec<_> = rows.iter().map(|row| row.decision.clone().unwrap().approved_by).collect();
    assert_eq!(approved, [Some("ann".to_owned()), Some("ann".into()), None]);
    assert_eq!(house.provider.calls().len(), 1);
}

#[tokio::test]
async fn the_model_reads_the_message_of_a_denial_in_one_line() {
    let long = "y".repeat(2_000);
    for (message, text) in [
        ("use `pytest -q` instead", ", with this message: use `pytest -q` instead".to_owned()),
        (" a\nb\u{1b}[2J\u{202e}c\t", ", with this message: a b [2J c".into()),
        (&long, format!(", with this message: {}", &long[..1_000])),
        (" \n", ".".into()),
    ] {
        let denied = ApprovalOutcome::Denied { by: "ann".into(), message: Some(message.into()) };
        let approver = Arc::new(ScriptedApprover::answering([denied]));
        let house = Plan { approver, ..Default::default() }.house(provider()).await;
        let answer = house.call("write", json!({})).await;
        assert_eq!(answer, format!("refused permission_denied: The call of `write` was refused by ann{text}"));
        assert_eq!(house.provider.calls().len(), 0);
    }
}

#[tokio::test]
async fn a_question_that_the_user_interrupts_cancels_its_call() {
    let approver = Arc::new(ScriptedApprover::answering([ApprovalOutcome::Cancelled]));
    let house = Plan { approver, ..Default::default() }.house(provider()).await;
    assert!(house.call("write", json!({})).await.contains("cancelled"));
    assert_eq!(house.log.rows()[0].outcome, ExecutionOutcome::Cancelled(CancelReason::Client));
    assert_eq!(house.provider.calls().len(), 0);
}

#[tokio::test]
async fn a_session_approval_allows_later_calls_of_that_session_and_the_record_cites_it() {
    let approver = ScriptedApprover::answering([ApprovalOutcome::Granted {
        by: "ann".into(),
        scopes: vec![ApprovalScope::Session],
    }]);
    let house = Plan { approver: Arc::new(approver), ..Default::default() }.house(provider()).await;
    assert_eq!(house.call("write", json!({})).await, "written");
    assert_eq!(house.call("write", json!({"other": true})).await, "written");
    let elsewhere = command("write", json!({})).within(RequestScope::of(Principal::local(), "t"));
    assert!(house.execute(elsewhere).await.starts_with("permission_denied"));
    let decisions: Vec<_> = house.log.rows().into_iter().map(|row| row.decision.unwrap()).collect();
    assert_eq!(decisions[0].approved_by.as_deref(), Some("ann (session)"));
    assert_eq!(decisions[1].reason, "the allow rule `Write(//w/a)` in the approvals of this session: to write /w/a");
}

#[tokio::test]
async fn a_call_that_no_rule_can_express_is_approved_only_for_the_same_arguments() {
    let yes = || ApprovalOutcome::Granted { by: "ann".into(), scopes: vec![ApprovalScope::Session] };
    let approver = Arc::new(ScriptedApprover::answering([yes()]));
    let plan = Plan { approver: approver.clone(), ..Default::default() };
    let house = plan.house(ScriptedProvider::new("built-in").with(opaque())).await;
    for _ in 0..2 {
        assert_eq!(house.call("opaque", json!({"text": "hi"})).await, "ran");
    }
    assert!(house.call("opaque", json!({"text": "other"})).await.starts_with("refused permission_denied"));
    let question = &approver.questions()[0];
    assert_eq!((&question.parts[0].rule, question.parts[0].scopes.len()), (&None, 2));
    let rows = house.log.rows();
    let approved_by = rows[1].decision.as_ref().unwrap().approved_by.as_deref();
    assert_eq!(approved_by, Some("the approvals of this session, for exactly this call"));
}

#[tokio::test]
async fn sending_requires_approval_every_time_despite_an_allow_rule() {
    let yes = || ApprovalOutcome::Granted { by: "ann".into(), scopes: vec![ApprovalScope::Session] };
    let approver = Arc::new(ScriptedApprover::answering([yes(), yes()]));
    let plan = Plan { rules: vec![(Effect::Allow, "send")], approver: approver.clone(), ..Default::default() };
    let house = plan.house(ScriptedProvider::new("built-in").with(send())).await;
    for _ in 0..2 {
        assert_eq!(house.call("send", json!({})).await, "sent");
    }
    assert!(house.call("send", json!({})).await.starts_with("refused permission_denied"));
    let questions = approver.questions();
    assert_eq!(questions.len(), 3);
    assert!(questions.iter().all(|one| one.parts[0].scopes == [ApprovalScope::Once] && one.parts[0].rule.is_none()));
    assert_eq!(house.log.rows()[1].decision.as_ref().unwrap().approved_by.as_deref(), Some("ann"));
}

#[tokio::test]
async fn an_ask_rule_requires_approval_for_every_call_despite_an_always_approval() {
    let yes = || ApprovalOutcome::Granted { by: "ann".into(), scopes: vec![ApprovalScope::Always] };
    for rule in ["write", "Write(a)"] {
        let approver = Arc::new(ScriptedApprover::answering([yes(), yes()]));
        let plan = Plan { rules: vec![(Effect::Ask, rule)], approver: approver.clone(), ..Default::default() };
        let house = plan.house(provider()).await;
        for _ in 0..2 {
            assert_eq!(house.call("write", json!({})).await, "written");
        }
        assert!(house.call("write", json!({})).await.starts_with("refused"), "{rule}");
        assert_eq!(approver.questions().len(), 3);
        assert_eq!(approver.questions()[0].parts[0].scopes, [ApprovalScope::Once]);
    }
}

#[tokio::test]
async fn approving_read_only_commands_covers_later_command_lines_that_only_read() {
    use ApprovalScope::{Always, Once, Project, ReadOnlyCommands, Session};
    let run = |line: &str| Access::RunCommand(CommandAccess::program(line.split(' ')));
    let mut tool = samples::tool("bash");
    tool.takes_command_lines = true;
    let bash = ScriptedTool::of(tool)
        .touches_by(move |call| {
            let lines = call.arguments["lines"].as_array().unwrap().iter();
            Ok(lines.map(|line| run(line.as_str().unwrap())).collect())
        })
        .answers(ToolResult::text("ran"));
    let yes = || ApprovalOutcome::Granted { by: "ann".into(), scopes: vec![ReadOnlyCommands; 2] };
    let approver = Arc::new(ScriptedApprover::answering([yes(), yes()]));
    let plan = Plan { rules: vec![(Effect::Ask, "Bash(wc *)")], approver: approver.clone(), ..Default::default() };
    let house = plan.house(ScriptedProvider::new("built-in").with(bash)).await;
    for (lines, is_run) in [
        // Not offered beside a part for which a rule requires approval. The answer then holds once.
        (json!(["cat a", "wc a"]), true),
        (json!(["make lint", "ls"]), true),
        (json!(["make lint", "cat a", "git status"]), true),
        // Not offered without a command that only reads.
        (json!(["make test"]), false),
    ] {
        let answer = house.call("bash", json!({"lines": lines})).await;
        assert_eq!(answer == "ran", is_run, "{lines}: {answer}");
    }
    let questions = approver.questions();
    let offered: Vec<Vec<_>> =
        questions.iter().map(|question| question.parts.iter().map(|part| part.scopes.as_slice()).collect()).collect();
    let (session, reading) =
        (&[Once, Session, Project, Always][..], &[Once, Session, ReadOnlyCommands, Project, Always][..]);
    assert_eq!(offered, [vec![session, &[Once][..]], vec![reading, reading], vec![session]]);
    let rows = house.log.rows();
    let approved_by = |row: usize| rows[row].decision.as_ref().unwrap().approved_by.as_deref();
    assert_eq!((approved_by(0), approved_by(1)), (Some("ann"), Some("ann (read_only_commands)")));
}

//! Hooks before and after calls.

use super::*;

/// Hook that refuses, rewrites or permits calls by their path, and counts the ended calls.
#[derive(Default)]
pub(super) struct Guard(AtomicUsize);

#[async_trait]
impl ToolHook for Guard {
    fn name(&self) -> &str {
        "guard"
    }

    async fn before(&self, call: &ToolCall, _: Option<&[Access]>) -> BeforeCallResponse {
        let rewritten = |arguments: Value| BeforeCallResponse::rewrite(arguments.as_object().unwrap().clone());
        match call.arguments.get("path").and_then(Value::as_str) {
            Some("secret") => BeforeCallResponse::deny("not that one"),
            Some("old") => rewritten(json!({"path": "new"})),
            Some("bad") => rewritten(json!({"path": 7})),
            Some("doubtful") => BeforeCallResponse::ask("is that meant?"),
            Some("later") => HookVerdict::Defer("after the release".into()).into(),
            Some("panic") => panic!("a hook that panics"),
            Some("context") => BeforeCallResponse { context: vec!["mind the gap".into()], ..Default::default() },
            _ => BeforeCallResponse::proceed(),
        }
    }

    async fn after(&self, ended: EndedCall<'_>) -> AfterCallResponse {
        assert_eq!(ended.execution.outcome == ExecutionOutcome::Succeeded, ended.result.is_some());
        self.0.fetch_add(1, Ordering::SeqCst);
        match ended.call.and_then(|call| call.arguments.get("path")?.as_str()) {
            Some("hide") => AfterCallResponse { output: Some(ToolResult::text("hidden")), ..Default::default() },
            Some("flood") => {
                AfterCallResponse { output: Some(ToolResult::text("x".repeat(40_000))), ..Default::default() }
            }
            Some("talk") => AfterCallResponse { context: vec!["y".repeat(20_000).into()], ..Default::default() },
            _ => AfterCallResponse::default(),
        }
    }
}

#[tokio::test]
async fn a_hook_can_refuse_defer_or_rewrite_a_call_and_is_notified_of_its_end() {
    let guard = Arc::new(Guard::default());
    let house = Plan { hooks: vec![guard.clone()], ..Default::default() }.house(provider()).await;
    let answer = house.call("read", json!({"path": "secret"})).await;
    assert_eq!(answer, "refused permission_denied: The hook `guard` refused the call: not that one");
    assert_eq!(house.call("read", json!({"path": "old"})).await, "content");
    assert_eq!(house.provider.calls()[0].arguments["path"], "new");
    assert!(house.call("read", json!({"path": "bad"})).await.starts_with("refused invalid_input"), "validated again");
    assert_eq!(guard.0.load(Ordering::SeqCst), 3);
    let answer = house.call("read", json!({"path": "later"})).await;
    assert_eq!(answer, "refused permission_denied: The hook `guard` deferred the call: after the release");
    let answer = house.call("read", json!({"path": "panic"})).await;
    assert_eq!(answer, "refused permission_denied: The hook `guard` refused the call: it panicked");
}

#[tokio::test]
async fn a_hook_can_require_approval_for_a_call_that_the_rules_allow() {
    let plan =
        |rules, approver| Plan { hooks: vec![Arc::new(Guard::default())], rules, approver, ..Default::default() };
    let yes = Arc::new(ScriptedApprover::answering([ApprovalOutcome::once("ada")]));
    for (rules, approver, expected) in [
        (vec![], Arc::new(NoApprover) as Arc<dyn Approver>, "No approver is available"),
        (vec![], yes, "content"),
        // No approval is requested for a call that a rule denies.
        (
            vec![(Effect::Deny, "read(path:doubtful)")],
            Arc::new(ScriptedApprover::answering([ApprovalOutcome::once("ada")])),
            "the deny rule",
        ),
    ] {
        let house = plan(rules, approver).house(provider()).await;
        let answer = house.call("read", json!({"path": "doubtful"})).await;
        assert!(answer.contains(expected), "{answer}");
        if expected == "content" {
            let decision = house.only_row().decision.unwrap();
            assert_eq!((decision.verdict.as_str(), decision.approved_by.as_deref()), ("ask", Some("ada")));
            assert_eq!(decision.reason, "the hook `guard` requires approval: is that meant?");
        }
    }
}

#[tokio::test]
async fn context_from_hooks_reaches_the_model_and_a_replaced_output_is_recorded() {
    let house = Plan { hooks: vec![Arc::new(Guard::default())], ..Default::default() }.house(provider()).await;
    let answer = house.call("read", json!({"path": "context"})).await;
    assert_eq!(answer, "content\n[the hook `guard` says: mind the gap]");
    let plain = house.log.rows()[0].clone();
    assert_eq!(house.call("read", json!({"path": "hide"})).await, "hidden");
    let hidden = house.log.rows().into_iter().max_by_key(|row| row.id).unwrap();
    assert_eq!(hidden.result_digest, plain.result_digest, "the digest is that of the first output");
    assert!(hidden.decision.unwrap().reason.ends_with("; the hook `guard` changed the output"));
    let answer = house.call("read", json!({"path": "flood"})).await;
    assert!(
        answer.starts_with("[the output is withheld: the hook `guard` replaced it with more than 30000"),
        "{answer}"
    );
    let answer = house.call("read", json!({"path": "talk"})).await;
    assert!(answer.len() < 10_200 && answer.ends_with("ends here, after 10000 characters]"), "{}", answer.len());
}

#[tokio::test]
async fn context_from_a_hook_does_not_alter_a_result_that_is_a_task() {
    let task = json!({"taskId": "theirs", "status": "working"}).as_object().unwrap().clone();
    let provider = provider().with(ScriptedTool::named("slow").answers(ToolResult::task(task)));
    let house = Plan { hooks: vec![Arc::new(Guard::default())], ..Default::default() }.house(provider).await;
    let outcome = house.handler.handle(command("slow", json!({"path": "context"}))).await.unwrap();
    let CallOutcome::Done(task) = outcome else { panic!("the call must not require input") };
    assert!(task.is_task() && task.as_object()["status"] == "working", "{task:?}");
}

/// Hook that rewrites the path, and stores the accesses that it receives.
#[derive(Default)]
struct Witness {
    rewrites: bool,
    accesses: std::sync::Mutex<Vec<Option<String>>>,
}

impl Witness {
    fn hears(&self, accesses: Option<&[Access]>) {
        let output = accesses.map(|accesses| accesses.iter().map(ToString::to_string).collect());
        self.accesses.lock().unwrap().push(output);
    }
}

#[async_trait]
impl ToolHook for Witness {
    fn name(&self) -> &str {
        "witness"
    }

    async fn before(&self, _: &ToolCall, accesses: Option<&[Access]>) -> BeforeCallResponse {
        self.hears(accesses);
        let rewritten = json!({"path": "/w/b"}).as_object().unwrap().clone();
        if self.rewrites { BeforeCallResponse::rewrite(rewritten) } else { BeforeCallResponse::proceed() }
    }

    async fn after(&self, ended: EndedCall<'_>) -> AfterCallResponse {
        self.hears(ended.accesses);
        AfterCallResponse::default()
    }
}

#[tokio::test]
async fn hooks_receive_accesses_computed_from_the_arguments_as_rewritten_so_far() {
    let by_path = |call: &ToolCall| match call.arguments.get("path").and_then(Value::as_str) {
        Some(path) => Ok(vec![Access::ReadPath(AccessPath::plain(path))]),
        None => Err(ToolFailure::new(ErrorKind::InvalidInput, "no path")),
    };
    let (first, second) = (Arc::new(Witness { rewrites: true, ..Default::default() }), Arc::new(Witness::default()));
    let plan = Plan { hooks: vec![first.clone(), second.clone()], ..Default::default() };
    let provider = ScriptedProvider::new("built-in").with(ScriptedTool::named("look").touches_by(by_path));
    let house = plan.house(provider).await;
    let text_of = |witness: &Witness| witness.accesses.lock().unwrap().split_off(0);
    let read = |path: &str| Some(format!("read {path}"));
    house.call("look", json!({"path": "/w/a"})).await;
    assert_eq!(text_of(&first), [read("/w/a"), read("/w/b")]);
    assert_eq!(text_of(&second), [read("/w/b"), read("/w/b")]);
    // If the accesses are unknown at first, a hook may correct the arguments.
    house.call("look", json!({})).await;
    assert_eq!((text_of(&first), text_of(&second)), (vec![None, read("/w/b")], vec![read("/w/b"); 2]));
}

/// Hook that requires approval for every call except the first.
#[derive(Default)]
struct Doubt(AtomicUsize);

#[async_trait]
impl ToolHook for Doubt {
    fn name(&self) -> &str {
        "doubt"
    }

    async fn before(&self, _: &ToolCall, _: Option<&[Access]>) -> BeforeCallResponse {
        match self.0.fetch_add(1, Ordering::SeqCst) {
            0 => BeforeCallResponse::proceed(),
            _ => BeforeCallResponse::ask("again?"),
        }
    }

    async fn after(&self, _: EndedCall<'_>) -> AfterCallResponse {
        AfterCallResponse::default()
    }
}

#[tokio::test]
async fn a_session_approval_does_not_satisfy_a_hook_that_requires_approval() {
    let yes = || ApprovalOutcome::Granted { by: "ann".into(), scopes: vec![ApprovalScope::Session; 2] };
    // One call is approved for the session by a rule, the other by its arguments.
    for (tool, answer) in [("write", "written"), ("opaque", "ran")] {
        let approver = Arc::new(ScriptedApprover::answering([yes(), yes()]));
        let hooks: Vec<Arc<dyn ToolHook>> = vec![Arc::new(Doubt::default())];
        let house =
            Plan { hooks, approver: approver.clone(), ..Default::default() }.house(provider().with(opaque())).await;
        for _ in 0..2 {
            assert_eq!(house.call(tool, json!({})).await, answer);
        }
        assert!(house.call(tool, json!({})).await.starts_with("refused permission_denied"), "{tool}");
        let questions = approver.questions();
        assert_eq!(questions.len(), 3, "{tool}");
        for question in &questions[1..] {
            let parts: Vec<_> = question.parts.iter().map(|part| (part.cause.to_string(), part.scopes.len())).collect();
            assert_eq!(parts, [("the hook `doubt` requires approval: again?".to_owned(), 1)], "{tool}");
        }
    }
}

//! Calls through restricted views, and through nested ones.

use super::{nesting::calls, *};
use proptest::prelude::*;
use toolstead_domain::{CallContext, ProviderListError, ToolCall, ToolSelection, UnknownToolName};

/// Returns a call of `make` that makes these calls through a restricted view on these tools.
fn make(window: &[&str], made: Value) -> Value {
    json!(["make", {"window": window, "calls": made}])
}

#[tokio::test]
async fn a_restricted_view_lists_and_calls_only_tools_that_it_selects_within_the_outer_view() {
    let rules = vec![(Effect::Allow, "write"), (Effect::Deny, "long"), (Effect::Deny, "Tools(b*)")];
    let house = Plan { rules, ..Default::default() }.house_that_nests().await;
    let list = json!(["?", null]);
    for (made, expected) in [
        (make(&["echo", "wr*"], json!([list])), "[echo,write]"),
        (make(&["*"], json!([make(&["echo"], json!([list]))])), "[echo]"),
        (make(&["make", "write"], json!([make(&["*"], json!([list]))])), "[make,write]"),
        (make(&["make", "write"], json!([make(&["echo"], json!([list]))])), "[]"),
        (make(&[], json!([list])), "[]"),
        // Tools that a rule hides, that are not offered to programs, or that are unavailable are in no restricted view.
        // An alias does not add them either.
        (make(&["long", "broken", "away", "Read"], json!([list])), "[]"),
        (make(&["b*"], json!([["broken", {}]])), "permission_denied: The call of `broken`"),
        (make(&["echo"], json!([["echo", {}], ["write", {}]])), "hi\npermission_denied: The call of `write`"),
        (
            make(&["make", "write"], json!([make(&["echo"], json!([["echo", {}]]))])),
            "permission_denied: The call of `echo`",
        ),
        (make(&["read"], json!([["Read", {"file_path": "a"}]])), "content"),
        // The name for rules is accepted as well.
        (make(&["mcp__maker__make"], json!([list])), "[make]"),
    ] {
        let answer = house.call("make", calls(json!([made]))).await;
        match expected.ends_with('`') {
            true => assert!(answer.starts_with(expected), "{made}: {answer}"),
            false => assert_eq!(answer, expected, "{made}"),
        }
    }
    let answer = house.call("make", json!({"window": ["echo"], "calls": [["write", {}]]})).await;
    let why = "permission_denied: The call of `write` is not permitted: the tool is not among those that are offered to the \
               caller.";
    assert_eq!(answer, why);
}

#[tokio::test]
async fn an_unknown_tool_name_in_a_selection_is_reported_with_the_nearest_name() {
    /// Provider of a tool that returns the unknown ones of the given names.
    struct Asks;

    #[async_trait]
    impl ToolProvider for Asks {
        fn name(&self) -> &str {
            "asks"
        }

        async fn list(&self) -> Result<Vec<Tool>, ProviderListError> {
            Ok(vec![samples::tool("ask")])
        }

        async fn accesses(&self, _: &ToolCall) -> Result<Vec<Access>, ToolFailure> {
            Ok(Vec::new())
        }

        async fn call(&self, call: &ToolCall, context: &CallContext<'_>) -> Result<CallOutcome, ToolFailure> {
            let names = call.arguments["names"].as_array().into_iter().flatten().filter_map(Value::as_str);
            let unknown = context.calls.unknown(&ToolSelection::canonical(names));
            let output: Vec<String> = unknown.iter().map(UnknownToolName::to_string).collect();
            Ok(CallOutcome::Done(ToolResult::text(output.join("\n"))))
        }
    }

    let house = Plan { rules: vec![(Effect::Deny, "long")], ..Default::default() }.house(provider()).await;
    house.registry.register(Arc::new(Asks)).await.unwrap();
    let unknown = "no callable tool is named";
    for (names, expected) in [
        (&["echo", "wr*", "*"][..], "(no output)".to_owned()),
        (&["ecko"], format!("{unknown} `ecko`: did you mean `echo`?")),
        (&["Read", "echo"], format!("{unknown} `Read`: did you mean `read`?")),
        (&["long", "zzz*"], format!("{unknown} `long`\n{unknown} `zzz*`")),
    ] {
        assert_eq!(house.call("ask", json!({"names": names})).await, expected, "{names:?}");
    }
}

/// Creates a house whose approver answers each request with the next of these scopes, and none afterwards.
async fn asked(rules: &[(Effect, &'static str)], answers: &[ApprovalScope]) -> (House, Arc<ScriptedApprover>) {
    let yes = |holds: &ApprovalScope| ApprovalOutcome::Granted { by: "ann".into(), scopes: vec![*holds] };
    let approver = Arc::new(ScriptedApprover::answering(answers.iter().map(yes)));
    let plan = Plan { rules: rules.to_vec(), approver: approver.clone(), ..Default::default() };
    (plan.house_that_nests().await, approver)
}

#[tokio::test]
async fn a_run_approval_covers_its_view_and_inner_views_and_a_session_approval_the_session() {
    use ApprovalScope::{Always, Once, Run, Session};
    // One call is approved by a rule, the other by its arguments.
    for tool in ["write", "opaque"] {
        let one = || json!([tool, {}]);
        let window = |made: Value| make(&["make", tool], made);
        for (about, answers, each, expected) in [
            ("a run, once", &[Run][..], vec![window(json!([one(), one()]))], "yes yes"),
            ("the next run", &[Run], vec![window(json!([one(), one()])), window(json!([one()]))], "yes yes|no"),
            (
                "a run beside it",
                &[Run],
                vec![make(&["*"], json!([window(json!([one()])), window(json!([one()]))]))],
                "yes no",
            ),
            ("one within it", &[Run], vec![window(json!([one(), window(json!([one()]))]))], "yes yes"),
            ("the one around it", &[Run], vec![window(json!([window(json!([one(), one()])), one()]))], "yes yes no"),
            ("outside of it", &[Run], vec![window(json!([one()])), one()], "yes|no"),
            ("the session", &[Session], vec![window(json!([one()])), one(), window(json!([one()]))], "yes|yes|yes"),
            ("from deep within", &[Session], vec![window(json!([window(json!([one()]))])), one()], "yes|yes"),
            ("into a window", &[Session], vec![one(), window(json!([window(json!([one()]))]))], "yes|yes"),
            ("no run", &[Run], vec![one(), one()], "yes|no"),
            ("for good in a run", &[Always], vec![window(json!([one(), one()]))], "yes no"),
            ("once", &[Once], vec![window(json!([one(), one()]))], "yes no"),
        ] {
            let (house, _) = asked(&[], answers).await;
            let mut output = Vec::new();
            for call in each {
                let said = house.call(call[0].as_str().unwrap(), call[1].clone()).await;
                let short = said.lines().map(|line| if line.contains("permission_denied") { "no" } else { "yes" });
                output.push(short.collect::<Vec<_>>().join(" "));
            }
            assert_eq!(output.join("|"), expected, "{about}: {tool}");
        }
    }
}

#[tokio::test]
async fn approval_for_a_run_is_offered_only_within_a_run_and_recorded_as_such() {
    use ApprovalScope::{Always, Once, Project, Run, Session};
    let (house, approver) = asked(&[], &[Run, Once]).await;
    house.call("make", json!({"window": ["write"], "calls": [["write", {}], ["write", {}]]})).await;
    house.call("write", json!({})).await;
    let scopes: Vec<_> = approver.questions().into_iter().map(|question| question.parts[0].scopes.clone()).collect();
    assert_eq!(scopes, [vec![Once, Run, Session], vec![Once, Session, Project, Always]]);
    let rows = house.log.rows();
    let decisions = rows.iter().filter(|row| row.tool == "write").filter_map(|row| row.decision.as_ref());
    let approved: Vec<_> = decisions.map(|decision| decision.approved_by.as_deref()).collect();
    assert_eq!(approved, [Some("ann (run)"), None, Some("ann")]);
}

#[tokio::test]
async fn sending_requires_approval_every_time_in_every_restricted_view() {
    use ApprovalScope::{Always, Once, Run, Session};
    let (house, approver) = asked(&[(Effect::Allow, "send")], &[Session, Run, Always, Session]).await;
    let two = || json!([["send", {}], ["send", {}]]);
    assert_eq!(house.call("make", json!({"window": ["send"], "calls": two()})).await, "sent\nsent");
    let inner = make(&["make", "send"], json!([make(&["send"], two())]));
    assert_eq!(house.call("make", calls(json!([inner]))).await, "sent\nsent");
    assert!(house.call("send", json!({})).await.starts_with("refused permission_denied"));
    let questions = approver.questions();
    assert_eq!(questions.len(), 5);
    assert!(questions.iter().all(|question| question.parts[0].scopes == [Once]), "{questions:?}");
}

#[tokio::test]
async fn ask_and_deny_rules_apply_in_every_restricted_view() {
    let rules = [(Effect::Ask, "write"), (Effect::Deny, "Write(//etc/**)")];
    let (house, approver) = asked(&rules, &[ApprovalScope::Run, ApprovalScope::Session]).await;
    let made = json!([["write", {}], ["write", {}], ["write", {}], ["outside", {}]]);
    let answer = house.call("make", json!({"window": ["*"], "calls": made})).await;
    let denied = answer.lines().map(|line| line.starts_with("permission_denied"));
    assert_eq!(denied.collect::<Vec<_>>(), [false, false, true, true], "{answer}");
    assert_eq!(approver.questions().len(), 3);
}

#[tokio::test]
async fn the_record_of_a_nested_call_names_the_restricted_views_that_contain_it() {
    let house = Plan::default().house_that_nests().await;
    let inner = make(&["echo"], json!([["echo", {}]]));
    house.call("make", json!({"window": ["make"], "calls": [inner]})).await;
    let rows = house.log.rows();
    let message: Vec<_> = rows.iter().map(|row| (row.tool.as_str(), row.labels.get("toolstead/window"))).collect();
    assert_eq!(message, [("make", None), ("make", Some("run")), ("echo", Some("run/run"))]);
    assert_eq!([rows[1].parent, rows[2].parent], [Some(rows[0].id), Some(rows[1].id)]);
}

#[tokio::test]
async fn restricted_views_can_be_nested_as_deep_as_calls() {
    let house = Plan::default().house_that_nests().await;
    let nest = |depth| (0..depth).fold(json!(["echo", {}]), |inner, _| make(&["make", "echo"], json!([inner])));
    assert_eq!(house.call("make", calls(json!([nest(7)]))).await, "hi");
    let answer = house.call("make", calls(json!([nest(8)]))).await;
    assert!(answer.starts_with("too_large: Calls can be nested at most 8 deep"), "{answer}");
}

fn window() -> impl Strategy<Value = Vec<&'static str>> {
    let name = prop::sample::select(vec!["make", "make", "write", "echo", "send", "*", "w*", "*e", "Read", "nothing"]);
    prop::collection::vec(name, 0..4)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn nested_views_run_and_list_exactly_the_tools_that_the_policy_and_every_view_allow(
        rules in prop::collection::vec((
            prop::sample::select(vec![Effect::Allow, Effect::Ask, Effect::Deny]),
            prop::sample::select(vec!["write", "echo", "send", "make", "Write", "Write(//w/**)", "Edit(//w/b)"]),
        ), 0..5),
        windows in prop::collection::vec(window(), 0..4),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(async {
            let house = Plan { rules, ..Default::default() }.house_that_nests().await;
            let policy = house.permissions.policy_of(&RequestScope::of(Principal::local(), "s"));
            let snapshot = house.registry.snapshot();
            let holds = |windows: &[Vec<&'static str>], tool: &Tool| {
                windows.iter().all(|names| ToolSelection::canonical(names.iter().copied()).includes(tool))
            };
            let is_allowed = |windows: &[Vec<&'static str>], name: &str| {
                let accesses = match name {
                    "write" => write("/w/a"),
                    "send" => vec![Access::Send("a@b.c".into())],
                    _ => Vec::new(),
                };
                let tool = snapshot.resolve(name).unwrap().tool.clone();
                holds(windows, &tool) && policy.decide(&tool, &Map::new(), &accesses).verdict == Verdict::Allow
            };
            // The innermost view is that of the last `make`, which is called through the outer ones.
            let (innermost, around) = windows.split_last().map_or((None, &[][..]), |(last, rest)| (Some(last), rest));
            let is_reached = (0..=around.len()).all(|depth| is_allowed(&around[..depth], "make"));
            for tool in ["write", "echo", "send", "?"] {
                let before = house.provider.calls().len();
                let innermost = innermost.map_or_else(|| json!({}), |names| json!({"window": names}));
                let mut call = innermost;
                call["calls"] = json!([[tool, {}]]);
                for names in around.iter().rev() {
                    call = json!({"window": names, "calls": [["make", call]]});
                }
                let answer = house.call("make", call).await;
                if tool == "?" {
                    let shown = snapshot.tools().iter().map(|one| &one.tool);
                    let shown = shown.filter(|tool| tool.is_callable() && policy.advertises(tool) && holds(&windows, tool));
                    let shown: Vec<&str> = shown.map(|tool| tool.name().as_str()).collect();
                    prop_assert!(!is_reached || answer == format!("[{}]", shown.join(",")), "{} is not {:?}", answer, shown);
                } else {
                    let ran = house.provider.calls().len() > before;
                    prop_assert_eq!(ran, is_reached && is_allowed(&windows, tool), "{} through {:?}", tool, windows);
                }
            }
            Ok(())
        })?;
    }
}

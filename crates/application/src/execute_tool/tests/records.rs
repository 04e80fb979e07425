//! Contents of audit records and events, and redaction.

use super::{hooks::Guard, *};

/// Returns the kinds of the published events. Checks that none contains the secret.
fn heard(watch: &mut EventSubscription) -> Vec<String> {
    let mut kinds = Vec::new();
    while let Some(heard) = watch.waiting() {
        let json = heard.to_json();
        assert!(!json.to_string().contains("hunter2"), "{json}");
        assert!(json["principal"].is_string() && json["session"].is_string() && json["call"].is_string(), "{json}");
        kinds.push(json["type"].as_str().unwrap().to_owned());
    }
    kinds
}

#[tokio::test]
async fn subscribers_receive_each_step_of_a_call_in_order_and_no_secrets() {
    let yes = Arc::new(ScriptedApprover::answering([ApprovalOutcome::once("ada")]));
    let approver: Arc<dyn Approver> = yes;
    let hooks: Vec<Arc<dyn ToolHook>> = vec![Arc::new(Guard::default())];
    let secret = ScriptedTool::of(tool_with_schema("login", json!({"type": "object"})))
        .answers(ToolResult::text("welcome, hunter2"));
    let house = Plan { hooks, approver, ..Default::default() }.house(provider().with(secret)).await;
    let mut watch = house.events.subscribe();
    house.call("login", json!({"password": "hunter2"})).await;
    assert_eq!(heard(&mut watch), ["tool_call_started", "tool_call_completed"]);
    house.call("read", json!({"path": "doubtful"})).await;
    assert_eq!(
        heard(&mut watch),
        ["permission_requested", "permission_resolved", "tool_call_started", "tool_call_completed"]
    );
    house.call("read", json!({"path": "secret"})).await;
    assert_eq!(heard(&mut watch), ["tool_call_denied"]);
    house.call("nothing", json!({})).await;
    assert_eq!(heard(&mut watch), ["tool_call_failed"]);
}

#[tokio::test]
async fn detail_events_are_sent_only_if_enabled_and_respect_the_argument_recording_setting() {
    let image = json!({"type": "image", "data": "aGk=", "mimeType": "image/png"});
    let answers = || {
        ScriptedTool::of(tool_with_schema("login", json!({"type": "object"}))).ends_by({
            let image = image.clone();
            move |moment| match moment.call.arguments.contains_key("wrong") {
                true => Ending::Done(ToolResult::error(ErrorKind::ExecutionFailed, "hunter2 is wrong")),
                false => Ending::Done(ToolResult::text("welcome, hunter2").with_block(image.clone())),
            }
        })
    };
    let kinds = [RecordedArguments::Redacted, RecordedArguments::Full, RecordedArguments::None];
    for (keep, tells_details) in kinds.into_iter().flat_map(|keep| [(keep, true), (keep, false)]) {
        let settings = CallSettings { arguments: keep, tells_details, ..CallSettings::default() };
        let house = Plan { settings, ..Default::default() }.house(provider().with(answers())).await;
        let mut watch = house.events.subscribe();
        house.call("login", json!({"password": "hunter2"})).await;
        house.call("login", json!({"password": "hunter2", "wrong": true})).await;
        house.call("nothing", json!({})).await;
        let mut output = Vec::new();
        while let Some(heard) = watch.waiting() {
            output.extend(Some(heard.to_json()).filter(|json| json["type"] == "tool_call_details"));
        }
        if !tells_details {
            assert_eq!(output, [json!(null); 0]);
            continue;
        }
        let members = |event: &Value| (event["toolName"].clone(), event["isError"].clone());
        let expected = [("login", false), ("login", true), ("nothing", true)];
        let expected = expected.map(|(tool, is_error)| (json!(tool), json!(is_error)));
        assert_eq!(output.iter().map(members).collect::<Vec<_>>(), expected, "{keep:?}");
        assert!(output.iter().all(|one| one["conversationId"] == one["session"] && one["toolUseId"] == one["call"]));
        match keep {
            RecordedArguments::Redacted => {
                assert!(!format!("{output:?}").contains("hunter2"), "{output:?}");
                assert_eq!(output[0]["toolInput"], json!({"password": "[redacted]"}));
                assert_eq!(output[0]["toolResponse"]["content"][0]["text"], "welcome, [redacted]");
                assert_eq!(output[0]["toolResponse"]["content"][1]["data"], "[4 bytes of base64]");
                assert_eq!(output[1]["toolResponse"]["content"][0]["text"], "[redacted] is wrong");
                assert!(output[2]["toolResponse"].as_str().is_some_and(|why| why.contains("nothing")), "{output:?}");
            }
            RecordedArguments::Full => assert_eq!(output[0]["toolInput"], json!({"password": "hunter2"})),
            RecordedArguments::None => {
                assert!(output[0].get("toolInput").is_none() && output[0].get("toolResponse").is_none(), "{output:?}");
            }
        }
    }
}

const SECRETS: [&str; 4] = ["tok123456789", "hunter2pw", "querytok", "bearertok"];

/// Runs a call that fails, under a rule with this effect. Its arguments, its accesses and its error contain secrets.
async fn secretive(
    keep: RecordedArguments,
    verdict: Effect,
) -> (House, ExecuteToolError, Vec<toolstead_domain::event::EventKind>) {
    let settings = CallSettings { arguments: keep, ..CallSettings::default() };
    let line = "export MY_TOKEN='tok123456789'; curl -H 'Authorization: Bearer bearertok' https://me:hunter2pw@h/?token=querytok";
    let runs = Access::RunCommand(CommandAccess::opaque(line, "it says tok123456789"));
    let failing = ScriptedTool::named("shell")
        .touches(vec![runs])
        .reports(Progress { message: Some("using tok123456789".into()), ..Progress::at(1.0) });
    let failing = failing.ends_by(|_| {
        let said = ToolResult::error(ErrorKind::ExecutionFailed, "tok123456789 of https://me:hunter2pw@h is wrong");
        Ending::Done(said.with_structured_content(json!({"exit": 1, "stderr": "tok123456789 is wrong"})))
    });
    let provider = ScriptedProvider::new("built-in").with(failing);
    let house = Plan { rules: vec![(verdict, "Bash")], settings, ..Default::default() }.house(provider).await;
    let mut watch = house.events.subscribe();
    let arguments = json!({"command": "true", "env": {"MY_TOKEN": "tok123456789"}, "line": line});
    let outcome = house.handler.handle(command("shell", arguments)).await;
    let error = match outcome {
        Ok(_) => ExecuteToolError::Cancelled(CancelReason::Client),
        Err(error) => error,
    };
    let mut events = Vec::new();
    while let Some(crate::event_bus::ReceivedEvent::Event(event)) = watch.waiting() {
        events.push(event.kind.clone());
    }
    (house, error, events)
}

#[tokio::test]
async fn records_and_events_contain_no_secret_of_the_arguments() {
    for verdict in [Effect::Allow, Effect::Ask, Effect::Deny] {
        let (house, _, events) = secretive(RecordedArguments::Redacted, verdict).await;
        let row = house.only_row();
        let all = format!("{row:?} {events:?}");
        for secret in SECRETS {
            assert!(!all.contains(secret), "{verdict:?} {secret}: {all}");
        }
        assert!(row.accesses[0].starts_with("run export MY_TOKEN=[redacted]; curl"), "{row:?}");
        assert!(events.len() >= if verdict == Effect::Deny { 1 } else { 3 }, "{events:?}");
    }
}

#[tokio::test]
async fn a_record_contains_no_text_of_arguments_if_arguments_are_not_recorded() {
    for verdict in [Effect::Allow, Effect::Ask, Effect::Deny] {
        let (house, _, _) = secretive(RecordedArguments::None, verdict).await;
        let row = house.only_row();
        let all = format!("{row:?}");
        for text in SECRETS.iter().chain(&["curl", "MY_TOKEN", "it says", "is wrong"]) {
            assert!(!all.contains(text), "{verdict:?} {text}: {all}");
        }
        let decision = row.decision.as_ref().unwrap();
        assert_eq!(row.accesses, ["run"]);
        assert_eq!(decision.trace[0]["part"], "run");
        assert!(decision.reason.contains("rule `Bash` in the command line"), "{decision:?}");
        match (verdict, &row.outcome) {
            (Effect::Allow, ExecutionOutcome::Failed(ErrorKind::ExecutionFailed, detail)) => {
                assert_eq!(detail, "[not kept]")
            }
            (Effect::Ask | Effect::Deny, ExecutionOutcome::Refused(ErrorKind::PermissionDenied, detail)) => {
                assert_eq!(*detail, decision.reason);
            }
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test]
async fn full_argument_recording_keeps_secrets_in_the_record() {
    let (house, _, _) = secretive(RecordedArguments::Full, Effect::Allow).await;
    let row = house.only_row();
    assert!(row.accesses[0].contains("tok123456789") && row.arguments["env"]["MY_TOKEN"] == "tok123456789");
    assert_eq!(row.metadata, json!({"exit": 1, "stderr": "tok123456789 is wrong"}));
}

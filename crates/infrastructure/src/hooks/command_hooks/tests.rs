use super::*;
use crate::{
    child_environment,
    hooks::{input::tests::call, matcher::Matcher},
};
use serde_json::json;

fn hook(gate: bool, on_error: FailurePolicy) -> HookDefinition {
    HookDefinition {
        name: "one".into(),
        origin: "a test".into(),
        event: HookEvent::PreToolUse,
        matcher: Matcher::parse("*").unwrap(),
        filter: None,
        program: HookProgram::Shell("true".into()),
        start: None,
        environment: BTreeMap::new(),
        timeout: Duration::from_secs(5),
        gate,
        on_error,
        in_background: false,
    }
}

/// Runs `PermissionRequest` hooks with these answers. An empty answer is a failing hook.
async fn decision_of(answers: &[(&str, FailurePolicy)]) -> Option<HookDecision> {
    let definitions = answers.iter().map(|(behavior, on_error)| {
        let answer = json!({"hookSpecificOutput": {"decision": {"behavior": behavior, "message": "why"}}});
        let line = if behavior.is_empty() { "exit 1".to_owned() } else { format!("echo '{answer}'") };
        HookDefinition {
            event: HookEvent::PermissionRequest,
            program: HookProgram::Shell(line),
            timeout: Duration::from_secs(300),
            ..hook(false, *on_error)
        }
    });
    let surroundings = HookSurroundings {
        start: "/".into(),
        roots: WorkspaceRoots::default(),
        mode: PermissionMode::Default,
        environment: child_environment::base(|_| None),
        shell: "sh".into(),
        concurrency: 8,
    };
    let hooks = CommandHooks::new(definitions.collect(), surroundings, Launcher::start().unwrap());
    let call = call("write_file", json!({"path": "a", "content": ""}));
    hooks.decide_permission(&call, &[]).await.map(|(_, decided)| decided)
}

#[tokio::test]
async fn the_strictest_of_several_permission_request_hooks_applies() {
    use FailurePolicy::{Allow, Deny};
    let no = |reason: &str| Some(HookDecision::Verdict(HookVerdict::Deny(reason.into())));
    assert_eq!(decision_of(&[("ask", Allow), ("deny", Allow), ("allow", Allow)]).await, no("why"));
    assert_eq!(
        decision_of(&[("allow", Allow), ("ask", Allow)]).await,
        Some(HookDecision::Verdict(HookVerdict::Ask("why".into())))
    );
    assert_eq!(decision_of(&[("allow", Allow), ("", Allow)]).await, Some(HookDecision::Allow));
    let broken = "the hook failed: it ended with code 1";
    assert_eq!(decision_of(&[("allow", Allow), ("", Deny)]).await, no(broken));
    let ask = Some(HookDecision::Verdict(HookVerdict::Ask(broken.into())));
    assert_eq!(decision_of(&[("allow", Allow), ("", FailurePolicy::Ask)]).await, ask);
    assert_eq!(decision_of(&[("", Allow)]).await, None);
}

#[test]
fn a_gate_hook_lets_a_call_continue_only_with_a_valid_decision() {
    let flawed = HookAnswer::fault("`perhaps` is not a valid decision".into());
    let is_open = |hook: &HookDefinition, answer: &HookAnswer| verdict(hook, answer) == HookVerdict::Continue;
    for on_error in [FailurePolicy::Allow, FailurePolicy::Ask, FailurePolicy::Deny] {
        let gate = hook(true, on_error);
        assert!(!is_open(&gate, &flawed) && !is_open(&gate, &HookAnswer::default()), "{on_error:?}");
        assert!(is_open(&gate, &HookAnswer { decision: Some(HookDecision::Allow), ..HookAnswer::default() }));
    }
    assert!(
        is_open(&hook(false, FailurePolicy::Allow), &flawed) && !is_open(&hook(false, FailurePolicy::Deny), &flawed)
    );
}

//! Configured hooks for the events of an agent's run.

use super::{
    answer::HookAnswer,
    command_hooks::{CommandHooks, HookOutcome, HookWithOutcome, after, verdict},
    definition::{HookDefinition, HookEvent},
    input::HookPayload,
    text::MAX_TEXT,
};
use async_trait::async_trait;
use toolstead_domain::{AgentHook, AgentHookEvent, AgentHookResponse, HookVerdict};

impl CommandHooks {
    /// Runs the hooks of an agent event. Returns the report on each of them and their combined answer.
    pub async fn rehearse_agent_event(
        &self,
        event: HookEvent,
        moment: AgentHookEvent<'_>,
    ) -> (Vec<HookWithOutcome>, AgentHookResponse) {
        // For a subagent this is the session that started it.
        let of_subagent = moment.delegated_by.filter(|_| event.is_of_subagent());
        let session = of_subagent.map_or_else(|| moment.conversation.session(), |by| by.session.clone());
        let reports = self.run(HookPayload::Agent(event, &session, moment)).await;
        let word = combine_answers(&reports);
        (reports, word)
    }
}

#[async_trait]
impl AgentHook for CommandHooks {
    async fn prompt_submitted<'m>(&self, moment: AgentHookEvent<'m>) -> AgentHookResponse {
        let begun = after(&self.begin(&moment.conversation.session()).await);
        let (_, mut response) = self.rehearse_agent_event(HookEvent::UserPromptSubmit, moment).await;
        response.context.splice(0..0, begun.context.into_iter().map(|one| one.text));
        response.messages.splice(0..0, begun.messages);
        bound(&mut response.context);
        response
    }

    async fn stopping<'m>(&self, moment: AgentHookEvent<'m>) -> AgentHookResponse {
        self.rehearse_agent_event(HookEvent::Stop, moment).await.1
    }

    async fn subagent_started<'m>(&self, moment: AgentHookEvent<'m>) -> AgentHookResponse {
        let (_, response) = self.rehearse_agent_event(HookEvent::SubagentStart, moment).await;
        // The subagent's start was already decided with its call.
        AgentHookResponse { block: None, ..response }
    }

    async fn subagent_stopping<'m>(&self, moment: AgentHookEvent<'m>) -> AgentHookResponse {
        self.rehearse_agent_event(HookEvent::SubagentStop, moment).await.1
    }

    async fn compacting<'m>(&self, moment: AgentHookEvent<'m>) -> AgentHookResponse {
        self.rehearse_agent_event(HookEvent::PreCompact, moment).await.1
    }

    async fn notified<'m>(&self, moment: AgentHookEvent<'m>) -> AgentHookResponse {
        let (_, response) = self.rehearse_agent_event(HookEvent::Notification, moment).await;
        // A notification has already happened, so it cannot be blocked.
        AgentHookResponse { block: None, ..response }
    }
}

/// Combines the answers of all hooks of one event. The first objection counts.
fn combine_answers(reports: &[HookWithOutcome]) -> AgentHookResponse {
    let mut whole = AgentHookResponse::default();
    for HookWithOutcome { hook, outcome } in reports {
        let HookOutcome::Ran { answer, .. } = outcome else { continue };
        let name = &hook.name;
        if let Some(fault) = &answer.fault {
            tracing::warn!(hook = name, fault, "the hook failed");
            whole.messages.push(format!("the hook `{name}` failed: {fault}"));
        }
        match &answer.stop_reason {
            Some(reason) => whole.stop = whole.stop.or_else(|| Some(format!("the hook `{name}`: {reason}"))),
            None => whole.block = whole.block.or_else(|| objection(hook, answer)),
        }
        whole.context.extend(answer.context.clone());
        whole.messages.extend(answer.message.iter().map(|text| format!("{name}: {text}")));
    }
    bound(&mut whole.context);
    whole
}

/// Returns the hook's objection. A failed hook objects only to prompts, and only if its configuration says so.
fn objection(hook: &HookDefinition, answer: &HookAnswer) -> Option<String> {
    if !hook.event.may_be_gate() {
        return answer.objection().map(str::to_owned);
    }
    match verdict(hook, answer) {
        HookVerdict::Continue => None,
        // The user is never asked about a prompt.
        HookVerdict::Ask(reason) | HookVerdict::Defer(reason) | HookVerdict::Deny(reason) => Some(reason),
    }
}

/// Limits the context of all hooks of one event together to the maximum of a single hook.
fn bound(context: &mut Vec<String>) {
    let mut left = MAX_TEXT;
    context.retain_mut(|text| {
        if let Some((end, _)) = text.char_indices().nth(left) {
            text.truncate(end);
            text.push('…');
        }
        let is_left = left > 0;
        left = left.saturating_sub(text.chars().count());
        is_left
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        child_environment,
        hooks::{
            command_hooks::HookSurroundings,
            definition::{FailurePolicy, HookProgram},
            matcher::Matcher,
        },
        sandbox::launcher::Launcher,
    };
    use serde_json::{Value, json};
    use std::{collections::BTreeMap, sync::Arc, time::Duration};
    use toolstead_domain::{ConversationId, Delegation, PermissionMode, Principal, WorkspaceRoots, testing::samples};

    fn hook(event: HookEvent, matcher: &str, line: &str) -> HookDefinition {
        HookDefinition {
            name: "h".into(),
            origin: "a test".into(),
            event,
            matcher: Matcher::parse(matcher).unwrap(),
            filter: None,
            program: HookProgram::Shell(line.into()),
            start: None,
            environment: BTreeMap::new(),
            timeout: Duration::from_secs(300),
            gate: false,
            on_error: FailurePolicy::Allow,
            in_background: false,
        }
    }

    fn hooks(definitions: Vec<HookDefinition>) -> Arc<CommandHooks> {
        let surroundings = HookSurroundings {
            start: "/".into(),
            roots: WorkspaceRoots::default(),
            mode: PermissionMode::Default,
            environment: child_environment::base(|name| (name == "PATH").then(|| "/usr/bin:/bin".into())),
            shell: "sh".into(),
            concurrency: 8,
        };
        CommandHooks::new(definitions, surroundings, Launcher::start().unwrap())
    }

    async fn said(definitions: Vec<HookDefinition>, event: HookEvent, text: &str) -> AgentHookResponse {
        let (hooks, principal) = (hooks(definitions), Principal::local());
        let conversation = ConversationId("01890a5d-ac96-774b-bcce-b302099a8057".parse().unwrap());
        let by = Delegation { session: "s".into(), call: samples::call_id(1), agent: "reader".into() };
        let handed_over = event.is_of_subagent().then_some(&by);
        let moment = AgentHookEvent {
            conversation,
            principal: &principal,
            delegated_by: handed_over,
            text,
            goes_on_by_hook: true,
        };
        match event {
            HookEvent::UserPromptSubmit => hooks.prompt_submitted(moment).await,
            HookEvent::Stop => hooks.stopping(moment).await,
            HookEvent::PreCompact => hooks.compacting(moment).await,
            HookEvent::SubagentStart => hooks.subagent_started(moment).await,
            HookEvent::SubagentStop => hooks.subagent_stopping(moment).await,
            _ => hooks.notified(moment).await,
        }
    }

    /// Returns the input of a hook, which the hook reports as its reason.
    async fn read(event: HookEvent, text: &str) -> Value {
        let line = "cat >&2; exit 2";
        let word = said(vec![hook(event, "*", line)], event, text).await;
        serde_json::from_str(&word.block.unwrap()).unwrap()
    }

    /// Returns the input of a hook, which the hook reports as context for the model.
    async fn read_context(event: HookEvent, text: &str) -> Value {
        let word = said(vec![hook(event, "*", "echo read; cat")], event, text).await;
        serde_json::from_str(word.context[0].strip_prefix("read\n").unwrap()).unwrap()
    }

    #[tokio::test]
    async fn agent_event_hooks_receive_the_input_fields_of_claude_code() {
        let common = |event: &str, more: Value| {
            let mut whole = json!({
                "session_id": "01890a5d-ac96-774b-bcce-b302099a8057", "transcript_path": "", "cwd": "/",
                "permission_mode": "default", "hook_event_name": event,
            });
            whole.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            whole
        };
        let prompt = common("UserPromptSubmit", json!({"prompt": "mend it"}));
        assert_eq!(read(HookEvent::UserPromptSubmit, "mend it").await, prompt);
        let stop = common("Stop", json!({"stop_hook_active": true, "last_assistant_message": "done"}));
        assert_eq!(read(HookEvent::Stop, "done").await, stop);
        let subagent = json!({
            "session_id": "s", "agent_id": "01890a5d-ac96-774b-bcce-b302099a8057", "agent_type": "reader",
        });
        let start = common("SubagentStart", subagent.clone());
        assert_eq!(read_context(HookEvent::SubagentStart, "reader").await, start);
        let mut stop = common("SubagentStop", subagent);
        stop["stop_hook_active"] = true.into();
        stop["last_assistant_message"] = "done".into();
        stop["agent_transcript_path"] = "".into();
        assert_eq!(read(HookEvent::SubagentStop, "done").await, stop);
        let compact = common("PreCompact", json!({"trigger": "auto", "custom_instructions": ""}));
        assert_eq!(read(HookEvent::PreCompact, "auto").await, compact);
    }

    #[tokio::test]
    async fn agent_event_hooks_can_block_stop_add_context_or_report_messages() {
        use HookEvent::{Notification, PreCompact, Stop, UserPromptSubmit};
        let block = |text: &str| AgentHookResponse { block: Some(text.into()), ..AgentHookResponse::default() };
        let silent = AgentHookResponse::default();
        for (event, line, expected) in [
            (UserPromptSubmit, "echo no >&2; exit 2", block("no")),
            (Stop, r#"echo '{"decision": "block", "reason": "tests fail"}'"#, block("tests fail")),
            (PreCompact, "echo later >&2; exit 2", block("later")),
            (Notification, "echo no >&2; exit 2", silent.clone()),
            (
                UserPromptSubmit,
                "echo it rains",
                AgentHookResponse { context: vec!["it rains".into()], ..silent.clone() },
            ),
            (Stop, "echo it rains", silent.clone()),
            (
                UserPromptSubmit,
                r#"echo '{"hookSpecificOutput": {"hookEventName": "UserPromptSubmit", "additionalContext": "wet"}}'"#,
                AgentHookResponse { context: vec!["wet".into()], ..silent.clone() },
            ),
            (
                Stop,
                r#"echo '{"continue": false, "stopReason": "enough"}'"#,
                AgentHookResponse { stop: Some("the hook `h`: enough".into()), ..silent.clone() },
            ),
            (
                Notification,
                r#"echo '{"systemMessage": "rang"}'"#,
                AgentHookResponse { messages: vec!["h: rang".into()], ..silent.clone() },
            ),
            (
                Stop,
                "echo boom >&2; exit 1",
                AgentHookResponse {
                    messages: vec!["the hook `h` failed: it ended with code 1: boom".into()],
                    ..silent.clone()
                },
            ),
        ] {
            assert_eq!(said(vec![hook(event, "*", line)], event, "auto").await, expected, "{line}");
        }
    }

    #[tokio::test]
    async fn matchers_filter_compactions_subagents_and_notifications_but_not_prompts() {
        let objects = async |event, matcher: &str, text: &str| {
            said(vec![hook(event, matcher, "exit 2")], event, text).await.block.is_some()
        };
        assert!(objects(HookEvent::PreCompact, "auto", "auto").await);
        assert!(!objects(HookEvent::PreCompact, "manual", "auto").await);
        assert!(objects(HookEvent::UserPromptSubmit, "Write", "mend it").await);
        assert!(objects(HookEvent::SubagentStop, "reader", "done").await);
        assert!(!objects(HookEvent::SubagentStop, "writer", "done").await);
        let rings = async |matcher: &str| {
            let line = r#"echo '{"systemMessage": "rang"}'"#;
            let hook = hook(HookEvent::Notification, matcher, line);
            !said(vec![hook], HookEvent::Notification, "`bash` waits for your approval: a rule")
                .await
                .messages
                .is_empty()
        };
        assert!(rings("permission_prompt").await && !rings("idle_prompt").await);
    }

    #[tokio::test]
    async fn a_prompt_gate_hook_that_fails_or_decides_nothing_blocks_the_prompt() {
        for (line, opens) in [("exit 1", false), ("true", false), (r#"echo '{"decision": "approve"}'"#, true)] {
            let gate = HookDefinition {
                gate: true,
                on_error: FailurePolicy::Deny,
                ..hook(HookEvent::UserPromptSubmit, "*", line)
            };
            let word = said(vec![gate], HookEvent::UserPromptSubmit, "mend it").await;
            assert_eq!(word.block.is_none(), opens, "{line}: {word:?}");
        }
    }

    #[tokio::test]
    async fn the_first_prompt_runs_session_start_hooks_and_hook_context_is_limited() {
        let begins = hook(HookEvent::SessionStart, "*", "echo welcome");
        let long = hook(HookEvent::UserPromptSubmit, "*", "head -c 9990 /dev/zero | tr '\\0' x");
        let word = said(vec![begins, long.clone(), long], HookEvent::UserPromptSubmit, "mend it").await;
        assert_eq!(word.context[0], "welcome");
        let all: usize = word.context.iter().map(|text| text.chars().count()).sum();
        assert!((MAX_TEXT..=MAX_TEXT + 2).contains(&all), "{all}");
    }
}

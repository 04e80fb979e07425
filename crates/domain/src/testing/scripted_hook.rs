//! A hook with scripted answers.

use super::{lock, waitable_counter::WaitableCounter};
use crate::{
    access::Access,
    ports::tool_hook::{AfterCallResponse, BeforeCallResponse, EndedCall, HookTimeout, ToolHook},
    tool_call::{CallId, ToolCall},
    tool_execution::ToolExecution,
    tool_result::ToolResult,
};
use async_trait::async_trait;
use serde_json::{Map, Value};
use std::{collections::VecDeque, sync::Mutex};

/// Hook that answers in the order of the script, and without objection after its end.
#[derive(Debug, Default)]
pub struct ScriptedToolHook {
    name: String,
    timeout: HookTimeout,
    before: Mutex<VecDeque<Option<BeforeCallResponse>>>,
    after: Mutex<VecDeque<AfterCallResponse>>,
    received_before: Mutex<Vec<BeforeCallArguments>>,
    received_after: Mutex<Vec<AfterCallArguments>>,
    asked: WaitableCounter,
}

/// Arguments of a hook before a call.
#[derive(Debug, Clone, PartialEq)]
pub struct BeforeCallArguments {
    /// Id of the call.
    pub id: CallId,
    /// Canonical name of the tool.
    pub tool: String,
    /// Current arguments of the call.
    pub arguments: Map<String, Value>,
    /// Accesses of the call, if they could be determined.
    pub accesses: Option<Vec<Access>>,
}

/// Arguments of a hook after a call.
#[derive(Debug, Clone, PartialEq)]
pub struct AfterCallArguments {
    /// Record that will be written.
    pub execution: ToolExecution,
    /// Result of the call.
    pub result: Option<ToolResult>,
}

impl ScriptedToolHook {
    /// Creates a hook that has no objection to any call.
    pub fn named(name: &str) -> Self {
        Self { name: name.into(), ..Self::default() }
    }

    /// Adds an answer for before a call.
    #[must_use]
    pub fn answering_before(self, answer: BeforeCallResponse) -> Self {
        lock(&self.before).push_back(Some(answer));
        self
    }

    /// Adds a call before which the hook never answers.
    #[must_use]
    pub fn silent_before(self) -> Self {
        lock(&self.before).push_back(None);
        self
    }

    /// Adds an answer for after a call.
    #[must_use]
    pub fn answering_after(self, answer: AfterCallResponse) -> Self {
        lock(&self.after).push_back(answer);
        self
    }

    /// Sets the timeouts of the hook.
    #[must_use]
    pub fn with_timeout(self, patience: HookTimeout) -> Self {
        Self { timeout: patience, ..self }
    }

    /// Returns the arguments before calls, in order.
    pub fn received_before(&self) -> Vec<BeforeCallArguments> {
        lock(&self.received_before).clone()
    }

    /// Returns the arguments after calls, in order.
    pub fn received_after(&self) -> Vec<AfterCallArguments> {
        lock(&self.received_after).clone()
    }

    /// Returns once [`before`](ToolHook::before) was called this number of times.
    pub async fn asked(&self, calls: u64) {
        self.asked.reached(calls).await;
    }
}

#[async_trait]
impl ToolHook for ScriptedToolHook {
    fn name(&self) -> &str {
        &self.name
    }

    fn timeout(&self) -> HookTimeout {
        self.timeout
    }

    async fn before(&self, call: &ToolCall, accesses: Option<&[Access]>) -> BeforeCallResponse {
        lock(&self.received_before).push(BeforeCallArguments {
            id: call.id,
            tool: call.tool.name().to_string(),
            arguments: call.arguments.clone(),
            accesses: accesses.map(<[Access]>::to_vec),
        });
        self.asked.raise();
        let scripted = lock(&self.before).pop_front();
        match scripted {
            Some(Some(answer)) => answer,
            Some(None) => std::future::pending().await,
            None => BeforeCallResponse::proceed(),
        }
    }

    async fn after(&self, ended: EndedCall<'_>) -> AfterCallResponse {
        let heard = AfterCallArguments { execution: ended.execution.clone(), result: ended.result.cloned() };
        lock(&self.received_after).push(heard);
        lock(&self.after).pop_front().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        principal::Principal,
        testing::{block_on::block_on, samples},
    };
    use std::sync::Arc;

    #[test]
    fn the_hook_returns_scripted_answers_in_order_and_records_its_inputs() {
        let tool = Arc::new(samples::tool("echo"));
        let call = ToolCall {
            id: samples::call_id(1),
            principal: Principal::local(),
            session: "s".into(),
            called_as: "echo".into(),
            tool,
            arguments: Map::from_iter([("text".to_owned(), "hi".into())]),
            meta: Map::new(),
        };
        let hook = ScriptedToolHook::named("guard")
            .answering_before(BeforeCallResponse::deny("no"))
            .answering_after(AfterCallResponse { messages: vec!["over".into()], ..AfterCallResponse::default() });
        let before = || block_on(hook.before(&call, Some(&[])));
        assert_eq!([before(), before()], [BeforeCallResponse::deny("no"), BeforeCallResponse::proceed()]);
        block_on(hook.asked(2));
        let row = samples::execution(1);
        let ended = EndedCall { call: Some(&call), accesses: None, execution: &row, result: None };
        assert_eq!(block_on(hook.after(ended)).messages, ["over"]);
        assert_eq!(block_on(hook.after(ended)), AfterCallResponse::default());
        let heard = &hook.received_before()[0];
        assert_eq!(
            (&*heard.tool, &heard.arguments, heard.accesses.as_deref()),
            ("echo", &call.arguments, Some(&[][..]))
        );
        assert_eq!(hook.received_after()[1], AfterCallArguments { execution: row, result: None });
    }
}

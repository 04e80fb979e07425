//! A hook whose answers a test wrote beforehand.

use super::{lock, signal::Signal};
use crate::{
    access::Access,
    ports::tool_hook::{AfterCall, BeforeCall, EndedCall, HookPatience, ToolHook},
    tool_call::{CallId, ToolCall},
    tool_execution::ToolExecution,
    tool_result::ToolResult,
};
use async_trait::async_trait;
use serde_json::{Map, Value};
use std::{collections::VecDeque, sync::Mutex};

/// Answers in the order of the script; when a script is at its end, it has nothing to say.
#[derive(Debug, Default)]
pub struct ScriptedHook {
    name: String,
    patience: HookPatience,
    before: Mutex<VecDeque<Option<BeforeCall>>>,
    after: Mutex<VecDeque<AfterCall>>,
    heard_before: Mutex<Vec<HeardBefore>>,
    heard_after: Mutex<Vec<HeardAfter>>,
    asked: Signal,
}

/// The words to a hook before a call.
#[derive(Debug, Clone, PartialEq)]
pub struct HeardBefore {
    /// The call's id.
    pub id: CallId,
    /// The tool's canonical name.
    pub tool: String,
    /// The arguments that it had by then.
    pub arguments: Map<String, Value>,
    /// Its accesses, where they could be told.
    pub accesses: Option<Vec<Access>>,
}

/// The words to a hook after a call.
#[derive(Debug, Clone, PartialEq)]
pub struct HeardAfter {
    /// The row that will be recorded.
    pub execution: ToolExecution,
    /// The result of the call.
    pub result: Option<ToolResult>,
}

impl ScriptedHook {
    /// A hook that lets everything pass.
    pub fn named(name: &str) -> Self {
        Self { name: name.into(), ..Self::default() }
    }

    /// Answers so before the next call after those that are scripted.
    #[must_use]
    pub fn answering_before(self, answer: BeforeCall) -> Self {
        lock(&self.before).push_back(Some(answer));
        self
    }

    /// Never answers before the next call after those that are scripted.
    #[must_use]
    pub fn silent_before(self) -> Self {
        lock(&self.before).push_back(None);
        self
    }

    /// Answers so after the next call after those that are scripted.
    #[must_use]
    pub fn answering_after(self, answer: AfterCall) -> Self {
        lock(&self.after).push_back(answer);
        self
    }

    /// Is waited for as long as this.
    #[must_use]
    pub fn patient_for(self, patience: HookPatience) -> Self {
        Self { patience, ..self }
    }

    /// All that it heard before calls, in order.
    pub fn heard_before(&self) -> Vec<HeardBefore> {
        lock(&self.heard_before).clone()
    }

    /// All that it heard after calls, in order.
    pub fn heard_after(&self) -> Vec<HeardAfter> {
        lock(&self.heard_after).clone()
    }

    /// Returns once it was asked before so many calls.
    pub async fn asked(&self, calls: u64) {
        self.asked.reached(calls).await;
    }
}

#[async_trait]
impl ToolHook for ScriptedHook {
    fn name(&self) -> &str {
        &self.name
    }

    fn patience(&self) -> HookPatience {
        self.patience
    }

    async fn before(&self, call: &ToolCall, accesses: Option<&[Access]>) -> BeforeCall {
        lock(&self.heard_before).push(HeardBefore {
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
            None => BeforeCall::go_on(),
        }
    }

    async fn after(&self, ended: EndedCall<'_>) -> AfterCall {
        let heard = HeardAfter { execution: ended.execution.clone(), result: ended.result.cloned() };
        lock(&self.heard_after).push(heard);
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
    fn answers_are_given_in_order_and_what_was_heard_is_kept() {
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
        let hook = ScriptedHook::named("guard")
            .answering_before(BeforeCall::deny("no"))
            .answering_after(AfterCall { messages: vec!["over".into()], ..AfterCall::default() });
        let before = || block_on(hook.before(&call, Some(&[])));
        assert_eq!([before(), before()], [BeforeCall::deny("no"), BeforeCall::go_on()]);
        block_on(hook.asked(2));
        let row = samples::execution(1);
        let ended = EndedCall { call: Some(&call), accesses: None, execution: &row, result: None };
        assert_eq!(block_on(hook.after(ended)).messages, ["over"]);
        assert_eq!(block_on(hook.after(ended)), AfterCall::default());
        let heard = &hook.heard_before()[0];
        assert_eq!(
            (&*heard.tool, &heard.arguments, heard.accesses.as_deref()),
            ("echo", &call.arguments, Some(&[][..]))
        );
        assert_eq!(hook.heard_after()[1], HeardAfter { execution: row, result: None });
    }
}

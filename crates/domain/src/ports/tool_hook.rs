//! Hooks, which run before and after every call.

use crate::{
    access::Access, labels::Labels, tool_call::ToolCall, tool_execution::ToolExecution, tool_result::ToolResult,
};
use async_trait::async_trait;
use serde_json::{Map, Value};
use std::time::Duration;

/// The decision of a hook before a call, from lenient to strict: the strictest of several wins.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum HookVerdict {
    /// Nothing to say; rules and defaults decide.
    #[default]
    Continue,
    /// Have somebody asked, whatever rules and defaults say, for this reason.
    Ask(String),
    /// Not now: refuse the call, so that somebody outside can settle it first.
    Defer(String),
    /// Refuse the call, with the reason for the model.
    Deny(String),
}

/// A text that a hook wants the model to know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HookContext {
    /// The one who says it, where one hook speaks for several.
    pub by: Option<String>,
    /// The text.
    pub text: String,
}

impl<T: Into<String>> From<T> for HookContext {
    fn from(text: T) -> Self {
        Self { by: None, text: text.into() }
    }
}

/// The word of a hook before a call.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct BeforeCall {
    /// Its decision.
    pub verdict: HookVerdict,
    /// The one who decided that, where one hook speaks for several.
    pub by: Option<String>,
    /// Other arguments, under their canonical names. They are validated again, and judged in place of the first ones.
    pub arguments: Option<Map<String, Value>>,
    /// For the model, beside the result.
    pub context: Vec<HookContext>,
    /// For the person at the client.
    pub messages: Vec<String>,
    /// For the row of the call. Labels that it has already stay as they are.
    pub labels: Labels,
}

impl BeforeCall {
    /// Nothing.
    pub fn go_on() -> Self {
        Self::default()
    }

    /// Refuse the call, with the reason for the model.
    pub fn deny(reason: impl Into<String>) -> Self {
        HookVerdict::Deny(reason.into()).into()
    }

    /// Have somebody asked, for this reason.
    pub fn ask(reason: impl Into<String>) -> Self {
        HookVerdict::Ask(reason.into()).into()
    }

    /// Go on with these arguments.
    pub fn rewrite(arguments: Map<String, Value>) -> Self {
        Self { arguments: Some(arguments), ..Self::default() }
    }
}

impl From<HookVerdict> for BeforeCall {
    fn from(verdict: HookVerdict) -> Self {
        Self { verdict, ..Self::default() }
    }
}

/// A call that is over.
#[derive(Debug, Clone, Copy)]
pub struct EndedCall<'a> {
    /// The call as it was made; `None` where it did not get as far as that.
    pub call: Option<&'a ToolCall>,
    /// Its accesses, as they were judged; `None` where it did not get as far as that.
    pub accesses: Option<&'a [Access]>,
    /// The row that will be recorded. It is what says whether the call ran.
    pub execution: &'a ToolExecution,
    /// Its result.
    pub result: Option<&'a ToolResult>,
}

/// The word of a hook after a call. Nothing of it changes what happened.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct AfterCall {
    /// The result that the model gets in place of the first one, whose digest the audit trail keeps.
    pub output: Option<ToolResult>,
    /// The one who changed it, where one hook speaks for several.
    pub by: Option<String>,
    /// For the model, beside the result.
    pub context: Vec<HookContext>,
    /// For the person at the client.
    pub messages: Vec<String>,
}

/// The time that a hook is waited for. One that is late before a call refuses it; one that is late after it is passed
/// over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HookPatience {
    /// Before a call.
    pub before: Duration,
    /// After it.
    pub after: Duration,
}

impl Default for HookPatience {
    fn default() -> Self {
        Self { before: Duration::from_secs(60), after: Duration::from_secs(2) }
    }
}

/// A hook. It may refuse, have somebody asked, and rewrite; it never allows what a rule denies or asks about.
///
/// Dropping a future of it ends what it does.
#[async_trait]
pub trait ToolHook: Send + Sync {
    /// The hook's name, for refusals and the audit trail.
    fn name(&self) -> &str;

    /// The time that it is waited for.
    fn patience(&self) -> HookPatience {
        HookPatience::default()
    }

    /// Before a call is judged. `accesses` is what it would touch with the arguments that it has by now; `None` where
    /// that cannot be told. They are worked out again before they are judged.
    async fn before<'s, 'c, 'a>(&'s self, call: &'c ToolCall, accesses: Option<&'a [Access]>) -> BeforeCall;

    /// After a call, whether or not it ran, and before its row is recorded.
    async fn after<'s, 'e>(&'s self, ended: EndedCall<'e>) -> AfterCall;
}

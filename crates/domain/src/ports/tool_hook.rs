//! Hooks that run before and after every call.

use crate::{
    access::Access, labels::CallLabels, tool_call::ToolCall, tool_execution::ToolExecution, tool_result::ToolResult,
};
use async_trait::async_trait;
use serde_json::{Map, Value};
use std::time::Duration;

/// Decision of a hook before a call, from lenient to strict: the strictest of several wins.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum HookVerdict {
    /// No objection; rules and defaults decide.
    #[default]
    Continue,
    /// Require approval for this reason, whatever rules and defaults decide.
    Ask(String),
    /// Refuse the call for this reason, which must be settled outside of the call before it is repeated.
    Defer(String),
    /// Refuse the call, with the reason for the model.
    Deny(String),
}

/// Text of a hook for the model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AdditionalContext {
    /// Name of the hook that wrote the text, if this hook combines several; otherwise `None`.
    pub by: Option<String>,
    /// The text itself.
    pub text: String,
}

impl<T: Into<String>> From<T> for AdditionalContext {
    fn from(text: T) -> Self {
        Self { by: None, text: text.into() }
    }
}

/// Response of a hook before a call.
///
/// ```
/// use toolstead_domain::ports::tool_hook::{BeforeCallResponse, HookVerdict};
///
/// assert_eq!(BeforeCallResponse::deny("not on Fridays").verdict, HookVerdict::Deny("not on Fridays".into()));
/// assert_eq!(BeforeCallResponse::proceed().verdict, HookVerdict::Continue);
/// assert!(HookVerdict::Ask("why".into()) < HookVerdict::Deny("why".into()));
/// ```
#[derive(Debug, Clone, PartialEq, Default)]
pub struct BeforeCallResponse {
    /// Decision of the hook.
    pub verdict: HookVerdict,
    /// Name of the hook that decided, if this hook combines several; otherwise `None`.
    pub by: Option<String>,
    /// Replacement arguments, with their canonical names. They are validated again, and checked in place of the
    /// original ones.
    pub arguments: Option<Map<String, Value>>,
    /// Texts for the model, beside the result.
    pub context: Vec<AdditionalContext>,
    /// Messages to the user at the client.
    pub messages: Vec<String>,
    /// Labels for the audit record. Existing labels of the call are not replaced.
    pub labels: CallLabels,
}

impl BeforeCallResponse {
    /// Returns a response without objection.
    pub fn proceed() -> Self {
        Self::default()
    }

    /// Refuses the call, with the reason for the model.
    pub fn deny(reason: impl Into<String>) -> Self {
        HookVerdict::Deny(reason.into()).into()
    }

    /// Requires approval, for this reason.
    pub fn ask(reason: impl Into<String>) -> Self {
        HookVerdict::Ask(reason.into()).into()
    }

    /// Continues with these arguments.
    pub fn rewrite(arguments: Map<String, Value>) -> Self {
        Self { arguments: Some(arguments), ..Self::default() }
    }
}

impl From<HookVerdict> for BeforeCallResponse {
    fn from(verdict: HookVerdict) -> Self {
        Self { verdict, ..Self::default() }
    }
}

/// Call that has ended.
#[derive(Debug, Clone, Copy)]
pub struct EndedCall<'a> {
    /// Call as it was made; `None` if it ended before that.
    pub call: Option<&'a ToolCall>,
    /// Accesses that were checked; `None` if the call ended before that.
    pub accesses: Option<&'a [Access]>,
    /// Audit record that will be written. It shows if the call ran.
    pub execution: &'a ToolExecution,
    /// Result of the call.
    pub result: Option<&'a ToolResult>,
}

/// Response of a hook after a call. It does not change what happened.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct AfterCallResponse {
    /// Result that the model receives in place of the original one. The audit log stores the digest of the original.
    pub output: Option<ToolResult>,
    /// Name of the hook that replaced the result, if this hook combines several; otherwise `None`.
    pub by: Option<String>,
    /// Texts for the model, beside the result.
    pub context: Vec<AdditionalContext>,
    /// Messages to the user at the client.
    pub messages: Vec<String>,
}

/// Timeouts of a hook. A call is refused if a hook before it is late; a late hook after it is ignored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HookTimeout {
    /// Timeout before a call.
    pub before: Duration,
    /// Timeout after a call.
    pub after: Duration,
}

impl Default for HookTimeout {
    fn default() -> Self {
        Self { before: Duration::from_secs(60), after: Duration::from_secs(2) }
    }
}

/// Hook on calls. It may refuse, require approval and rewrite; it never allows what a rule denies, and never grants an
/// approval that a rule requires.
///
/// Dropping one of its futures stops its work.
///
/// ```
/// use async_trait::async_trait;
/// use toolstead_domain::{
///     access::Access,
///     ports::tool_hook::{AfterCallResponse, BeforeCallResponse, EndedCall, ToolHook},
///     tool_call::ToolCall,
/// };
///
/// struct NoForce;
///
/// #[async_trait]
/// impl ToolHook for NoForce {
///     fn name(&self) -> &str {
///         "no_force"
///     }
///
///     async fn before<'s, 'c, 'a>(&'s self, call: &'c ToolCall, _: Option<&'a [Access]>) -> BeforeCallResponse {
///         match call.arguments.contains_key("force") {
///             true => BeforeCallResponse::deny("`force` is not allowed here"),
///             false => BeforeCallResponse::proceed(),
///         }
///     }
///
///     async fn after<'s, 'e>(&'s self, _: EndedCall<'e>) -> AfterCallResponse {
///         AfterCallResponse::default()
///     }
/// }
///
/// assert_eq!(NoForce.timeout().before.as_secs(), 60);
/// ```
#[async_trait]
pub trait ToolHook: Send + Sync {
    /// Returns the name of the hook, for refusals and the audit log.
    fn name(&self) -> &str;

    /// Returns the timeouts of the hook.
    fn timeout(&self) -> HookTimeout {
        HookTimeout::default()
    }

    /// Runs before a call is checked. `accesses` are the accesses of the call with its current arguments; `None` if
    /// they cannot be determined. They are determined again before the check.
    async fn before<'s, 'c, 'a>(&'s self, call: &'c ToolCall, accesses: Option<&'a [Access]>) -> BeforeCallResponse;

    /// Runs after a call, even if the call did not run, and before its record is written.
    async fn after<'s, 'e>(&'s self, ended: EndedCall<'e>) -> AfterCallResponse;
}

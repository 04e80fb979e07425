//! Calls that a tool makes while it runs.

use crate::{
    access::Access, error_kind::ErrorKind, ports::caller::Caller, scope::View, tool::Tool, tool_call::CallId,
    tool_failure::ToolFailure, tool_input_schema::nearest_name, tool_result::ToolResult, tool_selection::ToolSelection,
};
use async_trait::async_trait;
use serde_json::Value;
use std::{fmt, sync::Arc};

/// Makes calls from within a call, in its scope: for the same principal, in the same session, through the same view.
///
/// Implementers guarantee that each such call takes the whole call path: it is checked, approved, recorded and limited
/// by itself, and inherits no permission from the call that makes it. It shares that call's place among the open calls,
/// its deadline and its end: dropping the future of a nested call cancels it, and no nested call outlives the call that
/// made it.
#[async_trait]
pub trait Calls: Send + Sync {
    /// Returns the tools that may be called, sorted by name.
    fn list(&self) -> Vec<Arc<Tool>>;

    /// Returns the tools whose name, title or description contains this text, in any case.
    fn search(&self, text: &str) -> Vec<Arc<Tool>>;

    /// Returns `true` if the caller is shown this tool. Tools that only search or call deferred tools are not shown if
    /// the list of the caller contains all tools. The default is `true`.
    fn offers(&self, tool: &Tool) -> bool {
        let _ = tool;
        true
    }

    /// Returns the same calls through a view nested in this one: its policy also applies to what is listed, found and
    /// called through it. An approval given through it holds only in it and in views nested in it.
    /// An approval through the [view of a run](View::of_run) ends once that view and everything derived from it is
    /// dropped.
    fn through<'a>(&'a self, view: Arc<View>) -> Box<dyn Calls + 'a>;

    /// Returns the same calls through a view of these tools alone, for the agent of this name, in a session of its own:
    /// known file versions, background work and approvals for a session belong to that session. By default no call can
    /// be made.
    fn for_agent<'a>(&'a self, agent: Arc<str>, session: Arc<str>, tools: ToolSelection) -> Box<dyn Calls + 'a> {
        let _ = (agent, session, tools);
        Box::new(NoCalls)
    }

    /// Returns calls for an agent that may continue after the running call has ended. Each call has its own place among
    /// the open calls and its own timeout, and the running call is the parent in its audit record. Questions go to this
    /// caller. All else is as for [`for_agent`](Self::for_agent).
    ///
    /// # Errors
    /// [`ToolFailure`] if the audit log cannot record that the running call began the work of the agent; always by
    /// default.
    async fn outliving(
        &self,
        agent: Arc<str>,
        session: Arc<str>,
        tools: ToolSelection,
        caller: Arc<dyn Caller>,
    ) -> Result<Box<dyn Calls>, ToolFailure> {
        let _ = (agent, session, tools, caller);
        Err(NoCalls::refusal())
    }

    /// Returns the same calls through the view of one run of a program, nested in this one. It contains only these
    /// tools, without those that no program may be offered. All else is as in this view.
    fn window<'a>(&'a self, name: &str, selection: ToolSelection) -> Box<dyn Calls + 'a>;

    /// Returns the names of a selection that match no callable tool.
    fn unknown(&self, selection: &ToolSelection) -> Vec<UnknownToolName> {
        let tools = self.list();
        let unmatched = selection.unmatched(tools.iter().map(Arc::as_ref));
        unmatched.into_iter().map(|name| UnknownToolName::among(name, &tools)).collect()
    }

    /// Resolves the tool and validates the arguments of a call without making it. Nothing runs, no approver is asked,
    /// and nothing is recorded.
    ///
    /// # Errors
    /// [`ToolFailure`] if there is no such tool, or the arguments are invalid.
    async fn preview(&self, call: NestedCall) -> Result<CallPreview, ToolFailure>;

    /// Makes a call.
    ///
    /// # Errors
    /// [`ToolFailure`] if the call was refused, failed, or was cancelled. A failure that the tool reports in its own
    /// result is `Ok` with `isError`.
    async fn call(&self, call: NestedCall) -> Result<ToolResult, ToolFailure>;
}

/// Selected name that matches no tool.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct UnknownToolName {
    /// Name, or pattern of names.
    pub name: String,
    /// Name that may be intended: that of the tool with this alias, else the nearest name.
    pub nearest: Option<String>,
}

impl UnknownToolName {
    fn among(name: &str, tools: &[Arc<Tool>]) -> Self {
        let one = ToolSelection::only([name]);
        let meant = tools.iter().find(|tool| one.includes(tool)).map(|tool| tool.name().as_str());
        let nearest = meant.or_else(|| nearest_name(name, tools.iter().map(|tool| tool.name().as_str())));
        Self { name: name.into(), nearest: nearest.map(Into::into) }
    }
}

impl fmt::Display for UnknownToolName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "no callable tool is named `{}`", self.name)?;
        match &self.nearest {
            Some(nearest) => write!(f, ": did you mean `{nearest}`?"),
            None => Ok(()),
        }
    }
}

/// Call of a tool from within another call.
///
/// ```
/// use serde_json::json;
/// use toolstead_domain::ports::calls::{NestedCall, WHOLE_OUTPUT};
///
/// let call = NestedCall::new("read_file", json!({"path": "README.md"})).answering_whole();
/// assert_eq!(call.output_characters, Some(WHOLE_OUTPUT));
/// assert_eq!(NestedCall::new("glob", json!({})).answering_within(500).output_characters, Some(500));
/// ```
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct NestedCall {
    /// Name or alias of the tool.
    pub tool: String,
    /// Arguments: an object, or `Null` for an empty one.
    pub arguments: Value,
    /// Maximum number of characters of the result; `None` for the usual limit. The rest is stored. [`WHOLE_OUTPUT`]: no
    /// limit, because no model reads the result.
    pub output_characters: Option<usize>,
    /// Id of its audit record, which must be unique; `None` for a new one.
    pub id: Option<CallId>,
}

/// Output limit for the whole result, independent of the limits for models.
pub const WHOLE_OUTPUT: usize = usize::MAX;

impl NestedCall {
    /// Creates a call of the tool with these arguments.
    pub fn new(tool: impl Into<String>, arguments: Value) -> Self {
        Self { tool: tool.into(), arguments, output_characters: None, id: None }
    }

    /// Limits the result to this number of characters.
    #[must_use]
    pub fn answering_within(self, output_characters: usize) -> Self {
        Self { output_characters: Some(output_characters), ..self }
    }

    /// Sets the id.
    #[must_use]
    pub fn with_id(self, id: CallId) -> Self {
        Self { id: Some(id), ..self }
    }

    /// Requests the whole result, for a program instead of a model.
    #[must_use]
    pub fn answering_whole(self) -> Self {
        self.answering_within(WHOLE_OUTPUT)
    }
}

/// Preview of a call that was not made.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct CallPreview {
    /// Tool to which the name resolves.
    pub tool: Arc<Tool>,
    /// All accesses of the call; `None` if they are not known yet.
    pub accesses: Option<Vec<Access>>,
}

impl CallPreview {
    /// Creates the preview of a call of this tool with these accesses.
    pub fn new(tool: Arc<Tool>, accesses: Option<Vec<Access>>) -> Self {
        Self { tool, accesses }
    }
}

/// Calls nothing: for previews, which change nothing, and for providers that are used alone.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoCalls;

impl NoCalls {
    fn refusal() -> ToolFailure {
        ToolFailure::new(ErrorKind::Unavailable, "No tool can be called from here.")
    }
}

#[async_trait]
impl Calls for NoCalls {
    fn list(&self) -> Vec<Arc<Tool>> {
        Vec::new()
    }

    fn search(&self, _: &str) -> Vec<Arc<Tool>> {
        Vec::new()
    }

    fn through<'a>(&'a self, _: Arc<View>) -> Box<dyn Calls + 'a> {
        Box::new(Self)
    }

    fn window<'a>(&'a self, _: &str, _: ToolSelection) -> Box<dyn Calls + 'a> {
        Box::new(Self)
    }

    async fn preview(&self, _: NestedCall) -> Result<CallPreview, ToolFailure> {
        Err(Self::refusal())
    }

    async fn call(&self, _: NestedCall) -> Result<ToolResult, ToolFailure> {
        Err(Self::refusal())
    }
}

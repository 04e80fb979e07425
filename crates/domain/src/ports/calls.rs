//! Calls that a tool makes while it runs.

use crate::{
    access::Access, error_kind::ErrorKind, ports::caller::Caller, scope::View, tool::Tool, tool_call::CallId,
    tool_failure::ToolFailure, tool_input_schema::nearest_name, tool_result::ToolResult, tool_selection::ToolSelection,
};
use async_trait::async_trait;
use serde_json::Value;
use std::{fmt, sync::Arc};

/// Calls tools out of a call, within its scope: on behalf of the same principal, in the same session, through the same
/// view.
///
/// Implementers guarantee that each such call takes the whole path of a call: it is judged, asked about, recorded and
/// bounded for itself, and is allowed nothing by the call that makes it. It shares that call's place among the open
/// calls, its deadline and its end: dropping the future of a nested call cancels it, and no nested call outlives the call
/// that made it.
#[async_trait]
pub trait Calls: Send + Sync {
    /// The tools that may be called, sorted by name.
    fn list(&self) -> Vec<Arc<Tool>>;

    /// Those whose name, title or description holds this text; case does not count.
    fn search(&self, text: &str) -> Vec<Arc<Tool>>;

    /// The same calls through a window in this one: what is listed, found and called through it is judged by its policy as
    /// well. What is approved through it holds in it and within it alone.
    /// An approval through the [window of a run](View::of_run) is forgotten once it is dropped, with all that it gave
    /// out.
    fn through<'a>(&'a self, view: Arc<View>) -> Box<dyn Calls + 'a>;

    /// The same calls through a window that holds these tools alone, for an agent of this name, in a session of its own: what
    /// they read, begin and are allowed for a session is that session's.
    fn for_agent<'a>(&'a self, agent: Arc<str>, session: Arc<str>, tools: ToolSelection) -> Box<dyn Calls + 'a> {
        let _ = (agent, session, tools);
        Box::new(NoCalls)
    }

    /// Calls for an agent that may go on once the running call is over. Each has a place among the open calls and a time of
    /// its own, and the running call is the parent of its row; questions go to this caller. All else is as
    /// [`for_agent`](Self::for_agent) says.
    ///
    /// # Errors
    /// [`ToolFailure`] when it cannot be put on record that the running call began them.
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

    /// The same calls through the window of one run of a program in this one. It holds these tools alone, save those that no
    /// program may be offered. All else is as it is here.
    fn window<'a>(&'a self, name: &str, selection: ToolSelection) -> Box<dyn Calls + 'a>;

    /// The names of a choice that fit no tool that may be called here.
    fn unknown(&self, selection: &ToolSelection) -> Vec<UnknownName> {
        let tools = self.list();
        let unmatched = selection.unmatched(tools.iter().map(Arc::as_ref));
        unmatched.into_iter().map(|name| UnknownName::among(name, &tools)).collect()
    }

    /// Finds out what a call would be, without making it: the tool is found and the arguments are validated. Nothing runs,
    /// nobody is asked, and nothing is recorded.
    ///
    /// # Errors
    /// [`ToolFailure`] when there is no such tool, or the arguments do not fit it.
    async fn foresee(&self, call: NestedCall) -> Result<ForeseenCall, ToolFailure>;

    /// Makes a call.
    ///
    /// # Errors
    /// [`ToolFailure`] when the call was refused, failed, or was taken back. A failure that the tool reports in its own
    /// result is `Ok` with `isError`.
    async fn call(&self, call: NestedCall) -> Result<ToolResult, ToolFailure>;
}

/// A name that was chosen and fits no tool.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct UnknownName {
    /// The name, or the pattern of names.
    pub name: String,
    /// The name that may have been meant: the tool that bears this name beside its own, else the one with the nearest name.
    pub nearest: Option<String>,
}

impl UnknownName {
    fn among(name: &str, tools: &[Arc<Tool>]) -> Self {
        let one = ToolSelection::only([name]);
        let meant = tools.iter().find(|tool| one.includes(tool)).map(|tool| tool.name().as_str());
        let nearest = meant.or_else(|| nearest_name(name, tools.iter().map(|tool| tool.name().as_str())));
        Self { name: name.into(), nearest: nearest.map(Into::into) }
    }
}

impl fmt::Display for UnknownName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "no tool that may be called here is named `{}`", self.name)?;
        match &self.nearest {
            Some(nearest) => write!(f, ": did you mean `{nearest}`?"),
            None => Ok(()),
        }
    }
}

/// A call of a tool out of another call.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct NestedCall {
    /// The tool, in any spelling.
    pub tool: String,
    /// The arguments: an object, or `Null` for an empty one.
    pub arguments: Value,
    /// As many characters of the result are wanted at most; `None`: as many as of any call. The rest is kept.
    /// [`WHOLE_OUTPUT`]: all of it, since no model reads it.
    pub output_characters: Option<usize>,
    /// The id of its row, which nobody else has; `None`: a new one.
    pub id: Option<CallId>,
}

/// The whole of a result, whatever the budget of those for models is.
pub const WHOLE_OUTPUT: usize = usize::MAX;

impl NestedCall {
    /// A call of the tool with these arguments.
    pub fn new(tool: impl Into<String>, arguments: Value) -> Self {
        Self { tool: tool.into(), arguments, output_characters: None, id: None }
    }

    /// The same, with a result of so many characters at most.
    #[must_use]
    pub fn answering_within(self, output_characters: usize) -> Self {
        Self { output_characters: Some(output_characters), ..self }
    }

    /// The same with this id.
    #[must_use]
    pub fn with_id(self, id: CallId) -> Self {
        Self { id: Some(id), ..self }
    }

    /// The same for a program: with its whole result.
    #[must_use]
    pub fn answering_whole(self) -> Self {
        self.answering_within(WHOLE_OUTPUT)
    }
}

/// A call as it would be.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ForeseenCall {
    /// The tool that the name leads to.
    pub tool: Arc<Tool>,
    /// All that the call would touch; `None` where that cannot be told yet.
    pub accesses: Option<Vec<Access>>,
}

impl ForeseenCall {
    /// A call of the tool that would touch this.
    pub fn new(tool: Arc<Tool>, accesses: Option<Vec<Access>>) -> Self {
        Self { tool, accesses }
    }
}

/// Calls nothing: for previews, which change nothing, and where a provider is used alone.
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

    async fn foresee(&self, _: NestedCall) -> Result<ForeseenCall, ToolFailure> {
        Err(Self::refusal())
    }

    async fn call(&self, _: NestedCall) -> Result<ToolResult, ToolFailure> {
        Err(Self::refusal())
    }
}

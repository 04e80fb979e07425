//! A tool of a scripted provider.

use crate::{
    access::Access,
    error_kind::ErrorKind,
    ports::{
        caller::{InputRequest, InputResponse, LogMessage, Progress},
        tool_provider::{CallContext, InputRequired},
    },
    testing::samples,
    tool::Tool,
    tool_call::ToolCall,
    tool_failure::ToolFailure,
    tool_result::ToolResult,
};
use std::fmt;

/// Tool with the accesses of its calls, their steps, and their ending.
pub struct ScriptedTool {
    pub(super) tool: Tool,
    pub(super) accesses: AccessScript,
    pub(super) steps: Vec<Step>,
    pub(super) ending: EndingScript,
}

type AccessScript = Box<dyn Fn(&ToolCall) -> Result<Vec<Access>, ToolFailure> + Send + Sync>;
type EndingScript = Box<dyn Fn(&EndingContext<'_>) -> Ending + Send + Sync>;

/// Ending of a call.
#[derive(Debug)]
pub enum Ending {
    /// Returns this result.
    Done(ToolResult),
    /// Returns questions that the client must answer first.
    InputRequired(InputRequired),
    /// Returns this failure.
    Failure(ToolFailure),
    /// Panics with this message.
    Panic(String),
    /// Does not end until its future is dropped.
    Never,
}

/// State of a call when its ending is decided.
#[derive(Debug)]
pub struct EndingContext<'a> {
    /// The call itself.
    pub call: &'a ToolCall,
    /// Environment of the call.
    pub context: &'a CallContext<'a>,
    /// Answers of the client to the questions so far, in order.
    pub responses: &'a [InputResponse],
}

/// Step of a call before its ending.
#[derive(Debug)]
pub(super) enum Step {
    Progress(Progress),
    Log(LogMessage),
    Ask(InputRequest),
}

impl ScriptedTool {
    /// Creates a tool with this name that accepts any arguments, has no accesses and returns no output.
    pub fn named(name: &str) -> Self {
        Self::of(samples::tool(name))
    }

    /// Creates a tool with this definition that has no accesses and returns no output.
    pub fn of(tool: Tool) -> Self {
        Self {
            tool,
            accesses: Box::new(|_| Ok(Vec::new())),
            steps: Vec::new(),
            ending: Box::new(|_| Ending::Done(ToolResult::empty())),
        }
    }

    /// Sets the accesses of every call.
    #[must_use]
    pub fn touches(self, accesses: Vec<Access>) -> Self {
        self.touches_by(move |_| Ok(accesses.clone()))
    }

    /// Sets the function that returns the accesses of a call.
    #[must_use]
    pub fn touches_by(
        mut self,
        accesses: impl Fn(&ToolCall) -> Result<Vec<Access>, ToolFailure> + Send + Sync + 'static,
    ) -> Self {
        self.accesses = Box::new(accesses);
        self
    }

    /// Adds a progress report.
    #[must_use]
    pub fn reports(mut self, progress: Progress) -> Self {
        self.steps.push(Step::Progress(progress));
        self
    }

    /// Adds a log message.
    #[must_use]
    pub fn logs(mut self, message: LogMessage) -> Self {
        self.steps.push(Step::Log(message));
        self
    }

    /// Adds a question to the client; the call fails if it is not answered.
    #[must_use]
    pub fn asks(mut self, request: InputRequest) -> Self {
        self.steps.push(Step::Ask(request));
        self
    }

    /// Makes calls end with this result.
    #[must_use]
    pub fn answers(self, result: ToolResult) -> Self {
        self.ends_by(move |_| Ending::Done(result.clone()))
    }

    /// Makes calls end with a failure.
    #[must_use]
    pub fn fails(self, kind: ErrorKind, message: &str) -> Self {
        let message = message.to_owned();
        self.ends_by(move |_| Ending::Failure(ToolFailure::new(kind, message.as_str())))
    }

    /// Makes calls end with a panic.
    #[must_use]
    pub fn panics(self, message: &str) -> Self {
        let message = message.to_owned();
        self.ends_by(move |_| Ending::Panic(message.clone()))
    }

    /// Makes calls never end by themselves.
    #[must_use]
    pub fn never_ends(self) -> Self {
        self.ends_by(|_| Ending::Never)
    }

    /// Makes every call end with questions; [`ends_by`](Self::ends_by) can check `context.answers` first.
    #[must_use]
    pub fn needs_input(self, questions: InputRequired) -> Self {
        self.ends_by(move |_| Ending::InputRequired(questions.clone()))
    }

    /// Sets the function that decides the ending of a call.
    #[must_use]
    pub fn ends_by(mut self, ending: impl Fn(&EndingContext<'_>) -> Ending + Send + Sync + 'static) -> Self {
        self.ending = Box::new(ending);
        self
    }
}

impl fmt::Debug for ScriptedTool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ScriptedTool").field("tool", &self.tool).field("steps", &self.steps).finish_non_exhaustive()
    }
}

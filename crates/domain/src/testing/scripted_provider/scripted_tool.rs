//! One tool of a scripted provider.

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

/// A tool, what its calls would touch, what they do on the way, and how they end.
pub struct ScriptedTool {
    pub(super) tool: Tool,
    pub(super) accesses: AccessScript,
    pub(super) steps: Vec<Step>,
    pub(super) ending: EndingScript,
}

type AccessScript = Box<dyn Fn(&ToolCall) -> Result<Vec<Access>, ToolFailure> + Send + Sync>;
type EndingScript = Box<dyn Fn(&Moment<'_>) -> Ending + Send + Sync>;

/// The ways in which a call ends.
#[derive(Debug)]
pub enum Ending {
    /// With this result.
    Done(ToolResult),
    /// With questions that the client must answer first.
    InputRequired(InputRequired),
    /// With this failure.
    Failure(ToolFailure),
    /// With a panic.
    Panic(String),
    /// Not at all, until its future is dropped.
    Never,
}

/// The moment of a call when its ending is decided.
#[derive(Debug)]
pub struct Moment<'a> {
    /// The call.
    pub call: &'a ToolCall,
    /// All that accompanies it.
    pub context: &'a CallContext<'a>,
    /// The client's answers to the questions asked so far, in order.
    pub responses: &'a [InputResponse],
}

/// A step of a call before it ends.
#[derive(Debug)]
pub(super) enum Step {
    Progress(Progress),
    Log(LogMessage),
    Ask(InputRequest),
}

impl ScriptedTool {
    /// A tool of that name that takes any arguments, touches nothing and has nothing to say.
    pub fn named(name: &str) -> Self {
        Self::of(samples::tool(name))
    }

    /// A tool with this definition that touches nothing and has nothing to say.
    pub fn of(tool: Tool) -> Self {
        Self {
            tool,
            accesses: Box::new(|_| Ok(Vec::new())),
            steps: Vec::new(),
            ending: Box::new(|_| Ending::Done(ToolResult::empty())),
        }
    }

    /// Says that every call would touch this.
    #[must_use]
    pub fn touches(self, accesses: Vec<Access>) -> Self {
        self.touches_by(move |_| Ok(accesses.clone()))
    }

    /// Says with a function what a call would touch.
    #[must_use]
    pub fn touches_by(
        mut self,
        accesses: impl Fn(&ToolCall) -> Result<Vec<Access>, ToolFailure> + Send + Sync + 'static,
    ) -> Self {
        self.accesses = Box::new(accesses);
        self
    }

    /// Reports progress on the way.
    #[must_use]
    pub fn reports(mut self, progress: Progress) -> Self {
        self.steps.push(Step::Progress(progress));
        self
    }

    /// Logs on the way.
    #[must_use]
    pub fn logs(mut self, message: LogMessage) -> Self {
        self.steps.push(Step::Log(message));
        self
    }

    /// Asks the client on the way; fails if it does not answer.
    #[must_use]
    pub fn asks(mut self, request: InputRequest) -> Self {
        self.steps.push(Step::Ask(request));
        self
    }

    /// Ends with this result.
    #[must_use]
    pub fn answers(self, result: ToolResult) -> Self {
        self.ends_by(move |_| Ending::Done(result.clone()))
    }

    /// Ends with a failure.
    #[must_use]
    pub fn fails(self, kind: ErrorKind, message: &str) -> Self {
        let message = message.to_owned();
        self.ends_by(move |_| Ending::Failure(ToolFailure::new(kind, message.as_str())))
    }

    /// Ends with a panic.
    #[must_use]
    pub fn panics(self, message: &str) -> Self {
        let message = message.to_owned();
        self.ends_by(move |_| Ending::Panic(message.clone()))
    }

    /// Never ends by itself.
    #[must_use]
    pub fn never_ends(self) -> Self {
        self.ends_by(|_| Ending::Never)
    }

    /// Ends with questions, every time; [`ends_by`](Self::ends_by) can look at `context.answers` first.
    #[must_use]
    pub fn needs_input(self, questions: InputRequired) -> Self {
        self.ends_by(move |_| Ending::InputRequired(questions.clone()))
    }

    /// Ends as a function says.
    #[must_use]
    pub fn ends_by(mut self, ending: impl Fn(&Moment<'_>) -> Ending + Send + Sync + 'static) -> Self {
        self.ending = Box::new(ending);
        self
    }
}

impl fmt::Debug for ScriptedTool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ScriptedTool").field("tool", &self.tool).field("steps", &self.steps).finish_non_exhaustive()
    }
}

//! Dialect adapters: the appearance of a tool in another tool system.

use crate::{
    alias::{adapter_definitions::DialectToolDefinitions, rewrite::Rewrite},
    category::Category,
    error_kind::ErrorKind,
    tool_failure::ToolFailure,
    tool_result::ToolResult,
};
use serde_json::{Map, Value};
use std::borrow::Cow;

/// Appearance of a tool in another tool system: its definition for models, its defaults, and the form of its answers.
///
/// ```
/// use toolstead_domain::{AdaptedResult, DialectToolDefinitions, DialectAdapter, alias::Rewrite};
///
/// static UNIX: DialectToolDefinitions = DialectToolDefinitions::new(
///     r#"{"cat": {"description": "Prints a file.", "inputSchema": {"type": "object"}}}"#,
/// );
/// static CAT: DialectAdapter = DialectAdapter::new("cat", &UNIX)
///     .with_defaults(&[Rewrite::Default("line_numbers", "false")])
///     .with_answer(|input| Some(AdaptedResult::text(input.text().trim_end())));
///
/// assert_eq!(CAT.definition().unwrap()["description"], "Prints a file.");
/// ```
#[derive(Debug)]
pub struct DialectAdapter {
    /// Name of the tool in the other tool system.
    pub name: &'static str,
    /// Definitions of the tools of the other tool system.
    pub definitions: &'static DialectToolDefinitions,
    /// Category of the tool in the other tool system; `None` if it is the same.
    pub category: Option<Category>,
    /// Steps after those of the alias, which apply the defaults of the other tool system to canonical arguments.
    pub defaults: &'static [Rewrite],
    /// Converts an answer to the form of the other tool system; returns `None` to use the original answer.
    pub answer: fn(&AdapterInput<'_>) -> Option<AdaptedResult>,
}

/// Answer of a tool call, as input of [`DialectAdapter::answer`].
#[derive(Debug)]
pub struct AdapterInput<'a> {
    /// Arguments as the caller gave them, with the caller's names.
    pub arguments: &'a Map<String, Value>,
    /// Maximum number of characters in an answer. Limits what the conversion adds, such as a repeated argument.
    pub characters: usize,
    /// `true` if texts are enclosed in tags, for systems that use them.
    pub in_tags: bool,
    /// Result or failure of the call.
    pub outcome: Result<&'a ToolResult, &'a ToolFailure>,
}

/// Converted answer.
#[derive(Debug, Clone, PartialEq)]
pub struct AdaptedResult {
    /// Text that replaces the output of the tool. Notes that were added to the output remain after it.
    pub text: String,
    /// Text of a second content block, for content that has no place in `text`. For a failed call, it replaces the
    /// partial result.
    pub extra_block: Option<String>,
    /// `true` if the other tool system reports the answer as an error. A call that failed without a result always
    /// remains an error.
    pub is_error: bool,
    /// The structured content.
    pub structured: Option<Value>,
}

/// Adapters are compared by identity.
impl PartialEq for DialectAdapter {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self, other)
    }
}

impl DialectAdapter {
    /// Creates an adapter of the tool with this name in these definitions. It does not convert answers.
    pub const fn new(name: &'static str, definitions: &'static DialectToolDefinitions) -> Self {
        Self { name, definitions, category: None, defaults: &[], answer: |_| None }
    }

    /// Returns the definition of the tool: its `description`, `inputSchema` and, if it has one, `outputSchema`. Returns
    /// `None` if the definitions lack the tool.
    pub fn definition(&self) -> Option<&'static Map<String, Value>> {
        self.definitions.find(self.name)
    }

    /// Sets the steps that apply the defaults of the other tool system to canonical arguments.
    #[must_use]
    pub const fn with_defaults(self, defaults: &'static [Rewrite]) -> Self {
        Self { defaults, ..self }
    }

    /// Sets the category of the tool in the other tool system.
    #[must_use]
    pub const fn in_category(self, category: Category) -> Self {
        Self { category: Some(category), ..self }
    }

    /// Sets the conversion of answers.
    #[must_use]
    pub const fn with_answer(self, answer: fn(&AdapterInput<'_>) -> Option<AdaptedResult>) -> Self {
        Self { answer, ..self }
    }
}

impl<'a> AdapterInput<'a> {
    /// Returns the text that the tool returned, or the message of the failure with the next step for the model.
    pub fn text(&self) -> Cow<'a, str> {
        match self.outcome {
            Ok(result) => result.tool_text().into(),
            Err(failure) => failure.text().into(),
        }
    }

    /// Returns the structured content, or that of the partial result of a failed call.
    pub fn structured(&self) -> Option<&'a Value> {
        match self.outcome {
            Ok(result) => result.structured_content(),
            Err(failure) => failure.partial.as_ref()?.structured_content(),
        }
    }

    /// Returns `true` if the call has a result and the output of the tool consists of text only.
    pub fn is_text_alone(&self) -> bool {
        self.outcome.is_ok_and(|result| result.said_blocks().iter().all(|block| block.get("text").is_some()))
    }

    /// Returns the text of the partial result of a failed call; `None` if the call has a result or left no partial one.
    pub fn partial_text(&self) -> Option<String> {
        self.outcome.err()?.partial.as_ref().map(|partial| partial.joined_text())
    }

    /// Returns a member of the structured content.
    pub fn member(&self, name: &str) -> Option<&'a Value> {
        self.structured()?.get(name)
    }

    /// Returns the kind of the failure, or of a result that is an error ([`ErrorKind::ExecutionFailed`] if it names
    /// none); `None` for a success.
    pub fn error_kind(&self) -> Option<ErrorKind> {
        match self.outcome {
            Ok(result) => result.is_error().then(|| result.error_kind().unwrap_or(ErrorKind::ExecutionFailed)),
            Err(failure) => Some(failure.kind),
        }
    }

    /// Returns the argument with this name; `None` if it is absent or not a text.
    pub fn text_argument(&self, name: &str) -> Option<&'a str> {
        self.arguments.get(name)?.as_str()
    }
}

impl AdaptedResult {
    /// Creates a success with this text.
    pub fn text(text: impl Into<String>) -> Self {
        Self { text: text.into(), extra_block: None, is_error: false, structured: None }
    }

    /// Creates an error with this text.
    pub fn error(text: impl Into<String>) -> Self {
        Self { is_error: true, ..Self::text(text) }
    }

    /// Sets the block after the text, unless it is empty.
    #[must_use]
    pub fn with_extra_block(self, beside: Option<String>) -> Self {
        Self { extra_block: beside.filter(|text| !text.is_empty()), ..self }
    }

    /// Sets the structured content.
    #[must_use]
    pub fn with_structured(self, content: Value) -> Self {
        Self { structured: Some(content), ..self }
    }
}

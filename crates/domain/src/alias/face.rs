//! The looks of a tool in another tool system.

use crate::{
    alias::rewrite::Rewrite, category::Category, error_kind::ErrorKind, tool_failure::ToolFailure,
    tool_result::ToolResult,
};
use serde_json::{Map, Value};
use std::borrow::Cow;

/// The looks of a tool in another tool system: what its models are told of it, what holds where they say nothing, and
/// the words in which it answers. Its name there is that of the [alias](super::Alias).
#[derive(Debug)]
pub struct Face {
    /// The text that models are given about it.
    pub description: &'static str,
    /// The schema of its arguments: the JSON text of an object.
    pub input_schema: &'static str,
    /// Its category there, where that is another one.
    pub category: Option<Category>,
    /// Steps on arguments that are canonical already, for what holds there beside what the spelling says.
    pub defaults: &'static [Rewrite],
    /// The schema of the structured content that it answers with there, as JSON text; `None`: it answers with none.
    pub output_schema: Option<&'static str>,
    /// Says an answer in the words of that system. `None`: it says it as we do.
    pub answer: fn(&Answered<'_>) -> Option<Said>,
}

/// The answer of a call, for a face to say it.
#[derive(Debug)]
pub struct Answered<'a> {
    /// The arguments as the caller gave them, in the caller's spelling.
    pub arguments: &'a Map<String, Value>,
    /// So many characters have room in an answer, as an argument that is repeated in it.
    pub characters: usize,
    /// True where texts stand in tags, if the system knows them.
    pub in_tags: bool,
    /// The result, or the failure.
    pub outcome: Result<&'a ToolResult, &'a ToolFailure>,
}

/// An answer in the words of a face.
#[derive(Debug, Clone, PartialEq)]
pub struct Said {
    /// Stands in the place of what the tool said. What was added to it on its way stays behind it.
    pub text: String,
    /// A block behind it: what the shape of the text has no room for. Of a call that failed it stands in the place of
    /// what there was before.
    pub beside: Option<String>,
    /// True where it is an error there. A call that failed without a result stays failed whatever this says.
    pub is_error: bool,
    /// The structured content.
    pub structured: Option<Value>,
}

/// A face is the one that it is, whatever another one says.
impl PartialEq for Face {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self, other)
    }
}

impl Face {
    /// A face with this description and this schema of arguments, which answers as we do.
    pub const fn new(description: &'static str, input_schema: &'static str) -> Self {
        Self { description, input_schema, category: None, defaults: &[], output_schema: None, answer: |_| None }
    }

    /// The same with these steps on canonical arguments.
    #[must_use]
    pub const fn with_defaults(self, defaults: &'static [Rewrite]) -> Self {
        Self { defaults, ..self }
    }

    /// The same in this category.
    #[must_use]
    pub const fn in_category(self, category: Category) -> Self {
        Self { category: Some(category), ..self }
    }

    /// The same with these words.
    #[must_use]
    pub const fn saying(self, answer: fn(&Answered<'_>) -> Option<Said>) -> Self {
        Self { answer, ..self }
    }

    /// The same with this schema of its structured content.
    #[must_use]
    pub const fn with_output_schema(self, schema: &'static str) -> Self {
        Self { output_schema: Some(schema), ..self }
    }
}

impl<'a> Answered<'a> {
    /// The words of the tool; of a failure its message, with what to do next.
    pub fn text(&self) -> Cow<'a, str> {
        match self.outcome {
            Ok(result) => result.said_text().into(),
            Err(failure) => failure.text().into(),
        }
    }

    /// The structured content, also that of what was there before the call failed.
    pub fn structured(&self) -> Option<&'a Value> {
        match self.outcome {
            Ok(result) => result.structured_content(),
            Err(failure) => failure.partial.as_ref()?.structured_content(),
        }
    }

    /// True where the tool said nothing but text.
    pub fn is_text_alone(&self) -> bool {
        self.outcome.is_ok_and(|result| result.said_blocks().iter().all(|block| block.get("text").is_some()))
    }

    /// The partial result of a call that failed, as text.
    pub fn partial_text(&self) -> Option<String> {
        self.outcome.err()?.partial.as_ref().map(|partial| partial.joined_text())
    }

    /// A member of the structured content.
    pub fn member(&self, name: &str) -> Option<&'a Value> {
        self.structured()?.get(name)
    }

    /// The kind of the failure, if it is one.
    pub fn error_kind(&self) -> Option<ErrorKind> {
        match self.outcome {
            Ok(result) => result.is_error().then(|| result.error_kind().unwrap_or(ErrorKind::ExecutionFailed)),
            Err(failure) => Some(failure.kind),
        }
    }

    /// An argument that is a text.
    pub fn text_argument(&self, name: &str) -> Option<&'a str> {
        self.arguments.get(name)?.as_str()
    }
}

impl Said {
    /// A success with this text.
    pub fn text(text: impl Into<String>) -> Self {
        Self { text: text.into(), beside: None, is_error: false, structured: None }
    }

    /// An error with this text.
    pub fn error(text: impl Into<String>) -> Self {
        Self { is_error: true, ..Self::text(text) }
    }

    /// The same with a block behind it, if there is something to say.
    #[must_use]
    pub fn beside(self, beside: Option<String>) -> Self {
        Self { beside: beside.filter(|text| !text.is_empty()), ..self }
    }

    /// The same with structured content.
    #[must_use]
    pub fn with_structured(self, content: Value) -> Self {
        Self { structured: Some(content), ..self }
    }
}

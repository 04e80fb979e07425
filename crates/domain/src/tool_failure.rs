//! Failures of calls, for two audiences.

use crate::{
    descriptor_limit::FileDescriptorExhaustion,
    error_kind::ErrorKind,
    suggestion::{SUGGESTION, Suggestion, SuggestionFormatter},
    tool_result::ToolResult,
};
use std::{error::Error, io};

/// Failed call. `message` and `next` are for the model; `source` is for the log of the operator only.
///
/// ```
/// use toolstead_domain::{error_kind::ErrorKind, tool_failure::ToolFailure};
///
/// let failure = ToolFailure::new(ErrorKind::NotFound, "There is no file `a.txt`.").next("List the folder.");
/// assert_eq!(failure.text(), "There is no file `a.txt`. List the folder.");
/// assert!(failure.into_result().is_error());
/// ```
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct ToolFailure {
    /// Kind of failure.
    pub kind: ErrorKind,
    /// Cause, as a sentence that a model can act on.
    pub message: String,
    /// Next step, as a sentence; shown after the message.
    pub next: Option<String>,
    /// Change by which users make the call possible; a model reads only [`Suggestion::for_model`].
    pub suggestion: Option<Box<Suggestion>>,
    /// Further data for programs: members of the `data` of a JSON-RPC error, or null.
    pub data: serde_json::Value,
    /// Partial result from before the failure; shown with the error.
    pub partial: Option<Box<ToolResult>>,
    /// `true` if the failure is shown before the partial result.
    pub stands_first: bool,
    /// Error with which an MCP server answered. Clients that use MCP receive it in place of Toolstead's own error.
    pub upstream: Option<Box<UpstreamError>>,
    /// Underlying error.
    #[source]
    pub source: Option<Box<dyn Error + Send + Sync>>,
}

/// Enables `?` on errors of the operating system in tools. Only the tool knows the file of the error: if the model
/// needs it, the tool creates a [`ToolFailure`] itself.
impl From<io::Error> for ToolFailure {
    fn from(error: io::Error) -> Self {
        let kind = match error.kind() {
            io::ErrorKind::NotFound => ErrorKind::NotFound,
            io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => ErrorKind::PermissionDenied,
            io::ErrorKind::TimedOut => ErrorKind::Timeout,
            _ => ErrorKind::Io,
        };
        Self::new(kind, error.to_string()).of_descriptors(FileDescriptorExhaustion::of(&error)).caused_by(error)
    }
}

/// JSON-RPC error as an MCP server sent it. Its texts are the server's: `data.kind` is a text, not an [`ErrorKind`].
#[derive(Debug, Clone, PartialEq)]
pub struct UpstreamError {
    /// Error code.
    pub code: i64,
    /// Error message.
    pub message: String,
    /// Error data, if there is any.
    pub data: Option<serde_json::Value>,
}

impl ToolFailure {
    /// Creates a failure of this kind.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
            next: None,
            suggestion: None,
            data: serde_json::Value::Null,
            partial: None,
            stands_first: false,
            upstream: None,
            source: None,
        }
    }

    /// Adds the next step.
    #[must_use]
    pub fn next(mut self, next: impl Into<String>) -> Self {
        self.next = Some(next.into());
        self
    }

    /// Adds the change by which users make the call possible. If the failure has no next step,
    /// [`Suggestion::for_model`] becomes its next step.
    #[must_use]
    pub fn suggest(mut self, suggestion: Suggestion) -> Self {
        self.next.get_or_insert_with(|| suggestion.for_model().to_owned());
        self.suggestion = Some(Box::new(suggestion));
        self
    }

    /// Adds machine-readable data.
    #[must_use]
    pub fn with_data(mut self, data: serde_json::Value) -> Self {
        self.data = data;
        self
    }

    /// Adds the error of the MCP server that caused the failure.
    #[must_use]
    pub fn said_upstream(mut self, error: UpstreamError) -> Self {
        self.upstream = Some(Box::new(error));
        self
    }

    /// Adds the cause for the operator.
    #[must_use]
    pub fn caused_by(mut self, source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        self.source = Some(source.into());
        self
    }

    /// Adds the partial result from before the failure.
    #[must_use]
    pub fn with_partial(mut self, partial: ToolResult) -> Self {
        self.partial = Some(Box::new(partial));
        self
    }

    /// Turns the failure into one of exhausted file descriptors: with the kind `RateLimited`, the limit in the message
    /// and the next step of `limit`. `None` changes nothing.
    #[must_use]
    pub fn of_descriptors(self, limit: Option<FileDescriptorExhaustion>) -> Self {
        match limit {
            None => self,
            Some(limit) => Self {
                kind: ErrorKind::RateLimited,
                message: format!("{}: {limit}", self.message),
                next: Some(limit.suggestion().to_owned()),
                ..self
            },
        }
    }

    /// Returns message and next step as one text, for a model.
    pub fn text(&self) -> String {
        with_sentence(&self.message, self.next.as_deref())
    }

    /// Returns the text for the user of an interface, with the suggestion in place of the sentence for models.
    pub fn text_for_user(&self, formatter: &dyn SuggestionFormatter) -> String {
        let Some((suggestion, formatted)) = self.formatted(formatter) else { return self.text() };
        match self.next.as_deref().and_then(|next| next.strip_prefix(suggestion.for_model())) {
            Some(rest) => with_sentence(&self.message, Some(&format!("{formatted}{rest}"))),
            None => with_sentence(&self.text(), Some(&formatted)),
        }
    }

    /// Returns the suggestion as the interface formats it; `None` if there is no suggestion or the interface shows
    /// none.
    pub fn formatted_suggestion(&self, formatter: &dyn SuggestionFormatter) -> Option<String> {
        self.formatted(formatter).map(|(_, formatted)| formatted)
    }

    fn formatted(&self, formatter: &dyn SuggestionFormatter) -> Option<(&Suggestion, String)> {
        let suggestion = self.suggestion.as_deref()?;
        Some((suggestion, formatter.format(suggestion)?))
    }

    /// Returns the failure as [`into_result`](Self::into_result), with the suggestion in the result's `_meta`, which
    /// clients show to users and not to models.
    pub fn into_result_for_users(self, formatter: &dyn SuggestionFormatter) -> ToolResult {
        let suggestion = self.formatted_suggestion(formatter);
        let mut result = self.into_result();
        if let Some(suggestion) = suggestion {
            result.insert_meta(SUGGESTION, suggestion.into());
        }
        result
    }

    /// Returns the failure as a result with `isError`: the partial output first, in one text block with the failure,
    /// unless the failure is to be shown first.
    pub fn into_result(self) -> ToolResult {
        let error = ToolResult::error(self.kind, self.text());
        match self.partial {
            Some(partial) if self.stands_first => partial.content().iter().cloned().fold(error, ToolResult::with_block),
            // Some clients show only the first block.
            Some(partial) => partial.followed_by(error).with_joined_texts(),
            None => error,
        }
    }
}

fn with_sentence(message: &str, sentence: Option<&str>) -> String {
    match sentence {
        Some(sentence) if message.ends_with('\n') => format!("{message}{sentence}"),
        Some(sentence) => format!("{} {sentence}", ended(message)),
        None => message.to_owned(),
    }
}

/// Adds a full stop to the message if necessary, so that a second sentence can follow.
fn ended(message: &str) -> String {
    let stop = if message.ends_with(['.', '!', '?', ':']) { "" } else { "." };
    format!("{message}{stop}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::suggestion::DefaultSuggestions;

    #[test]
    fn an_error_of_the_operating_system_becomes_a_failure_of_its_kind_with_its_cause() {
        fn read() -> Result<(), ToolFailure> {
            Err(io::Error::from(io::ErrorKind::NotFound))?
        }
        let failure = read().unwrap_err();
        assert_eq!((failure.kind, failure.message.as_str()), (ErrorKind::NotFound, "entity not found"));
        assert!(failure.source.is_some_and(|source| source.is::<io::Error>()));
        for (kind, expected) in [
            (io::ErrorKind::PermissionDenied, ErrorKind::PermissionDenied),
            (io::ErrorKind::TimedOut, ErrorKind::Timeout),
            (io::ErrorKind::BrokenPipe, ErrorKind::Io),
        ] {
            assert_eq!(ToolFailure::from(io::Error::from(kind)).kind, expected);
        }
        let full = ToolFailure::from(io::Error::from_raw_os_error(24));
        assert_eq!(full.kind, ErrorKind::RateLimited);
        assert!(full.message.ends_with("this process has no file descriptor left"), "{}", full.message);
        assert!(full.next.is_some_and(|next| next.contains("`ulimit -n`")));
    }

    #[test]
    fn users_get_the_suggestion_and_models_get_advice_to_ask_the_user() {
        let failure = || ToolFailure::new(ErrorKind::PermissionDenied, "not allowed");
        let suggestion = || Suggestion::AllowRules(vec!["Bash(ls)".into()]);
        let hooked = |failure: ToolFailure| {
            let next = failure.next.clone().unwrap_or_default();
            failure.next(format!("{next}\nfrom a hook"))
        };
        for (failure, for_model, for_user) in [
            (failure(), "not allowed", "not allowed"),
            (
                failure().suggest(suggestion()),
                "not allowed. Ask your user whether to allow it.",
                "not allowed. To allow it, allow `Bash(ls)`.",
            ),
            (
                failure().next("Use another.").suggest(suggestion()),
                "not allowed. Use another.",
                "not allowed. Use another. To allow it, allow `Bash(ls)`.",
            ),
            (
                hooked(failure().suggest(suggestion())),
                "not allowed. Ask your user whether to allow it.\nfrom a hook",
                "not allowed. To allow it, allow `Bash(ls)`.\nfrom a hook",
            ),
            // No interface here has a suggestion for it.
            (
                failure().suggest(Suggestion::DetachCall),
                "not allowed. Run the command in the foreground instead: the call then lasts until it ends.",
                "not allowed. Run the command in the foreground instead: the call then lasts until it ends.",
            ),
        ] {
            assert_eq!(failure.text(), for_model);
            assert_eq!(failure.text_for_user(&DefaultSuggestions), for_user);
            let suggested = failure.formatted_suggestion(&DefaultSuggestions);
            let result = failure.into_result_for_users(&DefaultSuggestions);
            assert_eq!(result.joined_text(), for_model);
            let meta = result.as_object().get("_meta").and_then(|meta| meta[SUGGESTION].as_str());
            assert_eq!(meta, suggested.as_deref());
        }
    }
}

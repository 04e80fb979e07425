//! Reasons why a document could not be read, worded for a model.

use serde::{Deserialize, Serialize};
use toolstead_domain::error_kind::ErrorKind;

/// Reason why a document could not be read. The message follows "`name` cannot be read: ".
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "snake_case")]
pub(super) enum DocumentError {
    #[error("it is encrypted, and a password is needed")]
    Encrypted,
    #[error("it is {0}, which is not supported")]
    Unsupported(String),
    #[error("it is damaged or not what it seems: {0}")]
    Damaged(String),
    #[error("it is over a limit: {0}")]
    TooLarge(String),
    #[error("`pages` is {given:?}: {reason}")]
    Pages { given: String, reason: String },
}

impl DocumentError {
    pub(super) fn kind(&self) -> ErrorKind {
        match self {
            Self::Encrypted | Self::Unsupported(_) => ErrorKind::UnsupportedType,
            Self::Damaged(_) => ErrorKind::ExecutionFailed,
            Self::TooLarge(_) => ErrorKind::TooLarge,
            Self::Pages { .. } => ErrorKind::InvalidInput,
        }
    }

    /// Returns the next step for the model.
    pub(super) fn next(&self) -> &'static str {
        match self {
            Self::Encrypted => "Ask for a copy without a password; passwords are not supported.",
            Self::Unsupported(_) => {
                "Convert it first, for example with `soffice --headless --convert-to docx` (or xlsx, pptx, pdf), and read \
                 the result."
            }
            Self::Damaged(_) => "Ask for an intact copy, or save it again with the program that created it.",
            Self::TooLarge(_) => "Read another form of it, or ask your user, who can raise the limit.",
            Self::Pages { .. } => "Give numbers from 1, like \"3\", \"1-5\" or \"2,4-6\".",
        }
    }
}

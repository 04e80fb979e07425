//! The place where arguments are validated that could cost this process too much.

use crate::tool_input_schema::{Formats, InvalidArguments, InvalidSchema};
use async_trait::async_trait;
use serde_json::Value;

/// Validates against schemas that have no bound, beside this process.
///
/// Implementers guarantee:
/// - the verdict is that of the schema, and what is wrong is told as the validation in this process tells it;
/// - it comes within a bounded processor time and memory, or not at all: whatever schema and value do, this process
///   continues, and the verdict is the same on a busy machine;
/// - dropping the future ends the work.
#[async_trait]
pub trait SchemaValidator: Send + Sync + 'static {
    /// Checks the value against the schema.
    ///
    /// # Errors
    /// [`NotValidated`].
    async fn validate(&self, schema: &Value, formats: Formats, value: &Value) -> Result<(), NotValidated>;
}

/// The reason why a value is not known to fit.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotValidated {
    /// It does not fit.
    #[error(transparent)]
    Invalid(#[from] InvalidArguments),
    /// The schema is none.
    #[error(transparent)]
    Schema(#[from] InvalidSchema),
    /// The validation used more processor time than this, for example "1 second".
    #[error("the validation used more than {0} of processor time")]
    OutOfProcessorTime(String),
    /// The validation did not answer in time.
    #[error("the validation did not answer in time")]
    Late,
    /// It needs too much memory.
    #[error("it needs too much memory")]
    OutOfMemory,
    /// It cannot be done here; why.
    #[error("{0}")]
    Unavailable(String),
    /// The process that did it ended; how.
    #[error("the process that did it ended: {0}")]
    Ended(String),
}

/// A validator without another process: nothing is validated.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct NoSchemaValidator;

#[async_trait]
impl SchemaValidator for NoSchemaValidator {
    async fn validate(&self, _: &Value, _: Formats, _: &Value) -> Result<(), NotValidated> {
        Err(NotValidated::Unavailable("there is no process beside this one for it".into()))
    }
}

//! Validation of arguments outside of this process, which could cost this process too much.

use crate::tool_input_schema::{FormatValidation, InvalidArguments, InvalidSchema};
use async_trait::async_trait;
use serde_json::Value;

/// Validates values against schemas of unbounded cost, outside of this process.
///
/// Implementers guarantee:
/// - the verdict is that of the schema, and violations are reported as by the validation in this process;
/// - it takes a bounded processor time and memory, or fails: whatever schema and value do, this process continues, and
///   the verdict is the same on a busy machine;
/// - dropping the future ends the work.
#[async_trait]
pub trait SchemaValidator: Send + Sync + 'static {
    /// Checks the value against the schema.
    ///
    /// # Errors
    /// [`SchemaValidationError`] if it does not match, or could not be checked.
    async fn validate(
        &self,
        schema: &Value,
        formats: FormatValidation,
        value: &Value,
    ) -> Result<(), SchemaValidationError>;
}

/// Reason why a value is not known to match.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SchemaValidationError {
    /// The value does not match.
    #[error(transparent)]
    Invalid(#[from] InvalidArguments),
    /// The schema is invalid.
    #[error(transparent)]
    Schema(#[from] InvalidSchema),
    /// The validation used more processor time than this, for example "1 second".
    #[error("the validation used more than {0} of processor time")]
    OutOfProcessorTime(String),
    /// The validation did not answer in time.
    #[error("the validation did not answer in time")]
    Late,
    /// The validation needs too much memory.
    #[error("it needs too much memory")]
    OutOfMemory,
    /// No process can validate the value, for this reason.
    #[error("{0}")]
    Unavailable(String),
    /// The validating process ended in this way.
    #[error("the validation process ended: {0}")]
    Ended(String),
}

/// Validator without a process: validates nothing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct UnavailableSchemaValidator;

#[async_trait]
impl SchemaValidator for UnavailableSchemaValidator {
    async fn validate(&self, _: &Value, _: FormatValidation, _: &Value) -> Result<(), SchemaValidationError> {
        Err(SchemaValidationError::Unavailable("no validation process is available".into()))
    }
}

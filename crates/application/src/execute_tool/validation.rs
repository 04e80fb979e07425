//! Validation of values against schemas, in this process or in a separate one.

use super::{error::ExecuteToolError, permitted_call};
use crate::cancel_signal::CancelSignal;
use serde_json::Value;
use std::time::Duration;
use toolstead_domain::{
    ArgumentValidationError, InvalidArguments, SchemaValidationError, SchemaValidator, Tool, ToolFailure,
    ToolInputSchema, error_kind::ErrorKind,
};

/// Context of a validation.
#[derive(Clone, Copy)]
pub(super) struct ArgumentValidator<'a> {
    /// Validator for schemas that are too costly to evaluate in this process.
    pub(super) beside: &'a dyn SchemaValidator,
    pub(super) cancel: &'a CancelSignal,
    pub(super) time: Duration,
}

/// Reason why a value is rejected.
pub(super) enum ValidationError {
    /// The value does not fit the schema.
    Invalid(InvalidArguments),
    /// The validation itself failed.
    Unknown(ExecuteToolError),
}

impl ArgumentValidator<'_> {
    /// Validates arguments of the tool.
    pub(super) async fn of(self, tool: &Tool, schema: &ToolInputSchema, value: &Value) -> Result<(), ValidationError> {
        match schema.validate(value) {
            Ok(()) => Ok(()),
            Err(ArgumentValidationError::Invalid(invalid)) => Err(ValidationError::Invalid(invalid)),
            // Boxed: rare.
            Err(ArgumentValidationError::Unbounded(_)) => Box::pin(self.beside_process(tool, schema, value)).await,
        }
    }

    /// Validates in a separate process.
    async fn beside_process(self, tool: &Tool, schema: &ToolInputSchema, value: &Value) -> Result<(), ValidationError> {
        let work = async { Ok(validated(self.beside, schema, value).await) };
        let outcome = match permitted_call::bounded(tool, work, self.cancel, self.time).await {
            Ok(Ok(outcome)) => outcome,
            Ok(Err(failure)) => return Err(ValidationError::Unknown(ExecuteToolError::Failed(failure))),
            Err(ended) => return Err(ValidationError::Unknown(ended)),
        };
        outcome.map_err(|why| match why {
            SchemaValidationError::Invalid(invalid) => ValidationError::Invalid(invalid),
            other => ValidationError::Unknown(unknown(tool, schema, other)),
        })
    }
}

/// Validates a value, in a separate process if it may be too costly in this one.
pub(super) async fn validated(
    beside: &dyn SchemaValidator,
    schema: &ToolInputSchema,
    value: &Value,
) -> Result<(), SchemaValidationError> {
    match schema.validate(value) {
        Ok(()) => Ok(()),
        Err(ArgumentValidationError::Invalid(invalid)) => Err(invalid.into()),
        Err(ArgumentValidationError::Unbounded(_)) => beside.validate(schema.as_value(), schema.formats(), value).await,
    }
}

fn unknown(tool: &Tool, schema: &ToolInputSchema, why: SchemaValidationError) -> ExecuteToolError {
    let name = tool.name();
    if let SchemaValidationError::Schema(invalid) = &why {
        let message = format!("the tool `{name}` cannot be called: {invalid}");
        return ExecuteToolError::NotCallable(ToolFailure::new(ErrorKind::Unavailable, message));
    }
    let (kind, next) = match &why {
        SchemaValidationError::OutOfProcessorTime(_) => {
            (ErrorKind::Timeout, "Call it with fewer or simpler arguments.")
        }
        SchemaValidationError::Late => (ErrorKind::Timeout, "Call it again."),
        SchemaValidationError::OutOfMemory => (ErrorKind::TooLarge, "Call it with fewer or simpler arguments."),
        _ => (ErrorKind::Unavailable, "Use another tool; the operator finds the reason in the log."),
    };
    // Names the reason for the separate process if it is in the schema and not in these arguments.
    let because = schema.validate(&Value::Null).err().map_or_else(String::new, |error| match error {
        ArgumentValidationError::Unbounded(unbounded) => {
            format!(" (a separate process was needed because of the schema: {unbounded})")
        }
        ArgumentValidationError::Invalid(_) => String::new(),
    });
    tracing::warn!(tool = %name, reason = %why, because, "arguments could not be validated");
    let message = format!("The arguments of `{name}` cannot be validated, so it was not called: {why}{because}");
    ExecuteToolError::Refused(ToolFailure::new(kind, message).next(next))
}

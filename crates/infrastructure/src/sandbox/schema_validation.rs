//! Validation against schemas that may be expensive, in a child process that can be killed.

use crate::helper_port::{HelperCall, HelperError, HelperLimits, HelperPort, counted_seconds};
use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::{
    io::{Cursor, Read},
    sync::Arc,
    time::Instant,
};
use toolstead_domain::{
    ArgumentValidationError, FormatValidation, InvalidArguments, InvalidSchema, SchemaValidationError, SchemaValidator,
    ToolInputSchema, UnlistedViolations, Violation,
};

/// Name of the helper that validates.
pub(crate) const HELPER: &str = "schemas";
/// Limits of the validating process.
const BOUNDS: HelperLimits = HelperLimits { seconds: 1, memory_bytes: 256 << 20 };
/// Maximum size of schema and value together, in bytes: the largest message, and the schema.
const MAX_INPUT_BYTES: u64 = 17 << 20;
/// Maximum size of the answer, in bytes. Violations are short.
const MAX_ANSWER_BYTES: u64 = 1 << 20;

/// Validator of values against JSON schemas, which runs in helper processes of this program.
#[derive(Debug)]
pub struct HelperSchemaValidator {
    helpers: Arc<dyn HelperPort>,
}

#[derive(Serialize, Deserialize)]
struct ValidationOptions {
    asserts_formats: bool,
}

/// Schema, and the value that the child validates against it.
#[derive(Serialize, Deserialize)]
struct ValidationRequest<T> {
    schema: T,
    value: T,
}

/// Answer of the child.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
enum ValidationOutcome {
    Valid,
    Invalid {
        /// Path, expectation and actual value of each violation.
        violations: Vec<[String; 3]>,
        /// Number of further violations. `None` if they were not counted.
        more: Option<usize>,
    },
    NoSchema(String),
    /// The value could not be examined.
    Unknown(String),
}

impl HelperSchemaValidator {
    /// Creates a validator that uses these helpers.
    pub fn new(helpers: Arc<dyn HelperPort>) -> Self {
        Self { helpers }
    }
}

#[async_trait]
impl SchemaValidator for HelperSchemaValidator {
    async fn validate(
        &self,
        schema: &Value,
        formats: FormatValidation,
        value: &Value,
    ) -> Result<(), SchemaValidationError> {
        let question = serde_json::to_vec(&ValidationRequest { schema, value });
        let input = question.map_err(|error| SchemaValidationError::Ended(error.to_string()))?;
        if input.len() as u64 > MAX_INPUT_BYTES {
            return Err(SchemaValidationError::OutOfMemory);
        }
        let call = HelperCall {
            name: HELPER,
            order: HelperCall::order_of(&ValidationOptions { asserts_formats: formats == FormatValidation::Asserted })
                .map_err(failed)?,
            input: Box::new(Cursor::new(input)),
            input_bytes: MAX_INPUT_BYTES,
            answer_bytes: MAX_ANSWER_BYTES,
            bounds: BOUNDS,
            // The caller drops this future when its call ends. The wait for a permit is limited as well.
            deadline: Instant::now().checked_add(BOUNDS.backstop()),
        };
        let answer = self.helpers.call(call).await.map_err(failed)?;
        let verdict =
            serde_json::from_slice(&answer).map_err(|error| SchemaValidationError::Ended(error.to_string()))?;
        match verdict {
            ValidationOutcome::Valid => Ok(()),
            ValidationOutcome::Invalid { violations, more } => Err(InvalidArguments {
                violations: violations
                    .into_iter()
                    .map(|[path, expected, got]| Violation { path, expected, got })
                    .collect(),
                more: match more {
                    Some(0) => UnlistedViolations::None,
                    Some(count) => UnlistedViolations::Exactly(count),
                    None => UnlistedViolations::Unknown,
                },
            }
            .into()),
            ValidationOutcome::NoSchema(reason) => Err(InvalidSchema::new(reason).into()),
            ValidationOutcome::Unknown(reason) => Err(SchemaValidationError::Ended(reason)),
        }
    }
}

fn failed(error: HelperError) -> SchemaValidationError {
    match error {
        HelperError::OutOfProcessorTime(seconds) => SchemaValidationError::OutOfProcessorTime(counted_seconds(seconds)),
        HelperError::Late => SchemaValidationError::Late,
        HelperError::OutOfMemory => SchemaValidationError::OutOfMemory,
        HelperError::NoSandbox | HelperError::NoDoor | HelperError::NotStarted(_) => {
            SchemaValidationError::Unavailable(format!("the schema is validated in a process of its own, and {error}"))
        }
        HelperError::Died { .. } | HelperError::AnswerTooLarge(_) | HelperError::Input(_) => {
            SchemaValidationError::Ended(error.to_string())
        }
    }
}

/// Validates in the helper process: `order` has the options and `input` the schema and the value, both as JSON. Returns
/// the outcome as JSON.
pub(crate) fn answer(order: &str, input: &mut dyn Read) -> Vec<u8> {
    serde_json::to_vec(&validate_request(order, input)).unwrap_or_default()
}

fn validate_request(order: &str, input: &mut dyn Read) -> ValidationOutcome {
    let unknown = |error: serde_json::Error| ValidationOutcome::Unknown(error.to_string());
    let formats = match serde_json::from_str(order) {
        Ok(ValidationOptions { asserts_formats: true }) => FormatValidation::Asserted,
        Ok(ValidationOptions { asserts_formats: false }) => FormatValidation::Annotations,
        Err(error) => return unknown(error),
    };
    let mut text = Vec::new();
    if let Err(error) = input.read_to_end(&mut text) {
        return ValidationOutcome::Unknown(error.to_string());
    }
    let ValidationRequest::<Value> { schema, value } = match serde_json::from_slice(&text) {
        Ok(question) => question,
        Err(error) => return unknown(error),
    };
    drop(text);
    let schema = match ToolInputSchema::compile_unbounded(&schema, formats) {
        Ok(schema) => schema,
        Err(invalid) => return ValidationOutcome::NoSchema(invalid.reason().to_owned()),
    };
    match schema.validate(&value) {
        Ok(()) => ValidationOutcome::Valid,
        Err(ArgumentValidationError::Unbounded(unbounded)) => ValidationOutcome::Unknown(unbounded.to_string()),
        Err(ArgumentValidationError::Invalid(InvalidArguments { violations, more })) => ValidationOutcome::Invalid {
            violations: violations.into_iter().map(|one| [one.path, one.expected, one.got]).collect(),
            more: match more {
                UnlistedViolations::None => Some(0),
                UnlistedViolations::Exactly(count) => Some(count),
                UnlistedViolations::Unknown => None,
            },
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[track_caller]
    fn check(asserts_formats: bool, schema: Value, value: Value, expected: ValidationOutcome) {
        let order = json!({"asserts_formats": asserts_formats}).to_string();
        let question = json!({"schema": schema, "value": value}).to_string();
        let answered = answer(&order, &mut question.as_bytes());
        assert_eq!(serde_json::from_slice::<ValidationOutcome>(&answered).unwrap(), expected);
    }

    #[test]
    fn the_child_reports_the_verdict_and_the_violations() {
        let day = || json!({"properties": {"day": {"format": "date"}}});
        let wrong = ["/day", "a text of the format date", "\"?\""].map(str::to_owned);
        check(true, day(), json!({"day": "2026-01-01"}), ValidationOutcome::Valid);
        check(true, day(), json!({"day": "?"}), ValidationOutcome::Invalid { violations: vec![wrong], more: Some(0) });
        check(false, day(), json!({"day": "?"}), ValidationOutcome::Valid);
        let many = answer(
            &json!({"asserts_formats": true}).to_string(),
            &mut json!({"schema": {"items": {"type": "null"}}, "value": vec![0; 100]}).to_string().as_bytes(),
        );
        let ValidationOutcome::Invalid { violations, more } = serde_json::from_slice(&many).unwrap() else { panic!() };
        assert_eq!((violations.len(), more), (20, Some(80)));
    }

    #[test]
    fn an_invalid_schema_and_an_unreadable_request_are_reported() {
        let no_schema = answer(
            &json!({"asserts_formats": true}).to_string(),
            &mut json!({"schema": {"type": "strng"}, "value": {}}).to_string().as_bytes(),
        );
        assert!(matches!(serde_json::from_slice(&no_schema).unwrap(), ValidationOutcome::NoSchema(_)));
        let nothing = answer("{}", &mut [].as_slice());
        assert!(matches!(serde_json::from_slice(&nothing).unwrap(), ValidationOutcome::Unknown(_)));
    }
}

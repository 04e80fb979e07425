//! A validator for schemas without a bound that needs no other process.

use super::lock;
use crate::{
    ports::schema_validator::{SchemaValidationError, SchemaValidator},
    tool_input_schema::{ArgumentValidationError, FormatValidation, ToolInputSchema},
};
use async_trait::async_trait;
use serde_json::Value;
use std::sync::Mutex;

/// Validator that runs in the process of the test, without limits of processor time and memory. It fulfils all other
/// guarantees of [`SchemaValidator`], and can be set to fail.
#[derive(Debug, Default)]
pub struct InProcessSchemaValidator {
    failure: Option<SchemaValidationError>,
    received_values: Mutex<Vec<Value>>,
}

impl InProcessSchemaValidator {
    /// Creates a validator.
    pub fn new() -> Self {
        Self::default()
    }

    /// Creates a validator that always fails in this way.
    pub fn failing(failure: SchemaValidationError) -> Self {
        Self { failure: Some(failure), ..Self::default() }
    }

    /// Returns the values that it received.
    pub fn received_values(&self) -> Vec<Value> {
        lock(&self.received_values).clone()
    }
}

#[async_trait]
impl SchemaValidator for InProcessSchemaValidator {
    async fn validate(
        &self,
        schema: &Value,
        formats: FormatValidation,
        value: &Value,
    ) -> Result<(), SchemaValidationError> {
        lock(&self.received_values).push(value.clone());
        if let Some(failure) = &self.failure {
            return Err(failure.clone());
        }
        let schema = ToolInputSchema::compile_unbounded(schema, formats)?;
        schema.validate(value).map_err(|wrong| match wrong {
            ArgumentValidationError::Invalid(invalid) => SchemaValidationError::Invalid(invalid),
            ArgumentValidationError::Unbounded(unbounded) => SchemaValidationError::Unavailable(unbounded.to_string()),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{block_on::block_on, schema_validator_contract::schema_validator_contract};

    #[test]
    fn the_in_process_schema_validator_fulfils_the_contract() {
        block_on(schema_validator_contract(&InProcessSchemaValidator::new()));
    }
}

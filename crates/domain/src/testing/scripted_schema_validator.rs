//! A validator of schemas without a bound that needs no other process.

use super::lock;
use crate::{
    ports::schema_validator::{NotValidated, SchemaValidator},
    tool_input_schema::{Formats, NotValid, ToolInputSchema},
};
use async_trait::async_trait;
use serde_json::Value;
use std::sync::Mutex;

/// Validates what a test gives it, in the test's own process. Keeps the other promises of [`SchemaValidator`], and can be
/// told to fail.
#[derive(Debug, Default)]
pub struct ScriptedSchemaValidator {
    failure: Option<NotValidated>,
    seen: Mutex<Vec<Value>>,
}

impl ScriptedSchemaValidator {
    /// One that validates.
    pub fn new() -> Self {
        Self::default()
    }

    /// One that never comes to an end in the way that the failure says.
    pub fn failing(failure: NotValidated) -> Self {
        Self { failure: Some(failure), ..Self::default() }
    }

    /// The values that it was asked about.
    pub fn seen(&self) -> Vec<Value> {
        lock(&self.seen).clone()
    }
}

#[async_trait]
impl SchemaValidator for ScriptedSchemaValidator {
    async fn validate(&self, schema: &Value, formats: Formats, value: &Value) -> Result<(), NotValidated> {
        lock(&self.seen).push(value.clone());
        if let Some(failure) = &self.failure {
            return Err(failure.clone());
        }
        let schema = ToolInputSchema::compile_unbounded(schema, formats)?;
        schema.validate(value).map_err(|wrong| match wrong {
            NotValid::Invalid(invalid) => NotValidated::Invalid(invalid),
            NotValid::Unbounded(unbounded) => NotValidated::Unavailable(unbounded.to_string()),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{block_on::block_on, schema_validator_contract::schema_validator_contract};

    #[test]
    fn it_keeps_the_contract() {
        block_on(schema_validator_contract(&ScriptedSchemaValidator::new()));
    }
}

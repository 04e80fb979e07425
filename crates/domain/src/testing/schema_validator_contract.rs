//! Contract of every validator for schemas without a bound.

use crate::{
    ports::schema_validator::{SchemaValidationError, SchemaValidator},
    tool_input_schema::{FormatValidation, UnlistedViolations},
};
use serde_json::{Value, json};

/// Checks each guarantee of [`SchemaValidator`], except time and memory.
///
/// # Panics
/// If a guarantee is violated; the message names it.
pub async fn schema_validator_contract(validator: &dyn SchemaValidator) {
    let this = json!({"$ref": "#"});
    let twice = json!({"anyOf": [this, this]});
    let schema = json!({
        "type": "object", "required": ["day"],
        "properties": {"day": {"format": "date"}, "more": twice, "all": {"items": {"type": "integer"}}},
    });
    let valid = json!({"day": "2026-01-01", "more": {"day": "2026-01-02"}});
    assert_eq!(validator.validate(&schema, FormatValidation::Asserted, &valid).await, Ok(()), "what fits is valid");
    let answer = rejection_message(validator, &schema, json!({"day": "?", "all": ["x"]})).await;
    assert_eq!(
        answer, "/all/0: expected an integer, got \"x\"\n/day: expected a text of the format date, got \"?\"",
        "violations are told as in the process itself"
    );
    assert_eq!(
        validator.validate(&schema, FormatValidation::Annotations, &json!({"day": "?"})).await,
        Ok(()),
        "formats count where they are asserted"
    );
    let many = json!({"day": "2026-01-01", "all": vec!["x"; 100]});
    match validator.validate(&schema, FormatValidation::Asserted, &many).await {
        Err(SchemaValidationError::Invalid(invalid)) => {
            assert_eq!(
                (invalid.violations.len(), invalid.more),
                (20, UnlistedViolations::Exactly(80)),
                "the others are counted"
            );
        }
        other => panic!("what does not fit is invalid: {other:?}"),
    }
    let no_schema = json!({"properties": {"a": {"anyOf": [this, this]}, "b": {"type": "strng"}}});
    let refused = validator.validate(&no_schema, FormatValidation::Asserted, &json!({})).await;
    assert!(
        matches!(refused, Err(SchemaValidationError::Schema(_))),
        "an invalid schema is reported as such: {refused:?}"
    );
}

async fn rejection_message(validator: &dyn SchemaValidator, schema: &Value, value: Value) -> String {
    match validator.validate(schema, FormatValidation::Asserted, &value).await {
        Err(SchemaValidationError::Invalid(invalid)) => invalid.to_string(),
        other => panic!("what does not fit is invalid: {other:?}"),
    }
}

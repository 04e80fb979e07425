//! What every validator of schemas without a bound must do.

use crate::{
    ports::schema_validator::{NotValidated, SchemaValidator},
    tool_input_schema::{Formats, More, ToolInputSchema},
};
use serde_json::{Value, json};

/// Checks each promise of [`SchemaValidator`]'s documentation, but for time and memory.
///
/// # Panics
/// When a promise is not kept; the message says which.
pub async fn schema_validator_contract(validator: &dyn SchemaValidator) {
    let this = json!({"$ref": "#"});
    let schema = |formats: Formats| {
        let twice = json!({"anyOf": [this, this]});
        let schema = json!({
            "type": "object", "required": ["day"],
            "properties": {"day": {"format": "date"}, "more": twice, "all": {"items": {"type": "integer"}}},
        });
        ToolInputSchema::compile(&schema, formats).unwrap()
    };
    let asserted = schema(Formats::Asserted);
    let valid = json!({"day": "2026-01-01", "more": {"day": "2026-01-02"}});
    assert_eq!(validator.validate(&asserted, &valid).await, Ok(()), "what fits is valid");
    let told = told(validator, &asserted, json!({"day": "?", "all": ["x"]})).await;
    assert_eq!(
        told, "/all/0: expected an integer, got \"x\"\n/day: expected a text of the format date, got \"?\"",
        "violations are told as in the process itself"
    );
    let remark = schema(Formats::Annotations);
    assert_eq!(
        validator.validate(&remark, &json!({"day": "?"})).await,
        Ok(()),
        "formats count where they are asserted"
    );
    match validator.validate(&asserted, &json!({"day": "2026-01-01", "all": vec!["x"; 100]})).await {
        Err(NotValidated::Invalid(invalid)) => {
            assert_eq!((invalid.violations.len(), invalid.more), (20, More::Exactly(80)), "the others are counted");
        }
        other => panic!("what does not fit is invalid: {other:?}"),
    }
    let schema = json!({"properties": {"a": {"anyOf": [this, this]}, "b": {"type": "strng"}}});
    let no_schema = ToolInputSchema::compile(&schema, Formats::Asserted).unwrap();
    let refused = validator.validate(&no_schema, &json!({})).await;
    assert!(matches!(refused, Err(NotValidated::Schema(_))), "what is no schema is told as such: {refused:?}");
}

async fn told(validator: &dyn SchemaValidator, schema: &ToolInputSchema, value: Value) -> String {
    match validator.validate(schema, &value).await {
        Err(NotValidated::Invalid(invalid)) => invalid.to_string(),
        other => panic!("what does not fit is invalid: {other:?}"),
    }
}

//! From what the caller sent to what the tool's schema knows.

use super::ExecuteToolError;
use crate::tool_registry::Registered;
use serde_json::{Map, Value, json};
use toolstead_domain::{
    coercion::coerce, error_kind::ErrorKind, tool_failure::ToolFailure, tool_input_schema::InvalidArguments,
};

/// Renames the parameters of another spelling, repairs harmless slips, and validates.
pub(super) fn prepare(
    registered: &Registered,
    called_as: &str,
    given: &Value,
) -> Result<Map<String, Value>, ExecuteToolError> {
    let mut arguments = match given {
        Value::Object(arguments) => arguments.clone(),
        Value::Null => Map::new(),
        other => {
            let got = other.to_string().chars().take(60).collect::<String>();
            let message = format!("`arguments` must be a JSON object, got {got}");
            return Err(ExecuteToolError::NotCallable(ToolFailure::new(ErrorKind::InvalidInput, message)));
        }
    };
    // A spelling's own renames apply under its name; those of the canonical name apply always.
    let name = registered.tool.name().as_str();
    for alias in registered.tool.aliases.iter().filter(|alias| alias.name == called_as || alias.name == name) {
        alias.rewrite(&mut arguments).map_err(ExecuteToolError::Refused)?;
    }
    validated(registered, arguments)
}

/// The arguments, valid; repaired only where they are not valid as they are.
pub(super) fn validated(
    registered: &Registered,
    mut arguments: Map<String, Value>,
) -> Result<Map<String, Value>, ExecuteToolError> {
    let tool = &registered.tool;
    let schema = registered.input_schema().map_err(|error| {
        let message = format!("the tool `{}` cannot be called: {error}", tool.name());
        ExecuteToolError::NotCallable(ToolFailure::new(ErrorKind::Unavailable, message))
    })?;
    let mut value = Value::Object(arguments);
    let Err(mut error) = schema.validate(&value) else { return Ok(object(value)) };
    arguments = object(value);
    let as_given = arguments.clone();
    coerce(schema.as_value(), &mut arguments);
    if arguments != as_given {
        value = Value::Object(arguments);
        match schema.validate(&value) {
            Ok(()) => return Ok(object(value)),
            Err(rest) => error = rest,
        }
    }
    Err(ExecuteToolError::Refused(invalid(tool.name().as_str(), &error)))
}

fn invalid(tool: &str, error: &InvalidArguments) -> ToolFailure {
    let message = format!("The arguments do not fit the tool `{tool}`:\n{error}\n");
    // What was expected where, without the values: they may be secrets, and this goes on record.
    let expected: Vec<String> =
        error.violations.iter().map(|one| format!("{}: expected {}", one.path, one.expected)).collect();
    ToolFailure::new(ErrorKind::InvalidInput, message)
        .next("Correct them and call again.")
        .with_data(json!({"violations": expected}))
}

fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(members) => members,
        _ => Map::new(),
    }
}

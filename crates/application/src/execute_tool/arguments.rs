//! Preparation of arguments: from the caller's JSON to values that are valid under the tool's schema.

use super::{
    applied_dialect,
    command::ExecuteToolCommand,
    error::ExecuteToolError,
    permitted_call,
    record::CallRecord,
    references::{self, SubstitutedArguments},
    validation::{ArgumentValidator, ValidationError},
};
use crate::tool_registry::SharedRegisteredTool;
use serde_json::{Map, Value, json};
use std::sync::Arc;
use toolstead_domain::{
    Alias, InvalidArguments, OutputStore, ToolCall, ToolFailure, ToolInputSchema, ToolOverlay, View, coercion::coerce,
    defaults::fill_defaults, error_kind::ErrorKind,
};

/// Argument that limits the characters of the result below the budget. The rest is stored as usual. If a tool has a
/// parameter of this name, the argument is passed to the tool.
const MAX_OUTPUT: &str = "$max_output";

#[derive(Debug)]
pub(super) struct PreparedArguments {
    pub(super) arguments: Map<String, Value>,
    /// Descriptions of the stored outputs that the arguments contain.
    pub(super) references: Vec<String>,
    /// Maximum number of characters of the result that the caller requests.
    pub(super) max_output: Option<usize>,
}

/// Substitutes references to stored outputs, renames parameters of aliases, coerces values to the types of the schema,
/// and validates.
///
/// References are substituted first, so that every later step, including the rules of aliases, receives values only.
/// Reading the stored outputs ends when the call is cancelled, or after the validation timeout.
pub(super) async fn prepare(
    registered: &SharedRegisteredTool,
    command: &ExecuteToolCommand,
    arguments: Value,
    outputs: &dyn OutputStore,
    record: &mut CallRecord,
    validation: ArgumentValidator<'_>,
) -> Result<PreparedArguments, ExecuteToolError> {
    let mut arguments = match arguments {
        Value::Object(arguments) => arguments,
        Value::Null => Map::new(),
        other => {
            let got = other.to_string().chars().take(60).collect::<String>();
            let message = format!("`arguments` must be a JSON object, got {got}");
            return Err(ExecuteToolError::NotCallable(ToolFailure::new(ErrorKind::InvalidInput, message)));
        }
    };
    let max_output = take_max_output(registered, &mut arguments)?;
    if !registered.tool.passes_references_on && references::are_in(&arguments) {
        // Boxed: the future is large and rare.
        let substituted = substitute(registered, command, arguments, outputs, record, validation);
        let (arguments, references) = Box::pin(substituted).await?;
        return Ok(PreparedArguments { arguments, references, max_output });
    }
    rewrite(registered, command, &mut arguments, record)?;
    let arguments = validate_arguments(registered, arguments, validation).await?;
    Ok(PreparedArguments { arguments, references: Vec::new(), max_output })
}

/// Prepares arguments that contain references. Returns them with descriptions of the references.
async fn substitute(
    registered: &SharedRegisteredTool,
    command: &ExecuteToolCommand,
    arguments: Map<String, Value>,
    outputs: &dyn OutputStore,
    record: &mut CallRecord,
    validation: ArgumentValidator<'_>,
) -> Result<(Map<String, Value>, Vec<String>), ExecuteToolError> {
    let mut given = arguments.clone();
    let substituted = references::substitute(arguments, &command.scope.principal, outputs);
    let substituted =
        permitted_call::bounded(&registered.tool, substituted, validation.cancel, validation.time).await?;
    let SubstitutedArguments { mut arguments, texts, references } = substituted.map_err(ExecuteToolError::Refused)?;
    if !references.is_empty() {
        record.substituted(&arguments);
    }
    rewrite(registered, command, &mut arguments, record)?;
    let RejectedArguments { error, paths, arguments } =
        match validate_or_coerce(registered, arguments, validation, !texts.is_empty()).await {
            Ok(arguments) => return Ok((arguments, references)),
            Err(unfit) => *unfit,
        };
    // The tool may expect the stored text itself where it parses as another JSON value.
    if texts.is_empty() || rewrite(registered, command, &mut given, record).is_err() {
        return Err(error);
    }
    let as_texts = references::put_texts(arguments, given, &texts, &paths).map_err(ExecuteToolError::Refused)?;
    let as_texts = validate_or_coerce(registered, as_texts, validation, false).await.map_err(|_| error)?;
    record.substituted(&as_texts);
    Ok((as_texts, references))
}

/// Renames parameters of aliases to the tool's own, adds the values that views fix, and fills in the defaults of the
/// dialect.
fn rewrite(
    registered: &SharedRegisteredTool,
    command: &ExecuteToolCommand,
    arguments: &mut Map<String, Value>,
    record: &mut CallRecord,
) -> Result<(), ExecuteToolError> {
    // The renames of an alias apply to calls under that alias; those of the canonical name always apply. If several
    // dialects share a name, the caller's dialect comes first, because later renames no longer match.
    let (called_as, dialect) = (command.scope.tool_named(&command.tool), command.scope.dialect);
    let name = registered.tool.name().as_str();
    let aliases = || registered.tool.aliases.iter().filter(|alias| alias.name == called_as || alias.name == name);
    let is_of_dialect = |alias: &&Alias| Some(alias.dialect) == dialect;
    let mut in_order = aliases().filter(is_of_dialect).chain(aliases().filter(|alias| !is_of_dialect(alias)));
    let rewritten = in_order.try_for_each(|alias| alias.rewrite(arguments));
    if command.scope.view.is_some() && rewritten.is_ok() {
        fix(registered, command, arguments, record)?;
    }
    let defaults = applied_dialect::adapter_for(&registered.tool, command).map_or(&[][..], |face| face.defaults);
    let completed = rewritten.and_then(|()| defaults.iter().try_for_each(|step| step.apply(arguments)));
    completed.map_err(ExecuteToolError::Refused)
}

/// Adds the values that the views of the call fix; an outer view takes precedence. Rejects a call that sets such a
/// parameter, or whose view does not fit the tool. Requests other than tool calls remain unchanged.
fn fix(
    registered: &SharedRegisteredTool,
    command: &ExecuteToolCommand,
    arguments: &mut Map<String, Value>,
    record: &mut CallRecord,
) -> Result<(), ExecuteToolError> {
    if command.answered_by.is_some() {
        return Ok(());
    }
    let overlays = || command.scope.overlays_of(&registered.own);
    let check_definition = |(view, overlay): (&Arc<View>, &ToolOverlay)| {
        overlay.check(&registered.own).map_err(|error| {
            ToolFailure::new(
                ErrorKind::Unavailable,
                format!("The view `{}` does not fit this tool: {error}.", view.name),
            )
        })
    };
    overlays().try_for_each(check_definition).map_err(ExecuteToolError::Refused)?;
    let check = |(view, overlay): (&Arc<View>, &ToolOverlay)| overlay.check_arguments(&view.name, arguments);
    overlays().try_for_each(check).map_err(ExecuteToolError::Refused)?;
    let mut fixed = Map::new();
    overlays().for_each(|(_, overlay)| overlay.insert_fixed(&mut fixed));
    if !fixed.is_empty() {
        arguments.extend(fixed.clone());
        record.fixed(&fixed, arguments);
    }
    Ok(())
}

fn take_max_output(
    registered: &SharedRegisteredTool,
    arguments: &mut Map<String, Value>,
) -> Result<Option<usize>, ExecuteToolError> {
    if !arguments.contains_key(MAX_OUTPUT) {
        return Ok(None);
    }
    let properties = registered.tool.input_schema().get("properties");
    if properties.is_some_and(|properties| properties.get(MAX_OUTPUT).is_some()) {
        return Ok(None);
    }
    let Some(value) = arguments.shift_remove(MAX_OUTPUT) else { return Ok(None) };
    match value.as_u64().and_then(|characters| usize::try_from(characters).ok()) {
        Some(characters) => Ok(Some(characters)),
        None => {
            let message = format!("`{MAX_OUTPUT}` must be a whole number: how many characters of the result to show");
            Err(ExecuteToolError::Refused(ToolFailure::new(ErrorKind::InvalidInput, message)))
        }
    }
}

/// Fills in the schema's defaults if the provider owns its schemas. Returns `true` if that changed the arguments. Hooks
/// receive the arguments without them.
pub(super) fn with_defaults(registered: &SharedRegisteredTool, call: &mut ToolCall) -> bool {
    registered.provider.owns_schemas()
        && registered.input_schema().is_ok_and(ToolInputSchema::has_defaults)
        && fill_defaults(registered.tool.input_schema(), &mut call.arguments)
}

/// Fills in the schema's defaults, and validates again if that changed the arguments.
pub(super) async fn complete(
    registered: &SharedRegisteredTool,
    call: &mut ToolCall,
    validation: ArgumentValidator<'_>,
) -> Result<(), ExecuteToolError> {
    if with_defaults(registered, call) {
        call.arguments = validate_arguments(registered, std::mem::take(&mut call.arguments), validation).await?;
    }
    Ok(())
}

/// Returns valid arguments. Coerces them only if they are not valid as given.
pub(super) async fn validate_arguments(
    registered: &SharedRegisteredTool,
    arguments: Map<String, Value>,
    validation: ArgumentValidator<'_>,
) -> Result<Map<String, Value>, ExecuteToolError> {
    let arguments = match already_valid(registered, arguments) {
        Ok(arguments) => return Ok(arguments),
        Err(arguments) => arguments,
    };
    // Boxed: rare, and larger than the rest of the preparation.
    Box::pin(validate_or_coerce(registered, arguments, validation, false)).await.map_err(|unfit| unfit.error)
}

/// Returns the arguments as an error if they are not valid as they are, or cannot be validated in this process.
fn already_valid(
    registered: &SharedRegisteredTool,
    arguments: Map<String, Value>,
) -> Result<Map<String, Value>, Map<String, Value>> {
    let arguments = Value::Object(arguments);
    let is_valid = registered.input_schema().is_ok_and(|schema| schema.validate(&arguments).is_ok());
    if is_valid { Ok(object(arguments)) } else { Err(object(arguments)) }
}

/// Arguments that are not valid under the schema.
struct RejectedArguments {
    error: ExecuteToolError,
    /// JSON Pointers to the violations.
    paths: Vec<String>,
    /// Arguments as given if `validate_or_coerce` was called with `keeps`, else empty.
    arguments: Map<String, Value>,
}

impl From<ExecuteToolError> for Box<RejectedArguments> {
    fn from(error: ExecuteToolError) -> Self {
        Box::new(RejectedArguments { error, paths: Vec::new(), arguments: Map::new() })
    }
}

/// Validates the arguments, and coerces them if necessary. With `keeps`, the error contains a copy of the arguments as
/// given.
async fn validate_or_coerce(
    registered: &SharedRegisteredTool,
    arguments: Map<String, Value>,
    validation: ArgumentValidator<'_>,
    keeps: bool,
) -> Result<Map<String, Value>, Box<RejectedArguments>> {
    let tool = &registered.tool;
    let schema = registered.input_schema().map_err(|error| {
        let message = format!("the tool `{}` cannot be called: {error}", tool.name());
        ExecuteToolError::NotCallable(ToolFailure::new(ErrorKind::Unavailable, message))
    })?;
    let mut value = Value::Object(arguments);
    let mut invalid_as = match validation.of(tool, schema, &value).await {
        Ok(()) => return Ok(object(value)),
        Err(ValidationError::Invalid(invalid)) => invalid,
        Err(ValidationError::Unknown(error)) => return Err(error.into()),
    };
    let mut arguments = object(value);
    let as_given = if keeps { arguments.clone() } else { Map::new() };
    if coerce(schema.as_value(), &mut arguments) {
        value = Value::Object(arguments);
        match validation.of(tool, schema, &value).await {
            Ok(()) => return Ok(object(value)),
            Err(ValidationError::Invalid(rest)) => invalid_as = rest,
            Err(ValidationError::Unknown(error)) => return Err(error.into()),
        }
    }
    let paths = invalid_as.violations.iter().map(|one| one.path.clone()).collect();
    let error = ExecuteToolError::Refused(invalid(tool.name().as_str(), &invalid_as));
    Err(Box::new(RejectedArguments { error, paths, arguments: as_given }))
}

fn invalid(tool: &str, error: &InvalidArguments) -> ToolFailure {
    let message = format!("The arguments do not fit the tool `{tool}`:\n{error}\n");
    // Only the expected types, without the values: they may be secrets, and this failure is stored in the audit log.
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

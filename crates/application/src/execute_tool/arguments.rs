//! From what the caller sent to what the tool's schema knows.

use super::{
    ExecuteToolCommand, ExecuteToolError, applied_dialect,
    record::Record,
    references::{self, Substituted},
    running,
    validation::{Unfitting, Validation},
};
use crate::tool_registry::Registered;
use serde_json::{Map, Value, json};
use toolstead_domain::{
    alias::Alias, coercion::coerce, defaults::fill_defaults, error_kind::ErrorKind, ports::output_store::OutputStore,
    tool_call::ToolCall, tool_failure::ToolFailure, tool_input_schema::InvalidArguments,
};

/// The argument by which a caller wants less of a result than the budget allows: so many characters. The rest is kept
/// as always. A tool that has a parameter of this name gets it instead.
const MAX_OUTPUT: &str = "$max_output";

/// Arguments that are ready for the tool.
#[derive(Debug)]
pub(super) struct Prepared {
    pub(super) arguments: Map<String, Value>,
    /// Which of them are stored outputs, in words.
    pub(super) references: Vec<String>,
    /// How many characters of the result the caller wants at most.
    pub(super) max_output: Option<usize>,
}

/// Puts stored outputs in the place of references, renames the parameters of another spelling, repairs harmless slips,
/// and validates.
///
/// References come first, so that every later step, the spellings' rules among them, sees values and nothing else. Reading
/// what they name ends with the signal, and in the time of the validation.
pub(super) async fn prepare(
    registered: &Registered,
    command: &ExecuteToolCommand,
    arguments: Value,
    outputs: &dyn OutputStore,
    record: &mut Record,
    validation: Validation<'_>,
) -> Result<Prepared, ExecuteToolError> {
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
        // Boxed: large and rare.
        let substituted = substitute(registered, command, arguments, outputs, record, validation);
        let (arguments, references) = Box::pin(substituted).await?;
        return Ok(Prepared { arguments, references, max_output });
    }
    rewrite(registered, command, &mut arguments)?;
    let arguments = validated(registered, arguments, validation).await?;
    Ok(Prepared { arguments, references: Vec::new(), max_output })
}

/// Prepares arguments that contain references. Returns them with a description of the references.
async fn substitute(
    registered: &Registered,
    command: &ExecuteToolCommand,
    arguments: Map<String, Value>,
    outputs: &dyn OutputStore,
    record: &mut Record,
    validation: Validation<'_>,
) -> Result<(Map<String, Value>, Vec<String>), ExecuteToolError> {
    let mut given = arguments.clone();
    let substituted = references::substitute(arguments, &command.scope.principal, outputs);
    let substituted = running::bounded(&registered.tool, substituted, validation.cancel, validation.time).await?;
    let Substituted { mut arguments, texts, references } = substituted.map_err(ExecuteToolError::Refused)?;
    if !references.is_empty() {
        record.substituted(&arguments);
    }
    rewrite(registered, command, &mut arguments)?;
    let Unfit { error, paths, arguments } = match checked(registered, arguments, validation, !texts.is_empty()).await {
        Ok(arguments) => return Ok((arguments, references)),
        Err(unfit) => *unfit,
    };
    // The tool may expect a value as the text that it was stored as.
    if texts.is_empty() || rewrite(registered, command, &mut given).is_err() {
        return Err(error);
    }
    let as_texts = references::put_texts(arguments, given, &texts, &paths).map_err(ExecuteToolError::Refused)?;
    let as_texts = checked(registered, as_texts, validation, false).await.map_err(|_| error)?;
    record.substituted(&as_texts);
    Ok((as_texts, references))
}

/// Turns the arguments into the tool's own spelling.
fn rewrite(
    registered: &Registered,
    command: &ExecuteToolCommand,
    arguments: &mut Map<String, Value>,
) -> Result<(), ExecuteToolError> {
    // A spelling's own renames apply under its name; those of the canonical name apply always. Where several dialects
    // share a name, the caller's comes first: what it has renamed the others do not find.
    let (called_as, dialect) = (&*command.tool, command.scope.dialect);
    let name = registered.tool.name().as_str();
    let aliases = || registered.tool.aliases.iter().filter(|alias| alias.name == called_as || alias.name == name);
    let is_of_dialect = |alias: &&Alias| Some(alias.dialect) == dialect;
    let mut in_order = aliases().filter(is_of_dialect).chain(aliases().filter(|alias| !is_of_dialect(alias)));
    let rewritten = in_order.try_for_each(|alias| alias.rewrite(arguments));
    let defaults = applied_dialect::of(&registered.tool, command).map_or(&[][..], |face| face.defaults);
    let completed = rewritten.and_then(|()| defaults.iter().try_for_each(|step| step.apply(arguments)));
    completed.map_err(ExecuteToolError::Refused)
}

fn take_max_output(
    registered: &Registered,
    arguments: &mut Map<String, Value>,
) -> Result<Option<usize>, ExecuteToolError> {
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

/// Makes of the call what its provider sees: one with the defaults of a schema that is ours. Hooks hear what was given.
/// Returns whether anything is another now.
pub(super) fn with_defaults(registered: &Registered, call: &mut ToolCall) -> bool {
    registered.provider.owns_schemas() && fill_defaults(registered.tool.input_schema(), &mut call.arguments)
}

/// The same, of arguments that are valid: they are so with the defaults as well.
pub(super) async fn complete(
    registered: &Registered,
    call: &mut ToolCall,
    validation: Validation<'_>,
) -> Result<(), ExecuteToolError> {
    if with_defaults(registered, call) {
        call.arguments = validated(registered, std::mem::take(&mut call.arguments), validation).await?;
    }
    Ok(())
}

/// The arguments, valid; repaired only where they are not valid as they are.
pub(super) async fn validated(
    registered: &Registered,
    arguments: Map<String, Value>,
    validation: Validation<'_>,
) -> Result<Map<String, Value>, ExecuteToolError> {
    let arguments = match already_valid(registered, arguments) {
        Ok(arguments) => return Ok(arguments),
        Err(arguments) => arguments,
    };
    // Boxed: rare, and larger than the rest of the preparation.
    Box::pin(checked(registered, arguments, validation, false)).await.map_err(|unfit| unfit.error)
}

/// Returns the arguments as an error if they are not valid as they are, or cannot be validated in this process.
fn already_valid(
    registered: &Registered,
    arguments: Map<String, Value>,
) -> Result<Map<String, Value>, Map<String, Value>> {
    let arguments = Value::Object(arguments);
    let is_valid = registered.input_schema().is_ok_and(|schema| schema.validate(&arguments).is_ok());
    if is_valid { Ok(object(arguments)) } else { Err(object(arguments)) }
}

/// Arguments that do not fit.
struct Unfit {
    error: ExecuteToolError,
    /// Where: JSON Pointers.
    paths: Vec<String>,
    /// As they were, if they were to be kept.
    arguments: Map<String, Value>,
}

impl From<ExecuteToolError> for Box<Unfit> {
    fn from(error: ExecuteToolError) -> Self {
        Box::new(Unfit { error, paths: Vec::new(), arguments: Map::new() })
    }
}

/// With `keeps`, arguments that do not fit come back as they were: a copy of all of them.
async fn checked(
    registered: &Registered,
    arguments: Map<String, Value>,
    validation: Validation<'_>,
    keeps: bool,
) -> Result<Map<String, Value>, Box<Unfit>> {
    let tool = &registered.tool;
    let schema = registered.input_schema().map_err(|error| {
        let message = format!("the tool `{}` cannot be called: {error}", tool.name());
        ExecuteToolError::NotCallable(ToolFailure::new(ErrorKind::Unavailable, message))
    })?;
    let mut value = Value::Object(arguments);
    let mut invalid_as = match validation.of(tool, schema, &value).await {
        Ok(()) => return Ok(object(value)),
        Err(Unfitting::Invalid(invalid)) => invalid,
        Err(Unfitting::Unknown(error)) => return Err(error.into()),
    };
    let mut arguments = object(value);
    let as_given = if keeps { arguments.clone() } else { Map::new() };
    if coerce(schema.as_value(), &mut arguments) {
        value = Value::Object(arguments);
        match validation.of(tool, schema, &value).await {
            Ok(()) => return Ok(object(value)),
            Err(Unfitting::Invalid(rest)) => invalid_as = rest,
            Err(Unfitting::Unknown(error)) => return Err(error.into()),
        }
    }
    let paths = invalid_as.violations.iter().map(|one| one.path.clone()).collect();
    let error = ExecuteToolError::Refused(invalid(tool.name().as_str(), &invalid_as));
    Err(Box::new(Unfit { error, paths, arguments: as_given }))
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

//! Commands of users, as prompts.

use super::{InvalidBuiltInContext, beginning_with, members, unknown_argument};
use serde_json::{Map, Value, json};
use std::{collections::BTreeMap, sync::Arc};
use toolstead_domain::{
    AgentCatalogue, CommandPromptTemplate, CompletionRequest, Prompt, ToolFailure, error_kind::ErrorKind,
};

/// Argument for the text that a user would type after the name.
const WORDS: &str = "arguments";

/// Description of [`WORDS`] for a command without an argument hint.
const DEFAULT_HINT: &str = "Text for the placeholders of the command; without placeholders it is appended";

/// Returns the definitions of the commands; skips those that are not valid prompts.
pub(super) fn definitions(catalogue: &dyn AgentCatalogue) -> Vec<Prompt> {
    catalogue.commands().iter().filter_map(|command| definition(command).ok()).collect()
}

fn definition(command: &CommandPromptTemplate) -> Result<Prompt, InvalidBuiltInContext> {
    let named = command.arguments.iter().map(|argument| {
        let description = match &argument.default {
            Some(default) => format!("Without it: {default}"),
            None => String::new(),
        };
        json!({"name": argument.name, "description": description, "required": argument.default.is_none()})
    });
    let hint = command.argument_hint.as_deref().unwrap_or(DEFAULT_HINT);
    let words = json!({"name": WORDS, "description": hint, "required": false});
    let arguments: Vec<Value> = named.chain((!names_words(command)).then_some(words)).collect();
    let definition = json!({"name": *command.name, "description": command.description, "arguments": arguments});
    Prompt::new(members(definition)).map_err(|error| InvalidBuiltInContext {
        what: format!("command `{}`", command.name),
        reason: error.to_string(),
    })
}

/// Returns `true` if a declared argument is named like [`WORDS`].
fn names_words(command: &CommandPromptTemplate) -> bool {
    command.arguments.iter().any(|argument| argument.name == WORDS)
}

pub(super) fn find(catalogue: &dyn AgentCatalogue, name: &str) -> Option<Arc<CommandPromptTemplate>> {
    catalogue.commands().into_iter().find(|command| *command.name == *name)
}

/// Returns MCP's `GetPromptResult`.
pub(super) fn get(
    command: &CommandPromptTemplate,
    arguments: &BTreeMap<String, String>,
) -> Result<Map<String, Value>, ToolFailure> {
    let is_known = |name: &String| name == WORDS || command.arguments.iter().any(|one| one.name == *name);
    if let Some(name) = arguments.keys().find(|name| !is_known(name)) {
        return Err(unknown(command, name));
    }
    let words = arguments.get(WORDS).filter(|_| !names_words(command)).map_or("", String::as_str);
    let text = command.text_with(words, arguments).map_err(|error| {
        let message = format!("the prompt `{}` cannot be made: {error}", command.name);
        ToolFailure::new(ErrorKind::InvalidInput, message)
    })?;
    Ok(members(json!({
        "description": command.description,
        "messages": [{"role": "user", "content": {"type": "text", "text": text}}],
    })))
}

/// Returns the values of an argument with a prefix, and their number. The only known value is the default.
pub(super) fn values(
    command: &CommandPromptTemplate,
    completion: &CompletionRequest,
) -> Result<(Vec<String>, usize), ToolFailure> {
    let argument = command.arguments.iter().find(|one| one.name == completion.argument);
    match argument {
        Some(argument) => Ok(beginning_with(&completion.value, argument.default.as_deref().into_iter())),
        None if completion.argument == WORDS => Ok((Vec::new(), 0)),
        None => Err(unknown(command, &completion.argument)),
    }
}

fn unknown(command: &CommandPromptTemplate, argument: &str) -> ToolFailure {
    let words = (!names_words(command)).then_some(WORDS);
    unknown_argument(argument, command.arguments.iter().map(|one| one.name.as_str()).chain(words))
}

#[cfg(test)]
mod tests {
    use super::*;
    use toolstead_domain::CommandArgument;

    fn command(named: &[(&str, Option<&str>)]) -> CommandPromptTemplate {
        let mut command = CommandPromptTemplate::new("git:fix", "Fixes", "Fix $1 for {{.who}}.");
        let argument = |(name, default): &(&str, Option<&str>)| CommandArgument {
            name: (*name).to_owned(),
            default: default.map(str::to_owned),
        };
        command.arguments = named.iter().map(argument).collect();
        command
    }

    fn text(command: &CommandPromptTemplate, arguments: &[(&str, &str)]) -> Result<String, ToolFailure> {
        let given = arguments.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let result = get(command, &given)?;
        Ok(result["messages"][0]["content"]["text"].as_str().unwrap().to_owned())
    }

    #[test]
    fn a_command_prompt_has_its_named_arguments_and_one_for_free_text() {
        let definition = definition(&command(&[("who", None), ("why", Some("fun"))])).unwrap();
        let arguments = definition.definition()["arguments"].as_array().unwrap().clone();
        let message: Vec<(&str, bool)> =
            arguments.iter().map(|one| (one["name"].as_str().unwrap(), one["required"].as_bool().unwrap())).collect();
        assert_eq!(message, [("who", true), ("why", false), (WORDS, false)]);
        assert_eq!(text(&command(&[("who", None)]), &[("who", "Ada"), (WORDS, "12 now")]).unwrap(), "Fix 12 for Ada.");
        assert_eq!(text(&command(&[]), &[]).unwrap(), "Fix  for {{.who}}.");
    }

    #[test]
    fn a_missing_or_unknown_argument_is_named_in_the_error() {
        for (arguments, said) in [(&[][..], "`who=…`"), (&[("who", "x"), ("whom", "y")], "there is no argument `whom`")]
        {
            let failure = text(&command(&[("who", None)]), arguments).unwrap_err();
            assert_eq!(failure.kind, ErrorKind::InvalidInput);
            assert!(failure.text().contains(said), "{}", failure.text());
        }
    }
}

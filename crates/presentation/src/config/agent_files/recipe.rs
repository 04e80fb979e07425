//! kodelet recipes: Go templates, of which arguments, defaults and commands are supported.

use super::embedded_commands::run_request;
use crate::config::tree::{
    node::{Member, NodeContent},
    origin::Origin,
    problem::Problem,
};
use std::{path::Path, sync::Arc};
use toolstead_domain::CommandArgument;

/// Maximum number of arguments of a recipe.
const MOST_ARGUMENTS: usize = 64;

/// Returns the text with its template actions reduced to `{{.name}}`, and the arguments of the recipe.
///
/// # Errors
/// A [`Problem`] if the template uses an unsupported action.
pub(super) fn read(
    body: &str,
    defaults: Vec<Member>,
    file: &Arc<Path>,
) -> Result<(String, Vec<CommandArgument>), Problem> {
    let (mut text, mut rest) = (String::with_capacity(body.len()), body);
    let mut arguments: Vec<CommandArgument> = Vec::new();
    let mut add = |name: &str, default: Option<String>| -> bool {
        if let Some(known) = arguments.iter_mut().find(|one| one.name == name) {
            known.default = known.default.take().or(default);
            return true;
        }
        let has_room = arguments.len() < MOST_ARGUMENTS;
        if has_room {
            arguments.push(CommandArgument { name: name.to_owned(), default });
        }
        has_room
    };
    while let Some((before, behind)) = rest.split_once("{{") {
        text.push_str(before);
        let wrong = || {
            let shown: String = behind.lines().next().unwrap_or_default().chars().take(40).collect();
            let message = format!("`{{{{{shown}` is not a supported template expression");
            Problem::new(Origin::file(file.clone()), message)
        };
        let (inner, after) = behind.split_once("}}").ok_or_else(wrong)?;
        let words = words(inner.trim().trim_matches('-')).ok_or_else(wrong)?;
        match words.iter().map(|(word, is_quoted)| (word.as_str(), *is_quoted)).collect::<Vec<_>>().as_slice() {
            [(name, false)] if is_field(name) => {
                if !add(&name[1..], None) {
                    return Err(wrong());
                }
                text.push_str(&format!("{{{{{name}}}}}"));
            }
            [("default", false), (name, false), (default, true)] if is_field(name) => {
                if !add(&name[1..], Some((*default).to_owned())) {
                    return Err(wrong());
                }
                text.push_str(&format!("{{{{{name}}}}}"));
            }
            [("bash", false), command @ ..] if !command.is_empty() && command.iter().all(|(_, quoted)| *quoted) => {
                let words: Vec<String> = command.iter().map(|(word, _)| in_shell(word)).collect();
                text.push_str(&run_request(&words.join(" ")));
            }
            _ => return Err(wrong()),
        }
        rest = after;
    }
    text.push_str(rest);
    for Member { name, node, .. } in defaults {
        let default = match node.content {
            NodeContent::Text(text) => text,
            NodeContent::Integer(number) => number.to_string(),
            NodeContent::Boolean(is) => is.to_string(),
            other => {
                return Err(Problem::new(node.origin, format!("the default of `{name}` must be a text, got {other}")));
            }
        };
        if let Some(argument) = arguments.iter_mut().find(|one| one.name == name) {
            argument.default = Some(default);
        }
    }
    Ok((text, arguments))
}

fn is_field(word: &str) -> bool {
    let name = word.strip_prefix('.').unwrap_or_default();
    !name.is_empty() && name.len() <= 64 && name.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_')
}

/// Splits an action into words, each with a flag that is `true` if the word was quoted. Returns `None` if a quote is
/// not closed, or if a quoted word contains a backslash.
fn words(text: &str) -> Option<Vec<(String, bool)>> {
    let mut all = Vec::new();
    let mut rest = text.trim();
    while !rest.is_empty() {
        if let Some(quoted) = rest.strip_prefix('"') {
            let (word, after) = quoted.split_once('"').filter(|(word, _)| !word.contains('\\'))?;
            all.push((word.to_owned(), true));
            rest = after.trim_start();
        } else {
            let (word, after) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
            all.push((word.to_owned(), false));
            rest = after.trim_start();
        }
    }
    Some(all)
}

fn in_shell(word: &str) -> String {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-_./:=+%,@".contains(letter);
    match !word.is_empty() && word.chars().all(is_plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', "'\\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file() -> Arc<Path> {
        Path::new("/r.md").into()
    }

    #[test]
    fn recipe_names_defaults_and_commands_are_parsed() {
        let body = "{{bash \"git\" \"log\" \"-1 x\"}}\nI am {{.name}} of {{ default .from \"here\" }}. {{.name}}";
        let (text, arguments) = read(body, Vec::new(), &file()).unwrap();
        assert_eq!(text, "(not run yet: run `git log '-1 x'` with a tool)\nI am {{.name}} of {{.from}}. {{.name}}");
        let argument =
            |name: &str, default: Option<&str>| CommandArgument { name: name.into(), default: default.map(Into::into) };
        assert_eq!(arguments, [argument("name", None), argument("from", Some("here"))]);
    }

    #[test]
    fn unsupported_template_expressions_are_reported() {
        for body in ["{{if .x}}a{{end}}", "{{.x", "{{bash}}", "{{bash .x}}", "{{template \"a\" .}}", "{{.a.b}}", "{{}}"]
        {
            let problem = read(body, Vec::new(), &file()).unwrap_err().to_string();
            assert!(
                problem.starts_with("/r.md: `{{") && problem.contains("is not a supported template expression"),
                "{problem}"
            );
        }
    }
}

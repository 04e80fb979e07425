//! `tool(parameter:value)`: arguments, for deny and ask.

use super::{RuleKindResult, RuleMatcher};
use crate::{
    access::Access,
    permission::rule::{Effect, RuleSubject},
    tool::Tool,
    tool_selection::wildcard_match,
    workspace_roots::WorkspaceRoots,
};
use serde_json::{Map, Value};
use std::sync::Arc;

/// Dotted path into the arguments, and a pattern of the value there.
#[derive(Debug)]
struct ParameterRule {
    path: String,
    value: String,
}

pub(super) fn behind_a_tool(text: &str, effect: Effect) -> Option<RuleKindResult> {
    let (path, value) = text.split_once(':').filter(|(path, _)| is_path(path))?;
    Some(match effect {
        Effect::Allow => {
            Err("`parameter:value` works in deny and ask rules only: values can be rewritten to slip past".into())
        }
        Effect::Ask | Effect::Deny => Ok(Arc::new(ParameterRule { path: path.into(), value: value.trim().into() })),
    })
}

impl RuleMatcher for ParameterRule {
    fn subject(&self) -> RuleSubject {
        RuleSubject::Arguments
    }

    fn covers(&self, _: &Access, _: &WorkspaceRoots) -> bool {
        false
    }

    fn catches(&self, _: &Access, _: &WorkspaceRoots) -> bool {
        false
    }

    fn catches_arguments(&self, arguments: &Map<String, Value>, tool: Option<&Tool>) -> Option<bool> {
        let given = argument_at(arguments, &self.path).or_else(|| default_of(tool?, &self.path));
        Some(given.is_some_and(|given| is_value(&self.value, given)))
    }

    fn parameter(&self) -> Option<&str> {
        Some(&self.path)
    }
}

fn is_path(name: &str) -> bool {
    !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '.'))
}

/// Returns the value at a dotted path of the arguments.
fn argument_at<'a>(arguments: &'a Map<String, Value>, path: &str) -> Option<&'a Value> {
    let mut parts = path.split('.');
    let first = arguments.get(parts.next()?)?;
    parts.try_fold(first, |value, part| value.get(part))
}

/// Returns the default of an absent parameter in the schema of the tool.
fn default_of<'a>(tool: &'a Tool, path: &str) -> Option<&'a Value> {
    let mut parts = path.split('.');
    let first = tool.input_schema().get("properties")?.get(parts.next()?)?;
    parts.try_fold(first, |schema, part| schema.get("properties")?.get(part))?.get("default")
}

/// Returns `true` if a value, or one item of a list, matches the pattern. Numbers are compared as numbers.
fn is_value(pattern: &str, given: &Value) -> bool {
    match given {
        Value::String(text) => wildcard_match(pattern, text),
        Value::Bool(flag) => wildcard_match(pattern, if *flag { "true" } else { "false" }),
        Value::Number(number) => {
            wildcard_match(pattern, &number.to_string())
                || pattern.parse::<f64>().is_ok_and(|wanted| number.as_f64() == Some(wanted))
        }
        Value::Array(items) => items.iter().any(|item| is_value(pattern, item)),
        Value::Null | Value::Object(_) => false,
    }
}

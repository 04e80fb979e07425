//! Tables of calls with expected decisions: `toolstead permissions test FILE`.

use crate::config::{
    layers::LayerKind,
    tree::{
        format::ConfigFormat,
        node::{Member, Node, NodeContent},
        origin::Origin,
        problem::{ConfigError, Problem},
        source_file::SourceFile,
    },
};
use serde_json::{Map, Value};
use std::path::Path;
use toolstead_domain::{Verdict, tool_input_schema::nearest_name};

/// Keys of a call.
const KEYS: [&str; 4] = ["tool", "arguments", "expect", "rule"];

/// A call with its expected decision.
#[derive(Debug, Clone, PartialEq)]
pub struct ExpectedCall {
    /// Name of the tool, canonical or an alias.
    pub tool: String,
    /// Arguments of the call.
    pub arguments: Value,
    /// Expected decision.
    pub expect: Verdict,
    /// Text of the rule that must have decided, if that is checked.
    pub rule: Option<String>,
    /// Position of the call in the file.
    pub origin: Origin,
}

/// Reads a table: the list `calls` in TOML, JSON or YAML.
///
/// # Errors
/// [`ConfigError`] with every problem, each with its line.
pub fn read(path: &Path) -> Result<Vec<ExpectedCall>, ConfigError> {
    let wrong = |message: &str| Problem::new(Origin::file(path), message);
    let file = SourceFile::read(LayerKind::Chosen, path)?.ok_or_else(|| wrong("there is no such file"))?;
    let format =
        ConfigFormat::of(path).ok_or_else(|| wrong("its name must end in `.toml`, `.json`, `.yaml` or `.yml`"))?;
    let root = format.read(&file.text, &file.path)?;
    let mut problems = Vec::new();
    let mut calls = Vec::new();
    if let NodeContent::Table(members) = root.content {
        for Member { name, origin, node } in members {
            match (name.as_str(), node.content) {
                ("calls", NodeContent::List(nodes)) => {
                    calls.extend(nodes.into_iter().filter_map(|node| call(node, &mut problems)));
                }
                ("calls", other) => problems.push(Problem::new(origin, format!("`calls` must be a list, got {other}"))),
                _ => problems.push(Problem::new(origin, format!("unknown key `{name}`; known here: calls"))),
            }
        }
    }
    if calls.is_empty() && problems.is_empty() {
        problems.push(wrong("it holds no calls: each is `[[calls]]` with `tool`, `arguments` and `expect`"));
    }
    ConfigError::unless_none(problems)?;
    Ok(calls)
}

fn call(node: Node, problems: &mut Vec<Problem>) -> Option<ExpectedCall> {
    let Node { content, origin } = node;
    let NodeContent::Table(members) = content else {
        problems.push(Problem::new(origin, format!("a call must be a table, got {content}")));
        return None;
    };
    let found = problems.len();
    let (mut tool, mut arguments, mut expect, mut rule) = (None, Value::Object(Map::new()), None, None);
    for Member { name, origin, node } in members {
        match (name.as_str(), node.content) {
            ("tool", NodeContent::Text(text)) => tool = Some(text),
            ("rule", NodeContent::Text(text)) => rule = Some(text.trim().to_owned()),
            ("expect", NodeContent::Text(text)) => {
                match [Verdict::Allow, Verdict::Ask, Verdict::Deny].into_iter().find(|verdict| verdict.as_str() == text)
                {
                    Some(verdict) => expect = Some(verdict),
                    None => problems.push(Problem::new(origin, "`expect` must be `allow`, `ask` or `deny`")),
                }
            }
            ("arguments", content @ NodeContent::Table(_)) => match json(content) {
                Ok(value) => arguments = value,
                Err(what) => problems.push(Problem::new(origin, format!("`arguments` cannot hold {what}"))),
            },
            (known, other) if KEYS.contains(&known) => {
                problems.push(Problem::new(origin, format!("`{known}` cannot be {other}")));
            }
            _ => {
                let advice = nearest_name(&name, KEYS);
                let advice =
                    advice.map_or(format!("known here: {}", KEYS.join(", ")), |near| format!("did you mean `{near}`?"));
                problems.push(Problem::new(origin, format!("unknown key `{name}`; {advice}")));
            }
        }
    }
    match (tool, expect) {
        (Some(tool), Some(expect)) => Some(ExpectedCall { tool, arguments, expect, rule, origin }),
        _ if problems.len() > found => None,
        _ => {
            problems.push(Problem::new(origin, "a call needs `tool` and `expect`"));
            None
        }
    }
}

/// Converts a value to JSON. The error names the first part that the arguments of a call cannot contain, such as a
/// fraction.
fn json(content: NodeContent) -> Result<Value, &'static str> {
    Ok(match content {
        NodeContent::Boolean(value) => value.into(),
        NodeContent::Integer(number) => number.into(),
        NodeContent::Fraction(_) => return Err("a fraction"),
        NodeContent::Text(text) | NodeContent::Untyped(text) | NodeContent::DerivedRule { rule: text, .. } => {
            text.into()
        }
        NodeContent::List(nodes) => {
            nodes.into_iter().map(|node| json(node.content)).collect::<Result<Vec<_>, _>>()?.into()
        }
        NodeContent::Table(members) => {
            let members = members.into_iter().map(|member| Ok((member.name, json(member.node.content)?)));
            Value::Object(members.collect::<Result<_, &'static str>>()?)
        }
        NodeContent::Other("nothing") => Value::Null,
        NodeContent::Other(what) => return Err(what),
    })
}

//! Other spellings of a tool and of its parameters.

use crate::{error_kind::ErrorKind, tool_failure::ToolFailure};
use serde_json::{Map, Value};

/// A name under which a tool is also understood, and how the arguments of that spelling become canonical ones.
///
/// An alias may bear the tool's own name: then it only adds parameter spellings.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Alias {
    /// The other name.
    pub name: &'static str,
    /// Where the spelling comes from.
    pub dialect: Dialect,
    /// What to do with the arguments, in order.
    pub rewrites: &'static [Rewrite],
}

/// The tool systems whose spellings are understood.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Dialect {
    /// Micro-X.
    MicroX,
    /// clai.
    Clai,
    /// Claude Code.
    ClaudeCode,
    /// TelemetryFlow.
    Tfo,
    /// Kodelet.
    Kodelet,
}

/// One step from a foreign spelling to the canonical one. A step whose parameter is absent does nothing.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Rewrite {
    /// The parameter has another name.
    Rename(&'static str, &'static str),
    /// The parameter has another name and the opposite meaning.
    Negate(&'static str, &'static str),
    /// The parameter has another name, and words that stand for other words.
    Words(&'static str, &'static str, &'static [(&'static str, &'static str)]),
    /// The parameter always has this value (JSON text).
    Set(&'static str, &'static str),
    /// The parameter has this value when it is absent (JSON text).
    Default(&'static str, &'static str),
    /// The parameter, being true, gives another parameter this value (JSON text); being false it goes away.
    IfTrue(&'static str, &'static str, &'static str),
    /// A number 0 means this number.
    ZeroIs(&'static str, i64),
    /// A first and a last line, both counted, become an offset and a limit.
    Span(&'static str, &'static str),
    /// A pattern without a slash matches at any depth: `**/` is put before it.
    AnyDepth(&'static str),
    /// Each object in the list is rewritten by these steps.
    Each(&'static str, &'static [Rewrite]),
    /// The parameter means nothing here.
    Drop(&'static str),
}

impl Alias {
    /// Turns arguments of this spelling into canonical ones.
    ///
    /// # Errors
    /// `invalid_input` when both spellings of one parameter are given with different values, or a value does not fit
    /// the spelling's rule.
    pub fn rewrite(&self, arguments: &mut Map<String, Value>) -> Result<(), ToolFailure> {
        self.rewrites.iter().try_for_each(|rewrite| rewrite.apply(arguments))
    }
}

impl Rewrite {
    fn apply(&self, arguments: &mut Map<String, Value>) -> Result<(), ToolFailure> {
        match *self {
            Self::Rename(from, to) => put(arguments, from, to, |value| value),
            Self::Negate(from, to) => {
                put(arguments, from, to, |value| value.as_bool().map_or(value, |flag| Value::Bool(!flag)))
            }
            Self::Words(from, to, words) => put(arguments, from, to, |value| {
                let meant = value.as_str().and_then(|word| words.iter().find(|(other, _)| *other == word));
                meant.map_or(value.clone(), |(_, ours)| Value::from(*ours))
            }),
            Self::Set(name, json) => {
                arguments.insert(name.into(), literal(json));
                Ok(())
            }
            Self::Default(name, json) => {
                arguments.entry(name).or_insert_with(|| literal(json));
                Ok(())
            }
            Self::IfTrue(from, to, json) => {
                if arguments.shift_remove(from) == Some(Value::Bool(true)) {
                    arguments.insert(to.into(), literal(json));
                }
                Ok(())
            }
            Self::ZeroIs(name, number) => {
                if let Some(value) = arguments.get_mut(name)
                    && value.as_i64() == Some(0)
                {
                    *value = number.into();
                }
                Ok(())
            }
            Self::Span(first, last) => span(arguments, first, last),
            Self::AnyDepth(name) => {
                if let Some(Value::String(pattern)) = arguments.get_mut(name)
                    && !pattern.contains('/')
                {
                    pattern.insert_str(0, "**/");
                }
                Ok(())
            }
            Self::Each(name, rewrites) => {
                let items = arguments.get_mut(name).and_then(Value::as_array_mut).into_iter().flatten();
                let mut objects = items.filter_map(Value::as_object_mut);
                objects.try_for_each(|object| rewrites.iter().try_for_each(|rewrite| rewrite.apply(object)))
            }
            Self::Drop(name) => {
                arguments.shift_remove(name);
                Ok(())
            }
        }
    }
}

fn literal(json: &'static str) -> Value {
    serde_json::from_str(json).unwrap_or_else(|_| Value::from(json))
}

fn put(
    arguments: &mut Map<String, Value>,
    from: &'static str,
    to: &'static str,
    convert: impl FnOnce(Value) -> Value,
) -> Result<(), ToolFailure> {
    let Some(value) = arguments.shift_remove(from) else { return Ok(()) };
    let value = convert(value);
    match arguments.get(to) {
        Some(other) if *other != value => Err(ToolFailure::new(
            ErrorKind::InvalidInput,
            format!("`{from}` is another spelling of `{to}`, and the two differ: give one of them"),
        )),
        _ => {
            arguments.insert(to.into(), value);
            Ok(())
        }
    }
}

fn span(arguments: &mut Map<String, Value>, first: &'static str, last: &'static str) -> Result<(), ToolFailure> {
    let (start, end) = (arguments.shift_remove(first), arguments.shift_remove(last));
    let number = |value: &Option<Value>| value.as_ref().and_then(Value::as_i64);
    if let Some(start) = &start {
        arguments.insert("offset".into(), start.clone());
    }
    match (number(&start).or(start.is_none().then_some(1)), number(&end)) {
        (Some(start), Some(end)) if end >= start => {
            arguments.insert("limit".into(), end.saturating_sub(start).saturating_add(1).into());
            Ok(())
        }
        (Some(start), Some(end)) => {
            Err(ToolFailure::new(ErrorKind::InvalidInput, format!("`{last}` ({end}) lies before `{first}` ({start})")))
        }
        _ if end.is_none() => Ok(()),
        _ => Err(ToolFailure::new(ErrorKind::InvalidInput, format!("`{first}` and `{last}` must be whole numbers"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[track_caller]
    fn check(rewrites: &'static [Rewrite], given: Value, expected: Result<Value, &str>) {
        let alias = Alias { name: "x", dialect: Dialect::Clai, rewrites };
        let mut arguments = given.as_object().unwrap().clone();
        let rewritten =
            alias.rewrite(&mut arguments).map(|()| Value::Object(arguments)).map_err(|failure| failure.message);
        assert_eq!(rewritten, expected.map_err(str::to_owned));
    }

    #[test]
    fn arguments_of_another_spelling_become_canonical() {
        check(&[Rewrite::Rename("file_path", "path")], json!({"file_path": "a"}), Ok(json!({"path": "a"})));
        check(&[Rewrite::Rename("file_path", "path")], json!({"path": "a"}), Ok(json!({"path": "a"})));
        check(&[Rewrite::Negate("case", "ignore_case")], json!({"case": false}), Ok(json!({"ignore_case": true})));
        check(&[Rewrite::Words("type", "type", &[("f", "file")])], json!({"type": "f"}), Ok(json!({"type": "file"})));
        check(&[Rewrite::IfTrue("recursive", "depth", "0")], json!({"recursive": true}), Ok(json!({"depth": 0})));
        check(&[Rewrite::IfTrue("recursive", "depth", "0")], json!({"recursive": false}), Ok(json!({})));
        check(&[Rewrite::ZeroIs("offset", 1)], json!({"offset": 0}), Ok(json!({"offset": 1})));
        check(&[Rewrite::AnyDepth("p")], json!({"p": "*.rs"}), Ok(json!({"p": "**/*.rs"})));
        check(&[Rewrite::AnyDepth("p")], json!({"p": "src/*.rs"}), Ok(json!({"p": "src/*.rs"})));
        let each = &[Rewrite::Each("list", &[Rewrite::Rename("a", "b")])];
        check(each, json!({"list": [{"a": 1}, 2, {"b": 3}]}), Ok(json!({"list": [{"b": 1}, 2, {"b": 3}]})));
        check(each, json!({"list": "none"}), Ok(json!({"list": "none"})));
        check(
            each,
            json!({"list": [{"a": 1, "b": 2}]}),
            Err("`a` is another spelling of `b`, and the two differ: give one of them"),
        );
    }

    #[test]
    fn a_span_of_lines_becomes_offset_and_limit() {
        let span = &[Rewrite::Span("start_line", "end_line")];
        check(span, json!({"start_line": 3, "end_line": 5}), Ok(json!({"offset": 3, "limit": 3})));
        check(span, json!({"end_line": 5}), Ok(json!({"limit": 5})));
        check(span, json!({"start_line": 5, "end_line": 3}), Err("`end_line` (3) lies before `start_line` (5)"));
    }

    #[test]
    fn two_spellings_with_different_values_are_an_error() {
        check(
            &[Rewrite::Rename("file_path", "path")],
            json!({"file_path": "a", "path": "b"}),
            Err("`file_path` is another spelling of `path`, and the two differ: give one of them"),
        );
    }
}

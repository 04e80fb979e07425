//! Conversion of calls to the tool and parameter names of Claude Code, for which hooks are written, and back.

use crate::dialects::CLAUDE_CODE;
use serde_json::{Map, Value};
use std::path::Path;
use toolstead_domain::{
    Alias, OutputHandle, ToolCall, ToolFailure, ToolSource, alias::Rewrite, workspace_roots::lexical,
};

/// Parameters of built-in tools that contain paths.
const PATHS: &[&str] = &["path", "paths", "cwd", "working_dir"];

/// Tool and parameter names under which a call is passed to a hook.
#[derive(Debug, Clone, Copy)]
pub(super) struct DialectCallNames<'c> {
    /// Name of the tool.
    pub(super) name: &'c str,
    rewrites: &'static [Rewrite],
}

impl<'c> DialectCallNames<'c> {
    /// Returns the names of Claude Code if the tool has any, otherwise the canonical ones. MCP tools have their
    /// qualified names.
    pub(super) fn of(call: &'c ToolCall) -> Self {
        let is_known = |alias: &&Alias| alias.dialect == CLAUDE_CODE;
        let mut aliases = call.tool.aliases.iter().filter(is_known);
        let alias = aliases.clone().find(|alias| alias.name == call.called_as).or_else(|| aliases.next());
        match alias {
            Some(alias) => Self { name: alias.name, rewrites: alias.rewrites },
            None => Self { name: call.tool.rule_name().as_str(), rewrites: &[] },
        }
    }

    /// Returns the arguments under the parameter names of the dialect. Conversions that lose information are skipped.
    pub(super) fn to_dialect(self, arguments: &Map<String, Value>) -> Map<String, Value> {
        let mut converted = arguments.clone();
        undo(self.rewrites, &mut converted);
        converted
    }

    /// Returns the arguments under their canonical names.
    ///
    /// # Errors
    /// Fails if a parameter occurs under two names with different values.
    pub(super) fn to_canonical(self, mut arguments: Map<String, Value>) -> Result<Map<String, Value>, ToolFailure> {
        redo(self.rewrites, &mut arguments)?;
        Ok(arguments)
    }
}

fn undo(rewrites: &[Rewrite], arguments: &mut Map<String, Value>) {
    for rewrite in rewrites.iter().rev() {
        match *rewrite {
            Rewrite::Rename(from, to) => moved(arguments, to, from, |value| value),
            Rewrite::Negate(from, to) => {
                moved(arguments, to, from, |value| value.as_bool().map_or(value, |flag| Value::Bool(!flag)));
            }
            Rewrite::Words(from, to, words) => moved(arguments, to, from, |value| {
                let word = words.iter().find(|(_, ours)| value.as_str() == Some(ours));
                word.map_or(value.clone(), |(theirs, _)| Value::from(*theirs))
            }),
            Rewrite::Each(name, rewrites) => objects(arguments, name).for_each(|object| undo(rewrites, object)),
            _ => {}
        }
    }
}

fn redo(rewrites: &'static [Rewrite], arguments: &mut Map<String, Value>) -> Result<(), ToolFailure> {
    for (at, rewrite) in rewrites.iter().enumerate() {
        match *rewrite {
            Rewrite::Rename(..) | Rewrite::Negate(..) | Rewrite::Words(..) => {
                let alias = Alias::new("", CLAUDE_CODE, &rewrites[at..=at]);
                alias.rewrite(arguments)?;
            }
            Rewrite::Each(name, rewrites) => objects(arguments, name).try_for_each(|object| redo(rewrites, object))?,
            _ => {}
        }
    }
    Ok(())
}

fn moved(arguments: &mut Map<String, Value>, from: &str, to: &str, convert: impl FnOnce(Value) -> Value) {
    if let Some(value) = arguments.shift_remove(from) {
        arguments.insert(to.to_owned(), convert(value));
    }
}

fn objects<'a>(arguments: &'a mut Map<String, Value>, name: &str) -> impl Iterator<Item = &'a mut Map<String, Value>> {
    arguments.get_mut(name).and_then(Value::as_array_mut).into_iter().flatten().filter_map(Value::as_object_mut)
}

/// Returns the arguments of a call with absolute paths, as hooks of Claude Code expect. Only parameters of built-in
/// tools are known to be paths.
pub(super) fn with_absolute_paths(call: &ToolCall, start: &Path) -> Map<String, Value> {
    let mut arguments = call.arguments.clone();
    if *call.tool.source() == ToolSource::BuiltIn {
        absolute(&mut arguments, start);
    }
    arguments
}

fn absolute(arguments: &mut Map<String, Value>, start: &Path) {
    for (name, value) in arguments.iter_mut() {
        match value {
            Value::Array(items) => {
                for item in items {
                    match item {
                        Value::Object(object) => absolute(object, start),
                        item if PATHS.contains(&name.as_str()) => make_absolute(item, start),
                        _ => {}
                    }
                }
            }
            value if PATHS.contains(&name.as_str()) => make_absolute(value, start),
            _ => {}
        }
    }
}

fn make_absolute(value: &mut Value, start: &Path) {
    if let Value::String(path) = value
        && path.parse::<OutputHandle>().is_err()
        && !path.starts_with('~')
    {
        *path = lexical(start, Path::new(path.as_str())).to_string_lossy().into_owned();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hooks::input::tests::call;
    use serde_json::json;

    #[track_caller]
    fn check(tool: &str, arguments: Value, name: &str, outcome: Value) {
        let call = call(tool, arguments.clone());
        let spelling = DialectCallNames::of(&call);
        assert_eq!(spelling.name, name);
        let arguments = arguments.as_object().unwrap().clone();
        let in_their_words = spelling.to_dialect(&arguments);
        assert_eq!(Value::Object(in_their_words.clone()), outcome);
        assert_eq!(spelling.to_canonical(in_their_words).unwrap(), arguments, "nothing is lost on the way back");
    }

    #[test]
    fn calls_convert_to_claude_code_names_and_back() {
        check("write_file", json!({"path": "a", "content": "b"}), "Write", json!({"content": "b", "file_path": "a"}));
        check(
            "multi_edit",
            json!({"edits": [{"path": "a", "old_text": "x", "new_text": "y"}]}),
            "MultiEdit",
            json!({"edits": [{"file_path": "a", "old_string": "x", "new_string": "y"}]}),
        );
        check("list_directory", json!({"path": "a", "depth": 3}), "LS", json!({"path": "a", "depth": 3}));
        check("system_info", json!({}), "system_info", json!({}));
    }

    #[test]
    fn rejects_two_names_of_one_argument_with_different_values() {
        let call = call("write_file", json!({}));
        let both = json!({"file_path": "a", "path": "b"}).as_object().unwrap().clone();
        DialectCallNames::of(&call).to_canonical(both).unwrap_err();
    }

    #[test]
    fn relative_paths_become_absolute_and_handles_stay() {
        let text_of = |arguments| Value::Object(with_absolute_paths(&call("read_file", arguments), Path::new("/w")));
        assert_eq!(text_of(json!({"path": "a/../b", "text": "a"})), json!({"path": "/w/b", "text": "a"}));
        assert_eq!(text_of(json!({"path": "o17"})), json!({"path": "o17"}));
        assert_eq!(text_of(json!({"edits": [{"path": "a"}]})), json!({"edits": [{"path": "/w/a"}]}));
        assert_eq!(text_of(json!({"path": "/etc/x"})), json!({"path": "/etc/x"}));
    }
}

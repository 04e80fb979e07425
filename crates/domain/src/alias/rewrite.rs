//! Steps from the arguments of another tool system to canonical ones.

use crate::{error_kind::ErrorKind, tool_failure::ToolFailure};
use serde_json::{Map, Value};

/// One step from the arguments of another system to canonical ones. A step does nothing if the parameter that it reads
/// is absent.
///
/// ```
/// use serde_json::json;
/// use toolstead_domain::alias::Rewrite;
///
/// let mut arguments = json!({"timeout": 2}).as_object().unwrap().clone();
/// Rewrite::Seconds("timeout", "timeout_ms", 600).apply(&mut arguments)?;
/// assert_eq!(arguments["timeout_ms"], 2000);
/// # Ok::<(), toolstead_domain::tool_failure::ToolFailure>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Rewrite {
    /// Renames the parameter.
    Rename(&'static str, &'static str),
    /// Renames the parameter and negates its value.
    Negate(&'static str, &'static str),
    /// Renames the parameter and, if its value is the first word of one of these pairs, replaces it by the second.
    Words(&'static str, &'static str, &'static [(&'static str, &'static str)]),
    /// Sets the parameter to this value (JSON text).
    Set(&'static str, &'static str),
    /// Sets the parameter to this value (JSON text) if it is absent.
    Default(&'static str, &'static str),
    /// Sets the second parameter to this value (JSON text) if it is absent, unless the first parameter is true.
    DefaultUnless(&'static str, &'static str, &'static str),
    /// Removes the parameter and, if it was true, sets another parameter to this value (JSON text).
    IfTrue(&'static str, &'static str, &'static str),
    /// Replaces the number 0 by this number.
    ZeroIs(&'static str, i64),
    /// Converts a first and a last line, both included, to the parameters `offset` and `limit`.
    Span(&'static str, &'static str),
    /// Makes a pattern without a slash match at any depth: inserts `**/` before it.
    AnyDepth(&'static str),
    /// Applies these steps to each object in the list.
    Each(&'static str, &'static [Rewrite]),
    /// Removes the parameter, which has no meaning for the canonical tool.
    Drop(&'static str),
    /// Converts a time in seconds, at most this maximum, to milliseconds under another name; removes a time of 0.
    Seconds(&'static str, &'static str, u64),
    /// Removes the first parameter and, if it was false, the second one as well.
    OnlyIf(&'static str, &'static str),
    /// Replaces a program (first parameter) by one shell line with the list of its arguments (second parameter), quoted
    /// as necessary.
    ShellLine(&'static str, &'static str),
    /// Splits a line of arguments as a shell does, and stores it as the text under another name: without these words at
    /// its beginning, and without these options, which become parameters of the names beside them.
    CommandLine(&'static str, &'static str, &'static [&'static str], &'static [(&'static str, &'static str)]),
    /// Converts a text to the list of its words, separated by blanks.
    Fields(&'static str),
    /// Splits a text at its commas into a list; commas in quotes or in angle brackets do not separate.
    Commas(&'static str),
}

impl Rewrite {
    /// Applies this step.
    ///
    /// # Errors
    /// As [`Alias::rewrite`](super::Alias::rewrite).
    pub fn apply(&self, arguments: &mut Map<String, Value>) -> Result<(), ToolFailure> {
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
            Self::DefaultUnless(flag, name, json) => match arguments.get(flag) {
                Some(Value::Bool(true)) => Ok(()),
                _ => Self::Default(name, json).apply(arguments),
            },
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
            Self::Seconds(from, to, most) => milliseconds(arguments, from, to, most),
            Self::OnlyIf(flag, name) => {
                if arguments.shift_remove(flag) == Some(Value::Bool(false)) {
                    arguments.shift_remove(name);
                }
                Ok(())
            }
            Self::ShellLine(program, parameters) => shell_line(arguments, program, parameters),
            Self::CommandLine(line, rest, words, options) => command_line(arguments, line, rest, words, options),
            Self::Fields(name) => {
                if let Some(value) = arguments.get_mut(name)
                    && let Some(text) = value.as_str()
                {
                    *value = text.split_whitespace().collect();
                }
                Ok(())
            }
            Self::Commas(name) => {
                if let Some(value) = arguments.get_mut(name)
                    && let Some(text) = value.as_str()
                {
                    *value = between_commas(text).into();
                }
                Ok(())
            }
        }
    }
}

/// Splits the text at its commas, removes blanks around the pieces and drops empty ones.
fn between_commas(text: &str) -> Vec<String> {
    let (mut pieces, mut piece) = (Vec::new(), String::new());
    let (mut is_quoted, mut is_bracketed, mut is_escaped) = (false, false, false);
    for c in text.chars() {
        match c {
            ',' if !is_quoted && !is_bracketed => pieces.push(std::mem::take(&mut piece)),
            c => {
                match c {
                    '"' if !is_escaped => is_quoted = !is_quoted,
                    '<' if !is_quoted => is_bracketed = true,
                    '>' if !is_quoted => is_bracketed = false,
                    _ => {}
                }
                is_escaped = c == '\\' && is_quoted && !is_escaped;
                piece.push(c);
            }
        }
    }
    pieces.push(piece);
    // Only blanks are removed: the tool rejects other invisible characters.
    pieces.iter().map(|piece| piece.trim_matches(' ').to_owned()).filter(|piece| !piece.is_empty()).collect()
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
            format!("`{from}` is an alias of `{to}`, and the two values differ: give only one of them"),
        )),
        _ => {
            arguments.insert(to.into(), value);
            Ok(())
        }
    }
}

fn milliseconds(
    arguments: &mut Map<String, Value>,
    from: &'static str,
    to: &'static str,
    most: u64,
) -> Result<(), ToolFailure> {
    let Some(value) = arguments.shift_remove(from) else { return Ok(()) };
    // A text would be read as milliseconds later.
    let seconds = match &value {
        Value::String(text) => text.trim().parse().ok(),
        value => value.as_f64(),
    };
    match seconds {
        None if value.is_null() => Ok(()),
        Some(0.0) => Ok(()),
        Some(seconds) if seconds > 0.0 && seconds <= most as f64 => {
            arguments.insert(from.into(), ((seconds * 1000.0).round() as u64).into());
            put(arguments, from, to, |value| value)
        }
        _ => Err(ToolFailure::new(
            ErrorKind::InvalidInput,
            format!("`{from}` must be a time in seconds from 1 to {most}; give milliseconds as `{to}`"),
        )),
    }
}

fn command_line(
    arguments: &mut Map<String, Value>,
    line: &'static str,
    rest: &'static str,
    words: &'static [&'static str],
    options: &'static [(&'static str, &'static str)],
) -> Result<(), ToolFailure> {
    let Some(Value::String(text)) = arguments.get(line) else { return Ok(()) };
    let Some(mut split) = split_as_a_shell(text) else {
        let message = format!("`{line}` has a quote that is not closed");
        return Err(ToolFailure::new(ErrorKind::InvalidInput, message));
    };
    arguments.shift_remove(line);
    let known = split.iter().take_while(|word| words.contains(&word.as_str())).count();
    split.drain(..known);
    let (mut said, mut left): (Vec<String>, _) = (Vec::new(), split.into_iter());
    while let Some(word) = left.next() {
        let option = word.strip_prefix("--").or_else(|| word.strip_prefix('-')).unwrap_or("");
        let (name, value) = option.split_once('=').map_or((option, None), |(name, value)| (name, Some(value)));
        // Options precede the text.
        match options.iter().find(|(option, _)| *option == name).filter(|_| said.is_empty()) {
            Some((_, to)) => {
                let value = value.map(str::to_owned).or_else(|| left.next()).unwrap_or_default();
                arguments.insert(line.into(), value.into());
                put(arguments, line, to, |value| value)?;
            }
            None => said.push(word),
        }
    }
    arguments.insert(line.into(), said.join(" ").into());
    put(arguments, line, rest, |value| value)
}

/// Splits a line into words; returns `None` if a quote is not closed.
fn split_as_a_shell(line: &str) -> Option<Vec<String>> {
    let (mut words, mut word, mut quote): (Vec<String>, Option<String>, Option<char>) = (Vec::new(), None, None);
    let mut signs = line.chars();
    while let Some(sign) = signs.next() {
        match (sign, quote) {
            (end, Some(open)) if end == open => quote = None,
            ('\\', None | Some('"')) => word.get_or_insert_default().extend(signs.next()),
            ('"' | '\'', None) => {
                quote = Some(sign);
                word.get_or_insert_default();
            }
            (sign, None) if sign.is_whitespace() => words.extend(word.take()),
            (sign, _) => word.get_or_insert_default().push(sign),
        }
    }
    words.extend(word);
    quote.is_none().then_some(words)
}

fn shell_line(
    arguments: &mut Map<String, Value>,
    program: &'static str,
    parameters: &'static str,
) -> Result<(), ToolFailure> {
    let parameters = match arguments.shift_remove(parameters) {
        None | Some(Value::Null) => return Ok(()),
        Some(Value::Array(parameters)) => parameters,
        Some(_) => {
            let message = format!("`{parameters}` must be a list of strings: one for each argument of the program");
            return Err(ToolFailure::new(ErrorKind::InvalidInput, message));
        }
    };
    let words: Option<Vec<&str>> = arguments.get(program).into_iter().chain(&parameters).map(Value::as_str).collect();
    let line = words.map(|words| words.into_iter().map(shell_quoted).collect::<Vec<_>>().join(" "));
    let line = line.ok_or_else(|| {
        ToolFailure::new(ErrorKind::InvalidInput, "a program and its arguments must be strings".to_owned())
    })?;
    arguments.insert(program.into(), line.into());
    Ok(())
}

/// Quotes the text as one word for a shell.
fn shell_quoted(word: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-./:@%+,".contains(&byte);
    match !word.is_empty() && word.bytes().all(is_plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
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
            Err(ToolFailure::new(ErrorKind::InvalidInput, format!("`{last}` ({end}) is before `{first}` ({start})")))
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
        let rewrite = |arguments: &mut Map<String, Value>| rewrites.iter().try_for_each(|one| one.apply(arguments));
        let mut arguments = given.as_object().unwrap().clone();
        let rewritten = rewrite(&mut arguments).map(|()| Value::Object(arguments)).map_err(|failure| failure.message);
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
        let unless = &[Rewrite::DefaultUnless("background", "time", "5")];
        check(unless, json!({}), Ok(json!({"time": 5})));
        check(unless, json!({"background": false, "time": 1}), Ok(json!({"background": false, "time": 1})));
        check(unless, json!({"background": true}), Ok(json!({"background": true})));
        check(&[Rewrite::ZeroIs("offset", 1)], json!({"offset": 0}), Ok(json!({"offset": 1})));
        check(&[Rewrite::AnyDepth("p")], json!({"p": "*.rs"}), Ok(json!({"p": "**/*.rs"})));
        check(&[Rewrite::AnyDepth("p")], json!({"p": "src/*.rs"}), Ok(json!({"p": "src/*.rs"})));
        let fields = &[Rewrite::Fields("args")];
        check(fields, json!({"args": " -v  ./... "}), Ok(json!({"args": ["-v", "./..."]})));
        check(fields, json!({"args": ["a b"]}), Ok(json!({"args": ["a b"]})));
        let commas = &[Rewrite::Commas("to")];
        check(commas, json!({"to": "a@b.c"}), Ok(json!({"to": ["a@b.c"]})));
        check(
            commas,
            json!({"to": r#"a@b.c, "Doe, \"J\", Jane" <j@b.c>,,<d,e@f>"#}),
            Ok(json!({"to": ["a@b.c", r#""Doe, \"J\", Jane" <j@b.c>"#, "<d,e@f>"]})),
        );
        check(commas, json!({"to": "a@b.c\r\n,d@e.f"}), Ok(json!({"to": ["a@b.c\r\n", "d@e.f"]})));
        check(commas, json!({"to": ["a,b"]}), Ok(json!({"to": ["a,b"]})));
        let each = &[Rewrite::Each("list", &[Rewrite::Rename("a", "b")])];
        check(each, json!({"list": [{"a": 1}, 2, {"b": 3}]}), Ok(json!({"list": [{"b": 1}, 2, {"b": 3}]})));
        check(each, json!({"list": "none"}), Ok(json!({"list": "none"})));
        check(
            each,
            json!({"list": [{"a": 1, "b": 2}]}),
            Err("`a` is an alias of `b`, and the two values differ: give only one of them"),
        );
    }

    #[test]
    fn seconds_become_milliseconds_and_never_the_other_way_round() {
        let seconds = &[Rewrite::Seconds("timeout", "timeout_ms", 600)];
        check(seconds, json!({"timeout": 10}), Ok(json!({"timeout_ms": 10_000})));
        check(seconds, json!({"timeout": "10"}), Ok(json!({"timeout_ms": 10_000})));
        check(seconds, json!({"timeout": 0}), Ok(json!({})));
        check(seconds, json!({"timeout_ms": 10}), Ok(json!({"timeout_ms": 10})));
        let message = "`timeout` must be a time in seconds from 1 to 600; give milliseconds as `timeout_ms`";
        for wrong in [json!(601), json!(120_000), json!(-1), json!("soon")] {
            check(seconds, json!({"timeout": wrong}), Err(message));
        }
    }

    #[test]
    fn a_program_and_its_arguments_become_a_line_that_a_shell_reads_as_the_same_words() {
        let line = &[Rewrite::ShellLine("command", "args")];
        check(
            line,
            json!({"command": "echo", "args": ["a b", "$x", "it's", "", "-n"]}),
            Ok(json!({"command": r"echo 'a b' '$x' 'it'\''s' '' -n"})),
        );
        check(line, json!({"command": "echo $x"}), Ok(json!({"command": "echo $x"})));
        let message = "`args` must be a list of strings: one for each argument of the program";
        check(line, json!({"command": "rm", "args": "-i a"}), Err(message));
        check(line, json!({"command": "a", "args": [1]}), Err("a program and its arguments must be strings"));
    }

    #[test]
    fn a_false_flag_removes_the_parameter_that_depends_on_it() {
        let rewrites = &[Rewrite::OnlyIf("block", "timeout")];
        check(rewrites, json!({"block": false, "timeout": 5}), Ok(json!({})));
        check(rewrites, json!({"block": true, "timeout": 5}), Ok(json!({"timeout": 5})));
    }

    #[test]
    fn a_span_of_lines_becomes_offset_and_limit() {
        let span = &[Rewrite::Span("start_line", "end_line")];
        check(span, json!({"start_line": 3, "end_line": 5}), Ok(json!({"offset": 3, "limit": 3})));
        check(span, json!({"end_line": 5}), Ok(json!({"limit": 5})));
        check(span, json!({"start_line": 5, "end_line": 3}), Err("`end_line` (3) is before `start_line` (5)"));
    }

    #[test]
    fn two_spellings_with_different_values_are_an_error() {
        check(
            &[Rewrite::Rename("file_path", "path")],
            json!({"file_path": "a", "path": "b"}),
            Err("`file_path` is an alias of `path`, and the two values differ: give only one of them"),
        );
    }
}

//! The arguments of `tool`: a name, and the arguments of the call as JSON or as fields.

use super::ErrorExit;
use serde_json::{Map, Value};
use toolstead_domain::tool_input_schema::nearest_name;

/// Maximum number of references to follow for the type of a field.
const MAX_REFERENCES: usize = 16;

#[derive(Debug, PartialEq, Eq)]
pub(super) enum ToolCommand<'a> {
    Usage,
    List,
    Help(&'a str),
    Call(&'a str, ArgumentSource<'a>),
}

/// Arguments of a call.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ArgumentSource<'a> {
    Json(String),
    /// JSON on standard input.
    Input,
    Fields(&'a [String]),
}

pub(super) fn parse_command(words: &[String]) -> Result<ToolCommand<'_>, ErrorExit> {
    let (name, rest) = match words {
        [] => return Err(ErrorExit::usage("the tool name is missing; see `tool --list` and `tool --help`")),
        [one] if one == "--help" || one == "-h" => return Ok(ToolCommand::Usage),
        [one] if one == "--list" => return Ok(ToolCommand::List),
        [name, ..] if name.starts_with('-') => {
            return Err(ErrorExit::usage(format!(
                "`{name}` is not a tool: the name comes first, as in `tool NAME --field value`"
            )));
        }
        [name, rest @ ..] => (name.as_str(), rest),
    };
    Ok(match rest {
        [one] if one == "--help" => ToolCommand::Help(name),
        [] => ToolCommand::Call(name, ArgumentSource::Json("{}".into())),
        [one] if one == "-" => ToolCommand::Call(name, ArgumentSource::Input),
        [one] if one.trim_start().starts_with('{') => ToolCommand::Call(name, ArgumentSource::Json(one.clone())),
        [first, ..] if first.starts_with("--") && first.len() > 2 => {
            ToolCommand::Call(name, ArgumentSource::Fields(rest))
        }
        [first, ..] => {
            let message = format!("`{first}` is neither a JSON object nor a field");
            return Err(ErrorExit::usage(format!("{message}: write '{{\"field\": \"value\"}}' or --field value")));
        }
    })
}

pub(super) fn object(text: &str) -> Result<Value, ErrorExit> {
    match serde_json::from_str(text) {
        Ok(object @ Value::Object(_)) => Ok(object),
        Ok(_) => Err(ErrorExit::usage("the arguments are not a JSON object: write '{\"field\": \"value\"}'")),
        Err(error) => Err(ErrorExit::usage(format!("the arguments are not JSON: {error}"))),
    }
}

/// Builds an object from field arguments, by the types of the tool's schema. `input` returns standard input, for the
/// text `-`.
pub(super) fn fields(
    words: &[String],
    schema: &Value,
    input: &mut dyn FnMut() -> Result<String, ErrorExit>,
) -> Result<Value, ErrorExit> {
    let mut object = Map::new();
    let mut words = words.iter().peekable();
    while let Some(word) = words.next() {
        let Some(field) = word.strip_prefix("--").filter(|field| !field.is_empty()) else {
            return Err(ErrorExit::usage(format!(
                "`{word}` has no field: write --field value, and lists as --field a --field b"
            )));
        };
        let (field, given) = match field.split_once('=') {
            Some((field, given)) => (field, Some(given)),
            None => (field, None),
        };
        let (name, kinds) = known(field, schema)?;
        let is_flag = kinds.has("boolean") && !kinds.has("string");
        let text = match given {
            Some(given) => given,
            None if is_flag => words.next_if(|next| *next == "true" || *next == "false").map_or("true", String::as_str),
            None => words.next().ok_or_else(|| ErrorExit::usage(format!("--{field} has no value")))?,
        };
        let read =
            if text == "-" && (kinds.has("string") || kinds.items_have("string")) { Some(input()?) } else { None };
        let text = read.as_deref().unwrap_or(text);
        if kinds.has("array") {
            let whole = serde_json::from_str(text).ok().filter(Value::is_array);
            let entry = object.entry(name).or_insert_with(|| Value::Array(Vec::new()));
            let Value::Array(items) = entry else { return Err(twice(field)) };
            match whole {
                Some(Value::Array(more)) => items.extend(more),
                _ => items.push(value(field, text, &kinds.items())?),
            }
            continue;
        }
        if object.insert(name, value(field, text, &kinds)?).is_some() {
            return Err(twice(field));
        }
    }
    Ok(Value::Object(object))
}

fn twice(field: &str) -> ErrorExit {
    ErrorExit::usage(format!("--{field} is given twice, but takes one value"))
}

/// Finds a field, and returns its name in the schema and its types.
fn known<'a>(field: &str, schema: &'a Value) -> Result<(String, FieldTypeUnion<'a>), ErrorExit> {
    let properties = schema.get("properties").and_then(Value::as_object);
    let names = || properties.into_iter().flatten().map(|(name, _)| name.as_str());
    let folded = field.replace('-', "_");
    let is_meant = |name: &&str| *name == field || *name == folded;
    if let Some(name) = names().find(is_meant) {
        return Ok((name.into(), FieldTypeUnion::of(&schema["properties"][name], schema)));
    }
    if schema.get("additionalProperties") == Some(&Value::Bool(false)) {
        let known: Vec<String> = names().map(|name| format!("--{name}")).collect();
        let meant = nearest_name(&folded, names()).map_or(".".into(), |name| format!("; did you mean --{name}?"));
        return Err(ErrorExit::usage(format!(
            "there is no field --{field}{meant} The tool takes {}",
            known.join(", ")
        )));
    }
    Ok((field.into(), FieldTypeUnion { names: Vec::new(), items: None, root: schema }))
}

/// Types that a field may have; none if its schema does not specify any.
struct FieldTypeUnion<'a> {
    names: Vec<&'a str>,
    items: Option<&'a Value>,
    root: &'a Value,
}

impl<'a> FieldTypeUnion<'a> {
    fn of(schema: &'a Value, root: &'a Value) -> Self {
        let mut kinds = Self { names: Vec::new(), items: None, root };
        kinds.add(schema, MAX_REFERENCES);
        kinds
    }

    fn add(&mut self, schema: &'a Value, depth: usize) {
        if depth == 0 {
            return;
        }
        match schema.get("type") {
            Some(Value::String(one)) => self.names.push(one),
            Some(Value::Array(several)) => self.names.extend(several.iter().filter_map(Value::as_str)),
            _ => {
                let values = schema
                    .get("const")
                    .into_iter()
                    .chain(schema.get("enum").and_then(Value::as_array).into_iter().flatten());
                self.names.extend(values.map(|value| -> &'a str { kind_of(value) }));
            }
        }
        self.items = self.items.or(schema.get("items"));
        let root = self.root;
        let target = schema.get("$ref").and_then(Value::as_str).and_then(|name| root.pointer(name.strip_prefix('#')?));
        let choices = ["anyOf", "oneOf", "allOf"].into_iter().filter_map(|name| schema.get(name)?.as_array()).flatten();
        for one in target.into_iter().chain(choices) {
            self.add(one, depth - 1);
        }
    }

    fn has(&self, kind: &str) -> bool {
        self.names.contains(&kind)
    }

    fn items(&self) -> FieldTypeUnion<'a> {
        FieldTypeUnion::of(self.items.unwrap_or(&Value::Null), self.root)
    }

    fn items_have(&self, kind: &str) -> bool {
        self.has("array") && self.items().has(kind)
    }
}

fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// Parses a text as a value of these types. It remains a text wherever a text is allowed.
fn value(field: &str, text: &str, kinds: &FieldTypeUnion<'_>) -> Result<Value, ErrorExit> {
    let parsed = serde_json::from_str::<Value>(text).ok().filter(|value| {
        let kind = kind_of(value);
        let fits = kinds.has(kind) || (kind == "number" && kinds.has("integer"));
        kind != "string" && (fits || kinds.names.is_empty())
    });
    match parsed {
        Some(value) => Ok(value),
        None if kinds.has("string") || kinds.names.is_empty() => Ok(text.into()),
        None => Err(ErrorExit::usage(format!("--{field} takes {}, not `{text}`", kinds.names.join(" or ")))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn words(line: &[&str]) -> Vec<String> {
        line.iter().map(|word| (*word).to_owned()).collect()
    }

    #[test]
    fn parses_tool_arguments_from_json_fields_or_standard_input() {
        for (line, expected) in [
            (&["--list"][..], Some(ToolCommand::List)),
            (&["--help"], Some(ToolCommand::Usage)),
            (&["grep", "--help"], Some(ToolCommand::Help("grep"))),
            (&["grep"], Some(ToolCommand::Call("grep", ArgumentSource::Json("{}".into())))),
            (&["grep", "-"], Some(ToolCommand::Call("grep", ArgumentSource::Input))),
            (&["grep", " {\"a\": 1}"], Some(ToolCommand::Call("grep", ArgumentSource::Json(" {\"a\": 1}".into())))),
            (&[], None),
            (&["--unknown"], None),
            (&["grep", "TODO"], None),
            (&["grep", "{}", "--more"], None),
        ] {
            let line = words(line);
            assert_eq!(parse_command(&line).ok(), expected, "{line:?}");
        }
        let line = words(&["grep", "--pattern", "x"]);
        assert_eq!(parse_command(&line).unwrap(), ToolCommand::Call("grep", ArgumentSource::Fields(&line[1..])));
    }

    #[track_caller]
    fn check(line: &[&str], expected: Result<Value, &str>) {
        let schema = json!({
            "properties": {
                "text": {"type": "string"},
                "count": {"type": "integer", "minimum": 0},
                "ratio": {"type": ["number", "null"]},
                "is_on": {"type": "boolean", "default": false},
                "names": {"type": "array", "items": {"type": "string"}},
                "numbers": {"anyOf": [{"$ref": "#/$defs/Numbers"}, {"type": "null"}]},
                "mode": {"$ref": "#/$defs/Mode"},
                "place": {"type": "object"},
                "id": {"anyOf": [{"type": "string"}, {"type": "integer"}]},
            },
            "additionalProperties": false,
            "$defs": {"Mode": {"enum": ["fast", "slow"]}, "Numbers": {"type": "array", "items": {"type": "number"}}},
        });
        let made = fields(&words(line), &schema, &mut || Ok("from input\n".into()));
        match (made, expected) {
            (Ok(made), Ok(expected)) => assert_eq!(made, expected, "{line:?}"),
            (Err(ErrorExit { code, message }), Err(part)) => {
                assert!(code == 2 && message.contains(part), "{line:?}: {message}");
            }
            (made, expected) => panic!("{line:?}: {made:?}, and not {expected:?}"),
        }
    }

    #[test]
    fn fields_are_converted_to_the_types_in_the_schema() {
        check(&["--text", "12", "--count", "12"], Ok(json!({"text": "12", "count": 12})));
        check(&["--is-on", "--ratio", "0.5"], Ok(json!({"is_on": true, "ratio": 0.5})));
        check(&["--is_on", "false", "--ratio=null"], Ok(json!({"is_on": false, "ratio": null})));
        check(&["--is_on=false", "--text=a=b"], Ok(json!({"is_on": false, "text": "a=b"})));
        check(&["--names", "a", "--names", "1"], Ok(json!({"names": ["a", "1"]})));
        check(&["--names", "[\"a\", \"b\"]", "--names", "c"], Ok(json!({"names": ["a", "b", "c"]})));
        check(&["--numbers", "1", "--numbers", "2.5"], Ok(json!({"numbers": [1, 2.5]})));
        check(&["--mode", "fast", "--place", "{\"x\": 1}"], Ok(json!({"mode": "fast", "place": {"x": 1}})));
        check(&["--id", "7", "--text", "--flag"], Ok(json!({"id": 7, "text": "--flag"})));
        check(&["--text", "-"], Ok(json!({"text": "from input\n"})));
        check(&["--count", "many"], Err("--count takes integer, not `many`"));
        check(&["--count"], Err("--count has no value"));
        check(&["--count", "1", "--count", "2"], Err("given twice"));
        check(&["--cuont", "1"], Err("did you mean --count?"));
        check(&["--text", "a", "b"], Err("`b` has no field"));
    }

    #[test]
    fn a_field_without_a_schema_gets_the_json_type_that_its_value_resembles() {
        let made =
            fields(&words(&["--a", "1", "--b", "x", "--c", "true"]), &json!({"type": "object"}), &mut || panic!());
        assert_eq!(made.unwrap(), json!({"a": 1, "b": "x", "c": true}));
    }
}

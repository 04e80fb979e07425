//! A tool's input schema, compiled, and what arguments do wrong against it.

use jsonschema::{
    Draft, PatternOptions, Retrieve, Uri, ValidationError, Validator, error::ValidationErrorKind as Kind,
};
use serde_json::{Map, Value};
use std::fmt;

/// The largest schema that is compiled, in bytes of compact JSON.
pub const MAX_SCHEMA_BYTES: usize = 256 << 10;
/// The deepest nesting of a schema that is compiled.
pub const MAX_SCHEMA_DEPTH: usize = 64;
/// As many violations are told at once; a model mends no more than that in one go.
const MAX_VIOLATIONS: usize = 50;

/// A compiled JSON Schema: 2020-12 unless `$schema` says draft 4, 6, 7 or 2019-09 (MCP 2025-11-25, basic, "JSON Schema
/// Usage"). Nothing is ever fetched for it.
#[derive(Debug)]
pub struct ToolInputSchema {
    schema: Value,
    validator: Validator,
}

/// Whether `format` is more than a remark.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Formats {
    /// Checked: our own tools.
    Asserted,
    /// Ignored: schemas of MCP servers, as their authors' validators do.
    Annotations,
}

struct NoRemote;

impl Retrieve for NoRemote {
    fn retrieve(&self, uri: &Uri<String>) -> Result<Value, Box<dyn std::error::Error + Send + Sync>> {
        Err(format!("the schema refers to {uri}, and references out of a schema are not followed").into())
    }
}

impl ToolInputSchema {
    /// Compiles a schema.
    ///
    /// # Errors
    /// [`InvalidSchema`] when it is too large or too deep, is no schema, or refers to something outside itself.
    pub fn compile(schema: &Value, formats: Formats) -> Result<Self, InvalidSchema> {
        let fault = |reason: String| InvalidSchema { reason };
        if !schema.is_object() {
            return Err(fault("it is no JSON object".into()));
        }
        if depth_exceeds(schema, MAX_SCHEMA_DEPTH) {
            return Err(fault(format!("it is nested deeper than {MAX_SCHEMA_DEPTH} levels")));
        }
        let bytes = schema.to_string().len();
        if bytes > MAX_SCHEMA_BYTES {
            return Err(fault(format!("it has {bytes} bytes, at most {MAX_SCHEMA_BYTES} are compiled")));
        }
        // Recursion is bounded by the depth of the instance, patterns by steps and size.
        let patterns = PatternOptions::fancy_regex().backtrack_limit(10_000).size_limit(1 << 20);
        let mut options = jsonschema::options()
            .with_retriever(NoRemote)
            .with_pattern_options(patterns)
            .should_validate_formats(formats == Formats::Asserted);
        if schema.get("$schema").is_none() {
            options = options.with_draft(Draft::Draft202012);
        }
        let validator = options.build(schema).map_err(|error| fault(error.to_string()))?;
        Ok(Self { schema: schema.clone(), validator })
    }

    /// The schema as it was given.
    pub fn as_value(&self) -> &Value {
        &self.schema
    }

    /// Checks arguments.
    ///
    /// # Errors
    /// [`InvalidArguments`] with every violation (50 at most), sorted by place.
    pub fn validate(&self, arguments: &Value) -> Result<(), InvalidArguments> {
        if self.validator.is_valid(arguments) {
            return Ok(());
        }
        let mut violations: Vec<Violation> =
            self.validator.iter_errors(arguments).take(MAX_VIOLATIONS).map(|error| self.violation(&error)).collect();
        violations.sort_by(|a, b| a.path.cmp(&b.path));
        Err(InvalidArguments { violations })
    }

    fn violation(&self, error: &ValidationError<'_>) -> Violation {
        let path = error.instance_path().as_str().to_owned();
        let instance = error.instance();
        let keyword = || self.schema.pointer(error.schema_path().as_str());
        let limits = |words: &str, limit: &dyn fmt::Display| format!("{words} {limit}");
        let (expected, got) = match error.kind() {
            Kind::Required { property } => (format!("the property {property}"), "nothing".to_owned()),
            Kind::Type { .. } => (keyword().map_or_else(|| error.to_string(), types), shown(instance)),
            Kind::Enum { options } => (format!("one of {options}"), shown(instance)),
            Kind::Constant { expected_value } => (expected_value.to_string(), shown(instance)),
            Kind::Minimum { limit } => (limits("at least", limit), shown(instance)),
            Kind::Maximum { limit } => (limits("at most", limit), shown(instance)),
            Kind::ExclusiveMinimum { limit } => (limits("more than", limit), shown(instance)),
            Kind::ExclusiveMaximum { limit } => (limits("less than", limit), shown(instance)),
            Kind::MinLength { limit } => (format!("at least {limit} characters"), shown(instance)),
            Kind::MaxLength { limit } => (format!("at most {limit} characters"), shown(instance)),
            Kind::MinItems { limit } => (format!("at least {limit} items"), shown(instance)),
            Kind::MaxItems { limit } => (format!("at most {limit} items"), shown(instance)),
            Kind::Pattern { pattern } => (format!("a text that matches {pattern}"), shown(instance)),
            Kind::Format { format } => (format!("a text of the format {format}"), shown(instance)),
            Kind::AdditionalProperties { unexpected } | Kind::UnevaluatedProperties { unexpected } => {
                (self.known_properties(error, unexpected), format!("the unknown {}", quoted(unexpected)))
            }
            _ => (error.masked().to_string(), shown(instance)),
        };
        Violation { path, expected, got }
    }

    /// "only known properties", with the nearest known name for each unknown one.
    fn known_properties(&self, error: &ValidationError<'_>, unexpected: &[String]) -> String {
        let parent = error.schema_path().as_str().rsplit_once('/').map_or("", |(parent, _)| parent);
        let properties = self.schema.pointer(&format!("{parent}/properties")).and_then(Value::as_object);
        let known: Vec<&str> = properties.into_iter().flat_map(Map::keys).map(String::as_str).collect();
        if known.is_empty() {
            return "no properties".into();
        }
        let nearest: Vec<String> = unexpected
            .iter()
            .filter_map(|name| {
                Some(format!("did you mean `{}` for `{name}`?", nearest_name(name, known.iter().copied())?))
            })
            .collect();
        match nearest.is_empty() {
            true => format!("only known properties ({})", known.join(", ")),
            false => format!("only known properties; {}", nearest.join(" ")),
        }
    }
}

fn types(keyword: &Value) -> String {
    let one = |name: &str| match name {
        "integer" => "an integer".to_owned(),
        "object" => "an object".to_owned(),
        "array" => "an array".to_owned(),
        "null" => "null".to_owned(),
        other => format!("a {other}"),
    };
    match keyword {
        Value::Array(names) => names.iter().filter_map(Value::as_str).map(one).collect::<Vec<_>>().join(" or "),
        Value::String(name) => one(name),
        other => other.to_string(),
    }
}

/// A value as a short text: what it is, and as much of it as helps.
fn shown(value: &Value) -> String {
    let text = value.to_string();
    match text.char_indices().nth(60) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text,
    }
}

fn quoted(names: &[String]) -> String {
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

/// Looks with an own stack, so that a hostile depth cannot exhaust ours.
fn depth_exceeds(value: &Value, limit: usize) -> bool {
    let mut stack = vec![(value, 0)];
    while let Some((value, depth)) = stack.pop() {
        if depth > limit {
            return true;
        }
        match value {
            Value::Array(items) => stack.extend(items.iter().map(|item| (item, depth + 1))),
            Value::Object(members) => stack.extend(members.values().map(|member| (member, depth + 1))),
            _ => {}
        }
    }
    false
}

/// The name in `known` that is nearest to `name`, if one is near enough to be meant.
pub fn nearest_name<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let folded = name.to_lowercase();
    let near = known
        .into_iter()
        .map(|other| (distance(&folded, &other.to_lowercase()), other))
        .min_by_key(|(distance, _)| *distance);
    near.filter(|(distance, _)| *distance <= 1 + name.chars().count() / 3).map(|(_, other)| other)
}

/// Levenshtein's distance, of at most 64 characters of each.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().take(64).collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, a) in a.chars().take(64).enumerate() {
        let mut corner = std::mem::replace(&mut row[0], i + 1);
        for (j, b) in b.iter().enumerate() {
            let replaced = corner + usize::from(a != *b);
            corner = row[j + 1];
            row[j + 1] = replaced.min(corner + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}

/// One thing that is wrong with arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// Where: a JSON pointer into the arguments, empty for the whole.
    pub path: String,
    /// What the schema wants there.
    pub expected: String,
    /// What stands there, shortened.
    pub got: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = if self.path.is_empty() { "the arguments" } else { &self.path };
        write!(f, "{path}: expected {}, got {}", self.expected, self.got)
    }
}

/// Arguments that do not fit a schema. The text lists every violation on a line of its own.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", violations.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))]
pub struct InvalidArguments {
    /// All of them, sorted by path, never empty.
    pub violations: Vec<Violation>,
}

/// A schema that cannot be compiled.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the schema cannot be used: {reason}")]
pub struct InvalidSchema {
    reason: String,
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn compile(schema: Value) -> ToolInputSchema {
        ToolInputSchema::compile(&schema, Formats::Asserted).unwrap()
    }

    #[track_caller]
    fn check(schema: Value, arguments: Value, expected: &str) {
        let told = compile(schema).validate(&arguments).map_or_else(|error| error.to_string(), |()| "valid".into());
        assert_eq!(told, expected);
    }

    #[test]
    fn all_violations_are_told_at_once_with_the_nearest_name() {
        check(
            json!({
                "type": "object", "required": ["path"], "additionalProperties": false,
                "properties": {"path": {"type": "string"}, "limit": {"type": "integer", "minimum": 1}},
            }),
            json!({"limit": 0, "pth": "x"}),
            "the arguments: expected only known properties; did you mean `path` for `pth`?, got the unknown `pth`\n\
             the arguments: expected the property \"path\", got nothing\n\
             /limit: expected at least 1, got 0",
        );
    }

    #[test]
    fn types_choices_and_lengths_are_told_in_words() {
        let property = |schema: Value| json!({"properties": {"x": schema}});
        check(
            property(json!({"type": ["integer", "null"]})),
            json!({"x": "a"}),
            "/x: expected an integer or null, got \"a\"",
        );
        check(property(json!({"enum": ["a", "b"]})), json!({"x": "c"}), "/x: expected one of [\"a\",\"b\"], got \"c\"");
        check(property(json!({"minLength": 1})), json!({"x": ""}), "/x: expected at least 1 characters, got \"\"");
        check(
            property(json!({"format": "date"})),
            json!({"x": "?"}),
            "/x: expected a text of the format date, got \"?\"",
        );
        check(property(json!({"type": "string"})), json!({"x": "ok"}), "valid");
    }

    #[test]
    fn older_drafts_are_understood_and_format_is_a_remark_for_upstreams() {
        let draft7 =
            json!({"$schema": "http://json-schema.org/draft-07/schema#", "properties": {"x": {"format": "date"}}});
        assert!(ToolInputSchema::compile(&draft7, Formats::Annotations).unwrap().validate(&json!({"x": "?"})).is_ok());
        check(
            json!({"$schema": "http://json-schema.org/draft-04/schema#", "required": ["x"]}),
            json!({"x": 1}),
            "valid",
        );
    }

    #[test]
    fn a_schema_that_could_hurt_is_refused() {
        let mut deep = json!({});
        for _ in 0..100 {
            deep = json!({"properties": {"x": deep}});
        }
        let long: Vec<String> = (0..40_000).map(|n| format!("option-{n}")).collect();
        for (schema, reason) in [
            (json!({"$ref": "http://example.com/schema.json"}), "not followed"),
            (json!({"$ref": "file:///etc/passwd"}), "not followed"),
            (deep, "nested deeper"),
            (json!({"enum": long}), "at most 262144"),
            (json!(true), "no JSON object"),
            (json!({"type": "strng"}), "cannot be used"),
        ] {
            let error = ToolInputSchema::compile(&schema, Formats::Asserted).unwrap_err().to_string();
            assert!(error.contains(reason), "{error}");
        }
    }

    #[test]
    fn a_pattern_that_explodes_ends_soon_and_refuses() {
        let schema = compile(json!({"properties": {"x": {"pattern": "^(a+)+(?=b)$"}}}));
        assert!(schema.validate(&json!({"x": "a".repeat(40)})).is_err());
    }
}

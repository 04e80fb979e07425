//! Compiled schemas.
//!
//! Tool authors write the schemas, and a validator has no budget of steps. The maximum cost of a schema is therefore
//! computed before it is compiled, and a schema without a bound is left to a
//! [`SchemaValidator`](crate::ports::schema_validator::SchemaValidator) in another process.

use super::{
    bounds::{self, LocationValidationCost, NotCompiled, UnboundedCost},
    invalid::{FormatValidation, InvalidArguments, InvalidSchema, UnlistedViolations, Violation},
    lengths,
    load::{self, InstanceSize},
    nearest_name::nearest_name,
};
use crate::json_depth::is_deeper_than;
use jsonschema::{
    Draft, PatternOptions, Retrieve, Uri, ValidationError, Validator, error::ValidationErrorKind as Kind,
};
use serde_json::{Map, Value};
use std::{fmt, io};

/// Maximum size of a compiled schema, in bytes of compact JSON.
const MAX_SCHEMA_BYTES: usize = 256 << 10;
/// Maximum nesting of a compiled schema.
const MAX_SCHEMA_DEPTH: usize = 64;
/// Maximum number of violations that are reported at once; a model does not fix more in one attempt. The others are
/// counted.
const MAX_VIOLATIONS: usize = 20;
/// Maximum number of unknown properties that are named in one violation.
const NAMED_PROPERTIES: usize = 10;
/// Maximum number of characters of the expected value in a violation.
const EXPECTED_CHARACTERS: usize = 2_000;
/// Maximum number of characters of the actual value in a violation.
const GOT_CHARACTERS: usize = 60;
/// Maximum number of steps of a validation in this process.
const MAX_STEPS: u64 = 2_000_000;
/// Maximum number of steps for collecting all violations; beyond it only the first violation is searched.
const MAX_COLLECTING_STEPS: u64 = 100_000;
/// Maximum memory of one compiled pattern, and of its cache, in bytes.
const PATTERN_MEMORY: usize = 256 << 10;

/// Compiled JSON Schema: 2020-12 unless `$schema` declares draft 4, 6, 7 or 2019-09 (MCP 2025-11-25, basic, "JSON
/// Schema Usage"). Nothing is ever fetched for it.
#[derive(Debug)]
pub struct ToolInputSchema {
    schema: Value,
    formats: FormatValidation,
    engine: ValidationProcess,
    /// `false` if no value can be too long.
    limits_lengths: bool,
    has_defaults: bool,
}

#[derive(Debug)]
enum ValidationProcess {
    /// Compiled in this process; each place of an instance has this cost.
    InProcess(Box<Validator>, LocationValidationCost),
    /// Left to another process, for this reason.
    Separate(UnboundedCost),
}

struct NoRemote;

impl Retrieve for NoRemote {
    fn retrieve(&self, uri: &Uri<String>) -> Result<Value, Box<dyn std::error::Error + Send + Sync>> {
        Err(format!("the schema refers to {uri}, and references to other documents are not followed").into())
    }
}

impl ToolInputSchema {
    /// Compiles a schema, if its cost has a bound. A schema without one is accepted as well, and is validated in
    /// another process.
    ///
    /// # Errors
    /// [`InvalidSchema`] if it is too large or too deep, is not a valid schema, or refers to something outside of
    /// itself.
    pub fn compile(schema: &Value, formats: FormatValidation) -> Result<Self, InvalidSchema> {
        check_size(schema)?;
        let engine = match bounds::cost(schema) {
            Ok(cost) => match validator(schema, formats, PATTERN_MEMORY) {
                Ok(validator) => ValidationProcess::InProcess(Box::new(validator), cost),
                // The pattern is either too large for this process or invalid.
                Err(_) if cost.patterns > 0 => ValidationProcess::Separate(UnboundedCost::Patterns),
                Err(invalid) => return Err(invalid),
            },
            Err(NotCompiled::Unbounded(unbounded)) => ValidationProcess::Separate(unbounded),
            Err(NotCompiled::Dangling(reference)) => {
                let what = "which it does not contain, and references to other documents are not followed";
                return Err(InvalidSchema { reason: format!("the schema refers to {reference}, {what}") });
            }
        };
        Ok(Self::new(schema, formats, engine))
    }

    /// Compiles a schema in the current process without a bound of its cost. Called only in a process that may be
    /// killed.
    ///
    /// # Errors
    /// As [`compile`](Self::compile).
    pub fn compile_unbounded(schema: &Value, formats: FormatValidation) -> Result<Self, InvalidSchema> {
        check_size(schema)?;
        let validator = validator(schema, formats, 1 << 20)?;
        let free = LocationValidationCost { schemas: 1, patterns: 0, backtracks: false };
        Ok(Self::new(schema, formats, ValidationProcess::InProcess(Box::new(validator), free)))
    }

    fn new(schema: &Value, formats: FormatValidation, engine: ValidationProcess) -> Self {
        let limits_lengths = has_member(schema, &["maxLength", "maxItems", "maxProperties"]);
        Self { schema: schema.clone(), formats, engine, limits_lengths, has_defaults: has_member(schema, &["default"]) }
    }

    /// Returns the schema as it was given.
    pub fn as_value(&self) -> &Value {
        &self.schema
    }

    /// Returns the treatment of `format`.
    pub fn formats(&self) -> FormatValidation {
        self.formats
    }

    /// Returns `false` if [`fill_defaults`](crate::defaults::fill_defaults) adds nothing to any arguments.
    pub fn has_defaults(&self) -> bool {
        self.has_defaults
    }

    /// Validates arguments.
    ///
    /// # Errors
    /// [`ArgumentValidationError::Invalid`] with the first violations, sorted by path, and the number of further ones;
    /// [`ArgumentValidationError::Unbounded`] if the validation in this process could cost too much.
    pub fn validate(&self, arguments: &Value) -> Result<(), ArgumentValidationError> {
        // Too long texts and lists are not examined further.
        let mut kept = match self.limits_lengths {
            true => lengths::too_long(&self.schema, arguments, MAX_VIOLATIONS),
            false => Vec::new(),
        };
        let is_too_long = !kept.is_empty();
        kept.sort_by(|a, b| a.path.cmp(&b.path));
        let only_too_long = |violations| Err(InvalidArguments { violations, more: UnlistedViolations::Unknown }.into());
        let (validator, cost) = match &self.engine {
            ValidationProcess::InProcess(validator, cost) => (validator, *cost),
            ValidationProcess::Separate(_) if is_too_long => return only_too_long(kept),
            ValidationProcess::Separate(unbounded) => return Err(ArgumentValidationError::Unbounded(*unbounded)),
        };
        let load = InstanceSize::of(arguments);
        let collects = load.looked_at(cost) <= MAX_COLLECTING_STEPS;
        let is_bounded = load.steps(cost) <= MAX_STEPS;
        if is_too_long && !(collects && is_bounded) {
            return only_too_long(kept);
        }
        if !is_bounded {
            return Err(ArgumentValidationError::Unbounded(UnboundedCost::Instance));
        }
        if !is_too_long && validator.is_valid(arguments) {
            return Ok(());
        }
        let mut more = UnlistedViolations::None;
        if collects {
            let long: Vec<String> = kept.iter().map(|one| one.path.clone()).collect();
            let mut further = 0;
            for error in validator.iter_errors(arguments) {
                let path = error.instance_path().as_str();
                if long.iter().any(|long| is_within(path, long)) {
                    continue;
                }
                match kept.len() < MAX_VIOLATIONS {
                    true => kept.push(self.violation(&error)),
                    false => further += 1,
                }
            }
            if further > 0 {
                more = UnlistedViolations::Exactly(further);
            }
        } else {
            kept.extend(validator.validate(arguments).err().map(|error| self.violation(&error)));
            more = UnlistedViolations::Unknown;
        }
        kept.sort_by(|a, b| a.path.cmp(&b.path));
        Err(InvalidArguments { violations: kept, more }.into())
    }

    fn violation(&self, error: &ValidationError<'_>) -> Violation {
        let path = error.instance_path().as_str().to_owned();
        let instance = error.instance();
        let keyword = || self.schema.pointer(error.schema_path().as_str());
        let limits = |words: &str, limit: &dyn fmt::Display| format!("{words} {limit}");
        let (expected, got) = match error.kind() {
            Kind::Required { property } => (format!("the property {property}"), "nothing".to_owned()),
            Kind::Type { .. } => (keyword().map_or_else(|| error.masked().to_string(), types), shown(instance)),
            Kind::Enum { options } => (format!("one of {}", written(options, EXPECTED_CHARACTERS)), shown(instance)),
            Kind::Constant { expected_value } => (written(expected_value, EXPECTED_CHARACTERS), shown(instance)),
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
        Violation { path, expected: shortened(expected, EXPECTED_CHARACTERS), got }
    }

    /// Returns the expected value in a violation by unknown properties: "only known properties" with the nearest known
    /// names, or with all known names if none is near; "no properties" if none is known.
    fn known_properties(&self, error: &ValidationError<'_>, unexpected: &[String]) -> String {
        let parent = error.schema_path().as_str().rsplit_once('/').map_or("", |(parent, _)| parent);
        let properties = self.schema.pointer(&format!("{parent}/properties")).and_then(Value::as_object);
        let known: Vec<&str> = properties.into_iter().flat_map(Map::keys).map(String::as_str).collect();
        if known.is_empty() {
            return "no properties".into();
        }
        let nearest: Vec<String> = unexpected
            .iter()
            .take(NAMED_PROPERTIES)
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

/// Returns a short text for a value: the beginning of its JSON.
fn shown(value: &Value) -> String {
    written(value, GOT_CHARACTERS)
}

/// Returns the beginning of a value as JSON. No more of it is serialized.
fn written(value: &Value, characters: usize) -> String {
    struct BoundedBuffer(Vec<u8>, usize);
    impl io::Write for BoundedBuffer {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            if self.0.len() > self.1 {
                return Err(io::ErrorKind::FileTooLarge.into());
            }
            // A single text may be larger than the limit.
            self.0.extend_from_slice(&bytes[..bytes.len().min(self.1 + 1)]);
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    // A character has at most four bytes.
    let mut beginning = BoundedBuffer(Vec::new(), characters * 4);
    // Fails if the value is longer than the limit.
    let _ = serde_json::to_writer(&mut beginning, value);
    shortened(String::from_utf8_lossy(&beginning.0).into_owned(), characters)
}

fn shortened(mut text: String, characters: usize) -> String {
    if let Some((at, _)) = text.char_indices().nth(characters) {
        text.truncate(at);
        text.push('…');
    }
    text
}

/// Returns the first names, and the number of the others.
fn quoted(names: &[String]) -> String {
    let named: Vec<String> = names
        .iter()
        .take(NAMED_PROPERTIES)
        .map(|name| format!("`{}`", shortened(name.clone(), GOT_CHARACTERS)))
        .collect();
    match names.len().saturating_sub(NAMED_PROPERTIES) {
        0 => named.join(", "),
        more => format!("{} and {more} more", named.join(", ")),
    }
}

/// Returns `true` if a path is the outer path, or within it. Both are JSON pointers.
fn is_within(path: &str, outer: &str) -> bool {
    path.strip_prefix(outer).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Returns `true` if an object at any depth of the schema has a member of one of these names, as a keyword or as the
/// name of a property.
fn has_member(schema: &Value, names: &[&str]) -> bool {
    match schema {
        Value::Object(members) => {
            members.iter().any(|(name, value)| names.contains(&name.as_str()) || has_member(value, names))
        }
        Value::Array(items) => items.iter().any(|item| has_member(item, names)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

fn check_size(schema: &Value) -> Result<(), InvalidSchema> {
    let fault = |reason: String| Err(InvalidSchema { reason });
    if !schema.is_object() {
        return fault("it is not a JSON object".into());
    }
    if is_deeper_than(schema, MAX_SCHEMA_DEPTH) {
        return fault(format!("it is nested deeper than {MAX_SCHEMA_DEPTH} levels"));
    }
    match schema.to_string().len() {
        bytes if bytes > MAX_SCHEMA_BYTES => {
            fault(format!("it has {bytes} bytes, at most {MAX_SCHEMA_BYTES} are compiled"))
        }
        _ => Ok(()),
    }
}

fn validator(schema: &Value, formats: FormatValidation, pattern_memory: usize) -> Result<Validator, InvalidSchema> {
    let patterns = PatternOptions::fancy_regex()
        .backtrack_limit(load::BACKTRACKS)
        .size_limit(pattern_memory)
        .dfa_size_limit(pattern_memory);
    let mut options = jsonschema::options()
        .with_retriever(NoRemote)
        .with_pattern_options(patterns)
        .should_validate_formats(formats == FormatValidation::Asserted);
    if schema.get("$schema").is_none() {
        options = options.with_draft(Draft::Draft202012);
    }
    options.build(schema).map_err(|error| InvalidSchema { reason: shortened(error.to_string(), EXPECTED_CHARACTERS) })
}

/// Reason why arguments are not known to be valid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ArgumentValidationError {
    /// The arguments are invalid.
    #[error(transparent)]
    Invalid(#[from] InvalidArguments),
    /// Validation in this process could cost too much.
    #[error("the schema is not validated here: {0}")]
    Unbounded(UnboundedCost),
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn compile(schema: Value) -> ToolInputSchema {
        ToolInputSchema::compile(&schema, FormatValidation::Asserted).unwrap()
    }

    #[track_caller]
    fn check(schema: Value, arguments: Value, expected: &str) {
        let message = compile(schema).validate(&arguments).map_or_else(|error| error.to_string(), |()| "valid".into());
        assert_eq!(message, expected);
    }

    #[test]
    fn all_violations_are_reported_at_once_with_the_nearest_property_name() {
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
    fn violations_of_types_enums_lengths_and_formats_are_described_in_words() {
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
    fn older_drafts_are_supported_and_format_may_be_an_annotation_only() {
        let draft7 =
            json!({"$schema": "http://json-schema.org/draft-07/schema#", "properties": {"x": {"format": "date"}}});
        assert!(
            ToolInputSchema::compile(&draft7, FormatValidation::Annotations)
                .unwrap()
                .validate(&json!({"x": "?"}))
                .is_ok()
        );
        check(
            json!({"$schema": "http://json-schema.org/draft-04/schema#", "required": ["x"]}),
            json!({"x": 1}),
            "valid",
        );
    }

    #[test]
    fn rejects_schemas_with_remote_references_excessive_size_or_invalid_content() {
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
            (json!(true), "not a JSON object"),
            (json!({"type": "strng"}), "cannot be used"),
        ] {
            let error = ToolInputSchema::compile(&schema, FormatValidation::Asserted).unwrap_err().to_string();
            assert!(error.contains(reason), "{error}");
        }
    }

    #[test]
    fn a_catastrophically_backtracking_pattern_rejects_the_arguments() {
        let schema = compile(json!({"properties": {"x": {"pattern": "^(a+)+(?=b)$"}}}));
        assert!(schema.validate(&json!({"x": "a".repeat(40)})).is_err());
    }

    #[test]
    fn an_unbounded_schema_is_validated_only_by_the_unbounded_compilation() {
        let twice =
            json!({"properties": {"a": {"anyOf": [{"$ref": "#"}, {"$ref": "#"}]}}, "additionalProperties": false});
        let large = json!({"properties": {"a": {"pattern": "^(\\w{300}){300}$"}}});
        for (schema, unbounded) in [(&twice, UnboundedCost::Ambiguous), (&large, UnboundedCost::Patterns)] {
            let here = compile(schema.clone());
            assert_eq!(here.validate(&json!({})), Err(ArgumentValidationError::Unbounded(unbounded)));
        }
        let elsewhere = ToolInputSchema::compile_unbounded(&twice, FormatValidation::Asserted).unwrap();
        assert_eq!(elsewhere.validate(&json!({"a": {"a": {}}})), Ok(()));
        assert!(matches!(elsewhere.validate(&json!({"a": {"b": {}}})), Err(ArgumentValidationError::Invalid(_))));
        let invalid = ToolInputSchema::compile_unbounded(&large, FormatValidation::Asserted).unwrap_err();
        assert!(invalid.to_string().starts_with("the schema cannot be used: "), "{invalid}");
    }

    #[test]
    fn the_first_violations_are_listed_and_the_others_counted() {
        let text_of = |arguments: &Value| {
            match compile(json!({
            "properties": {"all": {"items": {"required": ["a", "b"]}}, "few": {"maxItems": 2, "items": {"type": "null"}}}
        }))
        .validate(arguments)
        {
            Err(ArgumentValidationError::Invalid(invalid)) => (invalid.violations.len(), invalid.more),
            other => panic!("{other:?}"),
        }
        };
        assert_eq!(text_of(&json!({"all": vec![json!({}); 3]})), (6, UnlistedViolations::None));
        assert_eq!(text_of(&json!({"all": vec![json!({}); 100]})), (20, UnlistedViolations::Exactly(180)));
        assert_eq!(text_of(&json!({"all": vec![json!({}); 50_000]})), (1, UnlistedViolations::Unknown));
        // Too many values for so few steps.
        let many = compile(json!({"items": {"type": "integer"}})).validate(&json!(vec![0; 1_100_000]));
        assert_eq!(many, Err(ArgumentValidationError::Unbounded(UnboundedCost::Instance)));
    }

    #[test]
    fn an_overlong_list_or_text_is_reported_without_checking_its_content() {
        let schema = json!({
            "properties": {"edits": {"$ref": "#/$defs/edits"}, "name": {"type": "string", "maxLength": 3, "pattern": "^a"}},
            "$defs": {"edits": {"type": "array", "maxItems": 500, "items": {"type": "object", "required": ["old", "new"]}}},
        });
        let edits = |count: usize| vec![json!({}); count];
        check(
            schema.clone(),
            json!({"edits": edits(501), "name": "bbbb"}),
            "/edits: expected at most 500 items, got 501\n/name: expected at most 3 characters, got 4",
        );
        check(
            schema.clone(),
            json!({"edits": edits(600_000), "name": 7}),
            "/edits: expected at most 500 items, got 600000\n… and possibly more: there is too much to check all of it",
        );
        check(
            json!({"properties": {"b": {"maxLength": 1}, "a": {"maxItems": 1}}}),
            json!({"b": "bb", "a": vec![0; 1_100_000]}),
            "/a: expected at most 1 items, got 1100000\n/b: expected at most 1 characters, got 2\n… and possibly more: there \
             is too much to check all of it",
        );
        let answer = compile(schema).validate(&json!({"edits": edits(500)})).unwrap_err().to_string();
        assert!(answer.ends_with("\n… and 980 more") && answer.lines().count() == 21, "{answer}");
    }

    #[test]
    fn a_violation_is_short_however_large_its_value_is() {
        let names: Map<String, Value> =
            (0..5_000).map(|at| (format!("unknown{at}{}", "x".repeat(100)), json!(1))).collect();
        let answer = compile(json!({"additionalProperties": false, "properties": {"a": {}}, "required": ["a"]}))
            .validate(&Value::Object(names))
            .unwrap_err()
            .to_string();
        assert!(answer.contains("and 4990 more") && answer.len() < 2_000, "{answer}");
        let options: Vec<String> = (0..2_000).map(|at| format!("option-{at}")).collect();
        let answer =
            compile(json!({"enum": options})).validate(&json!({"a": "ä".repeat(1 << 20)})).unwrap_err().to_string();
        assert!(answer.chars().count() < 2_200, "{answer}");
    }

    #[test]
    fn validating_the_deepest_accepted_schema_and_instance_fits_half_a_worker_stack() {
        let mut chain = json!({"properties": {"a": {"$ref": "#"}}, "required": ["b"]});
        for at in 0..5 {
            chain = if at % 2 == 0 { json!({"allOf": [chain]}) } else { json!({"anyOf": [chain]}) };
        }
        let instance = (0..120).fold(json!({}), |inner, _| json!({"a": inner}));
        let work = move || matches!(compile(chain).validate(&instance), Err(ArgumentValidationError::Invalid(_)));
        let thread = std::thread::Builder::new().stack_size(1 << 20).spawn(work).unwrap();
        assert!(thread.join().unwrap());
    }
}

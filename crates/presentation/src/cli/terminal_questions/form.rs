//! The form of a question (MCP 2025-11-25, client/elicitation, "Requested Schema"): a flat object with simple fields.

use serde_json::{Map, Value, json};

/// Maximum number of fields.
const MAX_FIELDS: usize = 64;
/// Maximum number of choices of a field.
const MAX_CHOICES: usize = 256;

#[derive(Debug, PartialEq)]
pub(super) struct QuestionForm {
    pub(super) fields: Vec<FormField>,
}

#[derive(Debug, PartialEq)]
pub(super) struct FormField {
    pub(super) name: String,
    pub(super) title: String,
    pub(super) description: Option<String>,
    pub(super) is_required: bool,
    /// Field for a free-text answer instead of the choices: `NAME_other` after `NAME`.
    pub(super) other: Option<Box<FormField>>,
    default: Option<Value>,
    kind: FieldKind,
}

#[derive(Debug, PartialEq)]
enum FieldKind {
    Text { least: Option<u64>, most: Option<u64>, format: Option<String> },
    Number { least: Option<f64>, most: Option<f64>, is_whole: bool },
    Boolean,
    One(Vec<Choice>),
    Several { of: Vec<Choice>, least: Option<u64>, most: Option<u64> },
}

/// A choice: the value that is sent and the title that is shown.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Choice {
    pub(super) value: String,
    pub(super) title: String,
}

impl QuestionForm {
    /// Parses the form that a schema describes.
    ///
    /// # Errors
    /// The reason why the form cannot be shown at the terminal.
    pub(super) fn read(schema: &Value) -> Result<Self, &'static str> {
        let none = Map::new();
        let properties = match schema.get("properties") {
            Some(Value::Object(properties)) => properties,
            None => &none,
            Some(_) => return Err("its form has no valid fields"),
        };
        if properties.len() > MAX_FIELDS {
            return Err("its form has too many fields");
        }
        let required = schema.get("required").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        let fields = properties.iter().map(|(name, field)| {
            let text = |member: &str| field.get(member).and_then(Value::as_str).map(str::to_owned);
            let kind = FieldKind::read(field).ok_or("its form has a field of an unsupported kind")?;
            Ok::<_, &'static str>(FormField {
                name: name.clone(),
                title: text("title").unwrap_or_else(|| name.clone()),
                description: text("description"),
                is_required: required.iter().any(|one| one.as_str() == Some(name)),
                // An invalid default is ignored.
                default: field.get("default").filter(|default| kind.check(default).is_ok()).cloned(),
                other: None,
                kind,
            })
        });
        Ok(Self { fields: joined(fields.collect::<Result<_, _>>()?) })
    }
}

/// Joins a field with choices and the following field for another answer, if both are optional: the user types one line
/// for both.
fn joined(fields: Vec<FormField>) -> Vec<FormField> {
    let mut joined: Vec<FormField> = Vec::with_capacity(fields.len());
    for field in fields {
        match joined.last_mut() {
            Some(before) if before.takes_other(&field) => before.other = Some(Box::new(field)),
            _ => joined.push(field),
        }
    }
    joined
}

impl FieldKind {
    fn read(field: &Value) -> Option<Self> {
        let count = |member: &str| field.get(member).and_then(Value::as_u64);
        let bound = |member: &str| field.get(member).and_then(Value::as_f64);
        Some(match field["type"].as_str()? {
            "string" => match choices(field, "oneOf")? {
                Some(choices) => Self::One(choices),
                None => Self::Text {
                    least: count("minLength"),
                    most: count("maxLength"),
                    format: field["format"].as_str().map(str::to_owned),
                },
            },
            kind @ ("number" | "integer") => {
                Self::Number { least: bound("minimum"), most: bound("maximum"), is_whole: kind == "integer" }
            }
            "boolean" => Self::Boolean,
            "array" => Self::Several {
                of: choices(&field["items"], "anyOf")?.or(choices(&field["items"], "oneOf")?)?,
                least: count("minItems"),
                most: count("maxItems"),
            },
            _ => return None,
        })
    }

    /// Checks a value. The error is a message for the user.
    fn check(&self, value: &Value) -> Result<(), String> {
        match self {
            Self::Text { least, most, format } => {
                let text = value.as_str().ok_or("Type a text.")?;
                let characters = text.chars().count() as u64;
                match format.as_deref() {
                    _ if least.is_some_and(|least| characters < least) => Err("That is too short.".into()),
                    _ if most.is_some_and(|most| characters > most) => Err("That is too long.".into()),
                    Some("email") if !is_address(text) => Err("This is not an e-mail address.".into()),
                    Some("uri") if url::Url::parse(text).is_err() => Err("This is not a URI.".into()),
                    Some("date") if chrono::NaiveDate::parse_from_str(text, "%Y-%m-%d").is_err() => {
                        Err("This is not a date; write it as 2026-07-28.".into())
                    }
                    Some("date-time") if chrono::DateTime::parse_from_rfc3339(text).is_err() => {
                        Err("This is not a time; write it as 2026-07-28T12:00:00Z.".into())
                    }
                    _ => Ok(()),
                }
            }
            Self::Number { least, most, is_whole } => {
                let number = value.as_f64().ok_or("This is not a number.")?;
                if *is_whole && number.fract() != 0.0 {
                    Err("This is not a whole number.".into())
                } else if least.is_some_and(|least| number < least) || most.is_some_and(|most| number > most) {
                    Err("That is out of range.".into())
                } else {
                    Ok(())
                }
            }
            Self::Boolean => value.is_boolean().then_some(()).ok_or_else(|| "Type y or n.".into()),
            Self::One(of) => chosen(of, value).then_some(()).ok_or_else(|| "Type one of the numbers above.".into()),
            Self::Several { of, least, most } => {
                let items = value.as_array().ok_or("Type numbers with commas between.")?;
                let count = items.len() as u64;
                if !items.iter().all(|item| chosen(of, item)) {
                    Err("Type some of the numbers above, with commas between.".into())
                } else if least.is_some_and(|least| count < least) || most.is_some_and(|most| count > most) {
                    Err("Type the requested number of values.".into())
                } else {
                    Ok(())
                }
            }
        }
    }

    /// Converts typed text to a value of this kind, without checking its limits. Text that cannot be converted becomes
    /// `null`.
    fn parsed(&self, typed: &str) -> Value {
        match self {
            Self::Text { .. } => typed.into(),
            Self::Number { is_whole, .. } => match (typed.parse::<i64>(), typed.parse::<f64>()) {
                (Ok(whole), _) => json!(whole),
                // 3.0 is an integer, but servers expect it without a fraction.
                (_, Ok(number)) if *is_whole && number.fract() == 0.0 && number.abs() < 1e15 => json!(number as i64),
                (_, Ok(number)) => json!(number),
                (Err(_), Err(_)) => Value::Null,
            },
            Self::Boolean => match typed.to_ascii_lowercase().as_str() {
                "y" | "yes" | "true" => true.into(),
                "n" | "no" | "false" => false.into(),
                _ => Value::Null,
            },
            Self::One(of) => picked(of, typed).map_or(Value::Null, Value::from),
            Self::Several { of, .. } => {
                let mut all: Vec<Value> = Vec::new();
                for one in typed.split(',').map(str::trim).filter(|one| !one.is_empty() && *one != "-") {
                    let one = picked(of, one).map_or(Value::Null, Value::from);
                    if !all.contains(&one) {
                        all.push(one);
                    }
                }
                all.into()
            }
        }
    }
}

impl FormField {
    /// Returns the typed value. For an empty line, returns the default, or `None` if the field is optional.
    ///
    /// # Errors
    /// A message for the user.
    pub(super) fn value(&self, typed: &str) -> Result<Option<Value>, String> {
        if typed.is_empty() {
            return match (&self.default, self.is_required) {
                (Some(default), _) => Ok(Some(default.clone())),
                (None, false) => Ok(None),
                (None, true) => Err("A value is required.".into()),
            };
        }
        let value = self.kind.parsed(typed);
        self.kind.check(&value)?;
        Ok(Some(value))
    }

    /// Returns the typed values by field name: the choice, or else the other answer.
    ///
    /// # Errors
    /// The errors of [`value`](Self::value).
    pub(super) fn values(&self, typed: &str) -> Result<Vec<(String, Value)>, String> {
        let named = |field: &Self, value: Option<Value>| value.map(|value| (field.name.clone(), value)).into_iter();
        match (self.value(typed), &self.other) {
            (Err(_), Some(other)) => Ok(named(other, other.value(typed)?).collect()),
            (value, _) => Ok(named(self, value?).collect()),
        }
    }

    /// Returns `true` if `other` is the field for an answer that is not among the choices of this field.
    fn takes_other(&self, other: &Self) -> bool {
        let is_named_so = other.name.strip_suffix("_other") == Some(&self.name);
        let is_plain = matches!(other.kind, FieldKind::Text { format: None, .. }) && other.default.is_none();
        let may_be_left_out = !self.is_required && !other.is_required;
        is_named_so && is_plain && may_be_left_out && self.other.is_none() && !self.choices().is_empty()
    }

    /// Describes the expected value in a few words.
    pub(super) fn describe_expected(&self) -> String {
        let range = |least: Option<String>, most: Option<String>, of: &str| match (least, most) {
            (Some(least), Some(most)) => format!(", {least} to {most}{of}"),
            (Some(least), None) => format!(", at least {least}{of}"),
            (None, Some(most)) => format!(", at most {most}{of}"),
            (None, None) => String::new(),
        };
        let text = |count: &Option<u64>| count.map(|count| count.to_string());
        let number = |bound: &Option<f64>| bound.map(|bound| bound.to_string());
        match &self.kind {
            FieldKind::Text { least, most, format } => {
                let format = format.as_deref().filter(|format| ["email", "uri", "date", "date-time"].contains(format));
                format!("{}{}", format.unwrap_or("text"), range(text(least), text(most), " characters"))
            }
            FieldKind::Number { least, most, is_whole } => {
                let kind = if *is_whole { "whole number" } else { "number" };
                format!("{kind}{}", range(number(least), number(most), ""))
            }
            FieldKind::Boolean => "y or n".into(),
            FieldKind::One(_) if self.other.is_some() => "one of these, or your own text".into(),
            FieldKind::One(_) => "one of these".into(),
            FieldKind::Several { least, most, .. } => {
                let other = if self.other.is_some() { ", or your own text" } else { "" };
                format!("some of these, with commas between{}{other}", range(text(least), text(most), ""))
            }
        }
    }

    /// Returns the choices; empty if there are none.
    pub(super) fn choices(&self) -> &[Choice] {
        match &self.kind {
            FieldKind::One(of) | FieldKind::Several { of, .. } => of,
            FieldKind::Text { .. } | FieldKind::Number { .. } | FieldKind::Boolean => &[],
        }
    }

    /// Returns the default in the form in which the user would type it.
    pub(super) fn default_text(&self) -> Option<String> {
        Some(match self.default.as_ref()? {
            Value::String(text) => text.clone(),
            Value::Bool(yes) => (if *yes { "y" } else { "n" }).to_owned(),
            Value::Array(items) => items.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(", "),
            other => other.to_string(),
        })
    }
}

fn chosen(of: &[Choice], value: &Value) -> bool {
    value.as_str().is_some_and(|value| of.iter().any(|choice| choice.value == value))
}

/// Returns the choice with this value, or else with this number.
fn picked<'a>(of: &'a [Choice], typed: &str) -> Option<&'a str> {
    let by_value = of.iter().find(|choice| choice.value == typed);
    let by_number = || of.get(typed.parse::<usize>().ok()?.checked_sub(1)?);
    by_value.or_else(by_number).map(|choice| choice.value.as_str())
}

/// Returns the choices of a field: `Some(None)` if it has none, `None` if they are invalid. `titled` is the name of the
/// member for choices with titles.
fn choices(field: &Value, titled: &str) -> Option<Option<Vec<Choice>>> {
    let choices: Option<Vec<Choice>> = if let Some(values) = field.get("enum") {
        let names = field.get("enumNames").and_then(Value::as_array);
        let values = values.as_array()?.iter().enumerate();
        let choice = |(index, value): (usize, &Value)| {
            let value = value.as_str()?.to_owned();
            let title = names.and_then(|names| names.get(index)?.as_str());
            Some(Choice { title: title.unwrap_or(&value).to_owned(), value })
        };
        Some(values.map(choice).collect::<Option<_>>()?)
    } else if let Some(options) = field.get(titled) {
        let choice = |option: &Value| {
            let value = option["const"].as_str()?.to_owned();
            Some(Choice { title: option["title"].as_str().unwrap_or(&value).to_owned(), value })
        };
        Some(options.as_array()?.iter().map(choice).collect::<Option<_>>()?)
    } else {
        None
    };
    let is_readable = choices.as_ref().is_none_or(|choices| (1..=MAX_CHOICES).contains(&choices.len()));
    is_readable.then_some(choices)
}

fn is_address(text: &str) -> bool {
    let parts = text.rsplit_once('@');
    parts.is_some_and(|(name, host)| !name.is_empty() && !host.is_empty() && !text.contains(char::is_whitespace))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn field(schema: Value) -> FormField {
        let mut form = QuestionForm::read(&json!({"properties": {"f": schema}, "required": ["f"]})).unwrap();
        form.fields.remove(0)
    }

    #[track_caller]
    fn check(schema: Value, typed: &str, expected: Option<Value>) {
        assert_eq!(field(schema.clone()).value(typed).ok().flatten(), expected, "{schema} {typed:?}");
    }

    #[test]
    fn typed_text_is_converted_to_a_value_that_fits_the_schema_or_rejected() {
        let text = json!({"type": "string", "minLength": 2, "maxLength": 3});
        check(text.clone(), "ab", Some("ab".into()));
        check(text.clone(), "äöü", Some("äöü".into()));
        check(text.clone(), "a", None);
        check(text.clone(), "abcd", None);
        check(text, "", None);
        for (format, good, bad) in [
            ("email", "a@b.org", "a@ b"),
            ("uri", "https://a.org/x", "no uri"),
            ("date", "2026-07-28", "28.7.2026"),
            ("date-time", "2026-07-28T12:00:00Z", "2026-07-28"),
        ] {
            check(json!({"type": "string", "format": format}), good, Some(good.into()));
            check(json!({"type": "string", "format": format}), bad, None);
        }
        let number = |kind: &str| json!({"type": kind, "minimum": 0, "maximum": 10});
        check(number("integer"), "3", Some(json!(3)));
        check(number("integer"), "3.0", Some(json!(3)));
        check(number("integer"), "3.5", None);
        check(number("number"), "3.5", Some(json!(3.5)));
        check(number("number"), "11", None);
        check(number("number"), "x", None);
        check(json!({"type": "boolean"}), "Yes", Some(true.into()));
        check(json!({"type": "boolean"}), "maybe", None);
    }

    #[test]
    fn choices_are_taken_by_number_or_value() {
        let one = json!({"type": "string", "enum": ["red", "blue"], "enumNames": ["Red", "Blue"]});
        check(one.clone(), "2", Some("blue".into()));
        check(one.clone(), "red", Some("red".into()));
        check(one.clone(), "3", None);
        check(one, "Red", None);
        let titled = json!({"type": "string", "oneOf": [{"const": "#f00", "title": "Red"}]});
        assert_eq!(field(titled.clone()).choices(), [Choice { value: "#f00".into(), title: "Red".into() }]);
        check(titled, "1", Some("#f00".into()));
        let several = json!({"type": "array", "items": {"enum": ["a", "b", "c"]}, "minItems": 1, "maxItems": 2});
        check(several.clone(), "1, c,1", Some(json!(["a", "c"])));
        check(several.clone(), "1,2,3", None);
        check(several.clone(), "-", None);
        check(several, "1,9", None);
        check(json!({"type": "array", "items": {"anyOf": [{"const": "x", "title": "X"}]}}), "1", Some(json!(["x"])));
    }

    #[track_caller]
    fn check_other(choice: Value, typed: &str, expected: Value) {
        let own = json!({"type": "string", "maxLength": 5});
        let form = QuestionForm::read(&json!({"properties": {"c": choice, "c_other": own}})).unwrap();
        assert_eq!(form.fields.len(), 1);
        let values = form.fields[0].values(typed).map(|values| Value::Object(values.into_iter().collect()));
        assert_eq!(values.unwrap_or(Value::Null), expected, "{typed:?}");
    }

    #[test]
    fn a_line_that_matches_no_choice_becomes_a_free_text_answer() {
        let one = || json!({"type": "string", "enum": ["red", "blue"]});
        check_other(one(), "2", json!({"c": "blue"}));
        check_other(one(), "red", json!({"c": "red"}));
        check_other(one(), "pink", json!({"c_other": "pink"}));
        check_other(one(), "3", json!({"c_other": "3"}));
        check_other(one(), "", json!({}));
        check_other(one(), "too long", Value::Null);
        let several = || json!({"type": "array", "items": {"enum": ["a", "b"]}});
        check_other(several(), "1,2", json!({"c": ["a", "b"]}));
        check_other(several(), "1,x", json!({"c_other": "1,x"}));
        // A required field and one with a different name are separate fields.
        for (properties, required) in [
            (json!({"c": one(), "c_other": {"type": "string"}}), json!(["c"])),
            (json!({"c": one(), "d_other": {"type": "string"}}), json!([])),
            (json!({"c": {"type": "string"}, "c_other": {"type": "string"}}), json!([])),
        ] {
            let form = QuestionForm::read(&json!({"properties": properties, "required": required})).unwrap();
            assert_eq!(form.fields.len(), 2, "{properties}");
        }
    }

    #[test]
    fn an_empty_line_takes_the_default_or_leaves_the_field_out() {
        for (schema, default, shown) in [
            (json!({"type": "string", "default": "Ada"}), json!("Ada"), "Ada"),
            (json!({"type": "integer", "default": 3}), json!(3), "3"),
            (json!({"type": "number", "default": 95.5}), json!(95.5), "95.5"),
            (json!({"type": "boolean", "default": true}), json!(true), "y"),
            (json!({"type": "string", "enum": ["a", "b"], "default": "b"}), json!("b"), "b"),
            (json!({"type": "array", "items": {"enum": ["a", "b"]}, "default": ["a", "b"]}), json!(["a", "b"]), "a, b"),
        ] {
            assert_eq!(field(schema.clone()).default_text().as_deref(), Some(shown));
            check(schema, "", Some(default));
        }
        check(json!({"type": "string", "enum": ["a"], "default": "z"}), "", None);
        let form = QuestionForm::read(&json!({"properties": {"f": {"type": "boolean"}}})).unwrap();
        assert_eq!(form.fields[0].value(""), Ok(None));
    }

    #[test]
    fn rejects_a_form_schema_that_cannot_be_filled_in_at_a_terminal() {
        for schema in [
            json!({"properties": {"f": {"type": "object"}}}),
            json!({"properties": {"f": {"type": "array", "items": {"type": "string"}}}}),
            json!({"properties": {"f": {"type": "string", "enum": []}}}),
            json!({"properties": {"f": {"type": "string", "enum": [1]}}}),
            json!({"properties": {"f": {}}}),
            json!({"properties": []}),
        ] {
            assert!(QuestionForm::read(&schema).is_err(), "{schema}");
        }
        let many: Map<String, Value> = (0..65).map(|n| (n.to_string(), json!({"type": "boolean"}))).collect();
        assert!(QuestionForm::read(&json!({"properties": many})).is_err());
        assert_eq!(QuestionForm::read(&json!({"type": "object"})), Ok(QuestionForm { fields: Vec::new() }));
    }
}

//! Definitions of tools as they are sent to model providers.

use crate::binaries::{Home, stderr, stdout};
use serde_json::{Map, Value};
use std::sync::Arc;
use toolstead_domain::OfferedTool;
use toolstead_infrastructure::models::{ProviderKind, definitions, schema_copy};

/// The keywords that Gemini takes in a schema; it refuses a request with any other.
const GEMINI: &[&str] = &[
    "type",
    "format",
    "title",
    "description",
    "nullable",
    "enum",
    "items",
    "minItems",
    "maxItems",
    "properties",
    "required",
    "minProperties",
    "maxProperties",
    "minimum",
    "maximum",
    "minLength",
    "maxLength",
    "pattern",
    "anyOf",
];
/// Keywords that draft 2020-12 has beside them, as far as a built-in tool may need it.
const DRAFT: &[&str] = &[
    "const",
    "prefixItems",
    "uniqueItems",
    "additionalProperties",
    "patternProperties",
    "propertyNames",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
    "oneOf",
    "allOf",
    "not",
    "default",
    "examples",
];

fn tools(home: &Home, arguments: &[&str]) -> Value {
    let output = home.run(&[&["tools"], arguments].concat());
    serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}{}", stdout(&output), stderr(&output)))
}

fn is_taken(kind: ProviderKind, keyword: &str) -> bool {
    match kind {
        ProviderKind::Gemini => GEMINI.contains(&keyword),
        _ => keyword != "nullable" && (GEMINI.contains(&keyword) || DRAFT.contains(&keyword)),
    }
}

/// Keywords in a schema that the provider does not take, each with its place.
fn refused(kind: ProviderKind, schema: &Value, place: &str, found: &mut Vec<String>) {
    for (keyword, value) in schema.as_object().into_iter().flatten() {
        if !is_taken(kind, keyword) {
            found.push(format!("{place}/{keyword}"));
        }
        let place = format!("{place}/{keyword}");
        match (keyword.as_str(), value) {
            ("properties" | "patternProperties", Value::Object(all)) => {
                all.iter().for_each(|(name, one)| refused(kind, one, &format!("{place}/{name}"), found));
            }
            ("anyOf" | "oneOf" | "allOf" | "prefixItems", Value::Array(all)) => {
                all.iter().for_each(|one| refused(kind, one, &place, found));
            }
            ("items" | "additionalProperties" | "propertyNames" | "not", one) => refused(kind, one, &place, found),
            _ => {}
        }
    }
}

/// Properties that are required, each with its place.
fn required(schema: &Value, place: &str, found: &mut Vec<String>) {
    let names = schema.get("required").and_then(Value::as_array);
    found.extend(names.into_iter().flatten().filter_map(Value::as_str).map(|name| format!("{place}/{name}")));
    for (name, one) in schema.get("properties").and_then(Value::as_object).into_iter().flatten() {
        required(one, &format!("{place}/{name}"), found);
    }
    if let Some(items) = schema.get("items") {
        required(items, &format!("{place}[]"), found);
    }
}

#[test]
fn schemas_of_built_in_tools_use_only_keywords_that_each_model_provider_accepts() {
    let home = Home::new();
    let all = tools(&home, &["--all", "--json"]);
    let all = all["tools"].as_array().unwrap();
    assert!(all.len() > 20, "{}", all.len());
    for tool in all {
        for kind in ProviderKind::ALL {
            let (name, schema) = (&tool["name"], &tool["inputSchema"]);
            let copy = schema_copy(kind, schema);
            let mut found = Vec::new();
            refused(kind, &copy, "", &mut found);
            assert!(found.is_empty(), "{name} for {kind:?}: {found:?}");
            assert_eq!(copy["type"], "object", "{name} for {kind:?}");
            let (mut before, mut after) = (Vec::new(), Vec::new());
            required(schema, "", &mut before);
            required(&copy, "", &mut after);
            assert!(before.iter().all(|one| after.contains(one)), "{name} for {kind:?}: {before:?} {after:?}");
        }
    }
}

#[test]
fn the_tools_command_prints_definitions_as_sent_to_a_model_provider() {
    let home = Home::new();
    for kind in ProviderKind::ALL {
        let provider = ["--provider", kind.as_str()];
        let printed = tools(&home, &provider);
        let printed = printed.as_array().unwrap();
        let definition = |tool: &str| {
            let named = |one: &&Value| one["name"] == tool || one["function"]["name"] == tool;
            printed.iter().find(named).unwrap_or_else(|| panic!("{kind:?}: no {tool}")).clone()
        };
        // One tool alone, and as a dialect knows it.
        let one = |name: &'static str, dialect: &'static str| {
            tools(&home, &[&[name, "--dialect", dialect][..], &provider].concat())
        };
        assert_eq!(one("read_file", "native"), definition("read_file"), "{kind:?}");
        let dialect = tools(&home, &[&["--dialect", "claude_code"][..], &provider].concat());
        assert!(dialect.as_array().unwrap().contains(&one("Read", "claude_code")), "{kind:?}: {dialect}");
        assert_eq!(tools(&home, &[&["--tools", ""][..], &provider].concat()), Value::Array(Vec::new()));
        // The same function makes it that makes requests.
        let message = definition("grep");
        let members = message.get("function").unwrap_or(&message);
        let schema = ["input_schema", "parameters"].into_iter().find_map(|name| members.get(name)).unwrap();
        let offered = OfferedTool {
            name: "grep".into(),
            description: members["description"].as_str().unwrap().to_owned(),
            input_schema: Arc::new(schema.clone()),
        };
        assert_eq!(definitions(kind, &[offered]), [message], "{kind:?}: a copy of a copy is the same");
    }
    let output = home.run(&["tools", "--provider", "nobody"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("anthropic, openai, openai_responses, gemini"), "{}", stderr(&output));
    let _: Map<String, Value> = serde_json::from_value(tools(&home, &["echo", "--provider", "gemini"])).unwrap();
}

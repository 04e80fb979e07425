use super::*;
use proptest::prelude::*;
use serde_json::json;
use std::collections::BTreeSet;

#[track_caller]
fn check(kind: ProviderKind, schema: &Value, expected: &Value) {
    let copy = schema_copy(kind, schema);
    assert_eq!(copy, *expected, "\n{copy:#}\n{expected:#}");
}

/// Checks the copy of a schema with one property.
#[track_caller]
fn check_property(kind: ProviderKind, property: Value, expected: Value) {
    let whole = |property: Value| json!({"type": "object", "properties": {"p": property}, "required": ["p"]});
    check(kind, &whole(property), &whole(expected));
}

#[test]
fn anthropic_receives_whole_schemas_but_no_alternatives_at_the_root() {
    let whole = json!({
        "type": "object",
        "properties": {
            "p": {"$ref": "#/$defs/P"},
            "many": {"type": "array", "prefixItems": [{"const": 1}], "items": false, "uniqueItems": true},
            "either": {"oneOf": [{"type": "string", "format": "uri"}, {"type": ["integer", "null"], "exclusiveMinimum": 0}]},
        },
        "patternProperties": {"^x-": {"type": "string"}},
        "required": ["p"],
        "dependentRequired": {"many": ["either"]},
        "if": {"required": ["many"]},
        "then": {"minProperties": 2},
        "additionalProperties": false,
        "$defs": {"P": {"type": "object", "properties": {"again": {"$ref": "#/$defs/P"}}}},
    });
    check(ProviderKind::Anthropic, &whole, &whole);
    check(
        ProviderKind::Anthropic,
        &json!({
            "type": "object",
            "description": "Finds",
            "properties": {"query": {"type": "string"}},
            "oneOf": [{"required": ["query"]}, {"required": ["id"], "properties": {"id": {"type": "integer"}}}],
        }),
        &json!({
            "type": "object",
            "description": "Finds. Fits exactly one of: {\"required\":[\"query\"]}; \
                {\"required\":[\"id\"],\"properties\":{\"id\":{\"type\":\"integer\"}}}.",
            "properties": {"query": {"type": "string"}, "id": {"type": "integer"}},
        }),
    );
}

#[test]
fn references_and_combinations_at_the_root_are_merged_into_one_object() {
    for kind in ProviderKind::ALL {
        let schema = json!({
            "$ref": "#/$defs/Args",
            "allOf": [{"required": ["b"]}, {"properties": {"b": {"type": "integer"}}}],
            "anyOf": [{"required": ["c", "d"]}, {"required": ["d"]}],
            "$defs": {"Args": {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}},
        });
        let copy = schema_copy(kind, &schema);
        assert_eq!(copy["type"], "object", "{copy:#}");
        assert_eq!(copy["required"], json!(["a", "b", "d"]), "{copy:#}");
        assert_eq!(copy["properties"]["a"], json!({"type": "string"}), "{copy:#}");
        assert_eq!(copy["properties"]["b"], json!({"type": "integer"}), "{copy:#}");
        assert!(copy["description"].as_str().unwrap().contains("at least one of"), "{copy:#}");
    }
}

#[test]
fn keywords_of_earlier_drafts_are_converted_to_the_current_draft() {
    let kind = ProviderKind::Anthropic;
    let list = json!({"type": "array", "items": [{"type": "string"}], "additionalItems": {"type": "integer"}});
    let expected = json!({"type": "array", "prefixItems": [{"type": "string"}], "items": {"type": "integer"}});
    check_property(kind, list, expected);
    check_property(
        kind,
        json!({"type": "number", "minimum": 1, "exclusiveMinimum": true}),
        json!({"type": "number", "minimum": 1, "exclusiveMinimum": 1}),
    );
    check_property(
        kind,
        json!({"type": "text", "description": "A name", "required": true}),
        json!({"description": "A name. `type`: \"text\". `required`: true."}),
    );
    check_property(
        kind,
        json!({"$ref": "https://example.org/schema.json"}),
        json!({"description": "As https://example.org/schema.json says."}),
    );
}

#[test]
fn openai_schemas_always_contain_properties_and_items_and_keep_null() {
    check(
        ProviderKind::OpenAi,
        &json!({"type": "object", "not": {"required": ["x"]}, "properties": {
            "free": {"type": "object"},
            "list": {"type": "array"},
            "maybe": {"type": ["string", "null"], "enum": ["a", null]},
            "any": true,
        }}),
        &json!({
            "type": "object",
            "properties": {
                "free": {"type": "object", "properties": {}},
                "list": {"type": "array", "items": {}},
                "maybe": {"type": ["string", "null"], "enum": ["a", null]},
                "any": {},
            },
            "description": "Does not fit {\"required\":[\"x\"]}.",
        }),
    );
}

#[test]
fn gemini_schemas_explain_unsupported_keywords_in_the_description() {
    let check = |property: Value, expected: Value| check_property(ProviderKind::Gemini, property, expected);
    check(json!({"type": ["string", "null"]}), json!({"type": "string", "nullable": true}));
    check(json!({"const": "a"}), json!({"enum": ["a"], "type": "string"}));
    check(json!({"type": "integer", "enum": [1, 2]}), json!({"type": "integer", "description": "One of [1,2]."}));
    check(
        json!({"type": "string", "enum": ["", "a"], "description": "Sort"}),
        json!({"type": "string", "description": "Sort. One of [\"\",\"a\"]."}),
    );
    check(
        json!({"type": "integer", "exclusiveMinimum": 0, "maximum": 9, "multipleOf": 3, "format": "int64"}),
        json!({"type": "integer", "maximum": 9, "format": "int64", "description": "Greater than 0. A multiple of 3."}),
    );
    check(json!({"type": "string", "format": "uri"}), json!({"type": "string", "description": "Format: uri."}));
    check(json!({"type": "string", "format": "date-time"}), json!({"type": "string", "format": "date-time"}));
    check(
        json!({"type": "object", "properties": {"a": {"type": "string"}}, "additionalProperties": false}),
        json!({"type": "object", "properties": {"a": {"type": "string"}}, "description": "No other members."}),
    );
    check(
        json!({"type": "object", "additionalProperties": {"type": "integer"}, "propertyNames": {"pattern": "^a"}}),
        json!({"type": "object", "description":
            "Other members fit {\"type\":\"integer\"}. Names of members fit {\"pattern\":\"^a\"}."}),
    );
    check(
        json!({"type": "array", "items": {"type": "string"}, "uniqueItems": true, "default": ["a"]}),
        json!({"type": "array", "items": {"type": "string"}, "description":
            "No two items are equal. Default: [\"a\"]."}),
    );
    check(
        json!({"anyOf": [{"type": "string"}, {"type": "integer"}, {"type": "null"}], "description": "Id"}),
        json!({"anyOf": [
            {"type": "string", "description": "Id", "nullable": true}, {"type": "integer", "nullable": true},
        ]}),
    );
    check(
        json!({"type": ["string", "array"], "items": {"type": "string"}, "minLength": 1}),
        json!({"anyOf": [{"type": "string", "minLength": 1}, {"type": "array", "items": {"type": "string"}}]}),
    );
    check(
        json!({"oneOf": [{"const": "a", "description": "First"}, {"const": "b"}]}),
        json!({"description": "[\"a\"]: First", "type": "string", "enum": ["a", "b"]}),
    );
    check(
        json!({"type": "object", "required": ["x"]}),
        json!({"type": "object", "required": ["x"], "properties": {"x": {"anyOf": open_api_copier::any_value()}}}),
    );
    check(json!({}), json!({"anyOf": open_api_copier::any_value()}));
    check(json!({"type": "array"}), json!({"type": "array", "items": {"anyOf": open_api_copier::any_value()}}));
}

#[test]
fn gemini_schemas_expand_each_reference_once() {
    let schema = json!({
        "type": "object",
        "properties": {"tree": {"$ref": "#/$defs/Tree", "description": "Where"}},
        "required": ["tree"],
        "$defs": {"Tree": {
            "type": "object",
            "properties": {"name": {"type": "string"}, "children": {"type": "array", "items": {"$ref": "#/$defs/Tree"}}},
            "required": ["name"],
        }},
    });
    let expected = json!({
        "type": "object",
        "properties": {"tree": {
            "description": "Where",
            "type": "object",
            "properties": {
                "name": {"type": "string"},
                "children": {"type": "array", "items": {
                    "description": "Recursive: like the enclosing `Tree`.", "type": "object",
                }},
            },
            "required": ["name"],
        }},
        "required": ["tree"],
    });
    check(ProviderKind::Gemini, &schema, &expected);
}

#[test]
fn property_names_that_a_provider_rejects_are_replaced_and_restored() {
    let schema = Arc::new(json!({
        "type": "object",
        "properties": {
            "-A": {"type": "integer"},
            "_A": {"type": "integer"},
            "$filter": {"$ref": "#/$defs/F"},
            "list": {"type": "array", "items": {"anyOf": [{"$ref": "#/$defs/F"}]}},
        },
        "required": ["-A", "$filter"],
        "$defs": {"F": {"type": "object", "properties": {"$eq": {"type": "string"}}, "required": ["$eq"]}},
    }));
    let copy = schema_copy(ProviderKind::Gemini, &schema);
    assert_eq!(copy["required"], json!(["_A_2", "_filter"]));
    assert_eq!(copy["properties"]["_filter"]["required"], json!(["_eq"]));
    assert_eq!(copy["properties"]["_A_2"]["description"], "Stands for \"-A\".");
    let copy = schema_copy(ProviderKind::Anthropic, &schema);
    assert_eq!(copy["required"], json!(["-A", "_filter"]));
    assert_eq!(copy["$defs"]["F"]["required"], json!(["_eq"]));
    assert!(ArgumentNameMapping::of(ProviderKind::OpenAi, &schema).is_none());
    let names = ArgumentNameMapping::of(ProviderKind::Gemini, &schema).unwrap();
    let Value::Object(arguments) =
        json!({"-A": 1, "_A": 2, "$filter": {"$eq": "x", "$other": 1}, "list": [{"$eq": "y"}]})
    else {
        panic!()
    };
    let outcome = names.to_provider(&arguments);
    let expected = json!({"_A_2": 1, "_A": 2, "_filter": {"_eq": "x", "$other": 1}, "list": [{"_eq": "y"}]});
    assert_eq!(Value::from(outcome.clone()), expected);
    assert_eq!(names.to_tool(&outcome), arguments);
}

#[test]
fn exponentially_nested_references_do_not_inflate_the_schema_copy() {
    let mut defs = Map::new();
    for level in 0..40 {
        let next = json!({"$ref": format!("#/$defs/L{}", level + 1)});
        let properties: Map<String, Value> = (0..10).map(|name| (format!("p{name}"), next.clone())).collect();
        let text = "x".repeat(1_000);
        let schema = json!({"type": "object", "description": text, "properties": properties, "allOf": [next, next]});
        defs.insert(format!("L{level}"), schema);
    }
    defs.insert("L40".into(), json!({"enum": vec!["y".repeat(10_000); 100]}));
    let schema = json!({"type": "object", "$ref": "#/$defs/L0", "$defs": defs});
    for kind in ProviderKind::ALL {
        let size = schema_copy(kind, &schema).to_string().len();
        assert!(size < 4 << 20, "{kind:?}: {size}");
    }
    // References that form an endless loop.
    let schema = json!({"$ref": "#/$defs/A", "$defs": {"A": {"$ref": "#/$defs/B"}, "B": {"$ref": "#/$defs/A"}}});
    for kind in ProviderKind::ALL {
        assert_eq!(schema_copy(kind, &schema)["type"], "object");
    }
}

/// Returns arbitrary JSON with many keywords as members, and many references, types and names as strings.
fn hostile() -> impl Strategy<Value = Value> {
    let words = prop::sample::select(vec![
        "string",
        "object",
        "array",
        "null",
        "integer",
        "a",
        "-b",
        "",
        "#",
        "#/$defs/A",
        "#/properties/a",
        "date-time",
        "é",
    ]);
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        any::<f64>().prop_map(|number| json!(number)),
        words.prop_map(Value::from),
    ];
    let keys = prop::sample::select(vec![
        "type",
        "properties",
        "required",
        "items",
        "anyOf",
        "oneOf",
        "allOf",
        "$ref",
        "$defs",
        "enum",
        "const",
        "not",
        "if",
        "then",
        "additionalProperties",
        "patternProperties",
        "prefixItems",
        "format",
        "minLength",
        "minimum",
        "exclusiveMinimum",
        "description",
        "nullable",
        "default",
        "dependentRequired",
        "a",
        "-b",
        "A",
        "é",
    ]);
    leaf.prop_recursive(5, 64, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::vec((keys.clone(), inner), 0..6).prop_map(|members| {
                members.into_iter().map(|(name, value)| (name.to_owned(), value)).collect::<Map<_, _>>().into()
            }),
        ]
    })
}

/// Collects the keywords and forms of a schema that Gemini does not accept.
fn faults_for_gemini(schema: &Value, faults: &mut Vec<String>) {
    let Value::Object(members) = schema else { return faults.push(format!("no object: {schema}")) };
    for (keyword, value) in members {
        if !open_api_copier::KEYWORDS.contains(&keyword.as_str()) {
            faults.push(format!("the keyword {keyword}"));
        }
        match (keyword.as_str(), value) {
            ("properties", Value::Object(all)) => all.values().for_each(|one| faults_for_gemini(one, faults)),
            ("items", item) => faults_for_gemini(item, faults),
            ("anyOf", Value::Array(all)) if members.len() == 1 => {
                all.iter().for_each(|one| faults_for_gemini(one, faults));
            }
            ("enum", Value::Array(all)) if members.get("type") == Some(&json!("string")) => {
                let is_fit = |one: &Value| one.as_str().is_some_and(|text| !text.is_empty());
                if !all.iter().all(is_fit) {
                    faults.push(format!("{schema}"));
                }
            }
            ("properties" | "anyOf" | "enum", _) => faults.push(format!("{schema}")),
            ("type", Value::String(_)) => {}
            ("type", other) => faults.push(format!("the type {other}")),
            ("required", Value::Array(names)) => {
                let properties = members.get("properties");
                let is_known =
                    |name: &Value| properties.is_some_and(|all| all.get(name.as_str().unwrap_or("")).is_some());
                if !names.iter().all(is_known) {
                    faults.push(format!("required {value} of {schema}"));
                }
            }
            _ => {}
        }
    }
    if !members.contains_key("type") && !members.contains_key("anyOf") {
        faults.push(format!("no type: {schema}"));
    }
    if members.get("type") == Some(&json!("array")) && !members.contains_key("items") {
        faults.push(format!("no items: {schema}"));
    }
}

fn required(schema: &Value) -> BTreeSet<&str> {
    schema.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect()
}

proptest! {
    #[test]
    fn every_schema_copy_is_an_object_that_keeps_its_required_properties(schema in hostile()) {
        for kind in ProviderKind::ALL {
            let copy = schema_copy(kind, &schema);
            prop_assert_eq!(&copy["type"], "object");
            prop_assert!(copy["properties"].is_object());
            prop_assert!(["allOf", "anyOf", "oneOf", "$ref"].iter().all(|name| copy.get(name).is_none()), "{copy:#}");
            let is_list_of_names = schema["required"].as_array().is_some_and(|all| all.iter().all(Value::is_string));
            if is_list_of_names && kind == ProviderKind::OpenAi {
                prop_assert!(required(&copy).is_superset(&required(&schema)), "{schema:#}\n{copy:#}");
            }
            if is_list_of_names {
                prop_assert!(required(&copy).len() >= required(&schema).len(), "{schema:#}\n{copy:#}");
            }
            if kind == ProviderKind::Gemini {
                let mut faults = Vec::new();
                faults_for_gemini(&copy, &mut faults);
                prop_assert!(faults.is_empty(), "{faults:#?}\n{schema:#}\n{copy:#}");
            }
        }
    }

    #[test]
    fn renamed_argument_members_are_restored_exactly(schema in hostile(), arguments in hostile()) {
        let Value::Object(arguments) = arguments else { return Ok(()) };
        let schema = Arc::new(schema);
        for kind in ProviderKind::ALL {
            if let Some(names) = ArgumentNameMapping::of(kind, &schema) {
                prop_assert_eq!(names.to_tool(&names.to_provider(&arguments)), arguments.clone());
            }
        }
    }
}

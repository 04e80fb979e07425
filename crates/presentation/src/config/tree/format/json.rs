//! JSON, with comments and trailing commas.

use crate::config::tree::{
    node::{LineIndex, MAX_DEPTH, Member, Node, NodeContent},
    problem::Problem,
};
use jsonc_parser::{
    CollectOptions, ParseOptions,
    ast::{ObjectPropName, Value},
    common::Ranged,
    parse_to_ast,
};
use std::{path::Path, sync::Arc};

/// Parses JSON. An empty file is an empty table.
pub(super) fn read(text: &str, file: &Arc<Path>) -> Result<Node, Problem> {
    let lines = LineIndex::of(text, file);
    let options = ParseOptions {
        allow_comments: true,
        allow_trailing_commas: true,
        allow_loose_object_property_names: false,
        allow_missing_commas: false,
        allow_single_quoted_strings: false,
        allow_hexadecimal_numbers: false,
        allow_unary_plus_numbers: false,
        allow_bare_decimal_point_numbers: false,
        allow_non_finite_numbers: false,
        allow_extended_string_escapes: false,
    };
    let parsed = parse_to_ast(text, &CollectOptions::default(), &options).map_err(|error| {
        Problem::new(lines.origin(error.range().start), format!("not valid JSON: {}", error.kind()))
    })?;
    match parsed.value {
        Some(value) => node(&value, &lines, MAX_DEPTH),
        None => Ok(Node { content: NodeContent::Table(Vec::new()), origin: lines.origin(0) }),
    }
}

fn node(value: &Value<'_>, lines: &LineIndex, depth: usize) -> Result<Node, Problem> {
    let origin = lines.origin(value.range().start);
    let Some(deeper) = depth.checked_sub(1) else {
        return Err(Problem::new(origin, format!("nested deeper than {MAX_DEPTH} levels")));
    };
    let content = match value {
        Value::BooleanLit(one) => NodeContent::Boolean(one.value),
        Value::StringLit(one) => NodeContent::Text(one.value.clone().into_owned()),
        Value::NumberLit(one) => match one.value.parse() {
            Ok(number) => NodeContent::Integer(number),
            Err(_) => NodeContent::Fraction(one.value.parse().unwrap_or(f64::NAN)),
        },
        Value::NullKeyword(_) => NodeContent::Other("nothing"),
        Value::Array(items) => {
            NodeContent::List(items.elements.iter().map(|item| node(item, lines, deeper)).collect::<Result<_, _>>()?)
        }
        Value::Object(object) => {
            let members = object.properties.iter().map(|property| {
                let name = match &property.name {
                    ObjectPropName::String(text) => text.value.clone().into_owned(),
                    ObjectPropName::Word(word) => word.value.to_owned(),
                };
                let origin = lines.origin(property.range.start);
                Ok(Member { name, origin, node: node(&property.value, lines, deeper)? })
            });
            NodeContent::Table(members.collect::<Result<_, Problem>>()?)
        }
    };
    Ok(Node { content, origin })
}

//! TOML.

use crate::config::tree::{
    node::{LineIndex, Member, Node, NodeContent},
    origin::Origin,
    problem::Problem,
};
use std::{ops::Range, path::Path, sync::Arc};
use toml_edit::{Document, Item, Key, TableLike, Value};

/// Parses TOML. The parser limits the depth.
pub(super) fn read(text: &str, file: &Arc<Path>) -> Result<Node, Problem> {
    let lines = LineIndex::of(text, file);
    let document = Document::parse(text).map_err(|error| {
        let at = error.span().map_or(0, |span| span.start);
        Problem::new(lines.origin(at), format!("not valid TOML: {}", error.message().trim()))
    })?;
    let root = lines.origin(0);
    Ok(Node { content: table(document.as_table(), &lines, &root), origin: root })
}

fn table(table: &dyn TableLike, lines: &LineIndex, parent: &Origin) -> NodeContent {
    let names: Vec<&str> = table.iter().map(|(name, _)| name).collect();
    let members = names.into_iter().filter_map(|name| {
        let (key, item) = table.get_key_value(name)?;
        let origin = place(key.span().or_else(|| item.span()), lines, parent);
        Some(Member { name: Key::get(key).to_owned(), node: node(item, lines, &origin), origin })
    });
    NodeContent::Table(members.collect())
}

fn node(item: &Item, lines: &LineIndex, parent: &Origin) -> Node {
    let origin = place(item.span(), lines, parent);
    let content = match item {
        Item::None => NodeContent::Other("nothing"),
        Item::Value(one) => return value(one, lines, parent),
        Item::Table(one) => table(one, lines, &origin),
        Item::ArrayOfTables(tables) => NodeContent::List(
            tables
                .iter()
                .map(|one| {
                    let origin = place(one.span(), lines, &origin);
                    Node { content: table(one, lines, &origin), origin }
                })
                .collect(),
        ),
    };
    Node { content, origin }
}

fn value(value: &Value, lines: &LineIndex, parent: &Origin) -> Node {
    let origin = place(value.span(), lines, parent);
    let content = match value {
        Value::Boolean(one) => NodeContent::Boolean(*one.value()),
        Value::Integer(one) => NodeContent::Integer(*one.value()),
        Value::String(one) => NodeContent::Text(one.value().clone()),
        Value::Float(one) => NodeContent::Fraction(*one.value()),
        Value::Datetime(_) => NodeContent::Other("a date"),
        Value::Array(items) => NodeContent::List(items.iter().map(|item| self::value(item, lines, &origin)).collect()),
        Value::InlineTable(one) => table(one, lines, &origin),
    };
    Node { content, origin }
}

fn place(span: Option<Range<usize>>, lines: &LineIndex, parent: &Origin) -> Origin {
    span.map_or_else(|| parent.clone(), |span| lines.origin(span.start))
}

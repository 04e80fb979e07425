//! YAML: the core schema, without anchors, tags and multiple documents.

use crate::config::tree::{
    node::{MAX_DEPTH, Member, Node, NodeContent},
    origin::Origin,
    problem::Problem,
};
use std::{path::Path, str::Chars, sync::Arc};
use yaml_rust2::{
    parser::{Event, Parser},
    scanner::{Marker, TScalarStyle},
};

/// Parses YAML. An empty file is an empty table.
pub(super) fn read(text: &str, file: &Arc<Path>) -> Result<Node, Problem> {
    let mut reader = YamlReader { parser: Parser::new_from_str(text), file };
    loop {
        match reader.next()? {
            (Event::StreamEnd, place) => {
                return Ok(Node { content: NodeContent::Table(Vec::new()), origin: reader.origin(place) });
            }
            (Event::DocumentStart, _) => break,
            _ => {}
        }
    }
    let (event, place) = reader.next()?;
    let mut root = reader.node(event, place, MAX_DEPTH)?;
    if root.content == NodeContent::Other("nothing") {
        root.content = NodeContent::Table(Vec::new());
    }
    loop {
        match reader.next()? {
            (Event::StreamEnd, _) => return Ok(root),
            (Event::DocumentStart, place) => {
                return Err(Problem::new(reader.origin(place), "the file must hold one document"));
            }
            _ => {}
        }
    }
}

struct YamlReader<'a> {
    parser: Parser<Chars<'a>>,
    file: &'a Arc<Path>,
}

impl YamlReader<'_> {
    fn next(&mut self) -> Result<(Event, Marker), Problem> {
        self.parser
            .next_token()
            .map_err(|error| Problem::new(self.origin(*error.marker()), format!("not valid YAML: {}", error.info())))
    }

    fn origin(&self, place: Marker) -> Origin {
        Origin::File(self.file.clone(), place.line())
    }

    fn node(&mut self, event: Event, place: Marker, depth: usize) -> Result<Node, Problem> {
        let origin = self.origin(place);
        let wrong = |message: &str| Err(Problem::new(origin.clone(), message));
        let Some(deeper) = depth.checked_sub(1) else {
            return wrong(&format!("nested deeper than {MAX_DEPTH} levels"));
        };
        let content = match event {
            Event::Scalar(_, _, _, Some(_)) | Event::SequenceStart(_, Some(_)) | Event::MappingStart(_, Some(_)) => {
                return wrong("tags are not supported");
            }
            Event::Alias(_) => return wrong("anchors and aliases are not supported"),
            Event::Scalar(text, TScalarStyle::Plain, ..) => plain(text),
            Event::Scalar(text, ..) => NodeContent::Text(text),
            Event::SequenceStart(..) => {
                let mut items = Vec::new();
                loop {
                    match self.next()? {
                        (Event::SequenceEnd, _) => break NodeContent::List(items),
                        (event, place) => items.push(self.node(event, place, deeper)?),
                    }
                }
            }
            Event::MappingStart(..) => {
                let mut members = Vec::new();
                loop {
                    let (name, origin) = match self.next()? {
                        (Event::MappingEnd, _) => break NodeContent::Table(members),
                        (Event::Scalar(name, _, _, None), place) => (name, self.origin(place)),
                        (_, place) => return Err(Problem::new(self.origin(place), "a key must be a plain text")),
                    };
                    let (event, place) = self.next()?;
                    members.push(Member { name, origin, node: self.node(event, place, deeper)? });
                }
            }
            _ => return wrong("a value is missing"),
        };
        Ok(Node { content, origin })
    }
}

/// Returns the value of a scalar without quotes (YAML 1.2, "Core Schema").
fn plain(text: String) -> NodeContent {
    match text.as_str() {
        "" | "~" | "null" | "Null" | "NULL" => NodeContent::Other("nothing"),
        "true" | "True" | "TRUE" => NodeContent::Boolean(true),
        "false" | "False" | "FALSE" => NodeContent::Boolean(false),
        _ => match text.parse() {
            Ok(number) => NodeContent::Integer(number),
            Err(_) => match text.parse() {
                Ok(number) if text.starts_with(['-', '+', '.', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9']) => {
                    NodeContent::Fraction(number)
                }
                Ok(_) | Err(_) => NodeContent::Text(text),
            },
        },
    }
}

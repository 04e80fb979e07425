//! One cell of a notebook, and its range in the text.

use serde::{
    Deserialize, Deserializer,
    de::{Error as _, MapAccess, Visitor},
};
use serde_json::{Value, value::RawValue};
use std::{fmt, ops::Range};

/// Maximum number of members of an object. Jupyter writes five or six.
const MAX_MEMBERS: usize = 1000;

/// A cell: its JSON text, and the parsed members that an edit needs.
#[derive(Debug)]
pub(super) struct Cell<'a> {
    text: &'a str,
    range: Range<usize>,
    members: RawMembers<'a>,
    id: Option<String>,
    cell_type: String,
    source: String,
    has_source_as_list: bool,
}

/// Members of an object in their order, with their values as JSON text.
#[derive(Debug)]
pub(super) struct RawMembers<'a>(Vec<(String, &'a RawValue)>);

impl<'a> Cell<'a> {
    pub(super) fn parse(text: &'a str, range: Range<usize>) -> Result<Self, serde_json::Error> {
        let members = RawMembers::parse(text)?;
        let string = |name: &str| members.get(name).map(|raw| serde_json::from_str::<String>(raw.get())).transpose();
        let missing = |name: &str| serde_json::Error::custom(format!("it has no `{name}`"));
        let source = members.get("source").ok_or_else(|| missing("source"))?.get();
        let has_source_as_list = source.starts_with('[');
        let source = match has_source_as_list {
            true => serde_json::from_str::<Vec<String>>(source)?.concat(),
            false => serde_json::from_str(source)?,
        };
        let (id, cell_type) = (string("id")?, string("cell_type")?.ok_or_else(|| missing("cell_type"))?);
        Ok(Self { text, range, members, id, cell_type, source, has_source_as_list })
    }

    pub(super) fn text(&self) -> &'a str {
        self.text
    }

    pub(super) fn range(&self) -> &Range<usize> {
        &self.range
    }

    pub(super) fn members(&self) -> &RawMembers<'a> {
        &self.members
    }

    pub(super) fn id(&self) -> Option<&str> {
        self.id.as_deref()
    }

    pub(super) fn cell_type(&self) -> &str {
        &self.cell_type
    }

    pub(super) fn source(&self) -> &str {
        &self.source
    }

    /// Returns `true` if the cell has outputs or an execution count.
    pub(super) fn has_outputs(&self) -> bool {
        let is = |name: &str, empty: &str| self.members.get(name).is_none_or(|raw| raw.get() == empty);
        !(is("outputs", "[]") && is("execution_count", "null"))
    }

    pub(super) fn has_source_as_list(&self) -> bool {
        self.has_source_as_list
    }
}

impl<'a> RawMembers<'a> {
    /// Parses the members of an object. Fails if a name occurs twice, or if there are more than [`MAX_MEMBERS`].
    pub(super) fn parse(text: &'a str) -> Result<Self, serde_json::Error> {
        serde_json::from_str(text)
    }

    pub(super) fn get(&self, name: &str) -> Option<&'a RawValue> {
        self.position(name).map(|at| self.0[at].1)
    }

    pub(super) fn position(&self, name: &str) -> Option<usize> {
        self.0.iter().position(|(other, _)| other == name)
    }

    /// Returns the members in their order, with their values as JSON text.
    pub(super) fn to_texts(&self) -> Vec<(String, String)> {
        self.0.iter().map(|(name, value)| (name.clone(), value.get().to_owned())).collect()
    }
}

impl<'de> Deserialize<'de> for RawMembers<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct MembersVisitor;

        impl<'de> Visitor<'de> for MembersVisitor {
            type Value = RawMembers<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<RawMembers<'de>, A::Error> {
                let mut members: Vec<(String, &'de RawValue)> = Vec::new();
                while let Some(name) = map.next_key::<String>()? {
                    if members.iter().any(|(other, _)| *other == name) {
                        return Err(A::Error::custom(format!("the member `{name}` occurs twice")));
                    }
                    if members.len() == MAX_MEMBERS {
                        return Err(A::Error::custom(format!("an object has more than {MAX_MEMBERS} members")));
                    }
                    members.push((name, map.next_value()?));
                }
                Ok(RawMembers(members))
            }
        }

        deserializer.deserialize_map(MembersVisitor)
    }
}

/// Returns a string as JSON text.
pub(super) fn member_text(text: &str) -> String {
    Value::from(text).to_string()
}

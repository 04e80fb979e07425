//! Serialized forms of values with invariants (feature `serde`). They use the same names and constructors as all other
//! code, so that only valid values can be read.

use crate::{
    category::Category,
    error_kind::ErrorKind,
    event::Event,
    labels::CallLabels,
    server_name::ServerName,
    tool::{Availability, DefinitionPart, OutputReaderParameters, Tool, ToolSource},
    tool_call::CallId,
    tool_execution::{CancelReason, OutcomeKind},
    tool_name::ToolName,
    tool_result::{TextBlockRef, ToolResult},
};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error, ser::SerializeMap};
use serde_json::{Map, Value};
use std::{borrow::Cow, collections::BTreeMap};
use uuid::Uuid;

/// Implements serialization as the value's one word.
macro_rules! as_word {
    ($($type:ty: $parse:expr, $what:literal;)*) => { $(
        impl Serialize for $type {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.as_str())
            }
        }

        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = Cow::<str>::deserialize(deserializer)?;
                let parse: fn(&str) -> Option<Self> = $parse;
                parse(&text).ok_or_else(|| Error::custom(format_args!("`{text}` is not a valid {}", $what)))
            }
        }
    )* };
}

as_word! {
    Category: |text| Self::parse(text).ok(), "category of tools";
    CancelReason: Self::parse, "reason to end a call";
    ErrorKind: Self::from_name, "kind of error";
    OutcomeKind: Self::parse, "outcome of a call";
    ServerName: |text| Self::parse(text).ok(), "name of a server";
    ToolName: |text| Self::parse(text).ok(), "name of a tool";
}

impl Serialize for DefinitionPart {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.member())
    }
}

impl<'de> Deserialize<'de> for DefinitionPart {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Cow::<str>::deserialize(deserializer)?;
        Self::of_member(&text).ok_or_else(|| Error::custom(format_args!("`{text}` is not a part of a definition")))
    }
}

impl Serialize for CallId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for CallId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Cow::<str>::deserialize(deserializer)?;
        Uuid::parse_str(&text)
            .map(Self)
            .map_err(|error| Error::custom(format_args!("`{text}` is not a call id: {error}")))
    }
}

impl Serialize for CallLabels {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.iter())
    }
}

impl<'de> Deserialize<'de> for CallLabels {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let labels = BTreeMap::<String, String>::deserialize(deserializer)?;
        labels.into_iter().try_fold(Self::default(), |all, (name, value)| all.with(&name, value)).map_err(Error::custom)
    }
}

/// Part of a tool that is stored or sent. Aliases are code of the application that offers the tool, and are left out.
#[derive(Serialize, Deserialize)]
#[serde(rename = "Tool")]
struct ToolForm<'a> {
    name: Cow<'a, ToolName>,
    definition: Cow<'a, Map<String, Value>>,
    category: Category,
    tags: Cow<'a, [String]>,
    enabled: bool,
    source: Cow<'a, ToolSource>,
    availability: Cow<'a, Availability>,
    takes_command_lines: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    advertised: Option<Cow<'a, Map<String, Value>>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    reads_outputs: Option<Cow<'a, OutputReaderParameters>>,
    #[serde(default)]
    passes_references_on: bool,
    #[serde(default)]
    stands_alone: bool,
}

impl Serialize for Tool {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let form = ToolForm {
            name: Cow::Borrowed(self.name()),
            definition: Cow::Borrowed(self.definition()),
            category: self.category,
            tags: Cow::Borrowed(&self.tags),
            enabled: self.enabled,
            source: Cow::Borrowed(self.source()),
            availability: Cow::Borrowed(&self.availability),
            takes_command_lines: self.takes_command_lines,
            advertised: self.short_definition().map(Cow::Borrowed),
            reads_outputs: self.reads_outputs.as_ref().map(Cow::Borrowed),
            passes_references_on: self.passes_references_on,
            stands_alone: self.stands_alone,
        };
        form.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Tool {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let form = ToolForm::deserialize(deserializer)?;
        let (definition, source) = (form.definition.into_owned(), form.source.into_owned());
        let mut tool = Self::new(form.name.into_owned(), definition, form.category, source);
        tool.tags = form.tags.into_owned();
        tool.enabled = form.enabled;
        tool.takes_command_lines = form.takes_command_lines;
        tool.reads_outputs = form.reads_outputs.map(Cow::into_owned);
        tool.passes_references_on = form.passes_references_on;
        tool.stands_alone = form.stands_alone;
        // A definition with hidden characters remains unavailable, whatever was stored beside it.
        if tool.availability == Availability::Available {
            tool.availability = form.availability.into_owned();
        }
        Ok(match form.advertised {
            Some(advertised) => tool.advertised_as(advertised.into_owned()),
            None => tool,
        })
    }
}

impl Serialize for ToolResult {
    /// Writes the `CallToolResult` of MCP.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.only_text() {
            Some(text) => {
                let mut members = serializer.serialize_map(Some(1))?;
                members.serialize_entry("content", &[TextBlockRef::new(text)])?;
                members.end()
            }
            None => self.as_object().serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for ToolResult {
    /// Reads the `CallToolResult` of MCP. It does not contain the kind of an error, which is therefore
    /// `execution_failed`.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::from_upstream(Value::deserialize(deserializer)?).map_err(Error::custom)
    }
}

impl Serialize for Event {
    /// Writes the flat object of [`Event::to_json`]. Events are never read back.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.to_json().serialize(serializer)
    }
}

#[cfg(test)]
mod tests;

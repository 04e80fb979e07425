//! Versions of the definitions that a server offers.

use crate::{ports::clock::Timestamp, provider_identity::ProviderIdentity};
use serde_json::{Map, Value};

/// Key of the stored definitions of a server. A server that is configured under another name, or in another file, is a
/// different server.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PinnedServerKey {
    /// Configuration file; empty for a server that the embedding application defines.
    pub configured_in: String,
    /// Name of the server.
    pub name: String,
}

impl From<&ProviderIdentity> for PinnedServerKey {
    fn from(identity: &ProviderIdentity) -> Self {
        Self { configured_in: identity.configured_in.clone(), name: identity.name.clone() }
    }
}

/// Kind of an item that a server offers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ItemKind {
    /// Way in which the server is started or reached. Its name is empty.
    Launch,
    /// Instructions for models. Their name is empty, and no instructions are an empty text.
    Instructions,
    /// Tool.
    Tool,
    /// Prompt.
    Prompt,
    /// Resource, whose name is its URI.
    Resource,
    /// Resource template, whose name is its URI template.
    Template,
}

impl ItemKind {
    /// All kinds.
    pub const ALL: [Self; 6] =
        [Self::Launch, Self::Instructions, Self::Tool, Self::Prompt, Self::Resource, Self::Template];

    /// Returns the kind as one word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Launch => "launch",
            Self::Instructions => "instructions",
            Self::Tool => "tool",
            Self::Prompt => "prompt",
            Self::Resource => "resource",
            Self::Template => "template",
        }
    }

    /// Returns the kind with this name.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == text)
    }
}

/// Kind and name of an item.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ItemKey {
    /// Kind of the item.
    pub kind: ItemKind,
    /// Name of the item at its server.
    pub name: String,
}

impl ItemKey {
    /// Creates a key.
    pub fn new(kind: ItemKind, name: impl Into<String>) -> Self {
        Self { kind, name: name.into() }
    }
}

impl std::fmt::Display for ItemKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.name.is_empty() {
            true => f.write_str(self.kind.as_str()),
            false => write!(f, "{} `{}`", self.kind.as_str(), self.name),
        }
    }
}

/// Item as a server offers it now.
#[derive(Debug, Clone, PartialEq)]
pub struct OfferedItem {
    /// Kind and name.
    pub key: ItemKey,
    /// Complete definition.
    pub definition: Value,
}

/// Version of the definition of one item.
#[derive(Debug, Clone, PartialEq)]
pub struct DefinitionVersion {
    /// Kind and name.
    pub key: ItemKey,
    /// Number of the version, counted from 1 in the order in which the versions were seen.
    pub number: u32,
    /// Definition; `None` if the server did not offer the item any more.
    pub definition: Option<Value>,
    /// Time at which it was first seen.
    pub seen_at: Timestamp,
    /// Approval; `None` if the version is not approved.
    pub approval: Option<VersionApproval>,
    /// Findings of the scan, as clauses.
    pub findings: Vec<String>,
    /// `true` if one of the findings makes the item unavailable until it is approved.
    pub has_hard_finding: bool,
}

/// Approval of a version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VersionApproval {
    /// Time of the approval.
    pub at: Timestamp,
    /// Approver or reason, such as `first sight`.
    pub by: String,
}

/// Returns the members of a definition that its fingerprint covers, in a canonical order: all that a model or a user
/// reads, and the schemas. The name of a tool or prompt is not covered, because it is the key of the item.
///
/// ```
/// use serde_json::json;
/// use toolstead_domain::pinning::item::{ItemKind, fingerprinted};
///
/// let one = fingerprinted(ItemKind::Tool, &json!({"name": "t", "description": "d", "_meta": {"x": 1}}));
/// assert_eq!(one, json!({"description": "d"}));
/// ```
pub fn fingerprinted(kind: ItemKind, definition: &Value) -> Value {
    let members: &[&str] = match kind {
        ItemKind::Launch | ItemKind::Instructions => &[],
        ItemKind::Tool => &["title", "description", "inputSchema", "outputSchema", "annotations", "icons"],
        ItemKind::Prompt => &["title", "description", "arguments", "icons"],
        ItemKind::Resource | ItemKind::Template => &["name", "title", "description", "mimeType", "icons"],
    };
    let mut canonical = match definition.as_object() {
        Some(all) if !members.is_empty() => {
            let covered = members.iter().filter_map(|name| Some(((*name).to_owned(), all.get(*name)?.clone())));
            Value::Object(covered.collect::<Map<_, _>>())
        }
        _ => definition.clone(),
    };
    canonical.sort_all_objects();
    canonical
}

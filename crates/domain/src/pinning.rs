//! Pinned definitions: a definition is served as it was approved, until a change is approved.

pub mod change;
pub mod diff;
pub mod item;
pub mod review;
mod schema_shape;

use item::PinnedServerKey;
use serde_json::Value;

/// Treatment of changed definitions of a server.
///
/// ```
/// use toolstead_domain::pinning::ChangePolicy;
///
/// assert_eq!(ChangePolicy::default(), ChangePolicy::Pin);
/// assert_eq!(ChangePolicy::parse("quarantine").map(ChangePolicy::as_str), Some("quarantine"));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "snake_case"))]
pub enum ChangePolicy {
    /// The approved definition continues to be served. A wider schema and a new tool require approval at the next call.
    #[default]
    Pin,
    /// Every change takes effect at once.
    Pass,
    /// A changed or new tool is unavailable until it is approved.
    Quarantine,
}

impl ChangePolicy {
    /// All treatments.
    pub const ALL: [Self; 3] = [Self::Pin, Self::Pass, Self::Quarantine];

    /// Returns the name in the configuration.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pin => "pin",
            Self::Pass => "pass",
            Self::Quarantine => "quarantine",
        }
    }

    /// Returns the treatment with this name.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|one| one.as_str() == text)
    }
}

/// Settings for pinning the definitions of one server.
#[derive(Debug, Clone, PartialEq)]
pub struct ServerPinningSettings {
    /// Key of the stored definitions.
    pub server: PinnedServerKey,
    /// Treatment of changes.
    pub on_change: ChangePolicy,
    /// Way in which the server is started or reached, without secrets.
    pub launch: Value,
}

/// Change of a tool's definition that is not approved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PendingDefinitionChange {
    /// Reason why it requires approval, as a clause without a full stop.
    pub reason: String,
    /// Readable difference between the approved and the offered definition.
    pub diff: String,
    /// Number of the offered version, which an approval would approve.
    pub number: u32,
    /// `true` if the tool is unavailable until `toolstead servers approve` approves it. Otherwise its next call
    /// requires approval.
    pub is_withheld: bool,
}

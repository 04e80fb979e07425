//! Items that are not served as they are offered.

use serde_json::json;
use sha2::{Digest, Sha256};
use std::collections::BTreeSet;
use toolstead_domain::{
    DefinitionVersion, ItemKey, PinnedServerKey,
    pinning::change::{ItemChangeKind, classify},
};

/// Tool, prompt, resource, template, instructions or launch of a server whose latest version is not approved.
#[derive(Debug, Clone, PartialEq)]
pub struct UnapprovedItem {
    /// Kind and name.
    pub key: ItemKey,
    /// Approved version with a definition, if there is one.
    pub approved: Option<DefinitionVersion>,
    /// Latest version.
    pub latest: DefinitionVersion,
}

impl UnapprovedItem {
    /// Returns the classes of the change.
    pub fn classes(&self) -> BTreeSet<ItemChangeKind> {
        let old = self.approved.as_ref().and_then(|version| version.definition.as_ref());
        classify(self.key.kind, old, self.latest.definition.as_ref())
    }

    /// Returns the name for users. That of instructions and of the launch is their kind.
    pub fn label(&self) -> &str {
        if self.key.name.is_empty() { self.key.kind.as_str() } else { &self.key.name }
    }
}

/// Returns a digest of the unapproved items of a server. It differs as soon as an approved or a latest version differs,
/// so an approval with it applies to what was shown.
///
/// ```
/// use toolstead_application::definition_pins::digest_of;
/// use toolstead_domain::PinnedServerKey;
///
/// let server = |name: &str| PinnedServerKey { configured_in: String::new(), name: name.into() };
/// assert_eq!(digest_of(&server("git"), &[]).len(), 64);
/// assert_ne!(digest_of(&server("git"), &[]), digest_of(&server("notes"), &[]));
/// ```
pub fn digest_of(server: &PinnedServerKey, items: &[UnapprovedItem]) -> String {
    let version = |version: &DefinitionVersion| json!([version.number, version.definition, version.findings]);
    let items: Vec<_> = items
        .iter()
        .map(|item| {
            let approved = item.approved.as_ref().map(version);
            json!([item.key.kind.as_str(), item.key.name, approved, version(&item.latest)])
        })
        .collect();
    let digest = Sha256::digest(json!([server.configured_in, server.name, items]).to_string());
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

//! Contract of every store of definitions.

use crate::{
    pinning::item::{DefinitionVersion, ItemKey, ItemKind, PinnedServerKey, VersionApproval},
    ports::{clock::Timestamp, definition_store::PinnedDefinitionStore},
};
use serde_json::json;

/// Checks each guarantee of [`PinnedDefinitionStore`] on an empty store.
///
/// # Panics
/// If a guarantee is violated; the message names it.
pub async fn definition_store_contract(store: &dyn PinnedDefinitionStore) {
    let server = |file: &str| PinnedServerKey { configured_in: file.into(), name: "s".into() };
    let (one, other) = (server("/a"), server("/b"));
    assert_eq!(store.versions(&one).await.unwrap(), [], "an unknown server has no versions");
    let version = |kind, name: &str, number| DefinitionVersion {
        key: ItemKey::new(kind, name),
        number,
        definition: (number != 3).then(|| json!({"z": number, "a": "ä"})),
        seen_at: Timestamp(i64::from(number)),
        approval: (number == 1).then(|| VersionApproval { at: Timestamp(9), by: "first sight".into() }),
        findings: if number == 2 { vec!["it hides text".into()] } else { Vec::new() },
        has_hard_finding: number == 2,
    };
    let mut expected = vec![
        version(ItemKind::Instructions, "", 1),
        version(ItemKind::Tool, "t", 1),
        version(ItemKind::Tool, "t", 2),
        version(ItemKind::Tool, "t", 3),
    ];
    let mut shuffled = expected.clone();
    shuffled.reverse();
    store.add(&one, &shuffled).await.unwrap();
    let sorted = |mut versions: Vec<DefinitionVersion>| {
        versions.sort_by(|a, b| (&a.key, a.number).cmp(&(&b.key, b.number)));
        versions
    };
    assert_eq!(sorted(store.versions(&one).await.unwrap()), expected, "versions are returned as they were added");
    assert_eq!(store.versions(&other).await.unwrap(), [], "a server of another file is another server");
    let again = DefinitionVersion { definition: None, ..version(ItemKind::Tool, "t", 2) };
    store.add(&one, &[again]).await.unwrap();
    assert_eq!(sorted(store.versions(&one).await.unwrap()), expected, "a stored version remains as it is");
    let approval = VersionApproval { at: Timestamp(11), by: "user".into() };
    let key = ItemKey::new(ItemKind::Tool, "t");
    let approved = [(key.clone(), 1), (key.clone(), 2), (ItemKey::new(ItemKind::Tool, "unknown"), 1)];
    store.approve(&one, &approved, &approval).await.unwrap();
    expected[2].approval = Some(approval);
    assert_eq!(sorted(store.versions(&one).await.unwrap()), expected, "an approval applies to its version, once");
    let many: Vec<DefinitionVersion> = (4..200).map(|number| version(ItemKind::Tool, "t", number)).collect();
    store.add(&one, &many).await.unwrap();
    let versions = store.versions(&one).await.unwrap();
    assert!(versions.iter().any(|one| one.key == key && one.number == 2), "the latest approved version remains");
    assert!(versions.iter().any(|one| one.key == key && one.number == 199), "the latest version remains");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{block_on::block_on, in_memory_definition_store::InMemoryDefinitionStore};

    #[test]
    fn the_store_in_memory_fulfils_the_contract() {
        block_on(definition_store_contract(&InMemoryDefinitionStore::default()));
    }
}

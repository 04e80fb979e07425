//! Comparison of what a server offers now with the stored versions.

use super::{
    ChangePolicy, PendingDefinitionChange,
    change::{ItemChangeKind, classify},
    diff::diff,
    item::{DefinitionVersion, ItemKey, ItemKind, OfferedItem, VersionApproval, fingerprinted},
};
use crate::{
    definition_scan::{self, ScanFinding},
    ports::clock::Timestamp,
};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// Approver of everything that a server offers when it is first seen.
pub const FIRST_SIGHT: &str = "first sight";
/// Approver of changes of a server with `on_change = "pass"`.
pub const PASSED: &str = "on_change = \"pass\"";
/// Approver of a version that equals the approved one.
const AS_APPROVED: &str = "equal to the approved version";

/// The current offer of a server.
#[derive(Debug, Clone, Copy)]
pub struct OfferedDefinitions<'a> {
    /// Kinds of which `items` contains all items. An item of such a kind that is missing was removed.
    pub kinds: &'a [ItemKind],
    /// Items, with unique keys.
    pub items: &'a [OfferedItem],
    /// Names of the tools of other providers.
    pub other_names: &'a BTreeSet<String>,
}

/// Result of a review.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct OfferedDefinitionsReview {
    /// Versions that are not stored yet.
    pub added: Vec<DefinitionVersion>,
    /// State of each offered item.
    pub states: BTreeMap<ItemKey, ServedVersionDecision>,
    /// Findings, changes and required approvals for the operator, as sentences.
    pub notes: Vec<String>,
}

/// Way in which an item is served.
#[derive(Debug, Clone, PartialEq)]
pub enum ServedVersionDecision {
    /// The offered definition is served.
    Current {
        /// `true` if it was approved despite a hard finding. Its findings are then not reported.
        is_approved: bool,
    },
    /// The approved definition is served instead of the offered one.
    Approved {
        /// Approved definition.
        definition: Value,
        /// `true` if a user approved it although it has hard findings, so that they do not count.
        is_approved_by_user: bool,
        /// Change that requires approval, if the item is a tool and one does.
        pending: Option<PendingDefinitionChange>,
    },
    /// The offered definition is served, and requires approval.
    Unapproved(PendingDefinitionChange),
}

/// Reviews an offer at the time `now`. `versions` are the stored versions of this server, in ascending order of their
/// numbers for each item.
pub fn review(
    versions: &[DefinitionVersion],
    offer: OfferedDefinitions<'_>,
    on_change: ChangePolicy,
    now: Timestamp,
) -> OfferedDefinitionsReview {
    let mut stored: BTreeMap<&ItemKey, Vec<&DefinitionVersion>> = BTreeMap::new();
    for version in versions.iter().filter(|version| offer.kinds.contains(&version.key.kind)) {
        stored.entry(&version.key).or_default().push(version);
    }
    let known: BTreeSet<u8> = stored.keys().map(|key| listing(key.kind)).collect();
    let mut review = OfferedDefinitionsReview::default();
    let marker = listed_marker();
    if stored.remove(&marker).is_none() && offer.kinds.contains(&marker.kind) {
        review.added.push(DefinitionVersion {
            key: marker,
            number: 1,
            definition: Some(Value::Null),
            seen_at: now,
            approval: Some(VersionApproval { at: now, by: FIRST_SIGHT.to_owned() }),
            findings: Vec::new(),
            has_hard_finding: false,
        });
    }
    for item in offer.items {
        let history = stored.remove(&item.key).unwrap_or_default();
        let is_first_sight = !known.contains(&listing(item.key.kind));
        let other_names = offer.other_names;
        let reviewer = ItemReviewer { item, history: &history, on_change, now, is_first_sight, other_names };
        let latest = match reviewer.unchanged() {
            Some(latest) => latest.clone(),
            None => {
                let added = reviewer.new_version();
                review.added.push(added.clone());
                added
            }
        };
        let state = reviewer.state(&latest);
        review.notes.extend(notes(&item.key, &latest, &state, reviewer.approved()));
        review.states.insert(item.key.clone(), state);
    }
    for (key, history) in stored {
        if let Some(latest) = history.last().filter(|latest| latest.definition.is_some()) {
            review.added.push(DefinitionVersion {
                key: key.clone(),
                number: latest.number + 1,
                definition: None,
                seen_at: now,
                approval: (on_change == ChangePolicy::Pass).then(|| VersionApproval { at: now, by: PASSED.to_owned() }),
                findings: Vec::new(),
                has_hard_finding: false,
            });
        }
    }
    review
}

/// Returns the key of the version that records that a server listed its prompts, resources and templates. Without it, the
/// first one that a server without any adds later would count as first seen.
pub fn listed_marker() -> ItemKey {
    ItemKey::new(ItemKind::Template, "")
}

/// Returns a number for the listing that an item of this kind is part of. What a listing contains when it is first seen
/// is not a change.
fn listing(kind: ItemKind) -> u8 {
    match kind {
        ItemKind::Launch | ItemKind::Tool => 0,
        ItemKind::Instructions => 1,
        ItemKind::Prompt | ItemKind::Resource | ItemKind::Template => 2,
    }
}

/// Returns the latest version of an item that is approved and has a definition.
pub fn approved_version<'v>(history: &[&'v DefinitionVersion]) -> Option<&'v DefinitionVersion> {
    history.iter().rev().find(|version| version.approval.is_some() && version.definition.is_some()).copied()
}

struct ItemReviewer<'a> {
    item: &'a OfferedItem,
    history: &'a [&'a DefinitionVersion],
    on_change: ChangePolicy,
    now: Timestamp,
    is_first_sight: bool,
    other_names: &'a BTreeSet<String>,
}

impl<'a> ItemReviewer<'a> {
    fn approved(&self) -> Option<&'a DefinitionVersion> {
        approved_version(self.history)
    }

    fn equals(&self, version: &DefinitionVersion) -> bool {
        let kind = self.item.key.kind;
        let covered = |definition: &Value| fingerprinted(kind, definition);
        version.definition.as_ref().is_some_and(|stored| covered(stored) == covered(&self.item.definition))
    }

    /// Returns the latest version, if it equals the offered definition.
    fn unchanged(&self) -> Option<&'a DefinitionVersion> {
        let latest = self.history.last().copied()?;
        if latest.definition.as_ref() == Some(&self.item.definition) {
            return Some(latest);
        }
        if !self.equals(latest) {
            return None;
        }
        // The scan also reads members that the fingerprint does not cover.
        let findings = self.scan();
        let is_as_hard = latest.has_hard_finding == findings.iter().any(|finding| finding.is_hard);
        (is_as_hard && has_all_hard(latest, &findings)).then_some(latest)
    }

    fn scan(&self) -> Vec<ScanFinding> {
        definition_scan::scan(&self.item.key, &self.item.definition, self.other_names)
    }

    fn new_version(&self) -> DefinitionVersion {
        let OfferedItem { key, definition } = self.item;
        let findings = self.scan();
        let has_hard_finding = findings.iter().any(|finding| finding.is_hard);
        let by = match self.approved() {
            Some(approved) if self.equals(approved) && has_all_hard(approved, &findings) => Some(AS_APPROVED),
            _ if has_hard_finding => None,
            _ if self.is_first_sight => Some(FIRST_SIGHT),
            // Servers add and remove resources and prompts often, and a model receives them only on request.
            None if matches!(key.kind, ItemKind::Prompt | ItemKind::Resource | ItemKind::Template)
                && self.on_change == ChangePolicy::Pin =>
            {
                Some(FIRST_SIGHT)
            }
            _ if self.on_change == ChangePolicy::Pass => Some(PASSED),
            _ => None,
        };
        DefinitionVersion {
            key: key.clone(),
            number: self.history.last().map_or(0, |latest| latest.number) + 1,
            definition: Some(definition.clone()),
            seen_at: self.now,
            approval: by.map(|by| VersionApproval { at: self.now, by: by.to_owned() }),
            findings: findings.iter().map(ToString::to_string).collect(),
            has_hard_finding,
        }
    }

    fn state(&self, latest: &DefinitionVersion) -> ServedVersionDecision {
        if latest.approval.is_some() {
            return ServedVersionDecision::Current { is_approved: latest.has_hard_finding };
        }
        let is_passed = self.on_change == ChangePolicy::Pass && !latest.has_hard_finding;
        let OfferedItem { key, definition } = self.item;
        let approved = self.approved();
        let old = approved.and_then(|approved| approved.definition.as_ref());
        let classes = classify(key.kind, old, Some(definition));
        if is_passed {
            return ServedVersionDecision::Current { is_approved: false };
        }
        let is_withheld = latest.has_hard_finding || self.on_change == ChangePolicy::Quarantine;
        let asks = is_withheld || classes.iter().any(|class| class.requires_approval());
        let pending = asks.then(|| PendingDefinitionChange {
            reason: reason(latest, &classes),
            diff: diff(key, old, Some(definition)),
            number: latest.number,
            is_withheld,
        });
        match (old, pending) {
            (Some(old), pending) => ServedVersionDecision::Approved {
                definition: old.clone(),
                is_approved_by_user: approved.is_some_and(|approved| approved.has_hard_finding),
                pending,
            },
            (None, Some(pending)) => ServedVersionDecision::Unapproved(pending),
            (None, None) => ServedVersionDecision::Current { is_approved: false },
        }
    }
}

/// Returns `true` if the version has all of these findings that are hard.
fn has_all_hard(version: &DefinitionVersion, findings: &[ScanFinding]) -> bool {
    findings.iter().filter(|finding| finding.is_hard).all(|finding| version.findings.contains(&finding.to_string()))
}

/// Returns the reason why a version requires approval, as a clause.
fn reason(latest: &DefinitionVersion, classes: &BTreeSet<ItemChangeKind>) -> String {
    if let Some(finding) = latest.findings.first().filter(|_| latest.has_hard_finding) {
        return finding.clone();
    }
    let named: Vec<&str> = classes.iter().map(|class| class.as_str()).collect();
    match classes.contains(&ItemChangeKind::Added) {
        true => "its server added it after the server was first approved".to_owned(),
        false => format!("its definition changed since it was approved ({})", named.join(", ")),
    }
}

/// Returns the sentences about an item, without full stops.
fn notes(
    key: &ItemKey,
    latest: &DefinitionVersion,
    state: &ServedVersionDecision,
    approved: Option<&DefinitionVersion>,
) -> Vec<String> {
    let is_approved_by_user = matches!(state, ServedVersionDecision::Current { is_approved: true });
    let findings = latest.findings.iter().filter(|_| !is_approved_by_user);
    let mut notes: Vec<String> = findings.map(|finding| format!("{key}: {finding}")).collect();
    let pending = match state {
        ServedVersionDecision::Current { .. } => None,
        ServedVersionDecision::Unapproved(pending) => Some(pending),
        ServedVersionDecision::Approved { pending, .. } if key.kind == ItemKind::Launch => {
            notes.push("the server is not started or reached in the approved way".to_owned());
            pending.as_ref()
        }
        ServedVersionDecision::Approved { pending, .. } => {
            let old = approved.and_then(|approved| approved.definition.as_ref());
            let classes = classify(key.kind, old, latest.definition.as_ref());
            let named: Vec<&str> = classes.into_iter().map(ItemChangeKind::as_str).collect();
            notes.push(format!(
                "{key}: the approved definition is served; the offered one differs ({})",
                named.join(", ")
            ));
            pending.as_ref()
        }
    };
    match pending {
        Some(pending) if pending.is_withheld => notes.push(format!("{key}: unavailable until it is approved")),
        Some(_) => notes.push(format!("{key}: its next call requires approval")),
        None => {}
    }
    notes
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// Server whose versions are stored after each offer.
    struct Server {
        versions: Vec<DefinitionVersion>,
        on_change: ChangePolicy,
    }

    impl Server {
        fn known(on_change: ChangePolicy) -> Self {
            let mut server = Self { versions: Vec::new(), on_change };
            let state = server.offer(&[("t", base())]);
            assert_eq!(state["t"], ServedVersionDecision::Current { is_approved: false });
            server
        }

        fn offer(&mut self, tools: &[(&str, Value)]) -> BTreeMap<String, ServedVersionDecision> {
            let items: Vec<OfferedItem> = tools
                .iter()
                .map(|(name, definition)| OfferedItem {
                    key: ItemKey::new(ItemKind::Tool, *name),
                    definition: definition.clone(),
                })
                .collect();
            let none = BTreeSet::new();
            let offer = OfferedDefinitions { kinds: &[ItemKind::Tool], items: &items, other_names: &none };
            let review = review(&self.versions, offer, self.on_change, Timestamp(1));
            self.versions.extend(review.added);
            review.states.into_iter().map(|(key, state)| (key.name, state)).collect()
        }

        fn approve(&mut self) {
            let latest = self.versions.last_mut().unwrap();
            latest.approval = Some(VersionApproval { at: Timestamp(2), by: "test".into() });
        }
    }

    fn base() -> Value {
        json!({"description": "Adds.", "inputSchema": {"type": "object", "properties": {"a": {"type": "string"}}}})
    }

    fn with(pointer: &str, value: Value) -> Value {
        let mut changed = base();
        *changed.pointer_mut(pointer).unwrap() = value;
        changed
    }

    /// Returns the outcome for the tool: "current", "approved", and "asks" or "withheld".
    fn outcome(state: &ServedVersionDecision) -> String {
        let pending = |pending: &PendingDefinitionChange| if pending.is_withheld { "withheld" } else { "asks" };
        match state {
            ServedVersionDecision::Current { .. } => "current".into(),
            ServedVersionDecision::Approved { pending: None, .. } => "approved".into(),
            ServedVersionDecision::Approved { pending: Some(one), .. } => format!("approved, {}", pending(one)),
            ServedVersionDecision::Unapproved(one) => pending(one).into(),
        }
    }

    #[track_caller]
    fn check(offered: Value, pin: &str, pass: &str, quarantine: &str) {
        for (on_change, expected) in
            [(ChangePolicy::Pin, pin), (ChangePolicy::Pass, pass), (ChangePolicy::Quarantine, quarantine)]
        {
            let mut server = Server::known(on_change);
            assert_eq!(outcome(&server.offer(&[("t", offered.clone())])["t"]), expected, "{on_change:?} {offered}");
            assert_eq!(outcome(&server.offer(&[("t", offered.clone())])["t"]), expected, "again: {on_change:?}");
            server.approve();
            assert_eq!(outcome(&server.offer(&[("t", offered.clone())])["t"]), "current", "approved: {on_change:?}");
        }
    }

    #[test]
    fn each_class_of_change_is_handled_according_to_the_change_policy() {
        check(with("/description", json!("Adds and more.")), "approved", "current", "approved, withheld");
        check(with("/inputSchema/properties", json!({})), "approved", "current", "approved, withheld");
        let wider = json!({"a": {"type": "string"}, "cc": {"type": "string"}});
        check(with("/inputSchema/properties", wider), "approved, asks", "current", "approved, withheld");
        check(
            with("/description", json!("a\u{202e}b")),
            "approved, withheld",
            "approved, withheld",
            "approved, withheld",
        );
    }

    #[test]
    fn a_new_tool_of_a_known_server_requires_approval_and_a_returning_tool_does_not() {
        let mut server = Server::known(ChangePolicy::Pin);
        let states = server.offer(&[("t", base()), ("u", base())]);
        assert_eq!((outcome(&states["t"]).as_str(), outcome(&states["u"]).as_str()), ("current", "asks"));
        server.approve();
        server.offer(&[("t", base())]);
        assert_eq!(server.versions.last().unwrap().definition, None, "it was removed");
        assert_eq!(outcome(&server.offer(&[("t", base()), ("u", base())])["u"]), "current");
        let before = server.versions.len();
        server.offer(&[("t", base()), ("u", base())]);
        assert_eq!(server.versions.len(), before, "nothing changed");
    }

    #[test]
    fn a_first_definition_with_hidden_text_is_withheld_until_approved() {
        let mut server = Server { versions: Vec::new(), on_change: ChangePolicy::Pin };
        let states = server.offer(&[("t", base()), ("u", json!({"description": "x\u{e0041}"}))]);
        assert_eq!((outcome(&states["t"]).as_str(), outcome(&states["u"]).as_str()), ("current", "withheld"));
        server.approve();
        let states = server.offer(&[("t", base()), ("u", json!({"description": "x\u{e0041}"}))]);
        assert_eq!(states["u"], ServedVersionDecision::Current { is_approved: true });
    }

    #[test]
    fn hidden_text_in_any_member_is_withheld_until_a_version_with_it_is_approved() {
        let image = json!([{"src": "data:image/png;base64,iVBORw0KGgo=\u{e0041}"}]);
        for (member, value) in [("icons", image), ("_meta", json!({"x": "a\u{202e}b"}))] {
            let hiding = |description: &str| json!({"description": description, member: value});
            let mut server = Server::known(ChangePolicy::Pin);
            for offered in [hiding("Adds."), hiding("Adds and more."), json!({"description": "Adds.", member: value})] {
                let state = &server.offer(&[("t", offered)])["t"];
                assert_eq!(outcome(state), "approved, withheld", "{member}");
                assert!(
                    matches!(state, ServedVersionDecision::Approved { is_approved_by_user: false, .. }),
                    "{member}"
                );
            }
            server.approve();
            let state = server.offer(&[("t", hiding("Adds."))]).remove("t").unwrap();
            assert_eq!(state, ServedVersionDecision::Current { is_approved: true }, "{member}");
            let state = &server.offer(&[("t", json!({"description": "Adds more."}))])["t"];
            assert_eq!(outcome(state), "approved", "{member}");
            assert!(matches!(state, ServedVersionDecision::Approved { is_approved_by_user: true, .. }), "{member}");
        }
    }

    #[test]
    fn hidden_text_in_a_member_outside_the_fingerprint_withholds_the_changed_definition() {
        let mut server = Server::known(ChangePolicy::Pin);
        let with_meta = |text: &str| {
            let mut changed = base();
            changed["_meta"] = json!({"x": text});
            changed
        };
        assert_eq!(outcome(&server.offer(&[("t", with_meta("a"))])["t"]), "current");
        assert_eq!(server.versions.len(), 1, "the fingerprint is the same");
        assert_eq!(outcome(&server.offer(&[("t", with_meta("a\u{202e}b"))])["t"]), "approved, withheld");
        assert_eq!(outcome(&server.offer(&[("t", with_meta("a"))])["t"]), "current", "nothing is hidden any more");
        // Removed in between, the tool returns with its approved fingerprint and more.
        server.offer(&[]);
        assert_eq!(outcome(&server.offer(&[("t", with_meta("a\u{202e}b"))])["t"]), "approved, withheld");
    }

    #[test]
    fn a_pending_change_shows_its_reason_and_diff() {
        let mut server = Server::known(ChangePolicy::Pin);
        let wider = json!({"a": {"type": "string"}, "cc": {"type": "string"}});
        let states = server.offer(&[("t", with("/inputSchema/properties", wider))]);
        let ServedVersionDecision::Approved { definition, pending: Some(pending), .. } = &states["t"] else {
            panic!("{states:?}")
        };
        assert_eq!((definition, pending.number), (&base(), 2));
        assert_eq!(pending.reason, "its definition changed since it was approved (schema widened)");
        assert!(pending.diff.contains("@@ inputSchema.properties.cc.type @@\n+string\n"), "{}", pending.diff);
    }

    #[test]
    fn the_first_prompt_of_a_server_that_listed_none_is_a_change() {
        let (kinds, none) = ([ItemKind::Prompt, ItemKind::Resource, ItemKind::Template], BTreeSet::new());
        let prompt = OfferedItem { key: ItemKey::new(ItemKind::Prompt, "p"), definition: json!({"name": "p"}) };
        let mut versions: Vec<DefinitionVersion> = Vec::new();
        let mut list = |items: &[OfferedItem]| {
            let offer = OfferedDefinitions { kinds: &kinds, items, other_names: &none };
            let review = review(&versions, offer, ChangePolicy::Quarantine, Timestamp(1));
            versions.extend(review.added);
            review.states
        };
        assert!(list(&[]).is_empty());
        let states = list(std::slice::from_ref(&prompt));
        assert!(
            matches!(&states[&prompt.key], ServedVersionDecision::Unapproved(pending) if pending.is_withheld),
            "{states:?}"
        );
    }
}

//! Properties that apply to any layers.

use super::*;
use proptest::prelude::*;

const KINDS: &[LayerKind] = &[
    LayerKind::Foreign(0),
    LayerKind::Foreign(1),
    LayerKind::Administrator,
    LayerKind::User,
    LayerKind::Project,
    LayerKind::Local,
    LayerKind::Environment,
    LayerKind::Flags,
];

fn text(words: &'static [&'static str]) -> BoxedStrategy<ValidatedConfigValue> {
    prop::sample::select(words).prop_map(|word| ValidatedConfigValue::Text(word.into())).boxed()
}

fn list(words: &'static [&'static str]) -> BoxedStrategy<ValidatedConfigValue> {
    let item = prop::sample::select(words).prop_map(|word| TextItem::new(word, Origin::Default));
    prop::collection::vec(item, 0..4).prop_map(ValidatedConfigValue::List).boxed()
}

fn number() -> BoxedStrategy<ValidatedConfigValue> {
    (1_u64..5).prop_map(ValidatedConfigValue::Integer).boxed()
}

/// A key of each way to merge, with values for it.
fn entry() -> impl Strategy<Value = (Vec<String>, ValidatedConfigValue)> {
    let at = |path: &'static str, value: BoxedStrategy<ValidatedConfigValue>| {
        value.prop_map(move |value| (path.split('.').map(str::to_owned).collect::<Vec<_>>(), value)).boxed()
    };
    prop_oneof![
        at("audit.retention_days", number()),
        at("limits.processes", number()),
        at("sandbox.minimum_tier", number()),
        at("permissions.mode", text(&["default", "plan", "accept_edits", "dont_ask", "bypass"])),
        at("sandbox.network", list(&["a.com", "b.com", "c.com"])),
        at("permissions.allow", list(&["Read", "Write"])),
        at("permissions.deny", list(&["Read(a)", "Write(b)"])),
        at("mcp_servers.git.command", text(&["x", "y"])),
        at("mcp_servers.git.url", text(&["http://x"])),
        at("mcp_servers.git.args", list(&["1", "2"])),
        at("mcp_servers.git.disabled", any::<bool>().prop_map(ValidatedConfigValue::Boolean).boxed()),
        at("mcp_servers.git.deny_tools", list(&["p", "q"])),
        at("tools.select", text(&["a", "+b,-c", ""])),
    ]
}

fn layer(kind: LayerKind) -> impl Strategy<Value = Layer> {
    let doubtful = matches!(kind, LayerKind::Project | LayerKind::Local | LayerKind::Foreign(_));
    let said = prop::collection::vec(entry(), 0..8).prop_map(|all| all.into_iter().collect::<BTreeMap<_, _>>());
    (said, any::<bool>()).prop_map(move |(said, trusted)| {
        let entry = |(path, value): (Vec<String>, ValidatedConfigValue)| {
            let schema::KeyLookup::Key(key) = schema::find(&path) else { panic!("{path:?} is no key") };
            LayerEntry { path, key, value, origin: Origin::Flag(kind.describe()) }
        };
        Layer { kind, trusted: trusted || !doubtful, entries: said.into_iter().map(entry).collect() }
    })
}

/// Any of the layers, in any order.
fn layers() -> impl Strategy<Value = Vec<Layer>> {
    let all: Vec<_> = KINDS.iter().map(|kind| layer(*kind)).collect();
    (all, any::<u8>()).prop_flat_map(|(all, chosen)| {
        let some: Vec<Layer> =
            all.into_iter().enumerate().filter(|(at, _)| chosen & (1 << at) != 0).map(|(_, layer)| layer).collect();
        Just(some).prop_shuffle()
    })
}

fn joined(layers: &[Layer]) -> ContributionsByKey {
    layers.iter().cloned().map(ContributionsByKey::of).fold(ContributionsByKey::default(), ContributionsByKey::merge)
}

proptest! {
    #[test]
    fn layers_merge_the_same_way_in_steps_as_at_once(layers in layers(), cut in any::<prop::sample::Index>()) {
        let (first, second) = layers.split_at(cut.index(layers.len() + 1));
        let in_steps = joined(second).merge(joined(first));
        prop_assert_eq!(in_steps.resolve(), joined(&layers).resolve());
    }

    #[test]
    fn untrusted_layers_can_only_tighten_the_settings(layers in layers()) {
        let trusted: Vec<Layer> = layers.iter().filter(|layer| layer.trusted).cloned().collect();
        let (with, without) = (joined(&layers).resolve(), joined(&trusted).resolve());
        let value = |resolved: &ResolvedSettings, path: &str| resolved.setting(path).and_then(|setting| setting.value);
        let texts = |resolved: &ResolvedSettings, path: &str| -> Vec<String> {
            value(resolved, path).iter().flat_map(|value| value.items().to_vec()).map(|item| item.text).collect()
        };
        for path in ["audit.retention_days", "permissions.allow", "mcp_servers.git.command", "mcp_servers.git.args"] {
            let same = |resolved: &ResolvedSettings| {
                value(resolved, path).map(|value| value.to_json()).filter(|json| *json != serde_json::json!([]))
            };
            prop_assert_eq!(same(&with), same(&without), "{}", path);
        }
        for path in ["limits.processes", "sandbox.minimum_tier"] {
            let number = |resolved| value(resolved, path).map(|value| value.to_json().as_u64());
            prop_assert!(number(&with) <= number(&without), "{}", path);
        }
        let mode = |resolved| value(resolved, "permissions.mode").and_then(|mode| mode.as_text().map(leniency));
        prop_assert!(mode(&with) <= mode(&without));
        let hosts = texts(&without, "sandbox.network");
        prop_assert!(texts(&with, "sandbox.network").iter().all(|host| hosts.contains(host)));
        let denied = texts(&with, "permissions.deny");
        prop_assert!(texts(&without, "permissions.deny").iter().all(|rule| denied.contains(rule)));
    }
}

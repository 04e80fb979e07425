//! All layers of a configuration, and the effective values.

pub mod environment;
pub mod folders;
pub mod request;

use crate::config::tree::{
    check::{LayerEntry, written},
    expansion,
    origin::Origin,
    schema::{self, KEY_GROUPS, KeyDefinition, KeyOverrideGroup, MergeRule, StrictnessOrder, UntrustedEffect},
    value::{TextItem, ValidatedConfigValue},
};
use std::collections::BTreeMap;
use toolstead_application::redaction::redacted;
use toolstead_domain::PermissionMode;

/// Kind of a layer, from the lowest precedence to the highest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LayerKind {
    /// A file of another client, such as `.mcp.json`. The number orders several of them.
    Foreign(u8),
    /// The file `/etc/toolstead/config.toml`.
    Administrator,
    /// The user's own file.
    User,
    /// The project's file.
    Project,
    /// The user's own file in the project, `toolstead.local.toml`.
    Local,
    /// The file of `--config`.
    Chosen,
    /// Environment variables `TOOLSTEAD_…`.
    Environment,
    /// The command line.
    Flags,
}

impl LayerKind {
    /// Returns `true` if the file belongs to a project: it was found in one, or a file of the project names it.
    pub(super) fn is_of_project(self) -> bool {
        matches!(self, Self::Foreign(_) | Self::Project | Self::Local)
    }

    /// Returns the kind in words.
    pub fn describe(self) -> &'static str {
        match self {
            Self::Foreign(_) => "another client's file",
            Self::Administrator => "administrator",
            Self::User => "user",
            Self::Project => "project",
            Self::Local => "local to the project",
            Self::Chosen => "--config",
            Self::Environment => "environment",
            Self::Flags => "command line",
        }
    }
}

/// Entries of one layer.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Layer {
    pub(super) kind: LayerKind,
    pub(super) trusted: bool,
    pub(super) entries: Vec<LayerEntry>,
}

/// Value of one key in one layer.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Contribution {
    pub(super) kind: LayerKind,
    pub(super) trusted: bool,
    pub(super) value: ValidatedConfigValue,
    pub(super) origin: Origin,
}

impl Contribution {
    /// Returns `true` if the value takes effect although its file is not trusted. Files of other clients define
    /// servers; before they are trusted, they must not affect existing servers.
    fn counts_untrusted(&self, key: &KeyDefinition) -> bool {
        key.untrusted == UntrustedEffect::Counts && !matches!(self.kind, LayerKind::Foreign(_))
    }

    /// Returns `true` if the value may replace the effective value, and not only tighten it. A project file never
    /// replaces a setting that belongs to the user, even if it is trusted.
    fn decides(&self, key: &KeyDefinition) -> bool {
        self.trusted && !(self.kind.is_of_project() && matches!(key.merging, MergeRule::Users(_)))
    }
}

/// Values of all layers for every key, the highest precedence first.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct ContributionsByKey {
    settings: BTreeMap<Vec<String>, (&'static KeyDefinition, Vec<Contribution>)>,
}

/// A key with its effective value.
#[derive(Debug, Clone, PartialEq)]
pub struct EffectiveSetting {
    /// Names that form the path of the key.
    pub path: Vec<String>,
    pub(super) key: &'static KeyDefinition,
    /// Effective value; `None` if no layer sets it and there is no default.
    pub value: Option<ValidatedConfigValue>,
    /// Origins of the value, the most decisive first.
    pub origins: Vec<Origin>,
    /// Values of untrusted files that do not take effect.
    pub waiting: Vec<UntrustedValue>,
    pub(super) contributions: Vec<Contribution>,
}

/// A value of an untrusted file that does not take effect.
#[derive(Debug, Clone, PartialEq)]
pub struct UntrustedValue {
    /// The value; for a list that is combined from several layers, one item.
    pub value: ValidatedConfigValue,
    /// Origin of the value.
    pub origin: Origin,
}

impl ContributionsByKey {
    pub(super) fn of(layer: Layer) -> Self {
        let mut layers = Self::default();
        let Layer { kind, trusted, entries } = layer;
        for LayerEntry { path, key, value, origin } in entries {
            let contribution = Contribution { kind, trusted, value, origin };
            layers.settings.entry(path).or_insert((key, Vec::new())).1.push(contribution);
        }
        layers
    }

    /// Merges both. The order and the grouping of merges make no difference.
    #[must_use]
    pub(super) fn merge(mut self, other: Self) -> Self {
        for (path, (key, contributions)) in other.settings {
            let all = &mut self.settings.entry(path).or_insert((key, Vec::new())).1;
            all.extend(contributions);
            all.sort_by_key(|one| std::cmp::Reverse(one.kind));
        }
        self
    }

    /// Returns the items of a combined list at this dotted path that are in trusted layers, each with the kind of its
    /// layer.
    pub(super) fn trusted_items(&self, path: &str) -> Vec<(LayerKind, TextItem)> {
        let trusted = self.contributions(path).filter(|one| one.trusted);
        trusted.flat_map(|one| one.value.items().iter().map(|item| (one.kind, item.clone()))).collect()
    }

    /// Returns the values of this key in all tables of the section that are in trusted layers, even if they do not take
    /// effect.
    pub(super) fn trusted_in_tables(&self, section: &str, key: &str) -> impl Iterator<Item = &ValidatedConfigValue> {
        let is_it = move |path: &[String]| matches!(path, [first, _, last] if first == section && last == key);
        let said = self.settings.iter().filter(move |(path, _)| is_it(path.as_slice())).flat_map(|(_, (_, said))| said);
        said.filter(|one| one.trusted).map(|one| &one.value)
    }

    /// Returns `true` if a trusted layer sets the key at this dotted path.
    pub(super) fn is_set(&self, path: &str) -> bool {
        self.contributions(path).any(|one| one.trusted)
    }

    fn contributions(&self, path: &str) -> impl Iterator<Item = &Contribution> {
        let path: Vec<String> = path.split('.').map(str::to_owned).collect();
        self.settings.get(&path).into_iter().flat_map(|(_, contributions)| contributions)
    }

    /// Returns the effective values.
    pub(super) fn resolve(mut self) -> ResolvedSettings {
        // In sequence: a value removed for one group must not replace anything in the next group.
        for whole in KEY_GROUPS {
            self.keep_together(whole);
        }
        let settings = self.settings.into_iter();
        let settings =
            settings.map(|(path, (key, contributions))| (path.clone(), resolve(path, key, contributions))).collect();
        ResolvedSettings { settings }
    }

    /// Removes trusted values of the keys of this group, so that the keys of a table take effect together: values of
    /// layers below the one that sets a head of the group, and, for a group of one file, also values of project layers
    /// above it.
    fn keep_together(&mut self, whole: &KeyOverrideGroup) {
        let deciding = self.deciding_layers(whole);
        for (path, (key, contributions)) in &mut self.settings {
            let Some((section, table, last)) = in_table(path) else { continue };
            if key.merging != MergeRule::Launch || !whole.holds(section, last) {
                continue;
            }
            let floor = deciding.get(table).copied();
            let counts = |kind: LayerKind| match whole.is_one_file && kind.is_of_project() {
                // If no layer sets another address, the default address applies.
                true => floor.is_none_or(|floor| kind == floor),
                false => floor.is_none_or(|floor| kind >= floor),
            };
            contributions.retain(|one| !one.trusted || counts(one.kind));
        }
    }

    /// Returns, for each table of the section, the highest trusted layer that sets a head of this group.
    fn deciding_layers(&self, whole: &KeyOverrideGroup) -> BTreeMap<String, LayerKind> {
        let mut deciding = BTreeMap::new();
        for (path, (_, contributions)) in &self.settings {
            if let Some((section, table, key)) = in_table(path)
                && section == whole.section
                && whole.heads.contains(&key)
                && let Some(highest) = contributions.iter().filter(|one| one.trusted).map(|one| one.kind).max()
            {
                let floor = deciding.entry(table.to_owned()).or_insert(highest);
                *floor = highest.max(*floor);
            }
        }
        deciding
    }
}

/// Returns section, table and key of a path. For a key of the section itself, the name of the table is empty.
fn in_table(path: &[String]) -> Option<(&str, &str, &str)> {
    match path {
        [section, key] => Some((section, "", key)),
        [section, search, table, key] if section == "tools" && search == "search" => Some((section, table, key)),
        [section, table, key] | [section, table, key, _] => Some((section, table, key)),
        _ => None,
    }
}

fn resolve(path: Vec<String>, key: &'static KeyDefinition, contributions: Vec<Contribution>) -> EffectiveSetting {
    let trusted: Vec<&Contribution> = contributions.iter().filter(|one| one.decides(key)).collect();
    let (mut value, mut origins) =
        trusted_value(key, &trusted, &contributions).unwrap_or_else(|| (default_of(key), vec![Origin::Default]));
    let mut waiting = Vec::new();
    for one in contributions.iter().filter(|one| !one.decides(key)) {
        match key.untrusted {
            _ if one.counts_untrusted(key) => {}
            _ if matches!(one.kind, LayerKind::Foreign(_)) => waiting.extend(UntrustedValue::of(key, one)),
            // Any limit is stricter than no limit.
            UntrustedEffect::Tightens(StrictnessOrder::Lowest) if value.is_none() => {
                (value, origins) = (Some(one.value.clone()), vec![one.origin.clone()]);
            }
            UntrustedEffect::Tightens(strictness)
                if value.as_ref().is_some_and(|v| strictness.is_stricter(&one.value, v)) =>
            {
                (value, origins) = (Some(one.value.clone()), vec![one.origin.clone()]);
            }
            UntrustedEffect::Tightens(_) if value.as_ref().is_some_and(|value| value.same(&one.value)) => {}
            // Trusting the file would make no difference.
            _ if matches!(key.merging, MergeRule::Users(_)) => {}
            UntrustedEffect::Waits
            | UntrustedEffect::Counts
            | UntrustedEffect::Tightens(_)
            | UntrustedEffect::Narrows => waiting.extend(UntrustedValue::of(key, one)),
        }
    }
    EffectiveSetting { path, key, value, origins, waiting, contributions }
}

/// Returns the value of the trusted layers and its origins; `None` if they do not set the key.
fn trusted_value(
    key: &KeyDefinition,
    trusted: &[&Contribution],
    all: &[Contribution],
) -> Option<(Option<ValidatedConfigValue>, Vec<Origin>)> {
    let of = |one: &Contribution| (Some(one.value.clone()), vec![one.origin.clone()]);
    match key.merging {
        MergeRule::Highest | MergeRule::Launch | MergeRule::Own => trusted.first().map(|highest| of(highest)),
        MergeRule::Capped => {
            let highest = trusted.first()?;
            let ceiling = trusted.iter().find(|one| one.kind == LayerKind::Administrator);
            Some(match ceiling {
                Some(ceiling) if StrictnessOrder::Lowest.is_stricter(&ceiling.value, &highest.value) => of(ceiling),
                _ => of(highest),
            })
        }
        MergeRule::Strictest(strictness) | MergeRule::Users(strictness) => {
            let (first, rest) = trusted.split_first()?;
            let joined = rest.iter().fold(first.value.clone(), |all, one| strictness.join(&all, &one.value));
            let decisive = trusted.iter().find(|one| one.value.same(&joined)).unwrap_or(first);
            Some((Some(joined), vec![decisive.origin.clone()]))
        }
        MergeRule::Sum => {
            let counting: Vec<&Contribution> =
                all.iter().filter(|one| one.trusted || one.counts_untrusted(key)).collect();
            let items = counting.iter().flat_map(|one| one.value.items().to_vec()).collect();
            let origins = counting.iter().map(|one| one.origin.clone()).collect();
            (!counting.is_empty()).then_some((Some(ValidatedConfigValue::List(items)), origins))
        }
        // Computed where the setting is used.
        MergeRule::Steps => None,
    }
}

/// Returns the default of a key. Tests check that all defaults are valid JSON.
fn default_of(key: &KeyDefinition) -> Option<ValidatedConfigValue> {
    if key.path == ["sandbox", "network"] {
        return Some(ValidatedConfigValue::List(Vec::new()));
    }
    Some(match serde_json::from_str(key.default?).ok()? {
        serde_json::Value::Bool(value) => ValidatedConfigValue::Boolean(value),
        serde_json::Value::Number(number) => match number.as_u64() {
            Some(whole) => ValidatedConfigValue::Integer(whole),
            None => ValidatedConfigValue::Number(number.as_f64()?),
        },
        serde_json::Value::String(text) => ValidatedConfigValue::Text(text),
        serde_json::Value::Array(items) => {
            let texts = items.iter().filter_map(|item| item.as_str());
            ValidatedConfigValue::List(texts.map(|text| TextItem::new(text, Origin::Default)).collect())
        }
        serde_json::Value::Object(_) if key.kind == schema::ValueKind::Json => {
            ValidatedConfigValue::Json(serde_json::Map::new())
        }
        serde_json::Value::Object(_) => ValidatedConfigValue::Map(Vec::new()),
        serde_json::Value::Null => return None,
    })
}

impl UntrustedValue {
    fn of(key: &KeyDefinition, one: &Contribution) -> Vec<Self> {
        match (&one.value, key.merging) {
            (ValidatedConfigValue::List(items), MergeRule::Sum) => items
                .iter()
                .map(|item| Self { value: ValidatedConfigValue::Text(item.text.clone()), origin: item.origin.clone() })
                .collect(),
            (value, _) => vec![Self { value: value.clone(), origin: one.origin.clone() }],
        }
    }
}

impl StrictnessOrder {
    /// Returns `true` if `new` is strictly more restrictive than `old`.
    fn is_stricter(self, new: &ValidatedConfigValue, old: &ValidatedConfigValue) -> bool {
        self.join(new, old).same(new) && !new.same(old)
    }

    /// Returns the value that permits only what both permit.
    fn join(self, a: &ValidatedConfigValue, b: &ValidatedConfigValue) -> ValidatedConfigValue {
        let first = match (self, a, b) {
            (Self::Hosts, ValidatedConfigValue::List(a), ValidatedConfigValue::List(b)) => {
                let both = |item: &&TextItem| b.iter().any(|other| other.text == item.text);
                return ValidatedConfigValue::List(a.iter().filter(both).cloned().collect());
            }
            (Self::Lowest, ValidatedConfigValue::Integer(a), ValidatedConfigValue::Integer(b)) => a <= b,
            (Self::Lowest, ValidatedConfigValue::Number(a), ValidatedConfigValue::Number(b)) => a <= b,
            (Self::True, ValidatedConfigValue::Boolean(a), ValidatedConfigValue::Boolean(_)) => *a,
            (Self::False, ValidatedConfigValue::Boolean(a), ValidatedConfigValue::Boolean(_)) => !*a,
            (Self::Mode, ValidatedConfigValue::Text(a), ValidatedConfigValue::Text(b)) => leniency(a) <= leniency(b),
            _ => true,
        };
        if first { a.clone() } else { b.clone() }
    }
}

/// Returns a rank that increases from the strictest mode to the most lenient one.
fn leniency(mode: &str) -> u8 {
    match PermissionMode::parse(mode) {
        Some(PermissionMode::Plan) => 0,
        Some(PermissionMode::DontAsk) => 1,
        Some(PermissionMode::Default) | None => 2,
        Some(PermissionMode::AcceptEdits) => 3,
        Some(PermissionMode::Bypass) => 4,
    }
}

/// Every key that a layer sets, with its effective value.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ResolvedSettings {
    settings: BTreeMap<Vec<String>, EffectiveSetting>,
}

impl ResolvedSettings {
    /// Returns the setting at this dotted path, which must not contain a name chosen by the user. If no layer sets it,
    /// returns its default; `None` if there is no such key.
    pub(super) fn setting(&self, path: &str) -> Option<EffectiveSetting> {
        let names: Vec<String> = path.split('.').map(str::to_owned).collect();
        match self.settings.get(&names) {
            Some(setting) => Some(setting.clone()),
            None => schema::named(path).map(|key| resolve(names, key, Vec::new())),
        }
    }

    /// Returns the effective value at this dotted path.
    pub(super) fn value(&self, path: &str) -> Option<ValidatedConfigValue> {
        self.setting(path)?.value
    }

    /// Returns `true` if the value at this dotted path is `true`.
    pub(super) fn is_true(&self, path: &str) -> bool {
        self.value(path) == Some(ValidatedConfigValue::Boolean(true))
    }

    /// Returns the most decisive origin of the value at this dotted path.
    pub(super) fn origin(&self, path: &str) -> Origin {
        self.setting(path).and_then(|setting| setting.origins.into_iter().next()).unwrap_or(Origin::Default)
    }

    /// Returns the setting of a key without names of the user; its default if no layer sets it.
    fn setting_of(&self, key: &'static KeyDefinition) -> EffectiveSetting {
        let names: Vec<String> = key.path.iter().map(|name| (*name).to_owned()).collect();
        match self.settings.get(&names) {
            Some(setting) => setting.clone(),
            None => resolve(names, key, Vec::new()),
        }
    }

    /// Returns the setting at this path, if a layer sets it.
    pub(super) fn at(&self, path: &[&str]) -> Option<&EffectiveSetting> {
        let path: Vec<String> = path.iter().map(|name| (*name).to_owned()).collect();
        self.settings.get(&path)
    }

    /// Replaces the setting with the same path.
    pub(super) fn put(&mut self, setting: EffectiveSetting) {
        self.settings.insert(setting.path.clone(), setting);
    }

    /// Returns the settings for each name in a section, for example `mcp_servers` by server and then by key.
    pub(super) fn named(&self, section: &str) -> BTreeMap<String, BTreeMap<&str, &EffectiveSetting>> {
        let mut named: BTreeMap<String, BTreeMap<&str, &EffectiveSetting>> = BTreeMap::new();
        for (path, setting) in &self.settings {
            if let [first, name, key] = path.as_slice()
                && first == section
            {
                named.entry(name.clone()).or_default().insert(key, setting);
            }
        }
        named
    }

    /// Sets a key in all tables of a section in which it has only its default value.
    pub(super) fn fill_in(&mut self, section: &str, name: &str, value: &ValidatedConfigValue, origin: &Origin) {
        let Some(key) = schema::KEYS.iter().find(|key| key.path == [section, "*", name]) else { return };
        let tables: Vec<String> = self.named(section).into_keys().collect();
        for table in tables {
            let path = vec![section.to_owned(), table, name.to_owned()];
            let setting = self.settings.entry(path.clone()).or_insert_with(|| resolve(path, key, Vec::new()));
            if setting.origins == [Origin::Default] {
                (setting.value, setting.origins) = (Some(value.clone()), vec![origin.clone()]);
            }
        }
    }

    /// Returns the values of a section as a JSON object, without the tables named by the user. Keys without a value are
    /// omitted.
    pub(super) fn section(&self, section: &str) -> serde_json::Value {
        let keys = schema::KEYS.iter().filter(|key| key.path[0] == section && !key.path.contains(&"*"));
        let values = keys.filter_map(|key| Some((key.path[1].to_owned(), self.setting_of(key).value?.to_json())));
        values.collect::<serde_json::Map<_, _>>().into()
    }

    /// Returns the values of one named table of a section as a JSON object, including defaults.
    pub(super) fn named_section(&self, section: &str, name: &str) -> serde_json::Value {
        let keys = schema::KEYS.iter().filter(|key| key.path.len() == 3 && key.path[0] == section);
        let values = keys.filter_map(|key| {
            let path = vec![section.to_owned(), name.to_owned(), key.path[2].to_owned()];
            let value = match self.settings.get(&path) {
                Some(setting) => setting.value.clone(),
                None => default_of(key),
            };
            Some((key.path[2].to_owned(), value?.to_json()))
        });
        values.collect::<serde_json::Map<_, _>>().into()
    }

    /// Returns every setting: the fixed keys in the order of the documentation, then those with names chosen by the
    /// user, by path.
    pub fn all(&self) -> Vec<EffectiveSetting> {
        self.all_of(|_| true)
    }

    /// Returns the settings of a section in the order of [`all`](Self::all).
    pub(super) fn all_in(&self, section: &str) -> Vec<EffectiveSetting> {
        self.all_of(|key| key.path[0] == section)
    }

    fn all_of(&self, is_wanted: impl Fn(&KeyDefinition) -> bool) -> Vec<EffectiveSetting> {
        let has_name = |key: &KeyDefinition| key.path.contains(&"*");
        let plain = schema::KEYS.iter().filter(|key| !has_name(key) && is_wanted(key));
        let named = self.settings.values().filter(|setting| has_name(setting.key) && is_wanted(setting.key));
        plain.map(|key| self.setting_of(key)).chain(named.cloned()).collect()
    }
}

impl EffectiveSetting {
    /// Returns the dotted path.
    pub fn name(&self) -> String {
        written(&self.path)
    }

    /// Returns the value for display and logs. Potential secrets are masked.
    pub fn shown(&self) -> Option<ValidatedConfigValue> {
        self.value.as_ref().map(|value| self.masked(value))
    }

    /// Returns the waiting values, with potential secrets masked.
    pub fn shown_waiting(&self) -> Vec<UntrustedValue> {
        let masked =
            |one: &UntrustedValue| UntrustedValue { value: self.masked(&one.value), origin: one.origin.clone() };
        self.waiting.iter().map(masked).collect()
    }

    /// Masks values of environments and headers, except for their references to variables. Removes text that resembles a
    /// key from settings of servers, hooks, models and services.
    fn masked(&self, value: &ValidatedConfigValue) -> ValidatedConfigValue {
        let with_text = |item: &TextItem, text: String| TextItem::new(text, item.origin.clone());
        let without_keys = |text: &str| redacted(text).into_owned();
        let may_hold_keys =
            ["mcp_servers", "hooks", "models", "web", "search", "google", "linkedin", "anthropic_admin"]
                .contains(&self.key.path[0]);
        match value {
            ValidatedConfigValue::Map(members) => {
                let masked =
                    members.iter().map(|(name, item)| (name.clone(), with_text(item, expansion::masked(&item.text))));
                ValidatedConfigValue::Map(masked.collect())
            }
            ValidatedConfigValue::Text(text)
                if self.key.path.last().is_some_and(|key| key.ends_with("client_secret")) =>
            {
                ValidatedConfigValue::Text(expansion::masked(text))
            }
            ValidatedConfigValue::List(items) if may_hold_keys => {
                ValidatedConfigValue::List(items.iter().map(|item| with_text(item, without_keys(&item.text))).collect())
            }
            ValidatedConfigValue::Text(text) if may_hold_keys => ValidatedConfigValue::Text(without_keys(text)),
            _ => value.clone(),
        }
    }
}

#[cfg(test)]
mod tests;

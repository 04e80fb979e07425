//! `[views.NAME]`: a selection of tools, resources and prompts with rules, limits and changed definitions of its own.
//!
//! A view narrows what the configuration permits, and never adds a tool or a permission.

mod overlays;
pub mod view_file;

pub use overlays::check_overlays;

use crate::config::{
    layers::{Contribution, EffectiveSetting, LayerKind, ResolvedSettings, folders::StandardFolders},
    sections::{policy, profiles::AgentProfile},
    tree::{
        origin::Origin,
        problem::Problem,
        value::{TextItem, ValidatedConfigValue},
    },
};
use serde_json::{Map, json};
use std::{collections::BTreeMap, sync::Arc, time::Duration};
use toolstead_domain::{
    Effect, PermissionMode, PermissionPolicy, PermissionRule, ToolName, ToolOverlay, ToolSelection, View,
    ViewCallLimits, ViewContent,
    context::{GET_PROMPT, READ_RESOURCE},
    tool_input_schema::nearest_name,
};

/// A view of the configuration.
#[derive(Debug, Clone, PartialEq)]
pub struct ConfiguredView {
    /// Name of the view.
    pub name: String,
    /// Selection of tools.
    pub tools: ToolSelection,
    /// Rules that apply in addition to those of the policy.
    pub rules: Vec<Arc<PermissionRule>>,
    /// Overlays, resources, prompts and limits.
    pub content: ViewContent,
    /// The keys of the view as written, for a file of its own.
    pub written: Map<String, serde_json::Value>,
    /// Origin of the first key of the view.
    pub origin: Origin,
    /// Origins of the overlays, by the name of the tool.
    overlay_origins: BTreeMap<String, Origin>,
}

/// Error: no view has this name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("no view is called `{name}`; {advice}")]
pub struct NoSuchView {
    name: String,
    advice: String,
}

impl NoSuchView {
    /// Creates the error for a name that is not among `known`.
    pub fn new<'n>(name: &str, known: impl Iterator<Item = &'n str>) -> Self {
        let known: Vec<&str> = known.collect();
        let advice = match nearest_name(name, known.iter().copied()) {
            Some(near) => format!("did you mean `{near}`?"),
            None if known.is_empty() => "there is none: write `[views.NAME]` into a configuration file".into(),
            None => format!("there are {}", known.join(", ")),
        };
        Self { name: name.chars().take(64).collect(), advice }
    }
}

impl ConfiguredView {
    /// Returns the view for an application with this policy, which applies in addition to that of the view.
    pub fn view(&self, policy: &PermissionPolicy) -> Arc<View> {
        let has_allow_rules = self.rules.iter().any(|rule| rule.effect == Effect::Allow);
        let window = policy.window(self.tools.clone());
        let mode = if has_allow_rules { PermissionMode::Default } else { window.mode };
        let policy = PermissionPolicy { mode, rules: self.rules.clone(), ..window };
        View::with_content(self.name.as_str(), Arc::new(policy), self.content.clone())
    }
}

/// The keys of one view in its file.
#[derive(Default)]
struct ViewSection<'a> {
    keys: BTreeMap<&'a str, &'a Contribution>,
    overlays: BTreeMap<&'a str, BTreeMap<&'a str, &'a Contribution>>,
}

/// Returns the views, sorted by name, and the names and patterns of tools in them, for checks. A view is defined by one
/// file: the one with the highest precedence, and a file of a project only if no other file defines a view of that
/// name. Stores the effective values in `resolved`; notes report views that wait for trust or are not used.
pub(super) fn views(
    resolved: &mut ResolvedSettings,
    folders: &StandardFolders,
    problems: &mut Vec<Problem>,
    notes: &mut Vec<Problem>,
) -> (Vec<ConfiguredView>, Vec<TextItem>) {
    let mut by_name: BTreeMap<String, Vec<EffectiveSetting>> = BTreeMap::new();
    for setting in resolved.all_in("views") {
        by_name.entry(setting.path[1].clone()).or_default().push(setting);
    }
    let (mut views, mut chosen) = (Vec::new(), Vec::new());
    for (name, settings) in by_name {
        let Some(kind) = deciding_layer(&settings) else {
            notes.extend(waiting(&name, &settings));
            continue;
        };
        notes.extend(ignored(&name, kind, &settings));
        let mut view = ViewSection::default();
        for setting in &settings {
            let Some(one) = setting.contributions.iter().find(|one| one.trusted && one.kind == kind) else { continue };
            match setting.path.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
                [_, _, "overlay", tool, key] => drop(view.overlays.entry(tool).or_default().insert(key, one)),
                [_, _, key] => drop(view.keys.insert(key, one)),
                _ => {}
            }
        }
        views.extend(view.parse(&name, folders, &mut chosen, problems));
        for setting in &settings {
            let one = setting.contributions.iter().find(|one| one.trusted && one.kind == kind);
            let (value, origins) = (one.map(|one| one.value.clone()), one.map(|one| one.origin.clone()));
            resolved.put(EffectiveSetting { value, origins: origins.into_iter().collect(), ..setting.clone() });
        }
    }
    (views, chosen)
}

/// Returns the layer that defines the view; `None` if no trusted layer defines it.
fn deciding_layer(settings: &[EffectiveSetting]) -> Option<LayerKind> {
    let trusted = || settings.iter().flat_map(|setting| &setting.contributions).filter(|one| one.trusted);
    let own = trusted().map(|one| one.kind).filter(|kind| !kind.is_of_project()).max();
    own.or_else(|| trusted().map(|one| one.kind).max())
}

fn waiting(name: &str, settings: &[EffectiveSetting]) -> Option<Problem> {
    let waiting = settings.iter().flat_map(|setting| &setting.waiting).next()?;
    let Origin::File(path, _) = &waiting.origin else { return None };
    let message = format!("the view `{name}` waits for `toolstead config trust {}`", path.display());
    Some(Problem::new(waiting.origin.clone(), message))
}

/// Returns a note if a file with a definition of the view is not used.
fn ignored(name: &str, kind: LayerKind, settings: &[EffectiveSetting]) -> Option<Problem> {
    let mut contributions = settings.iter().flat_map(|setting| &setting.contributions);
    let other = contributions.find(|one| one.trusted && one.kind != kind)?;
    let message = format!("the view `{name}` of {} is not used: another file defines it", other.origin.place());
    Some(Problem::new(other.origin.clone(), message))
}

impl ViewSection<'_> {
    fn parse(
        &self,
        name: &str,
        folders: &StandardFolders,
        chosen: &mut Vec<TextItem>,
        problems: &mut Vec<Problem>,
    ) -> Option<ConfiguredView> {
        let first = self.keys.values().chain(self.overlays.values().flat_map(BTreeMap::values)).next();
        let origin = first.map_or(Origin::Default, |one| one.origin.clone());
        let texts = |key: &str| self.items(key).iter().map(|item| item.text.clone()).collect::<Vec<_>>();
        chosen.extend(self.items("tools").iter().cloned());
        // These names produce a note if no such server is configured. Other names are checked with the overlays.
        let upstream = self.overlay_origins().into_iter().filter(|(tool, _)| tool.starts_with("mcp__"));
        chosen.extend(upstream.map(|(tool, origin)| TextItem::new(tool, origin)));
        let (resources, prompts) = (texts("resources"), texts("prompts"));
        let tools = match self.keys.get("tools") {
            None => ToolSelection::all(),
            Some(_) => {
                let requests = [(READ_RESOURCE, !resources.is_empty()), (GET_PROMPT, !prompts.is_empty())];
                let requests = requests.into_iter().filter(|(_, is_offered)| *is_offered).map(|(name, _)| name.into());
                ToolSelection::only(texts("tools").into_iter().chain(requests))
            }
        };
        let mut rules = Vec::new();
        for effect in [Effect::Deny, Effect::Ask, Effect::Allow] {
            for item in self.items(effect.as_str()) {
                match policy::parsed(effect, &item.text, &item.origin, folders) {
                    Ok(rule) => rules.push(Arc::new(rule)),
                    Err(error) => problems.push(Problem::new(item.origin.clone(), error.reason)),
                }
            }
        }
        let found = problems.len();
        let overlays = self.overlays(name, problems);
        let content = match ViewContent::new(overlays) {
            Ok(content) => content,
            Err(error) => {
                let origin = self.origin_of_overlay(&error.second).unwrap_or(origin);
                problems.push(Problem::new(origin, format!("`views.{name}`: {error}")));
                return None;
            }
        };
        let limits = ViewCallLimits {
            timeout: self.integer("timeout_seconds").map(Duration::from_secs),
            output_characters: self.count("output_bytes"),
            open_calls: self.count("calls_in_flight"),
        };
        (problems.len() == found).then(|| ConfiguredView {
            name: name.to_owned(),
            tools,
            rules,
            content: content.with_resources(resources).with_prompts(prompts).with_limits(limits),
            written: self.written(),
            origin,
            overlay_origins: self.overlay_origins(),
        })
    }

    fn overlays(&self, view: &str, problems: &mut Vec<Problem>) -> BTreeMap<String, ToolOverlay> {
        let mut overlays = BTreeMap::new();
        for (tool, keys) in &self.overlays {
            let mut overlay = ToolOverlay::default();
            for (key, one) in keys {
                match (*key, &one.value) {
                    ("name", ValidatedConfigValue::Text(text)) => match ToolName::parse(text) {
                        Ok(name) => overlay.name = Some(name).filter(|name| name.as_str() != *tool),
                        Err(error) => {
                            let message = format!("`views.{view}.overlay.{tool}.name`: {error}");
                            problems.push(Problem::new(one.origin.clone(), message));
                        }
                    },
                    ("description", ValidatedConfigValue::Text(text)) => overlay.description = Some(text.clone()),
                    ("fixed", ValidatedConfigValue::Json(members)) => overlay.fixed = members.clone(),
                    ("hide", value) => overlay.hidden = value.items().iter().map(|item| item.text.clone()).collect(),
                    _ => {}
                }
            }
            overlays.insert((*tool).to_owned(), overlay);
        }
        overlays
    }

    fn items(&self, key: &str) -> &[TextItem] {
        self.keys.get(key).map_or(&[], |one| one.value.items())
    }

    fn integer(&self, key: &str) -> Option<u64> {
        match self.keys.get(key)?.value {
            ValidatedConfigValue::Integer(number) => Some(number),
            _ => None,
        }
    }

    fn count(&self, key: &str) -> Option<usize> {
        usize::try_from(self.integer(key)?).ok()
    }

    fn origin_of_overlay(&self, tool: &str) -> Option<Origin> {
        Some(self.overlays.get(tool)?.values().next()?.origin.clone())
    }

    fn overlay_origins(&self) -> BTreeMap<String, Origin> {
        let origin = |tool: &&str| Some(((*tool).to_owned(), self.origin_of_overlay(tool)?));
        self.overlays.keys().filter_map(origin).collect()
    }

    fn written(&self) -> Map<String, serde_json::Value> {
        let members = |keys: &BTreeMap<&str, &Contribution>| -> Map<String, serde_json::Value> {
            keys.iter().map(|(key, one)| ((*key).to_owned(), one.value.to_json())).collect()
        };
        let mut written = members(&self.keys);
        if !self.overlays.is_empty() {
            let overlays = self.overlays.iter().map(|(tool, keys)| ((*tool).to_owned(), members(keys).into()));
            written.insert("overlay".into(), json!(overlays.collect::<Map<_, _>>()));
        }
        written
    }
}

/// Checks that every view that a profile names exists.
pub(super) fn check_profiles(profiles: &[AgentProfile], views: &[ConfiguredView], problems: &mut Vec<Problem>) {
    for profile in profiles {
        let Some(view) = &profile.view else { continue };
        if !views.iter().any(|one| one.name == *view) {
            let error = NoSuchView::new(view, views.iter().map(|one| one.name.as_str()));
            problems.push(Problem::new(profile.origin.clone(), format!("`profiles.{}.view`: {error}", profile.name)));
        }
    }
}

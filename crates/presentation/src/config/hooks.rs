//! `[hooks]`: programs that run before and after calls, defined in Toolstead's own form or in settings files of Claude
//! Code.

pub(super) mod executable;
pub mod gates;
pub mod hook_selector_checks;
mod settings_file;

use crate::config::{
    ConfigFile, FileTrust,
    layers::{
        EffectiveSetting, LayerKind, ResolvedSettings, environment::EnvironmentVariables, folders::StandardFolders,
    },
    sections::section,
    tree::{
        check::PathBase, expansion::expand, origin::Origin, problem::Problem, source_file::project_of,
        value::ValidatedConfigValue,
    },
    trust::{self, TrustList},
};
use gates::GateDefinitionFiles;
use hook_selector_checks::{MatcherWithOrigin, ToolHookSelectors};
use serde::Deserialize;
use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
    time::Duration,
};
use toolstead_domain::WorkspaceRoots;
use toolstead_infrastructure::hooks::{
    definition::{FailurePolicy, HookDefinition, HookEvent, HookProgram},
    filter::HookFilter,
    matcher::Matcher,
};

/// Maximum number of hooks.
const MAX_HOOKS: usize = 200;

/// Hooks of all layers.
#[derive(Debug, Clone, Default)]
pub struct ConfiguredHooks {
    /// Hooks that run. Their decisions are applied in this order.
    pub definitions: Vec<HookDefinition>,
    /// Origin of each entry in `definitions`.
    places: Vec<Origin>,
    /// Maximum number of hooks that run concurrently.
    pub concurrency: usize,
    /// Hooks that do not run, for display: Toolstead does not support their event or type, or their file is not
    /// trusted.
    pub idle: Vec<InactiveHook>,
    /// Files that decide what hooks do. No tool may change them.
    guarded: Vec<(PathBuf, Origin)>,
    /// Matchers and filters, for checks. Boxed because configurations are passed by value and this is rarely read.
    choices: Box<ToolHookSelectors>,
    /// Files that define gates.
    gates: Box<GateDefinitionFiles>,
}

/// A hook that does not run, because Toolstead does not support its event or type, or because its file is not trusted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InactiveHook {
    /// Origin of the hook.
    pub origin: Origin,
    /// Event at which the hook would run.
    pub event: String,
    /// Reason why the hook does not run.
    pub reason: String,
    /// Command line that the hook runs once its file is trusted; `None` if trust does not change anything.
    pub waiting: Option<String>,
}

/// Context in which hooks are loaded.
pub(super) struct HookLoadContext<'a> {
    pub(super) folders: &'a StandardFolders,
    pub(super) environment: &'a EnvironmentVariables,
    pub(super) roots: &'a WorkspaceRoots,
    pub(super) trusted: &'a TrustList,
}

impl HookLoadContext<'_> {
    /// Returns the folder in which a hook starts if it does not define one.
    fn start(&self) -> &Path {
        self.roots.start().unwrap_or(&self.folders.start)
    }
}

/// The keys of `[hooks]` other than the hooks themselves.
#[derive(Debug, Deserialize)]
struct HookLimits {
    #[serde(rename = "import")]
    _import: Vec<String>,
    timeout_seconds: u64,
    concurrency: usize,
}

/// A hook as written, in Toolstead's own form or in that of Claude Code.
#[derive(Debug, Default)]
struct HookEntry {
    name: String,
    event: Option<HookEvent>,
    matcher: Option<(String, Origin)>,
    filter: Option<(String, Origin)>,
    command: Option<String>,
    args: Option<Vec<String>>,
    env: BTreeMap<String, String>,
    timeout: Option<Duration>,
    gate: bool,
    on_error: Option<FailurePolicy>,
    background: bool,
    /// `true` if the hook is defined in a file of Claude Code.
    is_of_claude_code: bool,
    /// Folder of the project whose file defines the hook. Trust in that file does not extend to files elsewhere.
    folder: Option<PathBuf>,
}

/// Returns all configured hooks. Adds the settings files that were read for them to `files`.
pub(super) fn hooks(
    resolved: &ResolvedSettings,
    surroundings: &HookLoadContext<'_>,
    files: &mut Vec<ConfigFile>,
    problems: &mut Vec<Problem>,
    notes: &mut Vec<Problem>,
) -> ConfiguredHooks {
    let (mut hooks, imported) = read(resolved, surroundings, problems, notes);
    files.extend(imported);
    hooks.look_for_waiting_gates(files, surroundings.trusted, surroundings.folders);
    hooks
}

/// Returns all configured hooks, and the settings files that were read for them.
fn read(
    resolved: &ResolvedSettings,
    surroundings: &HookLoadContext<'_>,
    problems: &mut Vec<Problem>,
    notes: &mut Vec<Problem>,
) -> (ConfiguredHooks, Vec<ConfigFile>) {
    let common: HookLimits = match section(resolved, "hooks") {
        Ok(common) => common,
        Err(problem) => {
            problems.push(problem);
            return Default::default();
        }
    };
    let timeout = Duration::from_secs(common.timeout_seconds);
    let mut hooks = ConfiguredHooks { concurrency: common.concurrency, ..ConfiguredHooks::default() };
    let mut files = Vec::new();
    for (written, origin) in own(resolved) {
        let name = written.name.clone();
        if let Err(reason) = hooks.add(written, &origin, timeout, surroundings) {
            problems.push(Problem::new(origin, format!("`hooks.{name}`: {reason}")));
        }
    }
    let import = resolved.setting("hooks.import");
    let importing = import.iter().flat_map(|setting| &setting.contributions).filter(|one| one.trusted);
    for (kind, item) in importing.flat_map(|one| one.value.items().iter().map(|item| (one.kind, item))) {
        let path = Path::new(&item.text);
        let project = project_folder(kind, &item.origin);
        match settings_file::read(kind, path, project.as_deref(), surroundings) {
            Err(problem) => problems.push(Problem::new(item.origin.clone(), problem.to_string())),
            Ok(None) if surroundings.trusted.held_gate(path) => {
                let message = format!(
                    "`{}` held a gate and is gone, so nothing starts: restore it, or remove this import",
                    path.display()
                );
                problems.push(Problem::new(item.origin.clone(), message));
            }
            Ok(None) => {
                let message = format!("there is no `{}` to import hooks from, so none runs", path.display());
                notes.push(Problem::new(item.origin.clone(), message));
            }
            Ok(Some(settings)) => {
                hooks.guarded.push((settings.file.path.to_path_buf(), item.origin.clone()));
                settings.add_to(&mut hooks, timeout, surroundings, problems, notes);
                let (file, holds_gate) = (&settings.file, hooks.hold_gate(&settings.file.path));
                if file.trust == FileTrust::Always && surroundings.trusted.held_gate(path) != holds_gate {
                    problems.extend(trust::set_gate(surroundings.folders, path, holds_gate).err());
                }
                files.push(settings.file);
            }
        }
    }
    if hooks.definitions.len() > MAX_HOOKS {
        let message = format!("there are {} hooks, and at most {MAX_HOOKS} are run", hooks.definitions.len());
        problems.push(Problem::new(Origin::Default, message));
    }
    hooks.gates.of_own_form(resolved);
    notes.extend(waiting(resolved));
    (hooks, files)
}

/// Returns the hooks in Toolstead's own form. Each layer that defines a name contributes its own hook, so no layer
/// replaces the hook of another.
fn own(resolved: &ResolvedSettings) -> Vec<(HookEntry, Origin)> {
    let mut all = Vec::new();
    for (name, keys) in resolved.named("hooks") {
        let mut layers: BTreeMap<LayerKind, (HookEntry, Option<Origin>)> = BTreeMap::new();
        for (key, setting) in keys {
            for one in setting.contributions.iter().filter(|one| one.trusted) {
                let (written, place) = layers.entry(one.kind).or_default();
                written.name = name.clone();
                written.folder = project_folder(one.kind, &one.origin);
                written.take(key, &one.value, &one.origin);
                if place.is_none() || key == "command" {
                    *place = Some(one.origin.clone());
                }
            }
        }
        all.extend(layers.into_values().map(|(written, place)| (written, place.unwrap_or(Origin::Default))));
    }
    all
}

/// Returns the folder of the project that a value of this layer belongs to; `None` for values of the user or the
/// administrator.
fn project_folder(kind: LayerKind, origin: &Origin) -> Option<PathBuf> {
    match origin {
        Origin::File(path, _) if kind.is_of_project() => Some(project_of(path).to_path_buf()),
        _ => None,
    }
}

/// Returns one note for each file whose hooks wait for trust.
fn waiting(resolved: &ResolvedSettings) -> Vec<Problem> {
    let settings = resolved.named("hooks");
    let named = settings.values().flat_map(BTreeMap::values).copied();
    let import = resolved.setting("hooks.import");
    let files: BTreeSet<PathBuf> = named
        .chain(import.iter())
        .flat_map(|setting: &EffectiveSetting| &setting.waiting)
        .filter_map(|waiting| match &waiting.origin {
            Origin::File(path, _) => Some(path.to_path_buf()),
            Origin::Environment(_) | Origin::Flag(_) | Origin::Default => None,
        })
        .collect();
    files.into_iter().map(|file| waits(&file)).collect()
}

fn waits(file: &Path) -> Problem {
    let message = "its hooks do not run until `toolstead config trust` says yes to this file";
    Problem::new(Origin::file(file), message)
}

impl HookEntry {
    fn take(&mut self, key: &str, value: &ValidatedConfigValue, origin: &Origin) {
        let text = || value.as_text().map(str::to_owned);
        let placed = || Some((text()?, origin.clone()));
        match (key, value) {
            ("event", _) => self.event = value.as_text().and_then(HookEvent::parse),
            ("matcher", _) => self.matcher = placed(),
            ("if", _) => self.filter = placed(),
            ("command", _) => self.command = text(),
            ("on_error", _) => self.on_error = value.as_text().and_then(FailurePolicy::parse),
            ("args", _) => self.args = Some(value.items().iter().map(|item| item.text.clone()).collect()),
            ("env", ValidatedConfigValue::Map(members)) => {
                self.env = members.iter().map(|(name, item)| (name.clone(), item.text.clone())).collect();
            }
            ("timeout_seconds", ValidatedConfigValue::Integer(seconds)) => {
                self.timeout = Some(Duration::from_secs(*seconds))
            }
            ("gate", ValidatedConfigValue::Boolean(gate)) => self.gate = *gate,
            ("background", ValidatedConfigValue::Boolean(background)) => self.background = *background,
            _ => {}
        }
    }
}

impl ConfiguredHooks {
    /// Validates a hook and adds it, and records the files that it runs as guarded. Fails if its program is missing.
    fn add(
        &mut self,
        written: HookEntry,
        origin: &Origin,
        timeout: Duration,
        surroundings: &HookLoadContext<'_>,
    ) -> Result<(), String> {
        let event = written.event.ok_or("`event` is missing: when does it run?")?;
        let command = written.command.ok_or("`command` is missing: what does it run?")?;
        let (matcher, chosen_at) = written.matcher.unwrap_or_else(|| ("*".to_owned(), origin.clone()));
        let matcher = Matcher::parse(&matcher).map_err(|error| error.to_string())?;
        let folder = match origin {
            Origin::File(path, _) => path.parent().unwrap_or(Path::new("/")),
            Origin::Environment(_) | Origin::Flag(_) | Origin::Default => &surroundings.folders.start,
        };
        let base = PathBase { folder, home: surroundings.folders.home.as_deref() }.patterns();
        let filter_at = written.filter.as_ref().map(|(_, place)| place.clone());
        let filter = written.filter.map(|(rule, place)| HookFilter::parse(&rule, place.to_rule_origin(), &base));
        let filter = filter.transpose().map_err(|error| format!("`if`: {}", error.reason))?;
        if written.gate && !event.may_be_gate() {
            return Err(format!("`gate` is for `PreToolUse` and `UserPromptSubmit`, and this is `{}`", event.as_str()));
        }
        if written.gate && (written.on_error == Some(FailurePolicy::Allow) || written.background) {
            return Err("a gate that does not stop anything is none: drop `gate`, `background` or `on_error`".into());
        }
        let program = match written.args {
            None => HookProgram::Shell(command),
            Some(arguments) => HookProgram::Direct(command, arguments),
        };
        let start = written.folder.as_deref().unwrap_or(surroundings.start());
        let found = executable::look(&program, start, surroundings.environment)
            .map_err(|missing| format!("{missing}; the hook could not run, so nothing starts"))?;
        self.guarded.extend(found.into_iter().map(|file| (file, origin.clone())));
        let mut environment = BTreeMap::new();
        for (name, value) in written.env {
            let value = expand(&value, |name| surroundings.environment.get(name).map(str::to_owned))
                .map_err(|reason| format!("`env.{name}`: {reason}"))?;
            environment.insert(name, value);
        }
        if event.is_of_tool() {
            let chosen = MatcherWithOrigin {
                matcher: matcher.clone(),
                origin: chosen_at,
                is_gate: written.gate,
                is_of_claude_code: written.is_of_claude_code,
            };
            self.choices.add(chosen, filter.as_ref().zip(filter_at));
        }
        self.places.push(origin.clone());
        self.definitions.push(HookDefinition {
            name: written.name,
            origin: origin.to_string(),
            event,
            matcher,
            filter,
            program,
            start: written.folder,
            environment,
            timeout: written.timeout.unwrap_or(timeout),
            gate: written.gate,
            on_error: written.on_error.unwrap_or(if written.gate { FailurePolicy::Deny } else { FailurePolicy::Allow }),
            in_background: written.background,
        });
        Ok(())
    }

    /// Returns the files that decide what hooks do, each with the origin that names it.
    pub(super) fn guarded(&self) -> &[(PathBuf, Origin)] {
        &self.guarded
    }

    /// Returns remarks about matchers, given the names of each tool. An unanchored expression may match more names than
    /// its author expects.
    pub fn lint(&self, tools: &[Vec<&str>]) -> Vec<Problem> {
        let hits = |hook: &HookDefinition| {
            let hit = tools.iter().filter(|names| hook.matcher.chooses(names.iter().copied()));
            hit.filter_map(|names| names.first().map(|name| format!("`{name}`"))).collect::<Vec<_>>()
        };
        let placed = self.definitions.iter().zip(&self.places);
        let unanchored = placed.filter(|(hook, _)| hook.event.is_of_tool() && hook.matcher.is_unanchored());
        let broad = unanchored.map(|(hook, place)| (hook, place, hits(hook))).filter(|(_, _, hits)| hits.len() > 1);
        broad
            .map(|(hook, place, hits)| {
                let message = format!(
                    "the matcher `{}` is an expression without `^` and `$` and hits {} tools: {}",
                    hook.matcher,
                    hits.len(),
                    hits.join(", ")
                );
                Problem::new(place.clone(), message)
            })
            .collect()
    }
}

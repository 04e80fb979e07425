//! `[tools.NAME]`: commands and paths of one tool, as rules.

use crate::config::{
    layers::{EffectiveSetting, ResolvedSettings},
    tree::{check::PathBase, origin::Origin, problem::Problem, value::TextItem},
};
use std::{collections::BTreeMap, path::Path, sync::Arc, time::Duration};
use toolstead_domain::{Effect, PermissionRule, permission::path_pattern};
use toolstead_infrastructure::builtin::command_tools;

/// Names and aliases of the tools that change files.
const WRITING_TOOLS: &[&str] = &[
    "write_file",
    "Write",
    "file_write",
    "append_file",
    "edit_file",
    "Edit",
    "file_edit",
    "file_multi_edit",
    "multi_edit",
    "MultiEdit",
    "sed",
    "notebook_edit",
    "NotebookEdit",
];

/// Subject of the paths in a tool's block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::config) enum PathRuleScope {
    /// Changes of files, by any tool.
    Writes,
    /// All accesses of this tool.
    Other,
}

/// Returns the subject of the paths in the block with this name.
pub(in crate::config) fn path_subject(tool: &str) -> PathRuleScope {
    if WRITING_TOOLS.contains(&tool) { PathRuleScope::Writes } else { PathRuleScope::Other }
}

/// Returns the rules of all tables `[tools.NAME]`. Path rules use resolved paths, because calls are checked by those.
pub(in crate::config) fn rules(resolved: &ResolvedSettings, problems: &mut Vec<Problem>) -> Vec<Arc<PermissionRule>> {
    let mut rules = Vec::new();
    for (tool, keys) in resolved.named("tools") {
        let lists = [
            ("allowed_commands", Effect::Allow),
            ("denied_commands", Effect::Deny),
            ("allowed_paths", Effect::Allow),
            ("denied_paths", Effect::Deny),
        ];
        for (key, effect) in lists {
            let Some(setting) = keys.get(key) else { continue };
            if key.ends_with("_commands") && !command_tools().contains(&tool.as_str()) {
                let origin = setting.contributions.first().map_or(Origin::Default, |one| one.origin.clone());
                let message = format!("`{}` is for tools that run commands: `{tool}` is none", setting.name());
                problems.push(Problem::new(origin, message));
                continue;
            }
            for item in items(setting) {
                for text in texts(&tool, key, item) {
                    let base = PathBase { folder: Path::new("/"), home: None }.patterns();
                    match PermissionRule::parse(effect, &text, item.origin.to_rule_origin(), &base) {
                        Ok(rule) => {
                            let entry = format!("`{}` of `{}`", item.text, setting.name());
                            rules.push(Arc::new(rule.derived_from(entry)));
                        }
                        Err(error) => {
                            let message =
                                format!("`{}`: {:?} cannot be a rule: {}", setting.name(), item.text, error.reason);
                            problems.push(Problem::new(item.origin.clone(), message));
                        }
                    }
                }
            }
        }
    }
    rules
}

fn items(setting: &EffectiveSetting) -> &[TextItem] {
    setting.value.as_ref().map_or(&[], |value| value.items())
}

fn texts(tool: &str, key: &str, item: &TextItem) -> Vec<String> {
    if key.ends_with("_commands") {
        return vec![format!("Bash({})", item.text), format!("Bash({} *)", item.text)];
    }
    let path = crate::config::layers::folders::real(Path::new(&item.text));
    let head = match path_subject(tool) {
        PathRuleScope::Writes => "Write",
        PathRuleScope::Other => tool,
    };
    vec![format!("{head}(/{})", path_pattern::literal(&path.to_string_lossy()))]
}

/// Returns the timeout of each tool that has its own, by the name of its block.
pub(in crate::config) fn timeouts(resolved: &ResolvedSettings) -> BTreeMap<String, Duration> {
    let seconds = |keys: &BTreeMap<&str, &EffectiveSetting>| match keys.get("timeout")?.value {
        Some(crate::config::tree::value::ValidatedConfigValue::Integer(seconds)) => Some(Duration::from_secs(seconds)),
        _ => None,
    };
    resolved.named("tools").into_iter().filter_map(|(tool, keys)| Some((tool, seconds(&keys)?))).collect()
}

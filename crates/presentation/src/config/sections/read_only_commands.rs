//! `[permissions] read_only_commands`: allow rules for commands that only read.

use crate::config::{
    layers::ResolvedSettings,
    tree::{check::PathBase, origin::Origin, problem::Problem, value::ValidatedConfigValue},
};
use std::{path::Path, sync::Arc};
use toolstead_domain::{Effect, PermissionRule, ReadOnlyCommands};
use toolstead_infrastructure::shell_analysis::catalogue::READ_ONLY_COMMANDS;

/// Returns the allow rules for commands that only read, with the origin of the setting. Returns none if the setting is
/// off.
pub(in crate::config) fn rules(resolved: &ResolvedSettings, problems: &mut Vec<Problem>) -> Vec<Arc<PermissionRule>> {
    let setting = resolved.setting("permissions.read_only_commands");
    let Some(setting) = setting.filter(|setting| setting.value == Some(ValidatedConfigValue::Boolean(true))) else {
        return Vec::new();
    };
    let origin = setting.origins.first().cloned().unwrap_or(Origin::Default);
    let base = PathBase { folder: Path::new("/"), home: None }.patterns();
    let parsed = ReadOnlyCommands::new(READ_ONLY_COMMANDS).rules().filter_map(|text| {
        let rule = PermissionRule::parse(Effect::Allow, &text, origin.to_rule_origin(), &base);
        rule.map_err(|error| problems.push(Problem::new(origin.clone(), error.reason))).ok()
    });
    parsed.map(Arc::new).collect()
}

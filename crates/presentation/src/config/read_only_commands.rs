//! `[permissions] read_only_commands`: commands that only read, as allow rules.

use crate::config::{check::Base, layers::Resolved, origin::Origin, problem::Problem, value::Value};
use std::{path::Path, sync::Arc};
use toolstead_domain::permission::rule::{Effect, PermissionRule};

/// What is free. Options that would make one of them write or run something are for the analysis to find: a pattern
/// never covers those.
const PATTERNS: &[&str] = &[
    "ls *",
    "cat *",
    "echo *",
    "pwd",
    "head *",
    "tail *",
    "grep *",
    "find *",
    "wc *",
    "which *",
    "diff *",
    "stat *",
    "du *",
    "cd *",
    "git status *",
    "git log *",
    "git diff *",
    "git show *",
    "git blame *",
    "git ls-files *",
    "git rev-parse *",
    "git describe *",
    "git branch",
    "git branch --list *",
    "git remote",
    "git remote -v",
];

/// The rules, at the place of the switch; none where it is off.
pub(super) fn rules(resolved: &Resolved, problems: &mut Vec<Problem>) -> Vec<Arc<PermissionRule>> {
    let setting = resolved.setting("permissions.read_only_commands");
    let Some(setting) = setting.filter(|setting| setting.value == Some(Value::Boolean(true))) else {
        return Vec::new();
    };
    let origin = setting.origins.first().cloned().unwrap_or(Origin::Default);
    let base = Base { folder: Path::new("/"), home: None }.patterns();
    let parsed = PATTERNS.iter().filter_map(|pattern| {
        let rule = PermissionRule::parse(Effect::Allow, &format!("Bash({pattern})"), origin.to_rule_origin(), &base);
        rule.map_err(|error| problems.push(Problem::new(origin.clone(), error.reason))).ok()
    });
    parsed.map(Arc::new).collect()
}

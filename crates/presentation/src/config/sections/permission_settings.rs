//! `[permissions]`: the rules and the mode that decide calls, and the time for an approval.

use crate::config::{
    Config,
    layers::{ResolvedSettings, folders::StandardFolders},
    sections::policy,
    tree::{origin::Origin, problem::Problem, value::ValidatedConfigValue},
};
use std::{collections::BTreeMap, path::Path, sync::Arc, time::Duration};
use toolstead_domain::{PermissionMode, PermissionRule, WorkspaceRoots, permission::decision::in_shell};

/// Default of `approval_timeout`, in seconds.
const APPROVAL_SECONDS: u64 = 300;

/// Settings of `[permissions]`, and the rules of servers and tools.
#[derive(Debug, Clone)]
pub struct PermissionSettings {
    /// Permission mode: decides calls that no rule matches.
    pub mode: PermissionMode,
    /// Maximum time to wait for an approval.
    pub approval_timeout: Duration,
    /// All permission rules, including those of servers and tools.
    pub rules: Vec<Arc<PermissionRule>>,
}

impl PermissionSettings {
    pub(in crate::config) fn of(
        folders: &StandardFolders,
        resolved: &ResolvedSettings,
        roots: &WorkspaceRoots,
        problems: &mut Vec<Problem>,
    ) -> Self {
        let rules = policy::rules(folders, resolved, roots, problems);
        let mode = resolved
            .value("permissions.mode")
            .and_then(|mode| PermissionMode::parse(mode.as_text()?))
            .unwrap_or_default();
        problems.extend(forbidden_mode(mode, resolved));
        let seconds = match resolved.value("permissions.approval_timeout") {
            Some(ValidatedConfigValue::Integer(seconds)) => seconds,
            _ => APPROVAL_SECONDS,
        };
        Self { mode, approval_timeout: Duration::from_secs(seconds), rules }
    }
}

/// Returns a problem if the requested mode is forbidden by a configuration layer.
fn forbidden_mode(mode: PermissionMode, resolved: &ResolvedSettings) -> Option<Problem> {
    (mode == PermissionMode::Bypass && resolved.is_true("permissions.disable_bypass")).then(|| {
        let message = format!(
            "the mode `bypass` is forbidden by `permissions.disable_bypass` from {}: choose another mode",
            resolved.origin("permissions.disable_bypass")
        );
        Problem::new(resolved.origin("permissions.mode"), message)
    })
}

impl Config {
    /// Describes, for each file, the permission settings that wait for trust, and the command that trusts the file.
    pub fn waiting_permissions(&self) -> Vec<String> {
        let settings = self.resolved.all_in("permissions");
        let mut files: BTreeMap<Arc<Path>, (usize, usize)> = BTreeMap::new();
        for (setting, waiting) in
            settings.iter().flat_map(|setting| setting.waiting.iter().map(move |one| (setting, one)))
        {
            let Origin::File(path, _) = &waiting.origin else { continue };
            if self.files.iter().any(|file| file.path == *path && file.leads_to.is_some()) {
                continue;
            }
            let (rules, others) = files.entry(path.clone()).or_default();
            let counted = if setting.name() == "permissions.allow" { rules } else { others };
            *counted += 1;
        }
        let describe = |(path, (rules, others)): (Arc<Path>, (usize, usize))| {
            let number = |count, what| match count {
                0 => None,
                1 => Some(format!("1 {what}")),
                count => Some(format!("{count} {what}s")),
            };
            let what: Vec<String> =
                [number(rules, "allow rule"), number(others, "other setting")].into_iter().flatten().collect();
            let path = path.display().to_string();
            let verb = if rules + others == 1 { "waits" } else { "wait" };
            format!("{} of {path} {verb} for trust: `toolstead config trust {}`", what.join(" and "), in_shell(&path))
        };
        files.into_iter().map(describe).collect()
    }
}

//! Starts the configured hooks.

use super::StartupError;
use crate::config::Config;
use std::{path::Path, sync::Arc};
use toolstead_domain::Approver;
use toolstead_infrastructure::{
    child_environment,
    hooks::{
        approver::HookedApprover,
        command_hooks::{CommandHooks, HookSurroundings},
        definition::HookEvent,
    },
    sandbox::launcher::Launcher,
};

/// Starts the hooks. Returns `None` if none is configured.
pub(super) fn start(config: &Config) -> Result<Option<Arc<CommandHooks>>, StartupError> {
    if config.hooks.definitions.is_empty() {
        return Ok(None);
    }
    let launcher = Launcher::start().map_err(StartupError::Launcher)?;
    let environment = child_environment::base(|name| config.environment.get(name).map(str::to_owned));
    let has_bash = environment.get("PATH").is_some_and(|path| {
        path.split(':').any(|folder| folder.starts_with('/') && Path::new(folder).join("bash").is_file())
    });
    let surroundings = HookSurroundings {
        start: config.roots.start().unwrap_or(&config.folders.start).to_path_buf(),
        roots: config.roots.clone(),
        mode: config.permissions.mode,
        environment,
        shell: if has_bash { "bash" } else { "sh" }.into(),
        concurrency: config.hooks.concurrency,
    };
    Ok(Some(CommandHooks::new(config.hooks.definitions.clone(), surroundings, launcher)))
}

/// Wraps the approver so that hooks on approval requests run first, if there are any.
pub(super) fn before(
    approver: Arc<dyn Approver>,
    hooks: Option<&Arc<CommandHooks>>,
    config: &Config,
) -> Arc<dyn Approver> {
    let has_approval_hooks = config.hooks.definitions.iter().any(|hook| hook.event == HookEvent::PermissionRequest);
    match hooks {
        Some(hooks) if has_approval_hooks => Arc::new(HookedApprover::new(hooks.clone(), approver)),
        _ => approver,
    }
}

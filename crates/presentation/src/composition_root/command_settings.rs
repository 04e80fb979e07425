//! Settings of commands and browsers, derived from the configuration.

use crate::config::Config;
use std::sync::Arc;
use toolstead_infrastructure::{
    browser::browsers::BrowserSettings, builtin::commands::programs::CommandSettings, child_environment,
    egress::connector::Network,
};

/// Returns the settings that apply to every command.
pub(super) fn command_settings(config: &Config) -> CommandSettings {
    let usual = CommandSettings::default();
    CommandSettings {
        environment: child_environment::base(|name| config.environment.get(name).map(str::to_owned)),
        network: config.sandbox.network.clone(),
        limits: config.sandbox_limits(),
        requires_landlock: config.sandbox.requires_landlock,
        allows_tier_2: config.sandbox.allows_tier_2(),
        spool_folder: config.outputs.spool_folder.as_ref().unwrap_or(&config.database.local_folder).clone(),
        kept_bytes: usual.kept_bytes.min(config.outputs.max_bytes as u64),
    }
}

/// Returns the settings with which every browser is started.
pub(super) fn browser_settings(config: &Config, network: Arc<dyn Network>) -> BrowserSettings {
    BrowserSettings {
        program: config.outside.browser.clone(),
        idle: config.outside.browser_idle,
        start_limit: BrowserSettings::default().start_limit,
        environment: child_environment::base(|name| config.environment.get(name).map(str::to_owned)),
        limits: config.sandbox_limits(),
        requires_landlock: config.sandbox.requires_landlock,
        folder: config.database.local_folder.clone(),
        network,
        private_hosts: config.outside.private_hosts.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::layers::{
        environment::EnvironmentVariables,
        request::{ConfigFlags, ConfigRequest},
    };
    use std::path::PathBuf;

    /// The folder for large output with this configuration, below a folder that also is home and holds `disk`.
    fn check(toml: &str, expected: &str) {
        let folder = tempfile::tempdir().unwrap();
        let home = folder.path().canonicalize().unwrap();
        let administrator = home.join("etc");
        for made in [&administrator, &home.join("disk")] {
            std::fs::create_dir(made).unwrap();
        }
        std::fs::write(administrator.join("config.toml"), toml.replace('~', home.to_str().unwrap())).unwrap();
        let environment = EnvironmentVariables::new([("HOME", home.to_str().unwrap())]);
        let request = ConfigRequest {
            environment,
            start: home.clone(),
            administrator,
            file: None,
            flags: ConfigFlags::default(),
        };
        let config = Config::load(&request).unwrap();
        let spool_folder: PathBuf = command_settings(&config).spool_folder;
        assert_eq!(spool_folder, home.join(expected), "{toml}");
    }

    #[test]
    fn large_output_goes_beside_the_database_unless_a_folder_is_named() {
        check("", ".local/share/toolstead");
        check("[database]\nurl = \"sqlite://~/disk/t.db\"", "disk");
        check("[outputs]\nspool_folder = \"~/disk\"", "disk");
        check("[database]\nurl = \"sqlite://~/other/t.db\"\n[outputs]\nspool_folder = \"~/disk\"", "disk");
    }
}

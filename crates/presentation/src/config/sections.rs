//! The sections of the configuration that are plain values.

use crate::config::{layers::Resolved, origin::Origin, problem::Problem, value::Value};
use serde::{Deserialize, de::DeserializeOwned};
use std::{net::SocketAddr, path::PathBuf};
use toolstead_application::execute_tool::RecordedArguments;
use toolstead_domain::sandbox_policy::NetworkPolicy;

/// `[sandbox]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SandboxSettings {
    /// What commands reach.
    pub network: NetworkPolicy,
    /// The weakest tier that may be used.
    pub minimum_tier: u8,
    /// Whether nothing is run confined without Landlock.
    pub requires_landlock: bool,
}

/// `[limits]`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Limits {
    /// What a model gets of one result.
    pub output_bytes: usize,
    /// Images, sounds and other binary content of one result, in bytes of base64.
    pub media_bytes: usize,
    /// Seconds of a call that asks for none of its own.
    pub timeout_seconds: u64,
    /// The most seconds that a call may ask for.
    pub max_timeout_seconds: u64,
    /// Memory of a command with all its children.
    pub memory_bytes: u64,
    /// Processes of a command.
    pub processes: u32,
    /// The largest file that a command may write.
    pub file_bytes: u64,
    /// Calls that are open at once.
    pub calls_in_flight: usize,
    /// Sessions of the server at once.
    pub sessions: usize,
    /// Connections of the server at once.
    pub connections: usize,
}

/// `[audit]`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AuditSettings {
    /// What is kept of arguments: `redacted`, `full` or `none`.
    arguments: String,
    /// Whether rows survive a power cut.
    pub power_safe: bool,
    /// Rows older than so many days are deleted; `None`: never.
    pub retention_days: Option<u64>,
    /// The oldest rows are deleted while the trail is larger; `None`: never.
    pub retention_rows: Option<u64>,
}

/// `[outputs]`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OutputSettings {
    /// Outputs and changes of files that are older than so many days are forgotten.
    pub retention_days: u64,
    /// The oldest outputs and changes are forgotten while all their contents are larger.
    pub retention_bytes: u64,
    /// The folder for what is too large for memory while a command prints it; `None`: beside the database.
    pub spool_folder: Option<PathBuf>,
    /// What is kept of one output.
    pub max_bytes: usize,
}

/// `[server]`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ServerSettings {
    /// Where it listens.
    pub listen: SocketAddr,
    /// Names under which clients may reach it, besides those of loopback.
    pub allowed_hosts: Vec<String>,
    /// Origins of web pages that may call it.
    pub allowed_origins: Vec<String>,
    /// Whether lists of tools carry the schemas of built-in tools' results.
    pub output_schemas: bool,
    /// The file that holds the token.
    pub token_file: Option<PathBuf>,
    /// Seconds after which a session that nobody uses ends.
    pub session_idle_seconds: u64,
    /// Seconds that a client has for the head of a request.
    pub head_timeout_seconds: u64,
    /// Whether to log each call.
    pub log_calls: bool,
    /// Seconds that running calls have to end by themselves when the server is asked to end.
    pub drain_seconds: u64,
}

impl AuditSettings {
    /// What is kept of arguments.
    pub fn arguments(&self) -> RecordedArguments {
        match self.arguments.as_str() {
            "full" => RecordedArguments::Full,
            "none" => RecordedArguments::None,
            _ => RecordedArguments::Redacted,
        }
    }
}

impl SandboxSettings {
    /// Whether programs may be confined without namespaces, where those cannot be had.
    pub fn allows_tier_2(&self) -> bool {
        self.minimum_tier >= 2
    }

    pub(super) fn of(resolved: &Resolved) -> Self {
        let value = |path| resolved.setting(path).and_then(|setting| setting.value);
        let texts = |path| -> Vec<String> {
            value(path).iter().flat_map(|value| value.items()).map(|item| item.text.clone()).collect()
        };
        let hosts = texts("sandbox.network");
        let requires_landlock = texts("sandbox.require").iter().any(|layer| layer == "landlock");
        let tier = match value("sandbox.minimum_tier") {
            Some(Value::Integer(tier)) => u8::try_from(tier).unwrap_or(1),
            _ => 1,
        };
        let network = if hosts.is_empty() { NetworkPolicy::None } else { NetworkPolicy::Hosts(hosts) };
        Self { network, minimum_tier: tier, requires_landlock }
    }
}

/// A section as its type. The table of keys and the types say the same, which a test makes sure of.
pub(super) fn section<T: DeserializeOwned>(resolved: &Resolved, name: &str) -> Result<T, Problem> {
    serde_json::from_value(resolved.section(name))
        .map_err(|error| Problem::new(Origin::Default, format!("`[{name}]` cannot be read: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::layers::Layers;
    use toolstead_infrastructure::builtin::files::file_limits::FileLimits;

    #[test]
    fn file_tools_have_the_same_limits_with_and_without_a_configuration() {
        let resolved = Layers::default().resolve();
        assert_eq!(section::<FileLimits>(&resolved, "files").unwrap(), FileLimits::default());
    }
}

//! Sections of the configuration that consist of plain values.

pub mod agent;
pub(super) mod agent_sections;
pub(super) mod call_sections;
pub mod client_roots;
pub(super) mod command_lines;
pub mod database;
pub mod database_url;
pub mod decision_table;
pub mod idle_rules;
pub(super) mod known_models;
pub mod models;
pub mod permission_settings;
pub(super) mod plaintext_url;
pub mod policy;
pub mod profiles;
pub(super) mod read_only_commands;
pub mod services;
pub mod token;
pub(super) mod tool_block;
pub(super) mod tool_choice;
pub(super) mod tool_search;
pub mod tool_settings;

use crate::config::{
    layers::ResolvedSettings,
    tree::{origin::Origin, problem::Problem},
};
use serde::{Deserialize, Deserializer, de::DeserializeOwned};
use std::{net::SocketAddr, path::PathBuf};
use toolstead_application::RecordedArguments;
use toolstead_domain::NetworkPolicy;

/// `[sandbox]`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SandboxSettings {
    /// Hosts that commands may reach.
    #[serde(deserialize_with = "network_policy")]
    pub network: NetworkPolicy,
    /// Weakest sandbox tier that may be used: 1 with user namespaces only, 2 also without them.
    pub minimum_tier: u8,
    /// `true` if confined commands are refused when Landlock is unavailable.
    #[serde(rename = "require", deserialize_with = "includes_landlock")]
    pub requires_landlock: bool,
}

/// `[limits]`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LimitSettings {
    /// Maximum size of one result for a model, in bytes.
    pub output_bytes: usize,
    /// Maximum size of images, sounds and other binary content of one result, in bytes of base64.
    pub media_bytes: usize,
    /// Timeout in seconds of a call that requests none.
    pub timeout_seconds: u64,
    /// Maximum timeout in seconds that a call may request.
    pub max_timeout_seconds: u64,
    /// Maximum private writable memory in bytes of each process of a command, and of all its processes in a control
    /// group.
    pub memory_bytes: u64,
    /// Maximum number of processes of a command.
    pub processes: u32,
    /// Maximum size in bytes of a file that a command may write.
    pub file_bytes: u64,
    /// Maximum number of open calls, over all clients.
    pub calls_in_flight: usize,
    /// Maximum number of concurrent sessions of the server.
    pub sessions: usize,
    /// Maximum number of concurrent connections that have sent the token; as many may have sent none.
    pub connections: usize,
}

/// `[audit]`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AuditSettings {
    /// Recorded form of arguments: `redacted`, `full` or `none`.
    arguments: String,
    /// `true` if audit records are flushed so that they survive a power failure.
    pub power_safe: bool,
    /// Age in days after which audit records are deleted; `None`: never.
    pub retention_days: Option<u64>,
    /// Maximum number of audit records, beyond which the oldest are deleted; `None`: no limit.
    pub retention_rows: Option<u64>,
}

/// `[outputs]`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OutputStoreSettings {
    /// Age in days after which outputs and file changes are deleted.
    pub retention_days: u64,
    /// Maximum total size in bytes, beyond which the oldest outputs and file changes are deleted.
    pub retention_bytes: u64,
    /// Folder for output of a running command that is too large for memory; `None`: beside the database.
    pub spool_folder: Option<PathBuf>,
    /// Maximum stored size of one output, in bytes.
    pub max_bytes: usize,
}

/// `[server]`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HttpServerSettings {
    /// Address on which the server listens.
    pub listen: SocketAddr,
    /// Host names under which clients may reach the server, besides those of loopback.
    pub allowed_hosts: Vec<String>,
    /// Origins of web pages that may call the server.
    pub allowed_origins: Vec<String>,
    /// `true` if tool lists include the output schemas of built-in tools.
    pub output_schemas: bool,
    /// File with the token of the server's clients; `None`: the environment or the data folder holds it.
    pub token_file: Option<PathBuf>,
    /// Idle time in seconds after which a session ends.
    pub session_idle_seconds: u64,
    /// Maximum time in seconds for a client to send the head of a request.
    pub head_timeout_seconds: u64,
    /// `true` if the server logs each call.
    pub log_calls: bool,
    /// Time in seconds that running calls have to finish when the server shuts down.
    pub drain_seconds: u64,
}

impl AuditSettings {
    /// Returns the recorded form of arguments.
    pub fn arguments(&self) -> RecordedArguments {
        match self.arguments.as_str() {
            "full" => RecordedArguments::Full,
            "none" => RecordedArguments::None,
            _ => RecordedArguments::Redacted,
        }
    }
}

impl SandboxSettings {
    /// Returns `true` if commands may be confined without namespaces when those are unavailable.
    pub fn allows_tier_2(&self) -> bool {
        self.minimum_tier >= 2
    }
}

impl LimitSettings {
    /// Returns the limits. Adds a note if the default timeout exceeds the maximum.
    pub(super) fn of(resolved: &ResolvedSettings, notes: &mut Vec<Problem>) -> Result<Self, Problem> {
        let limits: Self = section(resolved, "limits")?;
        if limits.timeout_seconds > limits.max_timeout_seconds {
            let message = format!(
                "`limits.timeout_seconds` is cut to `limits.max_timeout_seconds`, {}",
                limits.max_timeout_seconds
            );
            notes.push(Problem::new(resolved.origin("limits.timeout_seconds"), message));
        }
        Ok(limits)
    }
}

impl OutputStoreSettings {
    /// Returns the settings. One output is at most as large as all outputs together, and a note reports a larger limit.
    pub(super) fn of(resolved: &ResolvedSettings, notes: &mut Vec<Problem>) -> Result<Self, Problem> {
        let mut outputs: Self = section(resolved, "outputs")?;
        let retained = usize::try_from(outputs.retention_bytes).unwrap_or(usize::MAX);
        if outputs.max_bytes > retained {
            let message = format!("`outputs.max_bytes` is cut to `outputs.retention_bytes`, {retained}");
            notes.push(Problem::new(resolved.origin("outputs.retention_bytes"), message));
            outputs.max_bytes = retained;
        }
        Ok(outputs)
    }
}

/// Deserializes the hosts that commands may reach.
fn network_policy<'de, D: Deserializer<'de>>(hosts: D) -> Result<NetworkPolicy, D::Error> {
    let hosts = Vec::<String>::deserialize(hosts)?;
    Ok(if hosts.is_empty() { NetworkPolicy::None } else { NetworkPolicy::Hosts(hosts) })
}

/// Returns `true` if Landlock is among the required layers.
fn includes_landlock<'de, D: Deserializer<'de>>(layers: D) -> Result<bool, D::Error> {
    Ok(Vec::<String>::deserialize(layers)?.iter().any(|layer| layer == "landlock"))
}

/// Deserializes a section. A test ensures that the types agree with the table of keys.
pub(super) fn section<T: DeserializeOwned>(resolved: &ResolvedSettings, name: &str) -> Result<T, Problem> {
    serde_json::from_value(resolved.section(name))
        .map_err(|error| Problem::new(Origin::Default, format!("`[{name}]` cannot be read: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::layers::ContributionsByKey;
    use toolstead_infrastructure::builtin::files::file_limits::FileLimits;

    #[test]
    fn file_tools_have_the_same_limits_with_and_without_a_configuration() {
        let resolved = ContributionsByKey::default().resolve();
        assert_eq!(section::<FileLimits>(&resolved, "files").unwrap(), FileLimits::default());
    }
}

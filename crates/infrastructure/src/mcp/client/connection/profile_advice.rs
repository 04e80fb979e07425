//! Detection of errors that a server's profile may have caused, with advice on the configuration key to change.

use crate::mcp::client::config::{McpTransport, ServerSandboxProfile, UpstreamConfig};

/// Parts of error messages about a file that cannot be written or opened, in lower case.
const OF_REFUSALS: [&str; 7] = [
    "read-only file system",
    "erofs",
    "permission denied",
    "eacces",
    "operation not permitted",
    "eperm",
    "readonly database",
];
/// Parts of error messages about a file or folder that does not exist, in lower case.
const OF_MISSING_FILES: [&str; 9] = [
    "no such file or directory",
    "enoent",
    "does not exist",
    "git repository",
    "cannot find module",
    "no module named",
    "unable to open database",
    "is not accessible",
    "not a directory",
];
/// Parts of error messages about a host that cannot be reached, in lower case.
const OF_MISSING_HOSTS: [&str; 10] = [
    "enotfound",
    "eai_again",
    "getaddrinfo",
    "name or service not known",
    "name resolution",
    "network is unreachable",
    "enetunreach",
    "connection refused",
    "econnrefused",
    "could not resolve",
];

/// Returns the configuration change that may help a server that did not start; `None` if nothing in `said`, its error
/// and last output, may be due to its profile.
pub(in crate::mcp::client) fn of_start(config: &UpstreamConfig, said: &str) -> Option<String> {
    advice(config, said, &[&OF_REFUSALS, &OF_MISSING_FILES])
}

/// Returns the configuration change that may help a failed call; `None` if `said`, the text of its error, cannot be due
/// to the server's profile. Missing files are not considered, because a file may be missing for any reason; a write
/// error means that the file exists.
pub(in crate::mcp::client) fn of_call(config: &UpstreamConfig, said: &str) -> Option<String> {
    advice(config, said, &[&OF_REFUSALS])
}

fn advice(config: &UpstreamConfig, said: &str, of_files: &[&[&str]]) -> Option<String> {
    if !matches!(config.transport, McpTransport::Stdio(_)) {
        return None;
    }
    let said = said.to_lowercase();
    let says = |words: &[&str]| words.iter().any(|word| said.contains(word));
    let is_of_files = of_files.iter().any(|words| says(words));
    let (profile, name) = (config.confinement.profile, &config.name);
    let closed = match profile {
        ServerSandboxProfile::Guarded if is_of_files => {
            "any file outside of the first root and of what absolute paths among its arguments and variables name"
        }
        ServerSandboxProfile::Strict if is_of_files || says(&OF_MISSING_HOSTS) => "the network, and any file",
        ServerSandboxProfile::Guarded | ServerSandboxProfile::Strict | ServerSandboxProfile::Open => return None,
    };
    Some(format!(
        "add a folder that `{name}` needs to `mcp_servers.{name}.roots`, or name another profile in \
         `mcp_servers.{name}.profile`: `{}` closes {closed} to it",
        profile.label()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mcp::client::config::StdioUpstream;
    use std::collections::BTreeMap;
    use toolstead_domain::ServerName;

    fn server(profile: ServerSandboxProfile) -> UpstreamConfig {
        let child = StdioUpstream { command: "x".into(), args: vec![], env: BTreeMap::new(), working_dir: None };
        let mut config = UpstreamConfig::new(ServerName::parse("s").unwrap(), McpTransport::Stdio(child));
        config.confinement.profile = profile;
        config
    }

    #[test]
    fn sandbox_profile_advice_is_given_only_for_errors_that_a_profile_may_cause() {
        use ServerSandboxProfile::{Guarded, Open, Strict};
        // Where it is named: for a start and for a call.
        for (profile, said, expected) in [
            (Guarded, "EROFS: read-only file system, open '/data/x'", (true, true)),
            (Guarded, "[Errno 13] Permission denied: '/home/u/x'", (true, true)),
            (Guarded, "attempt to write a readonly database", (true, true)),
            (Guarded, "Error: ENOENT: no such file or directory, stat '/data'", (true, false)),
            (Guarded, "/srv/project is not a valid Git repository", (true, false)),
            (Guarded, "it speaks protocol version 2025-06-18 and not 2026-07-28", (false, false)),
            (Guarded, "stderr: Error: API_KEY is required", (false, false)),
            (Guarded, "getaddrinfo EAI_AGAIN registry.npmjs.org", (false, false)),
            (Strict, "getaddrinfo EAI_AGAIN registry.npmjs.org", (true, true)),
            (Strict, "stderr: Error: API_KEY is required", (false, false)),
            (Open, "Permission denied", (false, false)),
        ] {
            let config = server(profile);
            let found = (of_start(&config, said).is_some(), of_call(&config, said).is_some());
            assert_eq!(found, expected, "{profile:?}: {said}");
        }
        let advice = of_call(&server(Guarded), "EACCES").unwrap();
        assert!(advice.contains("`mcp_servers.s.roots`") && advice.contains("`mcp_servers.s.profile`"), "{advice}");
    }
}

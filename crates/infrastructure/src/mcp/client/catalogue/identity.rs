//! Identity of a server across restarts.

use crate::mcp::client::config::{McpTransport, ServerSandboxProfile, ToolNaming, UpstreamConfig};
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};
use std::path::Path;
use toolstead_domain::ProviderIdentity;

/// Returns the identity of the server with this configuration. Values of environment variables and headers are not part
/// of it, so that a new token does not make another server. `working_dir` is the working folder of a child process.
/// `declared` are the client capabilities declared to the server, which may offer more tools for them.
pub(in crate::mcp::client) fn of(
    config: &UpstreamConfig,
    working_dir: &Path,
    declared: &Map<String, Value>,
) -> ProviderIdentity {
    let mut described = vec![reached(config, working_dir)];
    let names = match config.names {
        ToolNaming::Qualified => "qualified",
        ToolNaming::Plain => "plain",
    };
    described.extend([names.into(), config.protocol.map(|version| version.as_str()).into()]);
    if !declared.is_empty() {
        described.push(declared.clone().into());
    }
    if let Some(patterns) = config.only_tools.patterns() {
        described.push(json!({"only_tools": patterns}));
    }
    ProviderIdentity {
        configured_in: config.configured_in.clone(),
        name: config.name.to_string(),
        start: digest(&described.into()),
    }
}

/// Returns the way in which the server is started or reached, for pinned definitions. The working folder is part of it
/// only if it is configured. Otherwise a server of the user would count as a different server in each project.
/// Arguments and the query of a URL may contain secrets, so only their digests are part of it.
pub(in crate::mcp::client) fn launch(config: &UpstreamConfig) -> Value {
    match &config.transport {
        McpTransport::Stdio(server) => json!({
            "command": server.command,
            "args": digest(&json!(server.args)),
            "env": server.env.keys().collect::<Vec<_>>(),
            "cwd": server.working_dir,
            "profile": config.confinement.profile.label(),
        }),
        McpTransport::Http(server) | McpTransport::StreamableHttp(server) | McpTransport::Sse(server) => {
            let mut url = server.url.clone();
            // Fails for URLs without a host, which have no user information.
            let _ = (url.set_username(""), url.set_password(None));
            url.set_query(None);
            json!({
                "url": url.as_str(),
                "query": server.url.query().map(|query| digest(&query.into())),
                "headers": server.headers.keys().collect::<Vec<_>>(),
            })
        }
        McpTransport::Streams(_) => Value::Null,
    }
}

fn reached(config: &UpstreamConfig, working_dir: &Path) -> Value {
    match &config.transport {
        McpTransport::Stdio(server) => json!({
            "command": server.command,
            "args": server.args,
            "env": server.env.keys().collect::<Vec<_>>(),
            "cwd": working_dir,
            "profile": config.confinement.profile.label(),
            "roots": match config.confinement.profile {
                ServerSandboxProfile::Guarded | ServerSandboxProfile::Strict => json!(config.confinement.roots),
                ServerSandboxProfile::Open => Value::Null,
            },
        }),
        // The HTTP transport that is used for a URL does not make another server.
        McpTransport::Http(server) | McpTransport::StreamableHttp(server) | McpTransport::Sse(server) => json!({
            "url": server.url.as_str(),
            "headers": server.headers.keys().collect::<Vec<_>>(),
        }),
        McpTransport::Streams(_) => Value::Null,
    }
}

/// Returns the SHA-256 digest of a value as JSON, in hexadecimal.
pub(in crate::mcp::client) fn digest(value: &Value) -> String {
    Sha256::digest(value.to_string()).iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mcp::client::config::{HttpUpstream, StdioUpstream, ToolAllowlist};
    use std::collections::BTreeMap;
    use toolstead_domain::ServerName;
    use url::Url;

    fn stdio(change: impl FnOnce(&mut UpstreamConfig, &mut StdioUpstream)) -> ProviderIdentity {
        let mut server = StdioUpstream {
            command: "npx".into(),
            args: vec!["server".into()],
            env: BTreeMap::from([("TOKEN".to_owned(), "one".to_owned())]),
            working_dir: None,
        };
        let name = ServerName::parse("s").unwrap();
        let mut config = UpstreamConfig::new(name, McpTransport::Stdio(server.clone()));
        change(&mut config, &mut server);
        config.transport = McpTransport::Stdio(server);
        of(&config, Path::new("/work"), &Map::new())
    }

    #[test]
    fn server_identity_depends_on_its_start_settings_but_not_on_secrets() {
        type Change = fn(&mut UpstreamConfig, &mut StdioUpstream);
        let base = stdio(|_, _| ());
        let other: [(&str, Change); 8] = [
            ("file", |config, _| config.configured_in = "/b/toolstead.toml".into()),
            ("command", |_, server| server.command = "uvx".into()),
            ("arguments", |_, server| server.args.push("--all".into())),
            ("variable", |_, server| drop(server.env.insert("MODE".into(), "x".into()))),
            ("profile", |config, _| config.confinement.profile = ServerSandboxProfile::Open),
            ("roots", |config, _| config.confinement.roots.push("/data".into())),
            ("names", |config, _| config.names = ToolNaming::Plain),
            ("listed tools", |config, _| config.only_tools = ToolAllowlist::of(vec!["read".into()])),
        ];
        for (what, change) in other {
            assert_ne!(stdio(change), base, "{what}");
        }
        assert_eq!(stdio(|_, server| drop(server.env.insert("TOKEN".into(), "two".into()))), base);
        assert!(!format!("{:?}", stdio(|_, _| ())).contains("one"));
        let http = |url: &str, token: &str| {
            let headers = BTreeMap::from([("authorization".to_owned(), token.to_owned())]);
            let server = HttpUpstream { url: Url::parse(url).unwrap(), headers };
            of(
                &UpstreamConfig::new(ServerName::parse("s").unwrap(), McpTransport::Http(server)),
                Path::new("/work"),
                &Map::new(),
            )
        };
        assert_eq!(http("https://a.example/mcp", "one"), http("https://a.example/mcp", "two"));
        assert_ne!(http("https://a.example/mcp", "one"), http("https://b.example/mcp", "one"));
    }
}

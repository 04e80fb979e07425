//! MCP servers, and the token of our own.

use super::{ADMINISTRATOR, Machine, USER};
use std::{fs, path::Path, time::Duration};
use toolstead_infrastructure::mcp::client::config::{HttpUpstream, McpTransport, StdioUpstream};
use toolstead_presentation::config::{
    layers::environment::EnvironmentVariables, sections::token::server_token, servers::mcp_server::ConfiguredServer,
};

#[test]
fn configured_servers_have_their_variables_expanded() {
    let machine = Machine::with(&[
        (
            USER,
            r#"
            [mcp_servers.local]
            command = "npx"
            args = ["-y", "${PACKAGE:-everything}"]
            env = { TOKEN = "${SECRET}" }
            env_file = "local.env"
            cwd = "~/project"
            protocol = "2025-06-18"
            timeout_seconds = 9
            profile = "strict"
            names = "plain"
            allow_tools = ["*"]
            deny_tools = ["delete_*", "odd name"]
            [mcp_servers.remote]
            url = "https://${HOST}/mcp"
            headers = { Authorization = "Bearer ${SECRET}" }
            [mcp_servers.fixed]
            type = "http"
            url = "https://${HOST}/mcp"
            [mcp_servers.old]
            type = "sse"
            url = "https://${HOST}/sse"
            headers = { Authorization = "Bearer ${SECRET}" }
            [mcp_servers.broken]
            url = "https://${NOT_SET}/mcp"
            [mcp_servers.off]
            command = "x"
            disabled = true
            "#,
        ),
        ("home/.config/toolstead/local.env", "TOKEN=from the file\nexport OTHER='1'"),
    ])
    .variables(&[("SECRET", "s3cret"), ("HOST", "example.com")]);
    let config = machine.config();
    let names: Vec<&str> = config.mcp_servers.iter().map(|server| server.name.as_str()).collect();
    assert_eq!(names, ["broken", "fixed", "local", "off", "old", "remote"]);
    let [broken, fixed, local, off, old, remote] = config.mcp_servers.as_slice() else { panic!() };
    assert_eq!(
        broken.transport.as_ref().unwrap_err(),
        "the environment variable `NOT_SET` is not set: set it, or write `${NOT_SET:-…}`"
    );
    let Ok(McpTransport::Stdio(StdioUpstream { command, args, env, working_dir })) = &local.transport else { panic!() };
    assert_eq!((command.as_str(), args.join(" ")), ("npx", "-y everything".into()));
    let env: Vec<(&str, &str)> = env.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    assert_eq!(env, [("OTHER", "1"), ("TOKEN", "s3cret")]);
    assert_eq!(working_dir.as_ref().unwrap(), Path::new(&machine.path("home/project")));
    assert_eq!(config.call_settings().timeouts.by_server[&local.name], Duration::from_secs(9));
    assert!(off.disabled);
    let Ok(McpTransport::Http(HttpUpstream { url, headers })) = &remote.transport else { panic!() };
    assert_eq!((url.as_str(), headers["authorization"].as_str()), ("https://example.com/mcp", "Bearer s3cret"));
    assert!(matches!(&fixed.transport, Ok(McpTransport::StreamableHttp(server)) if server.url == *url));
    let Ok(McpTransport::Sse(HttpUpstream { url, headers })) = &old.transport else { panic!("{old:?}") };
    assert_eq!((url.as_str(), headers["authorization"].as_str()), ("https://example.com/sse", "Bearer s3cret"));
    assert!(!format!("{config:?}").contains("s3cret"), "secrets are in no log");
    let rules: Vec<String> =
        config.permissions.rules.iter().map(|rule| format!("{} {}", rule.effect.as_str(), rule.text)).collect();
    assert_eq!(rules[..2], ["allow mcp__local__*", "deny mcp__local__delete_*"]);
    assert!(rules[2].starts_with("deny mcp__local__odd_name-"), "{rules:?}");
    assert!(config.roots.is_forbidden(Path::new(&machine.path("home/.config/toolstead/local.env"))));
}

#[test]
fn secrets_of_servers_are_not_shown() {
    let text = "[mcp_servers.a]\nurl = \"http://x\"\nheaders = { A = \"s3cret\", B = \"Bearer ${B}\" }";
    let machine = Machine::with(&[(USER, text)]);
    let all = machine.config().resolved.all();
    let headers = all.iter().find(|setting| setting.name() == "mcp_servers.a.headers").unwrap();
    assert_eq!(headers.shown().unwrap().to_string(), "{ A = \"…\", B = \"Bearer ${B}\" }");
}

#[test]
fn a_layer_that_sets_a_server_command_replaces_the_arguments_and_environment() {
    let machine = Machine::with(&[
        (
            ADMINISTRATOR,
            "[mcp_servers.git]\ncommand = \"old\"\nargs = [\"--old\"]\nenv = { A = \"1\" }\nallow_tools = [\"status\"]",
        ),
        (USER, "[mcp_servers.git]\ncommand = \"new\"\nmax_tools = 3"),
    ]);
    let config = machine.config();
    let Ok(McpTransport::Stdio(StdioUpstream { command, args, env, .. })) = &config.mcp_servers[0].transport else {
        panic!()
    };
    assert_eq!((command.as_str(), args.len(), env.len(), config.mcp_servers[0].max_tools), ("new", 0, 0, 3));
    assert_eq!(machine.rules(), ["allow mcp__git__status in ~/etc/config.toml:5"]);

    machine.write(USER, "[mcp_servers.git]\nargs = [\"--more\"]");
    let config = machine.config();
    let Ok(McpTransport::Stdio(StdioUpstream { command, args, .. })) = &config.mcp_servers[0].transport else {
        panic!()
    };
    assert_eq!((command.as_str(), args.join(" ")), ("old", "--more".into()));
}

#[test]
fn servers_of_other_clients_are_found_and_used_once_their_file_is_trusted() {
    let machine = Machine::with(&[
        ("home/project/.mcp.json", r#"{"mcpServers": {"git": {"type": "stdio", "command": "git-server", "args": ["-v"], "alwaysAllow": ["x"]}, "a b": {"command": "x"}}}"#),
        ("home/project/.cursor/mcp.json", r#"{"mcpServers": {"git": {"command": "other"}, "remote": {"url": "${env:HOST}"}}}"#),
        ("home/project/.vscode/mcp.json", r#"{"servers": {"code": {"command": "${workspaceFolder}/run", "args": ["${workspaceFolder}"]}}, "inputs": []}"#),
        (USER, "[mcp_servers.git]\nallow_tools = [\"status\"]"),
    ])
    .variables(&[("HOST", "http://127.0.0.1:1/mcp")]);
    let found = |machine: &Machine| -> Vec<String> {
        let servers = machine.config().untrusted_servers;
        servers
            .iter()
            .map(|server| machine.plain(format!("{}: {} in {}", server.name, server.what, server.origin)))
            .collect()
    };
    assert_eq!(
        found(&machine),
        [
            "a-b: x in ~/home/project/.mcp.json:1",
            "code: ${workspaceFolder}/run ${workspaceFolder} in ~/home/project/.vscode/mcp.json:1",
            "git: git-server -v in ~/home/project/.mcp.json:1",
            "git: other in ~/home/project/.cursor/mcp.json:1",
            "remote: ${env:HOST} in ~/home/project/.cursor/mcp.json:1",
        ]
    );
    assert!(machine.config().mcp_servers.is_empty());
    let notes: Vec<String> = machine.config().notes.iter().map(|note| machine.plain(note)).collect();
    assert_eq!(
        notes,
        [
            "~/home/project/.mcp.json:1: the server `git` runs tools without approval by `alwaysAllow`, which does not apply here: name such tools in `allow_tools`",
            "~/home/project/.mcp.json:1: the server `a b` is called `a-b` here, because its name is not valid",
            "~/home/.config/toolstead/config.toml:2: `mcp__git__status` names the MCP server `git`, which is not configured",
        ]
    );

    machine.trust(".cursor/mcp.json");
    machine.trust(".mcp.json");
    let config = machine.config();
    let [_, git, remote] = config.mcp_servers.as_slice() else { panic!("{:?}", config.mcp_servers) };
    let Ok(McpTransport::Stdio(StdioUpstream { command, args, .. })) = &git.transport else { panic!() };
    assert_eq!((git.name.as_str(), command.as_str(), args.join(" ")), ("git", "git-server", "-v".into()));
    let Ok(McpTransport::Http(HttpUpstream { url, .. })) = &remote.transport else { panic!() };
    assert_eq!((remote.name.as_str(), url.as_str()), ("remote", "http://127.0.0.1:1/mcp"));
    assert_eq!(found(&machine).len(), 1);

    machine.trust(".vscode/mcp.json");
    let config = machine.config();
    let Ok(McpTransport::Stdio(StdioUpstream { args, .. })) = &config.mcp_servers[1].transport else { panic!() };
    assert_eq!(args[0], machine.path("home/project"));
}

#[test]
fn project_files_of_gemini_codex_and_zed_are_read_in_their_notation() {
    let machine = Machine::with(&[
        (
            "home/project/.gemini/settings.json",
            r#"{"mcp": {"excluded": ["off"]}, "mcpServers": {"web": {"httpUrl": "http://127.0.0.1:1/mcp", "headers": {"K": "$KEY"}, "timeout": 1500},
                "off": {"command": "x"}}}"#,
        ),
        (
            "home/project/.codex/config.toml",
            "[mcp_servers.build]\ncommand = \"build-mcp\"\nargs = [\"${KEY}\"]\nenabled_tools = [\"run\"]\nenv_vars = [\"KEY\"]\n",
        ),
        (
            "home/project/.zed/settings.json",
            "// Zed\n{\"context_servers\": {\"notes\": {\"source\": \"custom\", \"command\": \"notes\", \"args\": [],}}}",
        ),
        // In the home folder it is the file of the user.
        ("home/.codex/config.toml", "[mcp_servers.own]\ncommand = \"own\"\n"),
    ])
    .variables(&[("KEY", "value")]);
    for file in [".gemini/settings.json", ".codex/config.toml", ".zed/settings.json"] {
        machine.trust(file);
    }
    let config = machine.config();
    let [build, notes, off, web] = config.mcp_servers.as_slice() else { panic!("{:?}", config.mcp_servers) };
    let Ok(McpTransport::Stdio(StdioUpstream { args, env, working_dir, .. })) = &build.transport else { panic!() };
    assert_eq!((args[0].as_str(), env["KEY"].as_str()), ("${KEY}", "value"), "Codex replaces nothing in arguments");
    assert_eq!(working_dir.as_deref(), Some(Path::new(&machine.path("home/project"))));
    assert_eq!(build.only_tools.patterns().unwrap(), ["run"]);
    assert!(notes.transport.is_ok() && off.disabled && !web.disabled);
    let Ok(McpTransport::StreamableHttp(HttpUpstream { headers, .. })) = &web.transport else { panic!("{web:?}") };
    assert_eq!((headers["k"].as_str(), web.timeout), ("value", Some(Duration::from_secs(2))));
    assert!(config.notes.is_empty(), "{:?}", config.notes);
}

#[test]
fn an_invalid_entry_in_a_file_of_another_client_affects_only_its_server() {
    let cursor = r#"{"mcpServers": {
        "files": {"command": "${workspaceFolder}/bin/srv", "args": ["${userHome}", "${workspaceFolderBasename}"],
            "envFile": "${workspaceFolder}/.env", "cwd": "${workspaceFolder}${/}src"},
        "plain": {"command": "srv", "envFile": ".env", "type": "stdio"},
        "old": {"type": "sse", "url": "http://127.0.0.1:1/sse"},
        "old2": {"server_type": "sse", "base_url": "http://127.0.0.1:1/sse"},
        "old3": {"transport": "sse", "serverUrl": "http://127.0.0.1:1/sse"},
        "untold": {"url": "http://127.0.0.1:1/mcp"},
        "both": {"type": "sse", "command": "srv"},
        "odd": {"type": "pigeon", "url": "http://127.0.0.1:1/mcp"},
        "http": {"type": "streamableHttp", "url": "http://127.0.0.1:1/mcp"},
        "key": {"command": "srv", "env": {"KEY": "${input:api-key}"}},
        "picked": {"command": "srv", "args": ["${command:pick}"]}
    }}"#;
    let machine =
        Machine::with(&[("home/project/.cursor/mcp.json", cursor), ("home/project/.env", "TOKEN=of-the-project")]);
    machine.trust(".cursor/mcp.json");
    let config = machine.config();
    let servers: Vec<String> = config
        .mcp_servers
        .iter()
        .map(|server| match &server.transport {
            Ok(McpTransport::Stdio(StdioUpstream { command, args, env, working_dir })) => {
                let env: Vec<String> = env.iter().map(|(name, value)| format!("{name}={value}")).collect();
                let cwd = working_dir.as_ref().unwrap().display();
                machine.plain(format!("{}: {command} {} {} in {cwd}", server.name, args.join(" "), env.join(" ")))
            }
            Ok(McpTransport::Http(HttpUpstream { url, .. })) => format!("{}: any at {url}", server.name),
            Ok(McpTransport::StreamableHttp(HttpUpstream { url, .. })) => format!("{}: http at {url}", server.name),
            Ok(McpTransport::Sse(HttpUpstream { url, .. })) => format!("{}: sse at {url}", server.name),
            Ok(McpTransport::Streams(_)) => panic!("no file makes one"),
            Err(reason) => format!("{}: {reason}", server.name),
        })
        .collect();
    assert_eq!(
        servers,
        [
            "both: srv   in ~/home/project",
            "files: ~/home/project/bin/srv ~/home project TOKEN=of-the-project in ~/home/project/src",
            "http: http at http://127.0.0.1:1/mcp",
            "key: `${input:api-key}` is a value that an editor asks a person for, which is not done here: set an environment variable, and write `${env:API_KEY}` instead",
            "old: sse at http://127.0.0.1:1/sse",
            "old2: sse at http://127.0.0.1:1/sse",
            "old3: sse at http://127.0.0.1:1/sse",
            "picked: `${command:pick}` is a value that only an editor knows: write the value itself, or `${env:NAME}`, instead",
            "plain: srv  TOKEN=of-the-project in ~/home/project",
            "untold: any at http://127.0.0.1:1/mcp",
        ]
    );
    let notes: Vec<String> = config.notes.iter().map(|note| machine.plain(note)).collect();
    assert_eq!(
        notes,
        [
            "~/home/project/.cursor/mcp.json:10: the server `odd` is left out: its type must be `stdio`, `http` or `sse`, \
             not \"pigeon\"",
        ]
    );
}

#[test]
fn rejects_a_guessable_server_token_and_restricts_token_file_permissions() {
    use std::os::unix::fs::PermissionsExt;
    const GOOD: &str = "0123456789abcdef";
    let machine = Machine::new();
    let token = |variables: &[(&str, &str)]| {
        let environment = EnvironmentVariables::new(variables.iter().copied());
        server_token(&machine.config(), &environment).map_err(|problem| machine.plain(problem))
    };
    for (variable, expected) in [
        (GOOD, Ok(())),
        ("0123456789abcde", Err("has 15 characters, and a token of less than 16 can be guessed")),
        ("x", Err("has 1 characters")),
        ("", Err("is made of visible ASCII")),
    ] {
        let said = token(&[("TOOLSTEAD_SERVER_TOKEN", variable)]);
        match expected {
            Ok(()) => assert!(said.is_ok(), "{variable}: {said:?}"),
            Err(reason) => assert!(said.as_ref().is_err_and(|said| said.contains(reason)), "{variable}: {said:?}"),
        }
    }
    machine.write("home/token", GOOD);
    machine.write(USER, &format!("[server]\ntoken_file = {:?}\n", machine.path("home/token")));
    let mode = || fs::metadata(machine.path("home/token")).unwrap().permissions().mode() & 0o777;
    for open in [0o644, 0o660, 0o604] {
        fs::set_permissions(machine.path("home/token"), fs::Permissions::from_mode(open)).unwrap();
        let mended = machine.plain(token(&[]).unwrap().mended.unwrap());
        assert!(
            mended.starts_with("~/home/token: others could get at it") && mended.contains("replace it"),
            "{mended}"
        );
        assert_eq!((mode(), token(&[]).unwrap().mended), (0o600, None));
    }
    machine.write("home/token", "short");
    assert!(token(&[]).unwrap_err().contains("can be guessed"));
}

#[test]
fn a_broken_file_of_another_client_is_reported_as_a_note() {
    let machine = Machine::with(&[("home/project/.mcp.json", "{")]);
    let note = machine.plain(&machine.config().notes[0]);
    assert!(note.starts_with("~/home/project/.mcp.json:1: not valid JSON: "), "{note}");
}

#[test]
fn a_server_table_without_command_or_url_is_reported_as_a_note() {
    let machine = Machine::with(&[(USER, "[mcp_servers.git]\nmax_tools = 5")]);
    assert_eq!(
        machine.plain(&machine.config().notes[0]),
        "~/home/.config/toolstead/config.toml:2: `mcp_servers.git` has neither `command` nor `url`, so the server is \
         ignored"
    );
}

#[test]
fn sse_servers_are_read_from_all_files_of_other_clients() {
    let server = |key: &str| format!(r#""{key}": {{"type": "sse", "url": "http://127.0.0.1:1/sse"}}"#);
    for (file, text) in [
        (".mcp.json", format!(r#"{{"mcpServers": {{{}}}}}"#, server("old"))),
        (".cursor/mcp.json", format!(r#"{{"mcpServers": {{{}}}}}"#, server("old"))),
        (".vscode/mcp.json", format!(r#"{{"servers": {{{}}}, "inputs": []}}"#, server("old"))),
        (".mcp.json", format!(r#"{{"McpServers": {{{}}}}}"#, server("old"))),
        (".mcp.json", format!(r#"{{"mcp": {{"servers": {{{}}}}}}}"#, server("old"))),
    ] {
        let machine = Machine::with(&[(&format!("home/project/{file}"), &text)]);
        machine.trust(file);
        let config = machine.config();
        let [old] = config.mcp_servers.as_slice() else { panic!("{text}: {:?}", config.notes) };
        assert!(matches!(old.transport, Ok(McpTransport::Sse(_))), "{text}: {old:?}");
        assert!(config.notes.is_empty(), "{text}: {:?}", config.notes);
    }
}

#[test]
fn timeout_variables_of_other_clients_are_defaults_below_all_files() {
    let machine = Machine::with(&[(
        USER,
        "[mcp_servers.a]\ncommand = \"x\"\nconnect_timeout_seconds = 7\n[mcp_servers.b]\ncommand = \"y\"",
    )])
    .variables(&[("MCP_TIMEOUT", "2500"), ("MCP_TOOL_TIMEOUT", "60000")]);
    let setting = |name: &str| machine.setting(&format!("mcp_servers.{name}"));
    assert_eq!(setting("a.connect_timeout_seconds"), "7 from ~/home/.config/toolstead/config.toml:3");
    assert_eq!(setting("b.connect_timeout_seconds"), "3 from environment variable MCP_TIMEOUT");
    assert_eq!(setting("a.timeout_seconds"), "60 from environment variable MCP_TOOL_TIMEOUT");
    let times =
        |server: &ConfiguredServer| (server.connect_timeout.as_secs(), server.timeout.map(|time| time.as_secs()));
    assert_eq!(machine.config().mcp_servers.iter().map(times).collect::<Vec<_>>(), [(7, Some(60)), (3, Some(60))]);

    let machine = machine.variables(&[("MCP_TIMEOUT", "soon")]);
    let config = machine.config();
    assert_eq!(config.mcp_servers[1].connect_timeout.as_secs(), 30);
    let note = machine.plain(&config.notes[0]);
    assert!(note.contains("MCP_TIMEOUT") && note.contains("a whole number of milliseconds"), "{note}");
}

#[test]
fn rejects_a_server_type_that_does_not_match_its_command_or_url() {
    for (table, words) in [
        ("type = \"sse\"\ncommand = \"x\"", "the types `http` and `sse` are for servers with `url`"),
        ("type = \"http\"\ncommand = \"x\"", "the types `http` and `sse` are for servers with `url`"),
        ("type = \"stdio\"\nurl = \"http://x\"", "the type `stdio` is for servers with `command`"),
        ("type = \"pigeon\"\nurl = \"http://x\"", "pigeon"),
    ] {
        let machine = Machine::with(&[(USER, &format!("[mcp_servers.a]\n{table}\n"))]);
        let error = machine.load().map(|_| "no error").unwrap_err().to_string();
        assert!(error.contains(words), "{table}: {error}");
    }
}

#[test]
fn restricting_keys_of_other_clients_are_applied_or_exclude_the_server() {
    #[track_caller]
    fn check(key: &str, only_tools: Option<&[&str]>, denied: &[&str], is_disabled: bool) {
        let text = format!(r#"{{"mcpServers": {{"up": {{"command": "x", {key}}}}}}}"#);
        let machine = Machine::with(&[("home/project/.mcp.json", &text)]);
        machine.trust(".mcp.json");
        let config = machine.config();
        let [up] = config.mcp_servers.as_slice() else { panic!("{key}: {:?}", config.notes) };
        let only: Option<Vec<&str>> = up.only_tools.patterns().map(|all| all.iter().map(String::as_str).collect());
        assert_eq!(only.as_deref(), only_tools, "{key}");
        assert_eq!(up.disabled, is_disabled, "{key}");
        let rules: Vec<String> =
            denied.iter().map(|tool| format!("deny mcp__up__{tool} in ~/home/project/.mcp.json:1")).collect();
        assert_eq!(machine.rules(), rules, "{key}");
        assert!(!config.notes.iter().any(|note| note.to_string().contains("without a meaning")), "{key}");
    }
    for key in [
        "tool_white_list",
        "includeTools",
        "enabledTools",
        "enabled_tools",
        "allowedTools",
        "allowed_tools",
        "tools",
        "only_tools",
    ] {
        check(&format!(r#""{key}": ["read", "list_*"]"#), Some(&["read", "list_*"]), &[], false);
    }
    for key in ["disabledTools", "disabled_tools", "excludeTools", "disallowedTools", "tool_black_list", "deny_tools"] {
        check(&format!(r#""{key}": ["env"]"#), None, &["env"], false);
    }
    check(r#""enabled": false"#, None, &[], true);
    check(r#""enabled": true"#, None, &[], false);

    for (keys, reason) in [
        (r#""hiddenTools": ["env"]"#, "`hiddenTools` is unknown here and may restrict the server"),
        (r#""toolFilter": {"mode": "read"}"#, "`toolFilter` is unknown here and may restrict the server"),
        (r#""readOnly": true"#, "`readOnly` is unknown here and may restrict the server"),
        (r#""disabled": false, "enabled": false"#, "two of its keys mean `disabled`: keep one"),
        (r#""includeTools": ["a"], "tool_white_list": ["b"]"#, "two of its keys mean `only_tools`"),
        (r#""tool_white_list": "tool""#, "mcp_servers.up.only_tools"),
    ] {
        let text = format!(r#"{{"mcpServers": {{"up": {{"command": "x", {keys}}}}}}}"#);
        let machine = Machine::with(&[("home/project/.mcp.json", &text)]);
        machine.trust(".mcp.json");
        let config = machine.config();
        assert!(config.mcp_servers.is_empty() && config.untrusted_servers.is_empty(), "{keys}");
        let notes: Vec<String> = config.notes.iter().map(ToString::to_string).collect();
        assert!(notes.iter().any(|note| note.contains("left out") && note.contains(reason)), "{keys}: {notes:?}");
    }
}

mod homes;

use super::*;
use crate::config::layers::{
    environment::EnvironmentVariables,
    request::{ConfigFlags, ConfigRequest},
};
use std::{fs, os::unix::fs::PermissionsExt};
use tempfile::TempDir;

/// Home folders with the files of programs as these write them. `dot_` at the beginning of a name stands for a full
/// stop.
const HOMES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/fixtures/client_homes/home");

/// A home folder with the project `project` in it, where the program starts.
struct Machine {
    folder: TempDir,
    variables: Vec<(&'static str, &'static str)>,
}

impl Machine {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir_all(folder.path().join("project/.git")).unwrap();
        fs::create_dir_all(folder.path().join("etc")).unwrap();
        Self { folder, variables: Vec::new() }
    }

    /// A machine with the files of these folders and files of the fixture.
    fn with_homes(names: &[&str]) -> Self {
        let machine = Self::new();
        for name in names {
            machine.copy(&Path::new(HOMES).join(name), name);
        }
        machine
    }

    fn copy(&self, from: &Path, name: &str) {
        if from.is_dir() {
            for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
                self.copy(&entry.path(), &format!("{name}/{}", entry.file_name().to_str().unwrap()));
            }
            return;
        }
        let text = fs::read_to_string(from).unwrap().replace("{{PROJECT}}", &self.path("project"));
        let name: Vec<String> = name
            .split('/')
            .map(|part| part.strip_prefix("dot_").map_or(part.to_owned(), |rest| format!(".{rest}")))
            .collect();
        self.write(&name.join("/"), &text);
    }

    fn path(&self, name: &str) -> String {
        self.folder.path().canonicalize().unwrap().join(name).to_str().unwrap().to_owned()
    }

    fn write(&self, name: &str, text: impl AsRef<[u8]>) {
        let path = self.path(name);
        fs::create_dir_all(Path::new(&path).parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap()
    }

    fn mode(&self, name: &str) -> u32 {
        fs::metadata(self.path(name)).unwrap().permissions().mode() & 0o777
    }

    fn config(&self) -> Config {
        let home = self.path("");
        let variables = self.variables.iter().copied().chain([("HOME", home.trim_end_matches('/'))]);
        Config::load(&ConfigRequest {
            environment: EnvironmentVariables::new(variables),
            start: self.path("project").into(),
            administrator: self.path("etc").into(),
            file: None,
            flags: ConfigFlags::default(),
        })
        .unwrap_or_else(|error| panic!("{error}"))
    }

    fn plan(&self, request: &ImportRequest) -> ServerImportPlan {
        ServerImportPlan::of(&self.config(), request).unwrap_or_else(|error| panic!("{error}"))
    }

    fn import(&self, request: &ImportRequest) -> WrittenConfigFile {
        self.plan(request).apply().unwrap_or_else(|error| panic!("{error}: {:?}", std::error::Error::source(&error)))
    }

    /// Returns the text for comparison, with the home folder as `~`.
    fn plain(&self, text: &str) -> String {
        text.replace(self.path("").trim_end_matches('/'), "~")
    }

    /// Describes each server of a plan: its table with the notes, or why it is not added.
    fn described(&self, plan: &ServerImportPlan) -> Vec<String> {
        let one = |server: &ServerImportPlanEntry| {
            let text = match &server.outcome {
                ServerImportDecision::Added(added) => {
                    let notes: String = added.notes.iter().map(|text| format!("# {text}\n")).collect();
                    format!("{}{notes}", added.shown)
                }
                ServerImportDecision::Present(name) => format!("present as {name}\n"),
                ServerImportDecision::Repeated(name) => format!("repeats {name}\n"),
                ServerImportDecision::Rejected(reason) => format!("rejected: {reason}\n"),
            };
            self.plain(&format!("{} of {}: {text}", server.foreign_name, server.owner))
        };
        plan.servers.iter().map(one).chain(plan.problems.iter().map(|one| self.plain(&one.to_string()))).collect()
    }
}

fn sources(names: &[&str]) -> ImportRequest {
    ImportRequest { sources: names.iter().map(|name| (*name).to_owned()).collect(), ..ImportRequest::default() }
}

#[test]
fn an_untrusted_or_unreadable_file_is_skipped_with_a_reason_and_others_are_read() {
    let machine = Machine::with_homes(&["dot_codeium"]);
    machine.write(".cursor/mcp.json", b"{\"mcpServers\": {\"\xff\": {\"command\": \"x\"}}}");
    machine.write(".gemini/settings.json", format!("{}1", "[".repeat(100_000)));
    machine.write(".codex/config.toml", "x".repeat(2 << 20));
    machine.write("elsewhere/mcp.json", r#"{"mcpServers": {"evil": {"command": "evil"}}}"#);
    std::os::unix::fs::symlink(machine.path("elsewhere/mcp.json"), machine.path("project/.mcp.json")).unwrap();
    fs::create_dir_all(machine.path(".config/zed/settings.json")).unwrap();
    let described = machine.described(&machine.plan(&ImportRequest::default()));
    let of_windsurf = described.iter().filter(|one| one.contains(" of Windsurf: ")).count();
    assert_eq!(of_windsurf, 3, "{described:#?}");
    for reason in [
        "~/.cursor/mcp.json: is not UTF-8",
        "~/.gemini/settings.json:1: not valid JSON: ",
        "~/.codex/config.toml: cannot be read: it is larger than 1048576 bytes",
        "~/project/.mcp.json: is a link, or lies behind one, that is not followed: it leads to ~/elsewhere/mcp.json",
        "~/.config/zed/settings.json: cannot be read: it is not a file",
    ] {
        assert!(described.iter().any(|one| one.starts_with(reason)), "{reason}: {described:#?}");
    }
    assert_eq!(described.len(), 3 + 5, "{described:#?}");
}

#[test]
fn a_user_link_is_followed_unless_other_users_can_change_its_target() {
    let machine = Machine::new();
    machine.write("dotfiles/cursor.json", r#"{"mcpServers": {"git": {"command": "git-mcp"}}}"#);
    fs::create_dir(machine.path(".cursor")).unwrap();
    for folder in ["dotfiles", ".cursor"] {
        fs::set_permissions(machine.path(folder), fs::Permissions::from_mode(0o755)).unwrap();
    }
    std::os::unix::fs::symlink("../dotfiles/cursor.json", machine.path(".cursor/mcp.json")).unwrap();
    for (mode, servers) in [(0o644, 1), (0o666, 0)] {
        fs::set_permissions(machine.path("dotfiles/cursor.json"), fs::Permissions::from_mode(mode)).unwrap();
        let plan = machine.plan(&ImportRequest::default());
        assert_eq!((plan.servers.len(), plan.problems.len()), (servers, 1 - servers), "{mode:o}");
    }
}

#[track_caller]
fn check_reason(server: &str, expected: &str) {
    let machine = Machine::new();
    machine.write(".cursor/mcp.json", format!(r#"{{"mcpServers": {{"a": {server}}}}}"#));
    let plan = machine.plan(&ImportRequest::default());
    let [ServerImportPlanEntry { outcome: ServerImportDecision::Rejected(reason), .. }] = plan.servers.as_slice()
    else {
        panic!("{server}: {plan:?}");
    };
    assert!(reason.contains(expected), "{server}: {reason}");
}

#[test]
fn an_unsupported_server_entry_is_rejected_with_the_reason() {
    for (server, expected) in [
        (r#"{"type": "sdk", "command": "x"}"#, "its type must be `stdio`, `http` or `sse`, not \"sdk\""),
        (r#"{"command": "x", "url": "http://127.0.0.1/"}"#, "both a command and a URL"),
        (r#"{"env": {"A": "1"}}"#, "neither a command nor a URL"),
        (r#"{"command": ["x", "y"]}"#, "`mcp_servers.a.command` must be"),
        (r#""x""#, "it is not a table"),
        (r#"{"url": "ftp://example.com"}"#, "`mcp_servers.a.url`"),
        (r#"{"command": "x", "readOnly": true}"#, "`readOnly` is unknown here and may restrict the server"),
        (r#"{"command": "x", "sandboxEnabled": true}"#, "`sandboxEnabled` is unknown here and may restrict the server"),
        (r#"{"command": "x", "args": ["${config:a.b}"]}"#, "only the other program knows"),
        (r#"{"command": "x", "args": ["${A"]}"#, "no closing brace"),
        (r#"{"command": "x", "cwd": "${workspaceFolder}/sub"}"#, "`cwd` depends on the folder"),
        (r#"{"command": "x", "env": {"A": ["b"]}}"#, "`mcp_servers.a.env"),
        (r#"{"command": "x", "args": ["a\u0000b"]}"#, "mcp_servers.a.args"),
        (r#"{"command": "/usr/bin/toolstead", "args": ["mcp"]}"#, "it is Toolstead itself"),
        (r#"{"command": "x", "includeTools": ["a"], "allowedTools": ["b"]}"#, "two of its keys mean `only_tools`"),
    ] {
        check_reason(server, expected);
    }
}

#[test]
fn imported_names_are_mapped_and_similar_names_receive_a_suffix() {
    let machine = Machine::new();
    machine.write(
        ".cursor/mcp.json",
        r#"{"mcpServers": {
            "my server": {"command": "a"}, "my-server": {"command": "b"}, "my_server": {"command": "b"},
            "git": {"command": "c"}, "git": {"command": "d"}, "deploy": {"command": "e"}, "日本": {"command": "f"}
        }}"#,
    );
    machine.write(
        ".codeium/mcp_config.json",
        r#"{"mcpServers": {"my-server": {"command": "g"}, "git": {"command": "c"}}}"#,
    );
    machine.write(".config/toolstead/config.toml", "[mcp_servers.dep1oy]\ncommand = \"other\"\n");
    let plan = machine.plan(&ImportRequest::default());
    let names: Vec<String> = plan
        .servers
        .iter()
        .map(|server| match &server.outcome {
            ServerImportDecision::Added(added) => format!("{} -> {}", server.foreign_name, added.name),
            ServerImportDecision::Repeated(name) => format!("{} = {name}", server.foreign_name),
            ServerImportDecision::Present(name) => format!("{} is {name}", server.foreign_name),
            ServerImportDecision::Rejected(reason) => format!("{}: {reason}", server.foreign_name),
        })
        .collect();
    assert_eq!(
        names,
        [
            "my server -> my-server",
            "my-server -> my-server-cursor",
            "my_server -> my_server-2",
            "git -> git",
            "git: the file describes another server of this name above",
            "deploy -> deploy-cursor",
            "日本 -> server",
            "my-server -> my-server-windsurf",
            "git = git",
        ]
    );
    machine.import(&ImportRequest::default());
    assert_eq!(machine.config().mcp_servers.len(), 8);
}

#[test]
fn imported_secrets_are_moved_out_or_the_configuration_file_becomes_private() {
    let server = r#"{"mcpServers": {"s": {
        "command": "srv",
        "args": ["--api-key", "fixture-secret-1", "--token=fixture-secret-2", "-v"],
        "env": {"SERVICE_TOKEN": "fixture-secret-3", "QUOTED_KEY": "it's \"both\"", "MODE": "x"}
    }}}"#;
    let machine = Machine::new();
    machine.write(".cursor/mcp.json", server);
    machine.write(".config/toolstead/config.toml", "");
    machine.import(&ImportRequest::default());
    let text = machine.plain(&machine.read(".config/toolstead/config.toml"));
    assert_eq!(
        text,
        "# From Cursor, ~/.cursor/mcp.json\n[mcp_servers.s]\ncommand = \"srv\"\n\
         args = [\"--api-key\", \"${IMPORTED_S_API_KEY}\", \"--token=${IMPORTED_S_TOKEN}\", \"-v\"]\n\
         env = { QUOTED_KEY = \"${IMPORTED_S_QUOTED_KEY}\", MODE = \"x\" }\n\
         env_file = \"~/.config/toolstead/servers/s.env\"\n"
    );
    assert_eq!(machine.read(".config/toolstead/servers/s.env"), "SERVICE_TOKEN='fixture-secret-3'\n");
    assert_eq!(machine.mode(".config/toolstead/servers/s.env"), 0o600);
    assert!(machine.config().roots.is_forbidden(Path::new(&machine.path(".config/toolstead/servers/s.env"))));

    let machine = Machine::new();
    machine.write(".cursor/mcp.json", server);
    machine.write(".config/toolstead/config.toml", "");
    fs::set_permissions(machine.path(".config/toolstead/config.toml"), fs::Permissions::from_mode(0o644)).unwrap();
    let request = ImportRequest { secrets: LiteralSecretPlacement::Written, ..ImportRequest::default() };
    let plan = machine.plan(&request);
    let shown = machine.described(&plan).join("\n");
    assert!(!shown.contains("fixture-secret"), "{shown}");
    assert!(plan.added().all(|added| !added.what.contains("fixture-secret")));
    plan.apply().unwrap();
    assert!(machine.read(".config/toolstead/config.toml").contains("fixture-secret-2"));
    assert_eq!(machine.mode(".config/toolstead/config.toml"), 0o600);
}

#[test]
fn a_server_receives_no_variable_of_the_user_that_its_file_does_not_name() {
    let mut machine = Machine::new();
    machine.variables.push(("ANTHROPIC_API_KEY", "fixture-secret-1"));
    machine.write(
        ".cursor/mcp.json",
        r#"{"mcpServers": {
            "anthropic": {"url": "https://a.example.com/mcp", "headers": {"api-key": "fixture-secret-2"}},
            "named": {"url": "https://b.example.com/mcp", "headers": {"api-key": "${env:ANTHROPIC_API_KEY}"}}
        }}"#,
    );
    let described = machine.described(&machine.plan(&ImportRequest::default()));
    let [anthropic, named] = described.as_slice() else { panic!("{described:#?}") };
    for text in [
        "headers = { api-key = \"${IMPORTED_ANTHROPIC_API_KEY}\" }",
        "# set the environment variable `IMPORTED_ANTHROPIC_API_KEY`: the secret in ~/.cursor/mcp.json:2\n",
    ] {
        assert!(anthropic.contains(text), "{text}: {anthropic}");
    }
    for text in [
        "headers = { api-key = \"${ANTHROPIC_API_KEY}\" }",
        "# it receives your environment variable `ANTHROPIC_API_KEY`\n",
    ] {
        assert!(named.contains(text), "{text}: {named}");
    }
}

/// Plans 300 servers with these names, and returns how many are added.
fn number_added(name: impl Fn(usize) -> String) -> usize {
    let servers: serde_json::Map<String, serde_json::Value> =
        (0..300).map(|number| (name(number), serde_json::json!({"command": format!("x{number}")}))).collect();
    let machine = Machine::new();
    machine.write(".cursor/mcp.json", serde_json::json!({"mcpServers": servers}).to_string());
    let plan = machine.plan(&ImportRequest::default());
    assert_eq!(plan.servers.len(), 300);
    let Some(ServerImportPlanEntry { outcome: ServerImportDecision::Rejected(reason), .. }) = plan.servers.last()
    else {
        panic!("{plan:?}");
    };
    assert_eq!(reason, "an import has at most 256 servers");
    plan.added().count()
}

#[test]
fn an_import_has_a_maximum_of_servers_and_of_names_that_look_alike() {
    assert_eq!(number_added(|number| format!("s{number}")), 256);
    assert_eq!(number_added(|number| format!("a{}", "!".repeat(number))), 32);
}

#[test]
fn nothing_is_written_where_the_file_is_not_suitable_or_has_changed() {
    let machine = Machine::new();
    machine
        .write(".cursor/mcp.json", r#"{"mcpServers": {"git": {"command": "git-mcp", "env": {"A_TOKEN": "abcdef"}}}}"#);
    for text in
        ["mcp_servers = { a = { command = \"x\" } }\n", "mcp_servers.a.command = \"x\"\n[limits]\nprocesses = 9\n"]
    {
        machine.write(".config/toolstead/config.toml", text);
        let applied = machine.plan(&ImportRequest::default()).apply();
        if let Err(error) = applied {
            assert!(error.to_string().contains("copy those of the preview by hand"), "{error}");
            assert_eq!(machine.read(".config/toolstead/config.toml"), text);
        } else {
            assert_eq!(machine.config().mcp_servers.len(), 2, "{text}");
        }
    }
    machine.write(".config/toolstead/config.toml", "");
    let plan = machine.plan(&ImportRequest::default());
    machine.write(".config/toolstead/config.toml", "[limits]\nprocesses = 9\n");
    assert!(matches!(plan.apply(), Err(ImportError::Changed { .. })));
    assert_eq!(machine.read(".config/toolstead/config.toml"), "[limits]\nprocesses = 9\n");

    fs::remove_file(machine.path(".config/toolstead/config.toml")).unwrap();
    machine.write(".config/toolstead/config.json", "{}");
    let plan = machine.plan(&ImportRequest::default());
    assert!(plan.file().unwrap_err().to_string().contains("TOML files only"));
}

#[test]
fn selected_servers_take_their_values_from_the_command_line() {
    let machine = Machine::with_homes(&["dot_config/Code"]);
    let request = ImportRequest {
        servers: vec!["perplexity".into()],
        values: BTreeMap::from([("PERPLEXITY_KEY".to_owned(), "fixture-secret-${x}".to_owned())]),
        ..sources(&["vscode"])
    };
    machine.import(&request);
    assert_eq!(machine.config().mcp_servers.len(), 1);
    let unknown = ImportRequest { servers: vec!["nothing".into()], ..ImportRequest::default() };
    let error = ServerImportPlan::of(&machine.config(), &unknown).unwrap_err().to_string();
    assert!(error.starts_with("no server is called `nothing` in these files; there are github, "), "{error}");
}

#[track_caller]
fn check_entry(entry: serde_json::Value, expected: Result<&str, &str>) {
    let machine = Machine::new();
    machine.write("project/server.json", entry.to_string());
    match (ServerImportPlan::of(&machine.config(), &sources(&["server.json"])), expected) {
        (Ok(plan), Ok(expected)) => {
            let described = machine.described(&plan).join("\n");
            let head = "io.github.ada/demo of MCP registry: [mcp_servers.demo]\n";
            let renamed = "# the server `io.github.ada/demo` is called `demo` here: its name is not valid here\n";
            assert_eq!(described.replacen(renamed, "", 1), format!("{head}{expected}"), "{entry}");
            plan.apply().unwrap();
        }
        (Err(error), Err(expected)) => assert!(error.to_string().contains(expected), "{entry}: {error}"),
        (other, _) => panic!("{entry}: {other:?}"),
    }
}

#[test]
fn a_registry_entry_becomes_one_safe_command_or_address_or_is_rejected() {
    use serde_json::json;
    let package = |package: serde_json::Value| json!({"name": "io.github.ada/demo", "packages": [package]});
    for (entry, expected) in [
        (
            package(json!({
                "registry_type": "pypi", "identifier": "demo-mcp", "version": "0.5.0", "runtime_hint": "uvx",
                "environment_variables": [
                    {"name": "KEY", "is_required": true, "is_secret": true, "description": "The key"},
                    {"name": "UNITS", "default": "celsius"}, {"name": "OPTIONAL"}, {"name": "FIXED", "value": "${x}"},
                ],
            })),
            Ok("command = \"uvx\"\nargs = [\"demo-mcp@0.5.0\"]\n\
                env = { KEY = \"${KEY}\", UNITS = \"${UNITS:-celsius}\", FIXED = \"$${x}\" }\n\
                # set the environment variable `KEY`: The key\n"),
        ),
        (
            package(json!({
                "registryType": "oci", "identifier": "docker.io/ada/demo:1.0.2",
                "runtimeArguments": [{
                    "type": "named", "name": "--mount", "value": "type=bind,src={source},dst={target}",
                    "variables": {"source": {"isRequired": true, "format": "filepath"}, "target": {"default": "/project"}},
                }],
                "packageArguments": [{"type": "positional", "value": "/project"}, {"type": "named", "name": "--verbose"}],
                "environmentVariables": [{"name": "LOG", "default": "info"}],
            })),
            Ok("command = \"docker\"\nargs = [\"run\", \"-i\", \"--rm\", \"-e\", \"LOG\", \"--mount\", \
                \"type=bind,src=${SOURCE},dst=${TARGET:-/project}\", \"docker.io/ada/demo:1.0.2\", \"/project\", \
                \"--verbose\"]\nenv = { LOG = \"${LOG:-info}\" }\n# set the environment variable `SOURCE`\n"),
        ),
        (
            package(json!({
                "registryType": "nuget", "identifier": "Ada.Demo", "version": "0.4.0-beta",
                "packageArguments": [{"type": "positional", "value": "mcp"}],
            })),
            Ok("command = \"dnx\"\nargs = [\"Ada.Demo@0.4.0-beta\", \"--yes\", \"--\", \"mcp\"]\n"),
        ),
        (
            json!({"server": {
                "name": "io.github.ada/demo",
                "packages": [{"registryType": "mcpb", "identifier": "https://example.com/a.mcpb"}],
                "remotes": [{
                    "type": "streamable-http", "url": "https://{tenant}.example.com/mcp",
                    "variables": {"tenant": {"description": "Your tenant", "choices": ["us", "eu"]}},
                    "headers": [{"name": "X-API-Key", "isRequired": true, "isSecret": true}],
                }],
            }, "_meta": {}}),
            Ok(
                "url = \"https://${TENANT}.example.com/mcp\"\ntype = \"http\"\nheaders = { X-API-Key = \"${X_API_KEY}\" }\n\
                # set the environment variable `TENANT`: Your tenant (us, eu)\n\
                # set the environment variable `X_API_KEY`\n",
            ),
        ),
        (
            package(json!({"registryType": "npm", "identifier": "demo", "version": "latest"})),
            Err("has no exact version, but \"latest\""),
        ),
        (
            package(json!({"registryType": "npm", "identifier": "--call=evil", "version": "1.0.0"})),
            Err("is not the name of a package"),
        ),
        (
            package(json!({
                "registryType": "npm", "registryBaseUrl": "https://evil.example.com", "identifier": "demo", "version": "1.0.0",
            })),
            Err("is in the registry https://evil.example.com"),
        ),
        (
            package(json!({
                "registryType": "npm", "identifier": "demo", "version": "1.0.0",
                "environmentVariables": [{"name": "npm_config_registry", "value": "https://evil.example.com"}],
            })),
            Err("sets `npm_config_registry`, which changes what is downloaded or run"),
        ),
        (
            package(json!({"registryType": "npm", "identifier": "demo", "version": "1.0.0", "runtimeHint": "bash"})),
            Err("is to be run with `bash`"),
        ),
        (
            package(json!({
                "registryType": "npm", "identifier": "demo", "version": "1.0.0",
                "runtimeArguments": [{"type": "named", "name": "--yes"}],
            })),
            Ok("command = \"npx\"\nargs = [\"--yes\", \"demo@1.0.0\"]\n"),
        ),
        (
            package(json!({
                "registryType": "npm", "identifier": "demo", "version": "1.0.0",
                "runtimeArguments": [{"type": "positional", "value": "evil"}],
            })),
            Err("gives its runtime the argument \"positional\""),
        ),
        (
            package(json!({
                "registryType": "npm", "identifier": "demo", "version": "1.0.0",
                "runtimeArguments": [{"type": "named", "name": "-y", "value": "evil"}],
            })),
            Err("has a switch of its runtime with a value"),
        ),
        (
            package(json!({
                "registryType": "pypi", "identifier": "demo", "version": "1.0.0",
                "runtimeArguments": [{"type": "named", "name": "--from", "value": "evil"}],
            })),
            Err("gives its runtime the argument \"--from\""),
        ),
        (
            package(json!({
                "registryType": "oci", "identifier": "ada/demo:1.0.2",
                "runtimeArguments": [{"type": "named", "name": "--privileged"}],
            })),
            Err("gives its runtime the argument \"--privileged\""),
        ),
        (
            package(json!({
                "registryType": "oci", "identifier": "ada/demo:1.0.2",
                "runtimeArguments": [{"type": "named", "name": "-e"}],
            })),
            Err("has an option of docker without a value"),
        ),
        (
            package(json!({
                "registryType": "oci", "identifier": "ada/demo:1.0.2",
                "runtimeArguments": [
                    {"type": "named", "name": "-e", "value": "LOG=info"},
                    {"type": "named", "name": "--mount", "value": "src=/,dst=/host"},
                ],
            })),
            Err("the mount of the package `ada/demo:1.0.2` has the option \"src=/\", and only the user may choose"),
        ),
        (
            package(json!({
                "registryType": "oci", "identifier": "ada/demo:1.0.2",
                "runtimeArguments": [{
                    "type": "named", "name": "--mount", "value": "type=bind,src={home},dst=/host",
                    "variables": {"home": {"value": "/home"}},
                }],
            })),
            Err("has the option \"src=/home\""),
        ),
        (
            package(json!({"registryType": "oci", "identifier": "evil.example.com/ada/demo:1.0.2"})),
            Err("is in the registry evil.example.com"),
        ),
        (
            package(json!({"registryType": "npm", "identifier": "ada/demo", "version": "1.0.0"})),
            Err("is not the name of a package"),
        ),
        (json!({"name": "io.github.ada/demo", "status": "deleted", "remotes": []}), Err("was deleted")),
    ] {
        check_entry(entry, expected);
    }
}

#[test]
fn packages_that_use_the_same_variable_name_receive_separate_variables() {
    let machine = Machine::new();
    let entry = |name: &str, package: &str| {
        serde_json::json!({"name": name, "packages": [{
            "registryType": "npm", "identifier": package, "version": "1.0.0",
            "environmentVariables": [
                {"name": "API_KEY", "isRequired": true, "isSecret": true, "description": "The key"},
                {"name": "REGION", "default": "eu"},
            ],
        }]})
        .to_string()
    };
    machine.write("project/one.json", entry("io.github.ada/weather", "weather"));
    machine.write("project/two.json", entry("io.github.bob/maps", "maps"));
    machine.write("project/three.json", entry("io.github.eve/weather", "other-weather"));
    let shown = |plan: &ServerImportPlan| -> Vec<String> {
        plan.added().map(|server| format!("{}{}", server.shown, server.notes.join("\n"))).collect()
    };
    // In one import, and beside a server that is configured already.
    machine.import(&sources(&["one.json"]));
    let plan = machine.plan(&sources(&["two.json", "three.json"]));
    let [maps, other] = &shown(&plan)[..] else { panic!("{plan:?}") };
    let expected = "API_KEY = \"${IMPORTED_MAPS_API_KEY}\", REGION = \"${IMPORTED_MAPS_REGION:-eu}\"";
    assert!(maps.contains(expected), "{maps}");
    for note in [
        "`IMPORTED_MAPS_API_KEY` is its variable, because the server `weather` uses `API_KEY`",
        "set the environment variable `IMPORTED_MAPS_API_KEY`: The key",
    ] {
        assert!(maps.contains(note), "{maps}");
    }
    assert!(other.contains("_WEATHER_") && !other.contains("${API_KEY}"), "{other}");
    plan.apply().unwrap();
    // Nothing is new when the same entries are imported again.
    let again = machine.plan(&sources(&["one.json", "two.json", "three.json"]));
    assert_eq!(shown(&again), [""; 0], "{again:?}");
    let config = machine.read(".config/toolstead/config.toml");
    assert_eq!(config.matches("${API_KEY}").count(), 1, "{config}");
}

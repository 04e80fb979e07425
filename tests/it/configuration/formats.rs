//! TOML, JSON and YAML say the same.

use super::Machine;

#[test]
fn three_formats_give_the_same_configuration() {
    let toml = r#"
        [workspace]
        roots = ["src"]
        [permissions]
        mode = "plan"
        allow = ["Read", "Grep"]
        [tools.execute_command]
        allowed_commands = ["ls"]
        timeout = 30
        [sandbox]
        network = ["a.com"]
        [limits]
        processes = 7
        [mcp_servers.git]
        command = "git-server"
        args = ["--root", "${HOME}"]
        env = { A = "1" }
        [audit]
        power_safe = true
    "#;
    let json = r#"{
        // The same keys.
        "workspace": {"roots": ["src"]},
        "permissions": {"mode": "plan", "allow": ["Read", "Grep"]},
        "tools": {"execute_command": {"allowed_commands": ["ls"], "timeout": 30}},
        "sandbox": {"network": ["a.com"]},
        "limits": {"processes": 7},
        "mcp_servers": {"git": {"command": "git-server", "args": ["--root", "${HOME}"], "env": {"A": "1"}}},
        "audit": {"power_safe": true},
    }"#;
    let yaml = "
workspace:
  roots: [src]
permissions:
  mode: plan
  allow:
    - Read
    - Grep
tools:
  execute_command:
    allowed_commands: [ls]
    timeout: 30
sandbox: {network: [a.com]}
limits: {processes: 7}
mcp_servers:
  git:
    command: git-server
    args: [--root, '${HOME}']
    env: {A: \"1\"}
audit: {power_safe: true}
";
    let read = |name: &str, text: &str| {
        let mut machine = Machine::with(&[(&format!("home/project/{name}"), text)]);
        machine.request.file = Some(name.into());
        let config = machine.config();
        let settings = config
            .resolved
            .all()
            .into_iter()
            .map(|one| format!("{} = {:?}", one.name(), one.value.map(|value| value.to_string())));
        let rules = config.permissions.rules.iter().map(|rule| format!("{:?} {}", rule.effect, rule.text));
        let servers = config.mcp_servers.iter().map(|server| format!("{} {:?}", server.name, server.transport));
        let typed = format!("{:?} {:?} {:?} {:?}", config.limits, config.sandbox, config.audit, config.call_settings());
        let all: Vec<String> = settings.chain(rules).chain(servers).chain([typed]).collect();
        machine.plain(all.join("\n"))
    };
    let as_toml = read("a.toml", toml);
    assert!(as_toml.contains("limits.processes = Some(\"7\")"), "{as_toml}");
    assert_eq!(as_toml, read("a.json", json));
    assert_eq!(as_toml, read("a.yaml", yaml));
    assert_eq!(as_toml, read("b.yml", yaml));
}

#[test]
fn an_empty_file_is_an_empty_layer() {
    for name in ["config.toml", "config.json", "config.yaml"] {
        assert!(Machine::with(&[(&format!("etc/{name}"), "")]).load().is_ok(), "{name}");
    }
}

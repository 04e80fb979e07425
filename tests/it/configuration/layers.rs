//! The layers, and which of them wins.

use super::{ADMINISTRATOR, Machine, PROJECT, USER};
use std::{fs, path::Path, time::Duration};
use toolstead_domain::{NetworkPolicy, PermissionMode, ToolSelection};

#[test]
fn ordinary_values_follow_layer_precedence() {
    let mut machine = Machine::with(&[
        (ADMINISTRATOR, "[audit]\nretention_days = 1\n[server]\nlisten = \"127.0.0.1:1\""),
        (USER, "[audit]\nretention_days = 2\n[server]\nlisten = \"127.0.0.1:2\""),
        (PROJECT, "[audit]\nretention_days = 3\n[server]\nlisten = \"127.0.0.1:3\""),
    ])
    .variables(&[("TOOLSTEAD_SERVER__LISTEN", "127.0.0.1:4")]);
    assert_eq!(machine.setting("audit.retention_days"), "2 from ~/home/.config/toolstead/config.toml:2");
    machine.trust("toolstead.toml");
    assert_eq!(machine.setting("audit.retention_days"), "3 from ~/home/project/toolstead.toml:2");
    assert_eq!(machine.setting("server.listen"), "\"127.0.0.1:4\" from environment variable TOOLSTEAD_SERVER__LISTEN");
    machine.request.flags.listen = Some("127.0.0.1:5".into());
    assert_eq!(machine.setting("server.listen"), "\"127.0.0.1:5\" from flag --listen");
    assert_eq!(machine.setting("database.url"), "nothing from default");
}

#[test]
fn the_strictest_security_value_counts() {
    let machine = Machine::with(&[
        (
            ADMINISTRATOR,
            "[permissions]\nmode = \"default\"\n[sandbox]\nnetwork = [\"a.com\", \"b.com\"]\nminimum_tier = 1",
        ),
        (USER, "[permissions]\nmode = \"dont_ask\"\n[sandbox]\nnetwork = [\"b.com\", \"c.com\"]\nminimum_tier = 1"),
        (PROJECT, "[permissions]\nmode = \"bypass\"\n[sandbox]\nnetwork = [\"b.com\", \"c.com\", \"d.com\"]"),
    ]);
    machine.trust("toolstead.toml");
    assert_eq!(machine.setting("permissions.mode"), "\"dont_ask\" from ~/home/.config/toolstead/config.toml:2");
    assert_eq!(machine.config().sandbox.network, NetworkPolicy::Hosts(vec!["b.com".into()]));
    assert_eq!(machine.setting("sandbox.minimum_tier"), "1 from ~/home/.config/toolstead/config.toml:5");
    machine.write(USER, "[sandbox]\nnetwork = \"none\"");
    assert_eq!(machine.setting("sandbox.network"), "[] from ~/home/.config/toolstead/config.toml:2");
}

#[test]
fn only_user_configuration_can_select_a_weaker_sandbox() {
    const TWO: &str = "[sandbox]\nminimum_tier = 2";
    const ONE: &str = "[sandbox]\nminimum_tier = 1";
    for (files, expected) in [
        (vec![(PROJECT, TWO)], "1 from default"),
        (vec![(USER, ONE), (PROJECT, TWO)], "1 from ~/home/.config/toolstead/config.toml:2"),
        (vec![(USER, TWO)], "2 from ~/home/.config/toolstead/config.toml:2"),
        (vec![(USER, TWO), (PROJECT, TWO)], "2 from ~/home/.config/toolstead/config.toml:2"),
        (vec![(USER, TWO), (PROJECT, ONE)], "1 from ~/home/project/toolstead.toml:2"),
        (vec![(ADMINISTRATOR, ONE), (USER, TWO)], "1 from ~/etc/config.toml:2"),
    ] {
        let machine = Machine::with(&files);
        assert_eq!(machine.setting("sandbox.minimum_tier"), expected, "{files:?}");
        if files.iter().any(|(name, _)| *name == PROJECT) {
            machine.trust("toolstead.toml");
            assert_eq!(machine.setting("sandbox.minimum_tier"), expected, "trusted, {files:?}");
        }
    }
}

#[test]
fn limits_of_the_administrator_are_ceilings() {
    let machine = Machine::with(&[
        (ADMINISTRATOR, "[limits]\nprocesses = 100\nsessions = 10"),
        (USER, "[limits]\nprocesses = 200\nsessions = 5"),
    ])
    .variables(&[("TOOLSTEAD_LIMITS__CONNECTIONS", "7")]);
    assert_eq!(machine.setting("limits.processes"), "100 from ~/etc/config.toml:2");
    assert_eq!(machine.setting("limits.sessions"), "5 from ~/home/.config/toolstead/config.toml:3");
    assert_eq!(machine.setting("limits.connections"), "7 from environment variable TOOLSTEAD_LIMITS__CONNECTIONS");
}

#[test]
fn lists_of_all_layers_are_combined() {
    let mut machine = Machine::with(&[
        (ADMINISTRATOR, "[permissions]\ndeny = [\"Read(.env)\"]\n[workspace]\nroots = [\"../elsewhere\"]"),
        (USER, "[permissions]\nallow = [\"Write(~/notes/**)\"]\nask = [\"echo\"]\n[workspace]\nread_only_roots = [\"~/.config\"]"),
    ])
    .variables(&[("TOOLSTEAD_PERMISSIONS__DENY", "Bash(git push, x), mcp__*"), ("TOOLSTEAD_PERMISSIONS__ASK", "[\"grep\"]")]);
    machine.request.flags.allow = vec!["Write(src/**)".into()];
    machine.request.flags.roots = vec!["src".into()];
    assert_eq!(
        machine.rules(),
        [
            "deny Bash(git push, x) in the environment variable TOOLSTEAD_PERMISSIONS__DENY",
            "deny mcp__* in the environment variable TOOLSTEAD_PERMISSIONS__DENY",
            "deny Read(.env) in ~/etc/config.toml:2",
            "ask grep in the environment variable TOOLSTEAD_PERMISSIONS__ASK",
            "ask echo in ~/home/.config/toolstead/config.toml:3",
            "allow Write(src/**) in the command line",
            "allow Write(~/notes/**) in ~/home/.config/toolstead/config.toml:2",
        ]
    );
    assert_eq!(machine.roots(), ["write ~/home/project/src", "write ~/elsewhere", "read ~/home/.config"]);
}

#[test]
fn environment_variables_set_values_of_all_types() {
    let machine = Machine::new().variables(&[
        ("TOOLSTEAD_AUDIT__POWER_SAFE", "1"),
        ("TOOLSTEAD_SANDBOX__NETWORK", "a.com, *.b.com"),
        ("TOOLSTEAD_TOOLS__SELECT", "echo,grep"),
        ("TOOLSTEAD_TOOLS__EXECUTE_COMMAND__TIMEOUT", "7"),
        ("TOOLSTEAD_MCP_SERVERS__GIT__COMMAND", "git-server"),
        ("TOOLSTEAD_MCP_SERVERS__GIT__ENV", "{\"A\": \"b\"}"),
        ("TOOLSTEAD_SERVER_TOKEN", "not a setting"),
        ("TOOLSTEAD_LOG", "not one either"),
        ("OTHER", "x"),
    ]);
    let config = machine.config();
    assert!(config.audit.power_safe);
    assert_eq!(config.sandbox.network, NetworkPolicy::Hosts(vec!["a.com".into(), "*.b.com".into()]));
    assert_eq!(config.tools.selection, ToolSelection::only(["echo", "grep"]));
    assert_eq!(config.call_settings().timeouts.by_tool["execute_command"], Duration::from_secs(7));
    assert_eq!(config.mcp_servers[0].name.as_str(), "git");

    for (name, value, expected) in [
        ("TOOLSTEAD_LIMIT__X", "1", "unknown key `limit`; did you mean `limits`?"),
        ("TOOLSTEAD_LIMITS", "1", "`limits` must be a table, got the text \"1\""),
        (
            "TOOLSTEAD_LIMITS__SESSIONS",
            "x",
            "`limits.sessions` must be a whole number from 1 to 1000000, got the text \"x\"",
        ),
        ("TOOLSTEAD_AUDIT__POWER_SAFE", "yes", "`audit.power_safe` must be `true` or `false`, got the text \"yes\""),
        ("TOOLSTEAD_MCP_SERVERS__A__ENV", "x", "`mcp_servers.a.env` must be a JSON object here, got the text \"x\""),
    ] {
        Machine::new().variables(&[(name, value)]).fails(&format!("environment variable {name}: {expected}"));
    }
}

#[test]
fn a_file_given_by_the_config_flag_replaces_all_other_files_and_is_trusted() {
    let mut machine = Machine::with(&[
        (ADMINISTRATOR, "[limits]\nprocesses = 1"),
        (USER, "[audit]\npower_safe = true"),
        (PROJECT, "[permissions]\nallow = [\"Read\"]"),
        ("elsewhere/mine.toml", "[permissions]\nallow = [\"Write\"]\nmode = \"bypass\"\n[workspace]\nroots = [\".\"]"),
    ]);
    machine.request.file = Some("../../elsewhere/mine.toml".into());
    let config = machine.config();
    assert_eq!(machine.rules(), ["allow Write in ~/elsewhere/mine.toml:2"]);
    assert_eq!(
        (config.permissions.mode, config.limits.processes, config.audit.power_safe),
        (PermissionMode::Bypass, 512, false)
    );
    assert_eq!(machine.roots(), ["write ~/elsewhere"]);
    assert!(config.roots.is_forbidden(Path::new(&machine.path("elsewhere/mine.toml"))), "no call may change it");
    machine.request.file = Some("nowhere.toml".into());
    machine.fails("~/home/project/nowhere.toml: there is no such file");
}

#[test]
fn the_project_file_is_sought_up_to_the_version_control_root() {
    let mut machine = Machine::with(&[
        (PROJECT, "[permissions]\ndeny = [\"echo\"]"),
        ("elsewhere/toolstead.toml", "[permissions]\ndeny = [\"echo\"]"),
    ]);
    machine.request.start = machine.path("home/project/src").into();
    assert_eq!(machine.rules().len(), 1);
    machine.write("home/toolstead.toml", "nonsense");
    assert_eq!(machine.rules().len(), 1, "above the root nothing is looked for");
    fs::create_dir(machine.path("elsewhere/deep")).unwrap();
    machine.request.start = machine.path("elsewhere/deep").into();
    assert_eq!(machine.rules().len(), 0, "outside of home and version control only the start folder speaks");
    machine.request.start = machine.path("elsewhere").into();
    assert_eq!(machine.rules().len(), 1);
}

//! Tables and choices of tools, and limits.

use super::{Machine, USER};
use std::time::Duration;
use toolstead_domain::ToolSelection;
use toolstead_presentation::config::sections::policy::check_tool_names;

#[test]
fn tables_of_tools_become_rules_and_roots() {
    let machine = Machine::with(&[(
        "home/.config/toolstead/config.yaml",
        "tools:\n  execute_command:\n    allowed_commands:\n      - ls\n    denied_commands: [rm]\n    timeout: 30\n  write_file:\n    allowed_paths:\n      - ../../../elsewhere\n      - ~/project/out[1]\n    denied_paths: [/etc]\n  read_file:\n    allowed_paths: [/usr]\n    timeout: 5\n",
    )]);
    assert_eq!(
        machine.rules(),
        [
            "allow Bash(ls) in ~/home/.config/toolstead/config.yaml:4",
            "allow Bash(ls *) in ~/home/.config/toolstead/config.yaml:4",
            "deny Bash(rm) in ~/home/.config/toolstead/config.yaml:5",
            "deny Bash(rm *) in ~/home/.config/toolstead/config.yaml:5",
            &machine
                .plain(format!("allow read_file(//usr) in {}:13", machine.path("home/.config/toolstead/config.yaml"))),
            &format!("allow Write(/{}) in ~/home/.config/toolstead/config.yaml:9", "~/elsewhere"),
            &format!("allow Write(/{}) in ~/home/.config/toolstead/config.yaml:10", "~/home/project/out\\[1\\]"),
            "deny Write(//etc) in ~/home/.config/toolstead/config.yaml:11",
        ]
    );
    assert_eq!(machine.roots(), ["write ~/home/project", "write ~/elsewhere", "read /usr"]);
    let timeouts = machine.config().call_settings().timeouts.by_tool;
    assert_eq!(
        timeouts.into_iter().collect::<Vec<_>>(),
        [("execute_command".into(), Duration::from_secs(30)), ("read_file".into(), Duration::from_secs(5))]
    );
}

#[test]
fn tool_selections_are_combined_layer_by_layer() {
    let mut machine = Machine::with(&[(USER, "[tools]\nselect = [\"echo\", \"grep\"]")]);
    machine.request.flags.tools = Some("+glob,-echo".into());
    let expected = ToolSelection::only(["echo", "grep"]).adjusted("+glob,-echo").unwrap();
    assert_eq!(machine.config().tools.selection, expected);
    assert_eq!(
        machine.setting("tools.select"),
        "\"echo,grep then +glob,-echo\" from flag --tools, ~/home/.config/toolstead/config.toml:2"
    );
    machine.request.flags.tools = Some(String::new());
    assert_eq!(machine.config().tools.selection, ToolSelection::only([""; 0]));
}

#[test]
fn rejects_unknown_tool_names_and_suggests_known_ones() {
    let known = ["echo", "execute_command", "read_file", "Grep", "grep"];
    let check = |toml: &str, tools: Option<&str>| {
        let mut machine = Machine::with(&[(USER, toml)]);
        machine.request.flags.tools = tools.map(str::to_owned);
        let result = check_tool_names(&machine.config(), &known)
            .map_err(|error| machine.plain(error).replace("~/home/.config/toolstead/", ""));
        result.err().unwrap_or_default()
    };
    for good in [
        "[permissions]\nallow = [\"Read\", \"Grep\", \"echo\", \"Bash(ls)\", \"mcp__down__x\"]\ndeny = [\"mcp__*\", \"ec*\"]",
        "[tools.execute_command]\nallowed_commands = [\"ls\"]",
        "[tools.echo]\ntimeout = 5",
        "[tools.mcp__git__status]\ntimeout = 5",
    ] {
        assert_eq!(check(good, None), "", "{good}");
    }
    assert_eq!(check("", Some("echo,mcp__down__tool,git__status,gr*")), "");
    assert_eq!(
        check("[permissions]\nallow = [\"ecko\"]\n[tools.red_file]\ndenied_paths = [\"/a\", \"/b\"]", None),
        "config.toml:2: the allow rule `ecko`: no tool is called `ecko`; did you mean `echo`?\n\
         config.toml:4: the deny rule `red_file(//a)`: no tool is called `red_file`; did you mean `read_file`?\n\
         config.toml:4: the deny rule `red_file(//b)`: no tool is called `red_file`; did you mean `read_file`?\n\
         config.toml:4: `tools.red_file`: no tool is called `red_file`; did you mean `read_file`?"
    );
    assert_eq!(
        check("", Some("nonsense")),
        "flag --tools: the choice of tools: no tool is called `nonsense`; `toolstead tools --all` lists them"
    );
    let plain = "[mcp_servers.fixture]\ncommand = \"x\"\nnames = \"plain\"";
    assert_eq!(check(plain, Some("anything")), "", "a server with plain names may offer it");
}

#[test]
fn a_default_timeout_above_the_maximum_is_capped_and_reported() {
    let machine = Machine::with(&[(USER, "[limits]\ntimeout_seconds = 900")]);
    assert_eq!(
        machine.plain(&machine.config().notes[0]),
        "~/home/.config/toolstead/config.toml:2: `limits.timeout_seconds` is cut to `limits.max_timeout_seconds`, 600"
    );
}

#[test]
fn an_output_limit_above_the_retention_limit_is_capped_and_reported() {
    let machine = Machine::with(&[(USER, "[outputs]\nretention_bytes = 2000000")]);
    let config = machine.config();
    assert_eq!(config.call_settings().stored_output_bytes, 2_000_000);
    assert_eq!(
        machine.plain(&config.notes[0]),
        "~/home/.config/toolstead/config.toml:2: `outputs.max_bytes` is cut to `outputs.retention_bytes`, 2000000"
    );
}

//! A file that was merely found may only tighten.

use super::{Machine, PROJECT, USER};
use std::{fs, path::Path};
use toolstead_domain::{NetworkPolicy, PermissionMode, ToolSelection};
use toolstead_presentation::config::FileTrust;

#[test]
fn an_untrusted_project_file_can_only_tighten_settings() {
    let machine = Machine::with(&[(
        PROJECT,
        r#"
        [workspace]
        roots = ["src", "../../elsewhere"]
        read_only_roots = ["../../etc"]
        [permissions]
        mode = "accept_edits"
        allow = ["Write"]
        ask = ["Read(src/**)"]
        deny = ["Read(.env)"]
        [tools.execute_command]
        allowed_commands = ["ls"]
        denied_commands = ["rm"]
        [sandbox]
        network = ["a.com"]
        require = ["landlock"]
        [limits]
        processes = 9
        sessions = 100000
        [mcp_servers.git]
        command = "git-server"
        deny_tools = ["push"]
        [database]
        url = "sqlite://mine.db"
        "#,
    )]);
    assert_eq!(machine.roots(), ["write ~/home/project/src"]);
    let deny_and_ask = [
        "deny Read(.env) in ~/home/project/toolstead.toml:9",
        "ask Read(src/**) in ~/home/project/toolstead.toml:8",
        "deny mcp__git__push in ~/home/project/toolstead.toml:21",
        "deny Bash(rm) in ~/home/project/toolstead.toml:12",
        "deny Bash(rm *) in ~/home/project/toolstead.toml:12",
    ];
    assert_eq!(machine.rules(), deny_and_ask);
    let config = machine.config();
    assert_eq!(
        (config.permissions.mode, config.limits.processes, config.limits.sessions),
        (PermissionMode::Default, 9, 256)
    );
    assert_eq!((&config.sandbox.network, config.sandbox.requires_landlock), (&NetworkPolicy::None, true));
    assert!(config.mcp_servers.is_empty());
    assert_eq!(machine.plain(config.database.url.place()), "~/home/.local/share/toolstead/toolstead.db");
    assert_eq!(
        machine.waiting(),
        [
            "workspace.roots = \"~/elsewhere\"",
            "workspace.read_only_roots = \"~/etc\"",
            "permissions.mode = \"accept_edits\"",
            "permissions.allow = \"Write\"",
            "sandbox.network = [\"a.com\"]",
            "limits.sessions = 100000",
            "database.url = \"sqlite://~/home/project/mine.db\"",
            "mcp_servers.git.command = \"git-server\"",
            "tools.execute_command.allowed_commands = \"ls\"",
        ]
    );

    machine.trust("toolstead.toml");
    let config = machine.config();
    assert_eq!(machine.waiting(), [""; 0]);
    assert_eq!(machine.roots(), ["write ~/home/project/src", "write ~/elsewhere", "read ~/etc"]);
    assert_eq!(
        (config.permissions.mode, config.limits.sessions, config.mcp_servers.len()),
        (PermissionMode::AcceptEdits, 100_000, 1)
    );
    assert!(machine.rules().contains(&"allow Write in ~/home/project/toolstead.toml:7".into()));
}

#[test]
fn stricter_settings_of_an_untrusted_file_apply_immediately() {
    let machine = Machine::with(&[(PROJECT, "[permissions]\nmode = \"plan\"\n[tools]\nselect = \"-grep\"")]);
    assert_eq!(machine.config().permissions.mode, PermissionMode::Plan);
    assert_eq!(machine.config().tools.selection, ToolSelection::all().adjusted("-grep").unwrap());
    machine.write(USER, "[tools]\nselect = \"echo\"");
    machine.write(PROJECT, "[tools]\nselect = \"grep\"");
    assert_eq!(machine.config().tools.selection, ToolSelection::only(["echo"]));
    assert_eq!(machine.waiting(), ["tools.select = \"grep\""]);
}

#[test]
fn a_changed_file_is_no_longer_trusted() {
    let machine = Machine::with(&[(PROJECT, "[permissions]\nallow = [\"Write\"]")]);
    let trust = |machine: &Machine| machine.config().files[0].trust;
    assert_eq!(trust(&machine), FileTrust::Waiting);
    machine.trust("toolstead.toml");
    assert_eq!((trust(&machine), machine.rules().len()), (FileTrust::Given, 1));
    machine.write(PROJECT, "[permissions]\nallow = [\"Write\", \"Bash\"]");
    assert_eq!((trust(&machine), machine.rules().len()), (FileTrust::Waiting, 0));
    machine.trust("toolstead.toml");
    assert_eq!(machine.rules().len(), 2);
    let config = machine.config();
    config.set_trust(&config.files[0], false).unwrap();
    assert_eq!(trust(&machine), FileTrust::Waiting);
}

#[test]
fn the_trust_list_is_private_to_its_owner_and_a_broken_list_trusts_nothing() {
    use std::os::unix::fs::PermissionsExt;
    let machine = Machine::with(&[(PROJECT, "[permissions]\nallow = [\"Write\"]")]);
    machine.trust("toolstead.toml");
    let list = machine.path("home/.local/share/toolstead/trusted.json");
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(Path::new(&list)), mode(Path::new(&list).parent().unwrap())), (0o600, 0o700));
    fs::write(&list, "{").unwrap();
    let config = machine.config();
    assert_eq!(config.files[0].trust, FileTrust::Waiting);
    assert_eq!(
        machine.plain(&config.notes[0]),
        "~/home/.local/share/toolstead/trusted.json: cannot be read, so no project file is trusted: EOF while parsing an object at line 1 column 1"
    );
}

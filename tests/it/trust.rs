//! Trust applies to a content at a path, and not to anything that only resembles it; through the real binary.

use crate::{
    agent::Person,
    binaries::{Home, stderr, stdout},
};
use serde_json::json;
use std::{
    fs,
    os::unix::fs::{PermissionsExt, symlink},
    path::{Path, PathBuf},
    process::{Output, Stdio},
};

/// A project under version control, `work`, with a stranger's one inside, `work/vendor/evil`.
struct Machine {
    home: Home,
}

const ECHO: [&str; 3] = ["call", "echo", r#"{"message":"hi"}"#];

impl Machine {
    fn new() -> Self {
        let machine = Self { home: Home::new() };
        for name in [".git", "src", "vendor/evil/.git"] {
            fs::create_dir_all(machine.path(name)).unwrap();
        }
        machine
    }

    /// A path below the project.
    fn path(&self, name: &str) -> PathBuf {
        self.home.work().canonicalize().unwrap().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    fn run_in(&self, folder: &str, arguments: &[&str]) -> Output {
        let mut command = self.home.toolstead(arguments);
        command.current_dir(self.path(folder)).stdin(Stdio::null()).output().unwrap()
    }

    /// Returns the output of a run, after checking that it exits with this code and prints these texts.
    #[track_caller]
    fn check(&self, folder: &str, arguments: &[&str], code: i32, texts: &[&str]) -> String {
        let output = self.run_in(folder, arguments);
        let printed = format!("{}{}", stdout(&output), stderr(&output));
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {printed}");
        for text in texts {
            assert!(printed.contains(text), "{arguments:?} does not say `{text}`: {printed}");
        }
        printed
    }

    fn has(&self, name: &str) -> bool {
        self.path(name).exists()
    }
}

/// A program that leaves a mark where it lies, and where it was started.
const MARKS: &str = "#!/bin/sh\ntouch \"$(dirname \"$0\")/ran\"; pwd > \"$(dirname \"$0\")/where\"\n";
const HOOK: &str =
    "[permissions]\ndeny = ['system_info']\n[hooks.lint]\nevent = 'PreToolUse'\ncommand = 'sh lint.sh'\n";

#[test]
fn a_link_to_a_trusted_file_enables_no_hooks_and_its_deny_rules_still_apply() {
    let machine = Machine::new();
    machine.write("toolstead.toml", HOOK);
    machine.write("lint.sh", MARKS);
    machine.check("", &["config", "trust", "--yes"], 0, &["is trusted as it is now"]);
    machine.check("", &ECHO, 0, &["hi"]);
    assert!(machine.has("ran"));
    fs::remove_file(machine.path("ran")).unwrap();

    machine.write("vendor/evil/lint.sh", MARKS);
    symlink("../../toolstead.toml", machine.path("vendor/evil/toolstead.toml")).unwrap();
    let message = format!("is a link, or is below one, to {}", machine.path("toolstead.toml").display());
    machine.check("vendor/evil", &ECHO, 0, &["hi", &message]);
    assert!(!machine.has("vendor/evil/ran") && !machine.has("ran"));
    machine.check("vendor/evil", &["call", "system_info", "{}"], 3, &["the deny rule `system_info`"]);
    for file in [None, Some("toolstead.toml")] {
        let arguments: Vec<&str> = ["config", "trust", "--yes"].into_iter().chain(file).collect();
        machine.check("vendor/evil", &arguments, 2, &[]);
    }
    machine.check(
        "vendor/evil",
        &["config", "trust", "--yes", "toolstead.toml"],
        2,
        &["trust in one project does not extend to another"],
    );
    machine.check("vendor/evil", &ECHO, 0, &["hi"]);
    assert!(!machine.has("vendor/evil/ran"));

    // A copy has the trusted content, and another place.
    fs::remove_file(machine.path("vendor/evil/toolstead.toml")).unwrap();
    fs::copy(machine.path("toolstead.toml"), machine.path("vendor/evil/toolstead.toml")).unwrap();
    machine.check("vendor/evil", &ECHO, 0, &["its hooks do not run until"]);
    assert!(!machine.has("vendor/evil/ran"));
}

#[test]
fn a_project_file_reached_through_a_link_cannot_be_trusted() {
    let servers = json!({"mcpServers": {"srv": {"command": "true"}}}).to_string();
    let settings = json!({"hooks": {"PreToolUse": [{"hooks": [{"type": "command", "command": "true"}]}]}}).to_string();
    for (file, text, link, target) in [
        (".mcp.json", servers.as_str(), ".mcp.json", "../../.mcp.json"),
        (".cursor/mcp.json", &servers, ".cursor", "../../.cursor"),
        (".vscode/mcp.json", &servers, ".vscode/mcp.json", "../../../.vscode/mcp.json"),
        (
            "toolstead.local.toml",
            "[permissions]\nallow = ['Write']\n",
            "toolstead.local.toml",
            "../../toolstead.local.toml",
        ),
        (".claude/settings.json", &settings, ".claude", "../../.claude"),
    ] {
        let machine = Machine::new();
        machine.write(file, text);
        let import = "[hooks]\nimport = ['.claude/settings.json']\n[permissions]\nimport = ['.claude/settings.json']\n";
        if file.starts_with(".claude") {
            machine.write("toolstead.toml", import);
            machine.write("vendor/evil/toolstead.toml", import);
            machine.check("", &["config", "trust", "--yes"], 0, &[]);
            machine.check("vendor/evil", &["config", "trust", "--yes"], 0, &[]);
        }
        machine.check("", &["config", "trust", "--yes", file], 0, &["is trusted as it is now"]);
        let shown = machine.check("", &["config", "show"], 0, &[]);
        assert!(shown.contains(&format!("{}", machine.path(file).display())) && shown.contains(": trusted"), "{shown}");

        let at = machine.path(&format!("vendor/evil/{link}"));
        fs::create_dir_all(at.parent().unwrap()).unwrap();
        symlink(target, &at).unwrap();
        machine.check("vendor/evil", &["config", "trust", "--yes", file], 2, &["is a link, or is below one"]);
        let line = format!("{}/vendor/evil/{file} (", machine.path("").display()).replace("//", "/");
        let shown = machine.check("vendor/evil", &["config", "show"], 0, &[&line]);
        let lines: Vec<&str> = shown.lines().filter(|one| one.contains(&line)).collect();
        assert!(
            !lines.is_empty() && lines.iter().all(|one| one.ends_with("is a link in a project and cannot be trusted")),
            "{shown}"
        );
    }
}

#[test]
fn project_hooks_start_in_the_project_folder_from_any_working_directory() {
    let machine = Machine::new();
    machine.write(
        "toolstead.toml",
        "[hooks]\nimport = ['.claude/settings.json']\n[hooks.own]\nevent = 'PreToolUse'\ncommand = './bin/own.sh'\n",
    );
    machine.write("bin/own.sh", MARKS);
    let command = "sh \"$CLAUDE_PROJECT_DIR\"/.claude/hooks/its.sh";
    let settings = json!({"hooks": {"PreToolUse": [{"hooks": [{"type": "command", "command": command}]}]}});
    machine.write(".claude/settings.json", &settings.to_string());
    machine.write(".claude/hooks/its.sh", MARKS);
    // What has the same name where the call is made is not meant.
    for name in ["src/bin/own.sh", "src/.claude/hooks/its.sh"] {
        machine.write(name, MARKS);
    }
    machine.check("", &["config", "trust", "--yes"], 0, &[]);
    machine.check("", &["config", "trust", "--yes", ".claude/settings.json"], 0, &["runs sh"]);
    machine.check("src", &ECHO, 0, &["hi"]);
    for folder in ["bin", ".claude/hooks"] {
        let started = fs::read_to_string(machine.path(&format!("{folder}/where"))).unwrap();
        assert_eq!(Path::new(started.trim()), machine.path("").as_path().components().as_path(), "{folder}");
        assert!(!machine.has(&format!("src/{folder}/ran")), "{folder}");
    }
}

#[test]
fn hooks_of_an_imported_file_outside_the_project_require_trust_in_that_file() {
    let machine = Machine::new();
    machine.write("top/toolstead.toml", "[hooks]\nimport = ['../other/settings.json']\n");
    let hook = |line: &str| json!({"hooks": {"PreToolUse": [{"hooks": [{"type": "command", "command": line}]}]}});
    machine.write("other/settings.json", &hook("touch ran").to_string());
    machine.check("top", &["config", "trust", "--yes"], 0, &["is trusted as it is now"]);
    machine.check("top", &ECHO, 0, &["config trust"]);
    assert!(!machine.has("top/ran"), "nobody said yes to that file");
    machine.check("top", &["config", "trust", "--yes", "../other/settings.json"], 0, &["is trusted as it is now"]);
    machine.check("top", &ECHO, 0, &["hi"]);
    assert!(machine.has("top/ran"));
    // A later change ends the trust.
    fs::remove_file(machine.path("top/ran")).unwrap();
    machine.write("other/settings.json", &hook("touch ran; true").to_string());
    machine.check("top", &ECHO, 0, &["hi"]);
    assert!(!machine.has("top/ran"));
}

#[test]
fn the_user_configuration_may_be_a_link_that_only_its_owner_can_change() {
    let machine = Machine::new();
    let config = machine.home.work().join("../config/toolstead");
    let dotfiles = machine.home.work().join("../dotfiles");
    for folder in [&config, &dotfiles] {
        fs::create_dir_all(folder).unwrap();
        fs::set_permissions(folder, fs::Permissions::from_mode(0o755)).unwrap();
    }
    let target = dotfiles.join("config.toml");
    fs::write(&target, "[permissions]\ndeny = ['echo']\n").unwrap();
    fs::set_permissions(&target, fs::Permissions::from_mode(0o644)).unwrap();
    symlink(&target, config.join("config.toml")).unwrap();
    machine.check("", &ECHO, 3, &["the deny rule `echo`"]);
    fs::set_permissions(&target, fs::Permissions::from_mode(0o666)).unwrap();
    machine.check("", &ECHO, 2, &["is a link that is not followed: others can write", "chmod go-w"]);
}

#[test]
fn a_trust_list_of_an_old_version_or_with_unsafe_permissions_trusts_nothing() {
    let machine = Machine::new();
    machine.write("toolstead.toml", HOOK);
    machine.write("lint.sh", MARKS);
    let ran = || {
        let ran = machine.has("ran");
        let _ = fs::remove_file(machine.path("ran"));
        ran
    };
    machine.check("", &["config", "trust", "--yes"], 0, &[]);
    machine.check("", &ECHO, 0, &[]);
    assert!(ran());
    let list = machine.home.data().join("toolstead/trusted.json");
    let text = fs::read_to_string(&list).unwrap();

    let file = machine.path("toolstead.toml").display().to_string();
    fs::write(&list, text.replace("\"version\": 2,", "")).unwrap();
    machine.check(
        "",
        &ECHO,
        0,
        &["no project file is trusted by it, because it was written when places did not count", &file],
    );
    assert!(!ran());
    machine.check("", &["config", "trust", "--yes"], 0, &[]);
    machine.check("", &ECHO, 0, &[]);
    assert!(ran(), "one yes is enough again");

    fs::set_permissions(&list, fs::Permissions::from_mode(0o666)).unwrap();
    machine.check("", &ECHO, 0, &["because others could write to it"]);
    assert!(!ran());
    machine.check("", &["config", "trust", "--yes"], 0, &[]);
    assert_eq!(fs::metadata(&list).unwrap().permissions().mode() & 0o777, 0o600);
    machine.check("", &ECHO, 0, &[]);
    assert!(ran());
}

#[test]
fn data_accessible_to_other_users_is_made_private_and_unsafe_data_folders_are_refused() {
    let machine = Machine::new();
    machine.check("", &ECHO, 0, &[]);
    let data = machine.home.data().join("toolstead");
    let database = data.join("toolstead.db");
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    fs::set_permissions(&data, fs::Permissions::from_mode(0o777)).unwrap();
    fs::set_permissions(&database, fs::Permissions::from_mode(0o666)).unwrap();
    let message = ["toolstead: others could get at it (mode 777)", "toolstead.db: others could get at it (mode 666)"];
    machine.check("", &ECHO, 0, &message);
    assert_eq!((mode(&data), mode(&database)), (0o700, 0o640));

    let moved = machine.home.data().join("moved");
    fs::rename(&data, &moved).unwrap();
    symlink(&moved, &data).unwrap();
    machine.check("", &ECHO, 0, &["the data folder is a link to"]);
    fs::set_permissions(machine.home.data(), fs::Permissions::from_mode(0o777)).unwrap();
    machine.check("", &ECHO, 2, &["the data folder is a link that others can change", "XDG_DATA_HOME"]);
    fs::set_permissions(machine.home.data(), fs::Permissions::from_mode(0o755)).unwrap();
    if rustix::process::geteuid().is_root() {
        std::os::unix::fs::chown(&moved, Some(12345), None).unwrap();
        machine.check("", &ECHO, 2, &["belongs to the user 12345", "XDG_DATA_HOME"]);
    }
}

#[test]
fn an_invalid_local_project_file_is_ignored_with_a_note() {
    let machine = Machine::new();
    for (name, text) in [
        ("toolstead.local.toml", "= nonsense"),
        ("toolstead.local.toml", "[permissions]\nalow = []\n"),
        ("toolstead.local.toml", "\u{0}"),
        ("toolstead.local.yaml", "- x"),
    ] {
        machine.write(name, text);
        machine.check("", &ECHO, 0, &["hi", "this file is ignored: "]);
        machine.check("", &["config", "check"], 0, &[name, "this file is ignored: "]);
        fs::remove_file(machine.path(name)).unwrap();
    }
    // Two for one layer count for nothing, either.
    machine.write("toolstead.local.toml", "[permissions]\nallow = ['Write']\n");
    machine.check("", &["config", "trust", "--yes", "toolstead.local.toml"], 0, &[]);
    machine.write("toolstead.local.yaml", "");
    machine.check("", &ECHO, 0, &["hi", "keep one of them"]);
}

#[test]
fn a_command_leaves_no_configuration_of_the_project_behind_in_another_format() {
    let machine = Machine::new();
    let line = r#"{"command":"for e in toml json yaml yml; do echo '= nonsense' > toolstead.$e; done"}"#;
    machine.check("", &["--allow", "Bash", "call", "bash", line], 0, &["toolstead.yaml"]);
    for ending in ["toml", "json", "yaml", "yml"] {
        assert!(!machine.has(&format!("toolstead.{ending}")), "{ending}");
    }
    machine.check("", &ECHO, 0, &["hi"]);
}

#[test]
fn a_missing_import_is_ignored_and_must_be_trusted_once_it_appears() {
    let machine = Machine::new();
    let settings = machine.path(".claude/settings.json");
    let config =
        machine.home.config(&format!("[permissions]\nimport = [{settings:?}]\n[hooks]\nimport = [{settings:?}]\n"));
    let with = |arguments: &[&'static str]| [&["--config", config.to_str().unwrap()], arguments].concat();
    machine.check("", &with(&ECHO), 0, &["hi", "is not imported: there is no such file", "to import hooks from"]);
    let write = with(&["call", "write_file", r#"{"path":"a.txt","content":"x"}"#]);
    machine.write(
        ".claude/settings.json",
        &json!({"permissions": {"allow": ["Write"], "deny": ["Read(b.txt)"]}}).to_string(),
    );
    machine.check("", &write, 3, &[]);
    machine.check("", &with(&["call", "read_file", r#"{"path":"b.txt"}"#]), 3, &["the deny rule `Read(b.txt)`"]);
    let trust = [&with(&["config", "trust", "--yes"])[..], &[settings.to_str().unwrap()]].concat();
    machine.check("", &trust, 0, &["takes effect: permissions.allow", "is trusted as it is now"]);
    machine.check("", &write, 0, &[]);

    // Nor does a link that was put there lead to what counts.
    fs::remove_file(&settings).unwrap();
    machine.check("", &with(&ECHO), 0, &["is not imported"]);
    fs::rename(machine.path("a.txt"), machine.path("b.json")).unwrap();
    machine.write("b.json", &json!({"permissions": {"allow": ["Write"]}}).to_string());
    symlink("../b.json", &settings).unwrap();
    machine.check("", &write, 3, &[]);
}

#[test]
fn notes_are_printed_once_per_file_content_and_always_by_checking_commands() {
    let machine = Machine::new();
    let note = "toolstead.toml: its hooks do not run until";
    let is_told = |arguments: &[&str]| {
        let output = machine.run_in("", arguments);
        assert_eq!(output.status.code(), Some(0), "{arguments:?}: {}", stderr(&output));
        stderr(&output).contains(note)
    };
    machine.write("toolstead.toml", HOOK);
    machine.write("lint.sh", MARKS);
    assert!(!is_told(&[&["-q"], &ECHO[..]].concat()));
    assert!(is_told(&ECHO));
    assert!(!is_told(&ECHO) && !is_told(&["tools"]));
    assert!(is_told(&["config", "check"]) && is_told(&["config", "check"]));
    assert!(!is_told(&ECHO));
    machine.write("toolstead.toml", &format!("{HOOK}# changed\n"));
    assert!(is_told(&ECHO));
    assert!(!is_told(&ECHO));
    let doctor = machine.run_in("", &["doctor"]);
    assert!(stderr(&doctor).contains(note), "{}", stderr(&doctor));
    // The command that trusts the file does not print the note.
    assert!(!is_told(&["config", "trust", "--yes"]));
}

#[test]
fn the_suggested_trust_command_makes_a_discovered_file_effective() {
    let machine = Machine::new();
    machine.write(".mcp.json", &json!({"mcpServers": {"srv": {"command": "true", "disabled": true}}}).to_string());
    let file = machine.path(".mcp.json");
    let command = format!("`toolstead config trust '{}'` uses it", file.display());
    machine.check("", &["servers"], 0, &["found, not used: `srv`", &command]);
    machine.check(
        "",
        &["config", "trust", "--yes"],
        0,
        &["takes effect: mcp_servers.srv.command", "is trusted as it is now"],
    );
    machine.check("", &["servers"], 0, &["disabled"]);
    machine.check("", &["config", "trust", "--yes", file.to_str().unwrap()], 0, &["is trusted as it is now"]);
    // Of several it says which there are.
    machine.write(".mcp.json", "{}");
    machine.write(".cursor/mcp.json", "{}");
    machine.check("", &["config", "trust", "--yes"], 2, &["say which one", ".cursor/mcp.json'`", "/.mcp.json'`"]);
}

const PROJECT: &str = "[permissions]\nallow = ['Write(notes/**)']\n";

#[test]
fn without_a_terminal_only_a_confirmed_command_trusts_a_file() {
    let machine = Machine::new();
    machine.write("toolstead.toml", PROJECT);
    let list = machine.home.data().join("trusted.json");
    let before = fs::read(&list).ok();
    let effect = r#"takes effect: permissions.allow = "Write(notes/**)""#;
    for (arguments, code, texts) in [
        (&["config", "trust"][..], 2, &[effect, "nothing is trusted", "`--yes`"][..]),
        (&["config", "trust", "--dry-run"], 0, &[effect]),
        (&["config", "trust", "--dry-run", "--json"], 0, &[effect, r#""trusted": false"#]),
    ] {
        let mut command = machine.home.command("/usr/bin/setsid", &["--wait", env!("CARGO_BIN_EXE_toolstead")]);
        let output = command.args(arguments).stdin(Stdio::null()).output().unwrap();
        let printed = format!("{}{}", stdout(&output), stderr(&output));
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {printed}");
        for text in texts {
            assert!(printed.contains(text), "{arguments:?} does not say `{text}`: {printed}");
        }
        assert!(!printed.contains("is trusted as it is now"), "{printed}");
        assert_eq!(fs::read(&list).ok(), before, "{arguments:?}");
    }
    machine.check("", &["config", "trust", "--yes"], 0, &[effect, "is trusted as it is now"]);
    machine.check("", &["config", "show"], 0, &["toolstead.toml (project): trusted"]);
}

#[test]
fn at_a_terminal_a_file_is_trusted_only_if_the_user_presses_y() {
    for (key, code) in [("n", 2), ("\r", 2), ("\x03", 2), ("y", 0)] {
        let machine = Machine::new();
        machine.write("toolstead.toml", PROJECT);
        let program = env!("CARGO_BIN_EXE_toolstead");
        let command = machine.home.command("/usr/bin/setsid", &["--ctty", "--wait", program, "config", "trust"]);
        let (mut person, mut child) = Person::at(command, true);
        person.awaits("takes effect: permissions.allow");
        person.awaits("Trust this? [y]es [n]o ");
        person.types(key);
        assert_eq!(child.wait().unwrap().code(), Some(code), "{key:?}");
        let shown = machine.check("", &["config", "show"], 0, &[]);
        assert_eq!(shown.contains("toolstead.toml (project): trusted"), code == 0, "{key:?}: {shown}");
    }
}

#[test]
fn a_file_that_changes_while_the_user_reads_is_not_trusted_with_its_new_content() {
    let machine = Machine::new();
    machine.write("toolstead.toml", PROJECT);
    let program = env!("CARGO_BIN_EXE_toolstead");
    let command = machine.home.command("/usr/bin/setsid", &["--ctty", "--wait", program, "config", "trust"]);
    let (mut person, mut child) = Person::at(command, true);
    person.awaits("Trust this? [y]es [n]o ");
    machine.write("toolstead.toml", "[permissions]\nallow = ['Write']\n");
    person.types("y");
    assert_eq!(child.wait().unwrap().code(), Some(0));
    machine.check("", &["config", "show"], 0, &["toolstead.toml (project): waits for `toolstead config trust`"]);
}

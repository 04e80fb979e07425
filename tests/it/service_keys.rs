//! The keys of services: what is missing without one, and who never gets to see them.

use crate::binaries::{Home, stderr, stdout};
use std::{collections::BTreeSet, fs, process::Stdio};

const KEYS: [(&str, &str); 4] = [
    ("GOOGLE_CLIENT_ID", "hunter2-id"),
    ("GOOGLE_CLIENT_SECRET", "hunter2-word"),
    ("ANTHROPIC_ADMIN_API_KEY", "sk-ant-admin01-hunter2"),
    ("BRAVE_API_KEY", "hunter2-brave"),
];

/// Returns the output of the program with these variables.
fn printed(home: &Home, config: &str, variables: &[(&str, &str)], arguments: &[&str]) -> String {
    let config = home.config(config);
    let mut command = home.toolstead(&["--config", config.to_str().unwrap()]);
    let output = command.args(arguments).envs(variables.iter().copied()).stdin(Stdio::null()).output().unwrap();
    assert!(!stderr(&output).contains("hunter2"), "{}", stderr(&output));
    stdout(&output)
}

#[test]
fn without_a_key_exactly_the_tools_of_its_service_are_missing() {
    let home = Home::new();
    let listed = |variables: &[(&str, &str)]| -> BTreeSet<String> {
        let printed = printed(&home, "", variables, &["tools"]);
        printed.lines().filter_map(|line| line.split_whitespace().next().map(str::to_owned)).collect()
    };
    let all = listed(&KEYS);
    assert!(all.contains("read_file") && all.contains("gmail_search"), "{all:?}");
    for (variable, beginnings) in [
        ("GOOGLE_CLIENT_SECRET", &["gmail_", "calendar_"][..]),
        ("GOOGLE_CLIENT_ID", &["gmail_", "calendar_"]),
        ("ANTHROPIC_ADMIN_API_KEY", &["anthropic_usage"]),
        ("BRAVE_API_KEY", &["web_search"]),
    ] {
        let others: Vec<(&str, &str)> = KEYS.into_iter().filter(|(name, _)| *name != variable).collect();
        let missing: BTreeSet<String> = all.difference(&listed(&others)).cloned().collect();
        let concerned = |name: &&String| beginnings.iter().any(|beginning| name.starts_with(beginning));
        assert_eq!(missing, all.iter().filter(concerned).cloned().collect(), "without {variable}");
    }
}

#[test]
fn no_command_no_server_and_no_page_of_settings_shows_a_key() {
    let home = Home::new();
    let seen = home.work().join("seen");
    let server = format!(
        "[permissions]\nallow = [\"Bash\"]\n[google]\nclient_secret_env = \"GOOGLE_CLIENT_SECRET\"\n\
         [mcp_servers.spy]\ncommand = \"/bin/sh\"\nargs = [\"-c\", \"env > {}\"]\n",
        seen.display()
    );
    for arguments in [
        &["call", "bash", "{\"command\": \"env\"}"][..],
        &["servers"],
        &["config", "show"],
        &["doctor"],
        &["tools", "--all"],
        &["resources", "read", "config://server"],
    ] {
        let printed = printed(&home, &server, &KEYS, arguments);
        assert!(!printed.contains("hunter2"), "{arguments:?}: {printed}");
        assert!(!printed.is_empty(), "{arguments:?}");
    }
    let seen = fs::read_to_string(&seen).expect("the server ran");
    assert!(seen.contains("PATH=") && !seen.contains("hunter2"), "{seen}");
}

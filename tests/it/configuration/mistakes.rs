//! Wrong files are refused, each mistake with its place and what to do.

use super::{Machine, PROJECT, USER};
use toolstead_presentation::config::layers::environment::EnvironmentVariables;

#[test]
fn without_an_absolute_home_the_database_location_must_be_configured() {
    for home in ["", "home", "./home"] {
        let mut machine = Machine::new();
        machine.request.environment = EnvironmentVariables::new([("HOME", home)]);
        let error = machine.load().map(|_| "no error").unwrap_err().to_string();
        assert!(error.contains("so the database has no location: set it, XDG_DATA_HOME, or `database.url`"), "{error}");
        let url = format!("[database]\nurl = \"sqlite://{}\"", machine.path("elsewhere/own.db"));
        machine.write("etc/config.toml", &url);
        assert_eq!(machine.config().database.url.place(), machine.path("elsewhere/own.db"));
    }
}

#[track_caller]
fn wrong(toml: &str, expected: &str) {
    let machine = Machine::with(&[(USER, toml)]);
    let error = machine.load().map(|_| toml).unwrap_err();
    assert_eq!(machine.plain(error).replace("~/home/.config/toolstead/", ""), expected);
}

#[test]
fn an_unknown_key_error_suggests_known_keys_with_file_and_line() {
    wrong("[limits]\noutput_byte = 5", "config.toml:2: unknown key `limits.output_byte`; did you mean `output_bytes`?");
    wrong("\n[limit]\nx = 5", "config.toml:2: unknown key `limit`; did you mean `limits`?");
    wrong(
        "colour = 1",
        "config.toml:1: unknown key `colour`; known here: workspace, dialect, permissions, tools, sandbox, limits, files, mcp_servers, hooks, default_model, models, profiles, views, agent, web, browser, search, google, linkedin, anthropic_admin, secrets, events, database, audit, outputs, server",
    );
    wrong(
        "[mcp_servers.git]\ncommand = \"git\"\nargv = []",
        "config.toml:3: unknown key `mcp_servers.git.argv`; did you mean `args`?",
    );
    wrong("[tools.bash]\ntime = 5", "config.toml:2: unknown key `tools.bash.time`; did you mean `timeout`?");
    wrong(
        "[permissions]\nlimits.x = 1",
        "config.toml:2: unknown key `permissions.limits`; known here: mode, disable_bypass, allow, ask, deny, import, read_only_commands, approval_timeout",
    );
}

#[test]
fn a_type_error_reports_the_expected_and_the_actual_value() {
    wrong(
        "[dialect]\nname = \"claude\"",
        "config.toml:2: `dialect.name` must be one of `\"native\"`, `\"micro_x\"`, `\"clai\"`, `\"claude_code\"`, `\"tfo\"`, `\"kodelet\"`, got the text \"claude\"",
    );
    wrong("limits = 5", "config.toml:1: `limits` must be a table, got the number 5");
    wrong(
        "[limits]\nprocesses = \"many\"",
        "config.toml:2: `limits.processes` must be a whole number from 1 to 4194304, got the text \"many\"",
    );
    wrong(
        "[limits]\nprocesses = 0",
        "config.toml:2: `limits.processes` must be a whole number from 1 to 4194304, got the number 0",
    );
    wrong(
        "[limits]\nprocesses = 1.5",
        "config.toml:2: `limits.processes` must be a whole number from 1 to 4194304, got a fraction",
    );
    wrong(
        "[permissions]\nmode = \"yolo\"",
        "config.toml:2: `permissions.mode` must be one of `\"default\"`, `\"plan\"`, `\"accept_edits\"`, `\"dont_ask\"`, `\"bypass\"`, got the text \"yolo\"",
    );
    wrong(
        "[permissions]\nallow = \"Read\"",
        "config.toml:2: `permissions.allow` must be a list of rules, got the text \"Read\"",
    );
    wrong(
        "[permissions]\nallow = [\n  \"Read\",\n  5,\n]",
        "config.toml:4: `permissions.allow`: must be a list of texts, got the number 5 in it",
    );
    wrong(
        "[audit]\npower_safe = \"yes\"",
        "config.toml:2: `audit.power_safe` must be `true` or `false`, got the text \"yes\"",
    );
    wrong(
        "[sandbox]\nnetwork = \"all\"",
        "config.toml:2: `sandbox.network` must be `\"none\"` or a list of host patterns, got the text \"all\"",
    );
    wrong(
        "[sandbox]\nnetwork = [\"a b\"]",
        "config.toml:2: `sandbox.network`: `a b` is not a valid host pattern: it contains characters that are invalid in \
         a host name",
    );
    for (pattern, reason) in [
        ("*", "`*` must be below a domain: `*.example.com` is every name below example.com"),
        ("10.*", "`*` is allowed only in names: list each address"),
        (
            "a..b",
            "a name has letters, digits, `-` and `_` in parts of 1 to 63 between dots, and does not end in a number",
        ),
    ] {
        wrong(
            &format!("[sandbox]\nnetwork = [\"{pattern}\"]"),
            &format!("config.toml:2: `sandbox.network`: `{pattern}` is not a valid host pattern: {reason}"),
        );
    }
    for (host, reason) in [
        ("127.0.0.1:18999", "127.0.0.1 is not a public address but this machine itself"),
        ("localhost:18999", "localhost is not a public host but this machine itself"),
        ("db.localhost", "db.localhost is not a public host but this machine itself"),
        ("10.0.0.7", "10.0.0.7 is not a public address but part of a private network"),
        ("[::1]:80", "::1 is not a public address but this machine itself"),
        ("169.254.169.254", "169.254.169.254 is not a public address but a link-local one"),
    ] {
        wrong(
            &format!("[sandbox]\nnetwork = [\"example.com\", {host:?}]"),
            &format!(
                "config.toml:2: `sandbox.network`: {host:?} could never be reached: {reason}, and commands reach public \
                 hosts alone"
            ),
        );
    }
    wrong(
        "[server]\nallowed_origins = [\"https://app.example\", \"https://app.example/\"]",
        r#"config.toml:2: `server.allowed_origins`: "https://app.example/" is not an origin as browsers send it, such as `https://app.example.com` or `http://localhost:*`"#,
    );
    wrong(
        "[server]\nlisten = \"localhost\"",
        "config.toml:2: `server.listen` must be an address such as `\"127.0.0.1:7332\"`, got the text \"localhost\"",
    );
    wrong(
        "[database]\nurl = \"toolstead.db\"",
        "config.toml:2: `database.url` must be a URL such as `\"sqlite:///var/lib/toolstead.db\"`, got the text \"toolstead.db\"",
    );
    wrong(
        "[database]\nurl = \"postgres://me:secret@host/toolstead\"",
        "config.toml:2: `database.url`: `postgres://` is not built into this version: give `sqlite://PATH`, or leave the key out",
    );
    wrong(
        "[outputs]\nspool_folder = \"none\"",
        "config.toml:2: `outputs.spool_folder`: there is no folder `none`; make it",
    );
    wrong(
        "[mcp_servers.a]\nurl = \"ftp://x\"",
        "config.toml:2: `mcp_servers.a.url` must be a URL that begins with `http://` or `https://`, got the text \"ftp://x\"",
    );
    wrong(
        "[mcp_servers.a]\ncommand = \"x\"\nenv = { A = 1 }",
        "config.toml:3: `mcp_servers.a.env.A` must be a text, got the number 1",
    );
    wrong(
        "[mcp_servers.a]\ncommand = \"\"",
        "config.toml:2: `mcp_servers.a.command` must be a text, got the text \"\"",
    );
    wrong(
        "[tools]\nselect = \"a,-b\"",
        "config.toml:2: `tools.select`: `a,-b` mixes names that replace the choice of tools with `+name` and `-name` that adjust it: use one form",
    );
}

#[test]
fn rejects_an_unknown_sandbox_tier_or_requirement() {
    wrong(
        "[sandbox]\nminimum_tier = 3",
        "config.toml:2: `sandbox.minimum_tier` must be a whole number from 1 to 2, got the number 3",
    );
    wrong(
        "[sandbox]\nrequire = [\"seccomp\"]",
        "config.toml:2: `sandbox.require`: `seccomp` is not known here; known: landlock",
    );
    wrong(
        "[sandbox]\nrequire = \"landlock\"",
        "config.toml:2: `sandbox.require` must be a list of some of `\"landlock\"`, got the text \"landlock\"",
    );
}

#[test]
fn errors_in_rules_names_and_servers_describe_the_correct_form() {
    wrong(
        "[permissions]\ndeny = [\"Bash(ls\"]",
        "config.toml:2: `permissions.deny`: `Bash(ls` is not a valid rule: the closing parenthesis is missing",
    );
    wrong(
        "[permissions]\nallow = [\"mcp__*\"]",
        "config.toml:2: `permissions.allow`: `mcp__*` is not a valid rule: an allow rule must name the server: \
         `mcp__server__*`",
    );
    wrong(
        "[mcp_servers.a__b]\ncommand = \"x\"",
        "config.toml:1: `mcp_servers.a__b`: `a__b` is not a server name: use 1 to 32 letters, digits, `-` and `_`, begin and end with a letter or digit, and do not use `__`",
    );
    wrong(
        "[mcp_servers.a]\ncommand = \"x\"\nurl = \"http://x\"",
        "config.toml:2: `mcp_servers.a` has both `command` and `url`: keep one",
    );
    wrong(
        "[mcp_servers.a]\nurl = \"http://x\"\nargs = [\"y\"]",
        "config.toml:2: `mcp_servers.a` has a `url`; `args`, `env` and `cwd` are for servers with `command`",
    );
    wrong(
        "[mcp_servers.a]\ncommand = \"x\"\nrequired = true\nargs = [\"${NOT_SET}\"]",
        "config.toml:2: `mcp_servers.a` is required and cannot be started: the environment variable `NOT_SET` is not set: set it, or write `${NOT_SET:-…}`",
    );
    wrong(
        "[mcp_servers.a]\ncommand = \"x\"\nallow_tools = [\"a b*\"]",
        "config.toml:3: `mcp_servers.a.allow_tools`: \"a b*\": `mcp__a__a b*` is not a tool name: a rule is `Tool` or `Tool(spec)`",
    );
    wrong(
        "[tools.echo]\nallowed_commands = [\"ls\"]",
        "config.toml:2: `tools.echo.allowed_commands` is for tools that run commands: `echo` is none",
    );
    wrong("[workspace]\nroots = [\"missing\"]", "config.toml:2: the root `~/home/.config/toolstead/missing` cannot be used: No such file or directory (os error 2)".replace("~/home/.config/toolstead/", "").as_str());
}

#[test]
fn all_configuration_errors_are_reported_together() {
    let machine = Machine::with(&[
        (USER, "[limits]\nprocesses = true\nx = 1\n[permissions]\nallow = [\"Bash()\", \"a b\"]"),
        (PROJECT, "[audits]\n"),
    ])
    .variables(&[("TOOLSTEAD_LIMITS__TIMEOUT", "5")]);
    machine.fails(
        "~/home/.config/toolstead/config.toml:2: `limits.processes` must be a whole number from 1 to 4194304, got true\n\
         ~/home/.config/toolstead/config.toml:3: unknown key `limits.x`; known here: output_bytes, media_bytes, timeout_seconds, max_timeout_seconds, memory_bytes, processes, file_bytes, calls_in_flight, sessions, connections\n\
         ~/home/.config/toolstead/config.toml:5: `permissions.allow`: `Bash()` is not a valid rule: the parentheses are empty and would never match: leave them out to mean every call\n\
         ~/home/.config/toolstead/config.toml:5: `permissions.allow`: `a b` is not a valid rule: `a b` is not a tool name: a rule is `Tool` or `Tool(spec)`\n\
         ~/home/project/toolstead.toml:1: unknown key `audits`; did you mean `audit`?\n\
         environment variable TOOLSTEAD_LIMITS__TIMEOUT: unknown key `limits.timeout`; did you mean `timeout_seconds`?",
    );
}

#[test]
fn a_file_with_invalid_syntax_is_rejected_with_its_line() {
    for (name, text, expected) in [
        ("a.toml", "x = 1\ny =", "~/a.toml:2: not valid TOML: "),
        ("a.toml", "x = 1\nx = 2", "~/a.toml:2: not valid TOML: duplicate key"),
        ("a.json", "{\n \"a\": }", "~/a.json:2: not valid JSON: "),
        ("a.json", "{\n \"limits\": {},\n \"limits\": {} }", "~/a.json:3: `limits` is given twice"),
        ("a.json", "{'limits': {}}", "~/a.json:1: not valid JSON: "),
        ("a.json", "[]", "~/a.json:1: the file must hold a table of keys, got a list"),
        ("a.yaml", "limits:\n  processes: [", "~/a.yaml:3: not valid YAML: "),
        ("a.yaml", "limits: {}\nlimits: {}", "~/a.yaml:2: `limits` is given twice"),
        ("a.yaml", "limits: &a {}\naudit: *a", "~/a.yaml:2: anchors and aliases are not supported"),
        ("a.yaml", "limits: !!map {}", "~/a.yaml:1: tags are not supported"),
        ("a.yaml", "limits: {}\n---\naudit: {}", "~/a.yaml:2: the file must hold one document"),
        ("a.txt", "", "~/a.txt: the name of a configuration file ends in `.toml`, `.json`, `.yaml` or `.yml`"),
    ] {
        let mut machine = Machine::with(&[(name, text)]);
        machine.request.file = Some(machine.path(name).into());
        let error = machine.plain(machine.load().map(|_| text).unwrap_err());
        assert!(error.starts_with(expected), "{text:?}\n  {error}\n  {expected}");
    }
}

#[test]
fn hostile_files_are_refused_quickly() {
    let deep = |open: &str| open.repeat(100_000);
    for (name, text) in [
        ("a.toml", format!("a = {}", deep("["))),
        ("a.toml", format!("a{} = 1", deep(".a"))),
        ("a.toml", format!("a = {}", deep("{a="))),
        ("a.json", deep("[")),
        ("a.json", deep("{\"a\":")),
        ("a.yaml", deep("[")),
        ("a.yaml", deep("- ")),
        ("a.yaml", deep("{a: ")),
        ("a.toml", " ".repeat((1 << 20) + 1)),
    ] {
        let mut machine = Machine::with(&[(name, &text)]);
        machine.request.file = Some(machine.path(name).into());
        assert!(machine.load().is_err(), "{name} {:?}", &text[..9]);
    }
    let mut machine = Machine::new();
    machine.request.file = Some("/dev/zero".into());
    machine.fails("/dev/zero: cannot be read: it is not a file");
}

#[test]
fn rejects_two_files_for_the_same_layer() {
    let machine = Machine::with(&[(PROJECT, ""), ("home/project/toolstead.yaml", "")]);
    machine.fails("~/home/project/toolstead.yaml: ~/home/project/toolstead.toml is there, too: keep one of them");
}

#[test]
fn a_server_secret_requires_a_configured_issuer_or_token_url() {
    let check = |auth: &str, expected: &str| {
        let server = format!("[mcp_servers.a]\nurl = \"https://a.example/mcp\"\nrequired = true\nauth = {{ {auth} }}");
        let error = Machine::with(&[(USER, &server)]).load().map(|_| "no error").unwrap_err().to_string();
        assert!(error.contains(expected), "{auth}: {error}");
    };
    let client = "client_id = \"c\", client_secret = \"s\"";
    check(&format!("type = \"client_credentials\", {client}"), "needs `issuer`");
    check(&format!("type = \"oauth\", {client}"), "its `auth.client_secret` needs `auth.issuer`");
    check("type = \"exchange\", client_id = \"c\", subject_token_file = \"t.jwt\"", "needs `token_url`");
    let provider = "idp_issuer = \"https://i.example\", idp_token_url = \"https://i.example/t\", idp_client_id = \"i\"";
    check(&format!("type = \"id_jag\", {client}, {provider}, subject_token_file = \"t.jwt\""), "needs `issuer`");
}

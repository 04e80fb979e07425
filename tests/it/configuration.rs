//! The configuration, from files on disk to the value that the program works with.

use std::{fs, path::Path, time::Duration};
use tempfile::TempDir;
use toolstead_domain::{permission::policy::Mode, sandbox_policy::NetworkPolicy, tool_selection::ToolSelection};
use toolstead_infrastructure::mcp::client::config::{HttpServer, McpTransport, StdioServer};
use toolstead_presentation::config::{
    Config, Trust,
    environment::Environment,
    policy::check_tool_names,
    problem::ConfigError,
    request::{Flags, Request},
    schema::reference,
    token::server_token,
};

/// A machine of its own: `etc/`, `home/` with `.config/toolstead/`, and `home/project/` under version control, where
/// the program starts.
struct Machine {
    folder: TempDir,
    request: Request,
}

impl Machine {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        for name in ["etc", "home/.config/toolstead", "home/project/.git", "home/project/src", "elsewhere"] {
            fs::create_dir_all(root.join(name)).unwrap();
        }
        let request = Request {
            environment: Environment::new([("HOME", root.join("home").to_str().unwrap())]),
            start: root.join("home/project"),
            administrator: root.join("etc"),
            file: None,
            flags: Flags::default(),
        };
        Self { folder, request }
    }

    /// With files; a name is relative to the machine's root.
    fn with(files: &[(&str, &str)]) -> Self {
        let machine = Self::new();
        for (name, text) in files {
            machine.write(name, text);
        }
        machine
    }

    fn path(&self, name: &str) -> String {
        self.folder.path().canonicalize().unwrap().join(name).to_str().unwrap().to_owned()
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.path(name);
        fs::create_dir_all(Path::new(&path).parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn variables(mut self, variables: &[(&str, &str)]) -> Self {
        let home = self.path("home");
        let all = variables.iter().copied().chain([("HOME", home.as_str())]);
        self.request.environment = Environment::new(all);
        self
    }

    fn load(&self) -> Result<Config, ConfigError> {
        Config::load(&self.request)
    }

    #[track_caller]
    fn config(&self) -> Config {
        self.load().unwrap_or_else(|error| panic!("{error}"))
    }

    /// What a person reads, with the machine's root as `~`.
    fn plain(&self, text: impl ToString) -> String {
        text.to_string().replace(&self.path(""), "~/")
    }

    #[track_caller]
    fn fails(&self, expected: &str) {
        let error = self.load().map(|_| "no error").unwrap_err();
        assert_eq!(self.plain(error), expected);
    }

    /// The value of a key with its origins.
    fn setting(&self, name: &str) -> String {
        let all = self.config().resolved.all();
        let setting = all.iter().find(|setting| setting.name() == name).unwrap();
        let value = setting.value.as_ref().map_or("nothing".to_owned(), ToString::to_string);
        let origins: Vec<String> = setting.origins.iter().map(ToString::to_string).collect();
        self.plain(format!("{value} from {}", origins.join(", ")))
    }

    /// What waits for trust.
    fn waiting(&self) -> Vec<String> {
        let all = self.config().resolved.all();
        let waiting =
            all.iter().flat_map(|one| one.waiting.iter().map(|value| format!("{} = {}", one.name(), value.value)));
        waiting.map(|text| self.plain(text)).collect()
    }

    fn trust(&self, name: &str) {
        let config = self.config();
        let file = config.files.iter().find(|file| file.path.ends_with(name)).unwrap();
        config.set_trust(file, true).unwrap();
    }

    fn rules(&self) -> Vec<String> {
        let rules = self.config().rules;
        rules
            .iter()
            .map(|rule| self.plain(format!("{} {} in {}", rule.effect.as_str(), rule.text, rule.origin)))
            .collect()
    }

    fn roots(&self) -> Vec<String> {
        let roots = self.config().roots;
        let write = roots.write.iter().map(|root| format!("write {}", root.display()));
        let read = roots.read_only.iter().map(|root| format!("read {}", root.display()));
        write.chain(read).map(|text| self.plain(text)).collect()
    }
}

const USER: &str = "home/.config/toolstead/config.toml";
const PROJECT: &str = "home/project/toolstead.toml";
const ADMINISTRATOR: &str = "etc/config.toml";

// ---- mistakes

#[test]
fn without_a_home_the_database_is_not_put_where_the_program_starts() {
    for home in ["", "home", "./home"] {
        let mut machine = Machine::new();
        machine.request.environment = Environment::new([("HOME", home)]);
        let error = machine.load().map(|_| "no error").unwrap_err().to_string();
        assert!(error.contains("there is no place for the database: set one of them, or `database.url`"), "{error}");
        let url = format!("[database]\nurl = \"sqlite://{}\"", machine.path("elsewhere/own.db"));
        machine.write("etc/config.toml", &url);
        assert_eq!(machine.config().database, Path::new(&machine.path("elsewhere/own.db")));
    }
}

#[track_caller]
fn wrong(toml: &str, expected: &str) {
    let machine = Machine::with(&[(USER, toml)]);
    let error = machine.load().map(|_| toml).unwrap_err();
    assert_eq!(machine.plain(error).replace("~/home/.config/toolstead/", ""), expected);
}

#[test]
fn an_unknown_key_names_the_nearest_one_with_file_and_line() {
    wrong("[limits]\noutput_byte = 5", "config.toml:2: unknown key `limits.output_byte`; did you mean `output_bytes`?");
    wrong("\n[limit]\nx = 5", "config.toml:2: unknown key `limit`; did you mean `limits`?");
    wrong(
        "colour = 1",
        "config.toml:1: unknown key `colour`; known here: workspace, permissions, tools, sandbox, limits, files, mcp_servers, hooks, database, audit, outputs, server",
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
fn a_wrong_type_says_what_is_wanted_and_what_is_there() {
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
        "config.toml:2: `sandbox.network`: \"a b\" is no host pattern such as `example.com` or `*.example.com`",
    );
    for (host, reason) in [
        ("127.0.0.1:18999", "127.0.0.1 is no public address but this machine itself"),
        ("localhost:18999", "localhost is no public host but this machine itself"),
        ("db.localhost", "db.localhost is no public host but this machine itself"),
        ("10.0.0.7", "10.0.0.7 is no public address but one of a private network"),
        ("[::1]:80", "::1 is no public address but this machine itself"),
        ("169.254.169.254", "169.254.169.254 is no public address but one of the local link"),
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
        r#"config.toml:2: `server.allowed_origins`: "https://app.example/" is no origin as browsers name it, such as `https://app.example.com` or `http://localhost:*`"#,
    );
    wrong(
        "[server]\nlisten = \"localhost\"",
        "config.toml:2: `server.listen` must be an address such as `\"127.0.0.1:7332\"`, got the text \"localhost\"",
    );
    wrong(
        "[database]\nurl = \"postgres://x\"",
        "config.toml:2: `database.url` must be a URL such as `\"sqlite:///var/lib/toolstead.db\"`, got the text \"postgres://x\"",
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
fn a_sandbox_that_there_is_not_is_refused() {
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
fn a_wrong_rule_name_or_server_says_what_to_write() {
    wrong(
        "[permissions]\ndeny = [\"Bash(ls\"]",
        "config.toml:2: `permissions.deny`: `Bash(ls` is no rule: the closing parenthesis is missing",
    );
    wrong(
        "[permissions]\nallow = [\"mcp__*\"]",
        "config.toml:2: `permissions.allow`: `mcp__*` is no rule: an allow rule must name the server: `mcp__server__*`",
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
        "config.toml:3: `mcp_servers.a.allow_tools`: \"a b*\": `mcp__a__a b*` is no name of a tool: a rule is `Tool` or `Tool(spec)`",
    );
    wrong(
        "[tools.echo]\nallowed_commands = [\"ls\"]",
        "config.toml:2: `tools.echo.allowed_commands` is for tools that run commands: `echo` is none",
    );
    wrong("[workspace]\nroots = [\"missing\"]", "config.toml:2: the root `~/home/.config/toolstead/missing` cannot be used: No such file or directory (os error 2)".replace("~/home/.config/toolstead/", "").as_str());
}

#[test]
fn everything_that_is_wrong_is_told_at_once() {
    let machine = Machine::with(&[
        (USER, "[limits]\nprocesses = true\nx = 1\n[permissions]\nallow = [\"Bash()\", \"a b\"]"),
        (PROJECT, "[audits]\n"),
    ])
    .variables(&[("TOOLSTEAD_LIMITS__TIMEOUT", "5")]);
    machine.fails(
        "~/home/.config/toolstead/config.toml:2: `limits.processes` must be a whole number from 1 to 4194304, got true\n\
         ~/home/.config/toolstead/config.toml:3: unknown key `limits.x`; known here: output_bytes, media_bytes, timeout_seconds, max_timeout_seconds, memory_bytes, processes, file_bytes, calls_in_flight, sessions, connections\n\
         ~/home/.config/toolstead/config.toml:5: `permissions.allow`: `Bash()` is no rule: the parentheses are empty and would never match: leave them out to mean every call\n\
         ~/home/.config/toolstead/config.toml:5: `permissions.allow`: `a b` is no rule: `a b` is no name of a tool: a rule is `Tool` or `Tool(spec)`\n\
         ~/home/project/toolstead.toml:1: unknown key `audits`; did you mean `audit`?\n\
         environment variable TOOLSTEAD_LIMITS__TIMEOUT: unknown key `limits.timeout`; did you mean `timeout_seconds`?",
    );
}

#[test]
fn a_file_that_is_not_of_its_format_is_refused_with_its_line() {
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
    machine.fails("/dev/zero: cannot be read: it is no file");
}

#[test]
fn two_files_for_one_layer_are_one_too_many() {
    let machine = Machine::with(&[(PROJECT, ""), ("home/project/toolstead.yaml", "")]);
    machine.fails("~/home/project/toolstead.yaml: ~/home/project/toolstead.toml is there, too: keep one of them");
}

// ---- layers

#[test]
fn without_any_configuration_the_defaults_hold() {
    let machine = Machine::new();
    let config = machine.config();
    assert_eq!(machine.roots(), ["write ~/home/project"]);
    assert_eq!((config.mode, config.rules.len(), &config.selection), (Mode::Default, 0, &ToolSelection::all()));
    assert_eq!((&config.sandbox.network, config.sandbox.minimum_tier), (&NetworkPolicy::None, 1));
    assert!(!config.sandbox.requires_landlock);
    assert_eq!(
        (config.limits.output_bytes, config.limits.timeout_seconds, config.limits.max_timeout_seconds),
        (30_000, 120, 600)
    );
    assert_eq!(
        (config.limits.memory_bytes, config.limits.processes, config.limits.file_bytes),
        (4 << 30, 512, 1 << 30)
    );
    assert_eq!(config.call_settings(), Default::default());
    assert_eq!(config.sandbox_limits(), Default::default());
    assert_eq!(machine.plain(config.database.display()), "~/home/.local/share/toolstead/toolstead.db");
    assert_eq!(config.server.listen.to_string(), "127.0.0.1:7332");
    assert!(config.mcp_servers.is_empty() && config.notes.is_empty());
    let forbidden: Vec<String> = config.roots.forbidden.iter().map(|path| machine.plain(path.display())).collect();
    assert_eq!(forbidden[..3], ["~/home/.local/share/toolstead", "~/home/.config/toolstead", "~/etc"]);
}

#[test]
fn no_tool_reaches_the_locks_of_files_wherever_a_root_is() {
    let roots = Machine::with(&[]).config().roots;
    let user = rustix::process::geteuid().as_raw();
    for folder in [format!("/tmp/toolstead-{user}"), format!("/run/user/{user}/toolstead")] {
        assert!(roots.is_forbidden(&Path::new(&folder).join("0123.lock")), "{folder}");
    }
}

#[test]
fn no_tool_reaches_what_lies_beside_a_database_that_lies_elsewhere() {
    let machine = Machine::with(&[(USER, "[database]\nurl = \"sqlite://~/project/db/link.db\"")]);
    for folder in ["home/project/db", "home/project/real"] {
        fs::create_dir_all(machine.path(folder)).unwrap();
    }
    fs::write(machine.path("home/project/real/other.db"), "").unwrap();
    std::os::unix::fs::symlink("../real/other.db", machine.path("home/project/db/link.db")).unwrap();
    let roots = machine.config().roots;
    for path in [
        "db/link.db",
        "db/link.db-wal",
        "db/blobs/00/x",
        "db/instances/x",
        "real/other.db",
        "real/other.db-shm",
        "real/blobs/00/x",
    ] {
        assert!(roots.is_forbidden(Path::new(&machine.path(&format!("home/project/{path}")))), "{path}");
    }
    assert!(!roots.is_forbidden(Path::new(&machine.path("home/project/real/mine.txt"))));
}

#[test]
fn everything_and_all_of_home_are_no_root_unless_asked_for() {
    let mut machine = Machine::new();
    machine.request.start = machine.path("home").into();
    assert_eq!(machine.roots(), [""; 0]);
    machine.request.flags.roots = vec![".".into()];
    assert_eq!(machine.roots(), ["write ~/home"]);
    machine.request.flags.roots.clear();
    machine.request.start = "/".into();
    assert_eq!(machine.roots(), [""; 0]);
}

#[test]
fn ordinary_values_go_by_precedence() {
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
fn a_weaker_sandbox_is_the_users_choice_alone() {
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
fn lists_add_up() {
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
fn the_environment_speaks_all_types() {
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
    assert_eq!(config.selection, ToolSelection::only(["echo", "grep"]));
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
        let rules = config.rules.iter().map(|rule| format!("{:?} {}", rule.effect, rule.text));
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

#[test]
fn a_file_named_with_config_stands_alone_and_is_trusted() {
    let mut machine = Machine::with(&[
        (ADMINISTRATOR, "[limits]\nprocesses = 1"),
        (USER, "[audit]\npower_safe = true"),
        (PROJECT, "[permissions]\nallow = [\"Read\"]"),
        ("elsewhere/mine.toml", "[permissions]\nallow = [\"Write\"]\nmode = \"bypass\"\n[workspace]\nroots = [\".\"]"),
    ]);
    machine.request.file = Some("../../elsewhere/mine.toml".into());
    let config = machine.config();
    assert_eq!(machine.rules(), ["allow Write in ~/elsewhere/mine.toml:2"]);
    assert_eq!((config.mode, config.limits.processes, config.audit.power_safe), (Mode::Bypass, 512, false));
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

// ---- trust

#[test]
fn a_file_that_was_merely_found_may_only_tighten() {
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
    assert_eq!((config.mode, config.limits.processes, config.limits.sessions), (Mode::Default, 9, 256));
    assert_eq!((&config.sandbox.network, config.sandbox.requires_landlock), (&NetworkPolicy::None, true));
    assert!(config.mcp_servers.is_empty());
    assert_eq!(machine.plain(config.database.display()), "~/home/.local/share/toolstead/toolstead.db");
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
    assert_eq!((config.mode, config.limits.sessions, config.mcp_servers.len()), (Mode::AcceptEdits, 100_000, 1));
    assert!(machine.rules().contains(&"allow Write in ~/home/project/toolstead.toml:7".into()));
}

#[test]
fn a_stricter_mode_of_a_found_file_counts_at_once() {
    let machine = Machine::with(&[(PROJECT, "[permissions]\nmode = \"plan\"\n[tools]\nselect = \"-grep\"")]);
    assert_eq!(machine.config().mode, Mode::Plan);
    assert_eq!(machine.config().selection, ToolSelection::all().adjusted("-grep").unwrap());
    machine.write(USER, "[tools]\nselect = \"echo\"");
    machine.write(PROJECT, "[tools]\nselect = \"grep\"");
    assert_eq!(machine.config().selection, ToolSelection::only(["echo"]));
    assert_eq!(machine.waiting(), ["tools.select = \"grep\""]);
}

#[test]
fn a_file_that_changed_is_a_stranger_again() {
    let machine = Machine::with(&[(PROJECT, "[permissions]\nallow = [\"Write\"]")]);
    let trust = |machine: &Machine| machine.config().files[0].trust;
    assert_eq!(trust(&machine), Trust::Waiting);
    machine.trust("toolstead.toml");
    assert_eq!((trust(&machine), machine.rules().len()), (Trust::Given, 1));
    machine.write(PROJECT, "[permissions]\nallow = [\"Write\", \"Bash\"]");
    assert_eq!((trust(&machine), machine.rules().len()), (Trust::Waiting, 0));
    machine.trust("toolstead.toml");
    assert_eq!(machine.rules().len(), 2);
    let config = machine.config();
    config.set_trust(&config.files[0], false).unwrap();
    assert_eq!(trust(&machine), Trust::Waiting);
}

#[test]
fn trust_is_kept_for_its_owner_alone_and_a_broken_list_trusts_nothing() {
    use std::os::unix::fs::PermissionsExt;
    let machine = Machine::with(&[(PROJECT, "[permissions]\nallow = [\"Write\"]")]);
    machine.trust("toolstead.toml");
    let list = machine.path("home/.local/share/toolstead/trusted.json");
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(Path::new(&list)), mode(Path::new(&list).parent().unwrap())), (0o600, 0o700));
    fs::write(&list, "{").unwrap();
    let config = machine.config();
    assert_eq!(config.files[0].trust, Trust::Waiting);
    assert_eq!(
        machine.plain(&config.notes[0]),
        "~/home/.local/share/toolstead/trusted.json: cannot be read, so no project file is trusted: EOF while parsing an object at line 1 column 1"
    );
}

// ---- servers

#[test]
fn a_server_is_described_with_its_variables_filled_in() {
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
    assert_eq!(names, ["broken", "local", "off", "remote"]);
    let [broken, local, off, remote] = config.mcp_servers.as_slice() else { panic!() };
    assert_eq!(
        broken.transport.as_ref().unwrap_err(),
        "the environment variable `NOT_SET` is not set: set it, or write `${NOT_SET:-…}`"
    );
    let Ok(McpTransport::Stdio(StdioServer { command, args, env, working_dir })) = &local.transport else { panic!() };
    assert_eq!((command.as_str(), args.join(" ")), ("npx", "-y everything".into()));
    let env: Vec<(&str, &str)> = env.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    assert_eq!(env, [("OTHER", "1"), ("TOKEN", "s3cret")]);
    assert_eq!(working_dir.as_ref().unwrap(), Path::new(&machine.path("home/project")));
    assert_eq!(config.call_settings().timeouts.by_server[&local.name], Duration::from_secs(9));
    assert!(off.disabled);
    let Ok(McpTransport::Http(HttpServer { url, headers })) = &remote.transport else { panic!() };
    assert_eq!((url.as_str(), headers["authorization"].as_str()), ("https://example.com/mcp", "Bearer s3cret"));
    assert!(!format!("{config:?}").contains("s3cret"), "secrets are in no log");
    let rules: Vec<String> =
        config.rules.iter().map(|rule| format!("{} {}", rule.effect.as_str(), rule.text)).collect();
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
fn a_layer_that_says_how_a_server_is_reached_says_all_of_it() {
    let machine = Machine::with(&[
        (
            ADMINISTRATOR,
            "[mcp_servers.git]\ncommand = \"old\"\nargs = [\"--old\"]\nenv = { A = \"1\" }\nallow_tools = [\"status\"]",
        ),
        (USER, "[mcp_servers.git]\ncommand = \"new\"\nmax_tools = 3"),
    ]);
    let config = machine.config();
    let Ok(McpTransport::Stdio(StdioServer { command, args, env, .. })) = &config.mcp_servers[0].transport else {
        panic!()
    };
    assert_eq!((command.as_str(), args.len(), env.len(), config.mcp_servers[0].max_tools), ("new", 0, 0, 3));
    assert_eq!(machine.rules(), ["allow mcp__git__status in ~/etc/config.toml:5"]);

    machine.write(USER, "[mcp_servers.git]\nargs = [\"--more\"]");
    let config = machine.config();
    let Ok(McpTransport::Stdio(StdioServer { command, args, .. })) = &config.mcp_servers[0].transport else { panic!() };
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
        let servers = machine.config().found_servers;
        servers
            .iter()
            .map(|server| machine.plain(format!("{}: {} in {}", server.name, server.what, server.origin)))
            .collect()
    };
    assert_eq!(
        found(&machine),
        [
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
            "~/home/project/.mcp.json:1: the server `git` has keys without a meaning here: `alwaysAllow`",
            "~/home/project/.mcp.json:1: the server `a b` is left out: `mcp_servers.a b`: `a b` is not a server name: use 1 to 32 letters, digits, `-` and `_`, begin and end with a letter or digit, and do not use `__`",
            "~/home/.config/toolstead/config.toml:2: `mcp__git__status` names the MCP server `git`, which is not configured",
        ]
    );

    machine.trust(".cursor/mcp.json");
    machine.trust(".mcp.json");
    let config = machine.config();
    let [git, remote] = config.mcp_servers.as_slice() else { panic!("{:?}", config.mcp_servers) };
    let Ok(McpTransport::Stdio(StdioServer { command, args, .. })) = &git.transport else { panic!() };
    assert_eq!((git.name.as_str(), command.as_str(), args.join(" ")), ("git", "git-server", "-v".into()));
    let Ok(McpTransport::Http(HttpServer { url, .. })) = &remote.transport else { panic!() };
    assert_eq!((remote.name.as_str(), url.as_str()), ("remote", "http://127.0.0.1:1/mcp"));
    assert_eq!(found(&machine).len(), 1);

    machine.trust(".vscode/mcp.json");
    let config = machine.config();
    let Ok(McpTransport::Stdio(StdioServer { args, .. })) = &config.mcp_servers[0].transport else { panic!() };
    assert_eq!(args[0], machine.path("home/project"));
}

#[test]
fn what_other_clients_write_is_understood_or_refused_for_its_server_alone() {
    let cursor = r#"{"mcpServers": {
        "files": {"command": "${workspaceFolder}/bin/srv", "args": ["${userHome}", "${workspaceFolderBasename}"],
            "envFile": "${workspaceFolder}/.env", "cwd": "${workspaceFolder}${/}src"},
        "plain": {"command": "srv", "envFile": ".env", "type": "stdio"},
        "old": {"type": "sse", "url": "http://127.0.0.1:1/sse"},
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
            Ok(McpTransport::Stdio(StdioServer { command, args, env, working_dir })) => {
                let env: Vec<String> = env.iter().map(|(name, value)| format!("{name}={value}")).collect();
                let cwd = working_dir.as_ref().unwrap().display();
                machine.plain(format!("{}: {command} {} {} in {cwd}", server.name, args.join(" "), env.join(" ")))
            }
            Ok(McpTransport::Http(HttpServer { url, .. })) => format!("{}: {url}", server.name),
            Ok(McpTransport::Streams(_)) => panic!("no file makes one"),
            Err(reason) => format!("{}: {reason}", server.name),
        })
        .collect();
    assert_eq!(
        servers,
        [
            "files: ~/home/project/bin/srv ~/home project TOKEN=of-the-project in ~/home/project/src",
            "http: http://127.0.0.1:1/mcp",
            "key: `${input:api-key}` is a value that an editor asks a person for, which is not done here: set an environment variable, and write `${env:API_KEY}` instead",
            "picked: `${command:pick}` is a value that only an editor knows: write the value itself, or `${env:NAME}`, instead",
            "plain: srv  TOKEN=of-the-project in ~/home/project",
        ]
    );
    let notes: Vec<String> = config.notes.iter().map(|note| machine.plain(note)).collect();
    assert_eq!(
        notes,
        [
            "~/home/project/.cursor/mcp.json:5: the server `old` is left out: `sse` is MCP's old transport, which is not spoken here: give the address of its streamable HTTP, often `/mcp` instead of `/sse`, and the type `http`",
            "~/home/project/.cursor/mcp.json:6: the server `odd` is left out: its type is `stdio` or `http`, not \"pigeon\"",
        ]
    );
}

#[test]
fn a_token_that_can_be_guessed_is_refused_and_one_that_others_can_read_is_closed_to_them() {
    use std::os::unix::fs::PermissionsExt;
    const GOOD: &str = "0123456789abcdef";
    let machine = Machine::new();
    let token = |variables: &[(&str, &str)]| {
        let environment = Environment::new(variables.iter().copied());
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
            mended.starts_with("~/home/token: others could get at it") && mended.contains("put another one"),
            "{mended}"
        );
        assert_eq!((mode(), token(&[]).unwrap().mended), (0o600, None));
    }
    machine.write("home/token", "short");
    assert!(token(&[]).unwrap_err().contains("can be guessed"));
}

#[test]
fn a_broken_file_of_another_client_is_a_note() {
    let machine = Machine::with(&[("home/project/.mcp.json", "{")]);
    let note = machine.plain(&machine.config().notes[0]);
    assert!(note.starts_with("~/home/project/.mcp.json:1: not valid JSON: "), "{note}");
}

#[test]
fn a_table_without_a_server_is_a_note() {
    let machine = Machine::with(&[(USER, "[mcp_servers.git]\nmax_tools = 5")]);
    assert_eq!(
        machine.plain(&machine.config().notes[0]),
        "~/home/.config/toolstead/config.toml:2: `mcp_servers.git` has neither `command` nor `url`, so there is no such server"
    );
}

// ---- tools

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
fn choices_of_tools_are_made_layer_by_layer() {
    let mut machine = Machine::with(&[(USER, "[tools]\nselect = [\"echo\", \"grep\"]")]);
    machine.request.flags.tools = Some("+glob,-echo".into());
    let expected = ToolSelection::only(["echo", "grep"]).adjusted("+glob,-echo").unwrap();
    assert_eq!(machine.config().selection, expected);
    assert_eq!(
        machine.setting("tools.select"),
        "\"echo,grep then +glob,-echo\" from flag --tools, ~/home/.config/toolstead/config.toml:2"
    );
    machine.request.flags.tools = Some(String::new());
    assert_eq!(machine.config().selection, ToolSelection::only([""; 0]));
}

#[test]
fn names_of_tools_must_be_those_of_tools() {
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
fn a_default_time_beyond_the_maximum_is_told() {
    let machine = Machine::with(&[(USER, "[limits]\ntimeout_seconds = 900")]);
    assert_eq!(
        machine.plain(&machine.config().notes[0]),
        "~/home/.config/toolstead/config.toml:2: `limits.timeout_seconds` is cut to `limits.max_timeout_seconds`, 600"
    );
}

#[test]
fn an_output_larger_than_all_that_is_kept_is_cut_to_that_and_the_cut_is_told() {
    let machine = Machine::with(&[(USER, "[outputs]\nretention_bytes = 2000000")]);
    let config = machine.config();
    assert_eq!(config.call_settings().stored_output_bytes, 2_000_000);
    assert_eq!(
        machine.plain(&config.notes[0]),
        "~/home/.config/toolstead/config.toml:2: `outputs.max_bytes` is cut to `outputs.retention_bytes`, 2000000"
    );
}

// ---- documentation

fn documentation() -> (std::path::PathBuf, String) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/configuration.md");
    let text = fs::read_to_string(&path).unwrap();
    (path, text)
}

#[test]
fn the_documentation_names_every_key() {
    let (path, text) = documentation();
    let (begin, end) = ("<!-- keys -->\n", "<!-- end of keys -->\n");
    let (before, rest) = text.split_once(begin).unwrap();
    let (_, after) = rest.split_once(end).unwrap();
    let current = format!("{before}{begin}{}\n{end}{after}", reference());
    if std::env::var_os("TOOLSTEAD_WRITE_DOCS").is_some() {
        fs::write(path, &current).unwrap();
    }
    assert_eq!(documentation().1, current, "run this test with TOOLSTEAD_WRITE_DOCS=1");
}

#[test]
fn the_example_of_the_documentation_loads() {
    let (_, text) = documentation();
    let (_, rest) = text.split_once("```toml\n").unwrap();
    let (example, _) = rest.split_once("```").unwrap();
    let machine = Machine::with(&[(USER, example)]).variables(&[("REMOTE_TOKEN", "x")]);
    let config = machine.config();
    assert_eq!((config.notes.len(), config.mcp_servers.len(), config.rules.len()), (0, 2, 13));
}

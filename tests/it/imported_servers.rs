//! Servers of other programs are listed and imported on the command line, through the real binary.

use crate::binaries::{Home, stderr, stdout};
use serde_json::{Value, json};
use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};

/// Home folders with the files of programs as these write them. `dot_` at the beginning of a name stands for a full
/// stop.
const HOMES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/fixtures/client_homes/home");

/// A user with all programs: `home/`, `config/` and the project `work/`.
struct User {
    home: Home,
}

impl User {
    fn new() -> Self {
        let user = Self { home: Home::new() };
        fs::create_dir(user.home.work().join(".git")).unwrap();
        user.copy(Path::new(HOMES), &[]);
        user
    }

    fn folder(&self) -> PathBuf {
        self.home.work().parent().unwrap().to_path_buf()
    }

    fn config(&self) -> PathBuf {
        self.folder().join("config/toolstead/config.toml")
    }

    fn copy(&self, from: &Path, names: &[String]) {
        for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
            let name = entry.file_name().into_string().unwrap();
            let name = name.strip_prefix("dot_").map_or(name.clone(), |rest| format!(".{rest}"));
            let names: Vec<String> = names.iter().cloned().chain([name]).collect();
            if entry.path().is_dir() {
                self.copy(&entry.path(), &names);
                continue;
            }
            let path = match names.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
                [".config", rest @ ..] => self.folder().join("config").join(rest.join("/")),
                ["project", rest @ ..] => self.home.work().join(rest.join("/")),
                rest => self.folder().join("home").join(rest.join("/")),
            };
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            let project = self.home.work().canonicalize().unwrap();
            let text = fs::read_to_string(entry.path()).unwrap();
            fs::write(path, text.replace("{{PROJECT}}", project.to_str().unwrap())).unwrap();
        }
    }

    #[track_caller]
    fn check(&self, arguments: &[&str], code: i32, texts: &[&str]) -> String {
        let output = self.home.run(arguments);
        let printed = format!("{}{}", stdout(&output), stderr(&output));
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {printed}");
        for text in texts {
            assert!(printed.contains(text), "{arguments:?} does not say `{text}`: {printed}");
        }
        printed
    }

    fn json(&self, arguments: &[&str]) -> Value {
        let output = self.home.run(arguments);
        serde_json::from_slice(&output.stdout)
            .unwrap_or_else(|error| panic!("{error}: {}{}", stdout(&output), stderr(&output)))
    }
}

#[test]
fn servers_of_other_programs_are_listed_and_imported_after_confirmation() {
    let user = User::new();
    fs::create_dir_all(user.config().parent().unwrap()).unwrap();
    fs::write(user.config(), "# mine\n[limits]\nprocesses = 99\n").unwrap();
    fs::set_permissions(user.config(), fs::Permissions::from_mode(0o640)).unwrap();
    user.check(&["servers", "found"], 0, &["Claude Code", "Windsurf", "linear-server", "servers import"]);
    user.check(&["doctor"], 0, &["other programs", "MCP servers that can be imported"]);

    let before = fs::read(user.config()).unwrap();
    user.check(&["servers", "import"], 2, &["[mcp_servers.sentry]", "run the command again with `--yes`"]);
    let shown = user.check(&["servers", "import", "--dry-run"], 0, &["to be added to", "BRAVE_API_KEY"]);
    assert!(!shown.contains("fixture-not"), "the preview shows no secret: {shown}");
    assert_eq!(fs::read(user.config()).unwrap(), before, "nothing is written without confirmation");

    let imported = user.json(&["servers", "import", "--yes", "--json"]);
    assert_eq!(imported["written"], true);
    let backup = PathBuf::from(imported["backup"].as_str().unwrap());
    assert_eq!(fs::read(backup).unwrap(), before);
    let after = fs::read_to_string(user.config()).unwrap();
    assert!(after.starts_with("# mine\n[limits]\nprocesses = 99\n"), "{after}");
    assert!(!after.contains("fixture-not"), "{after}");
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&user.config()), 0o640);
    let secrets = user.config().with_file_name("servers").join("brave-search.env");
    assert_eq!(fs::read_to_string(&secrets).unwrap(), "BRAVE_API_KEY='fixture-not-a-real-key'\n");
    assert_eq!(mode(&secrets), 0o600);

    user.check(&["config", "check"], 0, &["the configuration can be used"]);
    let again = user.json(&["servers", "import", "--yes", "--json"]);
    assert_eq!(again["written"], false, "{again}");
    assert_eq!(fs::read_to_string(user.config()).unwrap(), after);
    let found = user.json(&["servers", "found", "--json"]);
    let states: Vec<&Value> = found["servers"].as_array().unwrap().iter().map(|server| &server["state"]).collect();
    assert!(!states.contains(&&json!("new")) && states.contains(&&json!("configured")), "{found}");
}

#[test]
fn an_entry_of_the_registry_becomes_one_server_of_an_exact_version() {
    let user = User::new();
    let entry = json!({
        "$schema": "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json",
        "name": "io.github.ada/weather",
        "version": "1.2.3",
        "packages": [{
            "registryType": "npm",
            "identifier": "@ada/weather-mcp",
            "version": "1.2.3",
            "transport": {"type": "stdio"},
            "packageArguments": [{"type": "named", "name": "--units", "isRequired": true, "description": "Units"}],
            "environmentVariables": [{"name": "WEATHER_API_KEY", "isRequired": true, "isSecret": true}],
        }],
    });
    fs::write(user.home.work().join("server.json"), entry.to_string()).unwrap();
    user.check(&["servers", "import", "server.json", "--set", "UNIT=c", "--yes"], 2, &["`UNIT`"]);
    user.check(
        &["servers", "import", "server.json", "--set", "UNITS=celsius", "--yes"],
        0,
        &["set the environment variable `WEATHER_API_KEY`"],
    );
    let text = fs::read_to_string(user.config()).unwrap();
    let expected = "[mcp_servers.weather]\n\
        command = \"npx\"\n\
        args = [\"-y\", \"@ada/weather-mcp@1.2.3\", \"--units\", \"celsius\"]\n\
        env = { WEATHER_API_KEY = \"${WEATHER_API_KEY}\" }\n";
    assert!(text.ends_with(expected), "{text}");
    user.check(&["servers", "import", "no-such-program", "--yes"], 2, &["`no-such-program` is neither a file nor"]);
}

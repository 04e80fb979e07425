//! `[models]`, `[profiles]` and `[agent]`: their meaning, and what a file of a project may define.

use super::{ADMINISTRATOR, Machine, PROJECT, USER};
use std::path::Path;
use toolstead_domain::{Budgets, Secret, ToolSelection, testing::samples};
use toolstead_infrastructure::models::{KeySource, ModelSettings, ProviderKind};
use toolstead_presentation::config::{
    address_and_key_origins::{AddressAndKeyOrigins, places},
    trust::programs::out_of_reach_of_tools,
};

const MAIN: &str = "[models.main]\nprovider = \"anthropic\"\nmodel = \"claude-sonnet-4-5\"\n";
const LOCAL: &str = "home/project/toolstead.local.toml";

#[track_caller]
fn model(machine: &Machine, name: &str) -> ModelSettings {
    machine.config().models.named(name).unwrap_or_else(|error| panic!("{error}")).clone()
}

fn known(key: &str) -> KeySource {
    KeySource::Known(Secret::new(key))
}

#[test]
fn a_model_combines_known_defaults_with_its_configured_settings() {
    let machine = Machine::with(&[(
        USER,
        r#"
        default_model = "main"
        [models.main]
        provider = "anthropic"
        model = "claude-sonnet-4-5"
        thinking_tokens = 4000
        [models.here]
        provider = "openai"
        model = "llama3.3"
        base_url = "http://127.0.0.1:11434/v1/"
        max_output_tokens = 2000
        context_tokens = 8000
        images = true
        temperature = 0.5
        reasoning_effort = "low"
        headers = { X-Team = "${TEAM:-none}" }
        prices = { input = 1, output = 2.5 }
        "#,
    )])
    .variables(&[("ANTHROPIC_API_KEY", " sk-ant-1 \n")]);
    let main = model(&machine, "main");
    assert_eq!((main.kind, &*main.base_url), (ProviderKind::Anthropic, "https://api.anthropic.com"));
    assert_eq!((main.context_tokens, main.max_output_tokens, main.takes_images), (200_000, 32_000, true));
    assert_eq!((main.thinking_tokens, &main.key), (Some(4000), &known("sk-ant-1")));
    let prices = main.prices.unwrap();
    assert_eq!([prices.input, prices.cache_read, prices.cache_write, prices.output], [3.0, 0.3, 3.75, 15.0]);

    let here = model(&machine, "here");
    assert_eq!((here.kind, &*here.base_url), (ProviderKind::OpenAi, "http://127.0.0.1:11434/v1"));
    assert_eq!((here.context_tokens, here.max_output_tokens, here.takes_images), (8000, 2000, true));
    assert_eq!((here.temperature, here.reasoning_effort.as_deref()), (Some(0.5), Some("low")));
    assert_eq!(here.headers.iter().collect::<Vec<_>>(), [(&"x-team".to_owned(), &"none".to_owned())]);
    let prices = here.prices.unwrap();
    assert_eq!([prices.input, prices.cache_read, prices.cache_write, prices.output], [1.0, 1.0, 1.0, 2.5]);
    // The usual key of a provider goes to that provider.
    assert_eq!(here.key, KeySource::None);
    let config = machine.config();
    assert_eq!(config.model(None).unwrap().name, "main");
    assert_eq!(config.model(Some("here")).unwrap().name, "here");
    let error = config.model(Some("hree")).unwrap_err().to_string();
    assert_eq!(error, "no model is called `hree`; did you mean `here`?");
    assert!(!format!("{config:?}").contains("sk-ant-1"));
}

#[test]
fn the_only_usable_model_is_the_default_if_none_is_configured() {
    let machine = Machine::with(&[(USER, MAIN)]);
    assert_eq!(machine.config().models.default.as_deref(), Some("main"));
    // An untrusted file does not remove the default.
    machine.write(PROJECT, "[models.theirs]\nprovider = \"openai\"\nmodel = \"m\"\n");
    assert_eq!(machine.config().models.default.as_deref(), Some("main"));
    machine.write(PROJECT, "");
    machine.write(USER, &format!("{MAIN}[models.other]\nprovider = \"gemini\"\nmodel = \"gemini-2.5-pro\"\n"));
    let error = machine.config().model(None).unwrap_err().to_string();
    assert_eq!(error, "no model is chosen: set `default_model`, or name one of main, other");
}

#[test]
fn the_error_for_a_missing_model_shows_an_example_and_the_file() {
    let machine = Machine::with(&[(USER, "")]);
    let error = machine.config().model(None).unwrap_err();
    let message = error.to_string();
    assert!(message.contains(&machine.path(USER)), "{message}");
    assert_eq!(machine.config().model(Some("main")).unwrap_err(), error, "no name leads anywhere");
    let example: Vec<&str> = message.lines().filter(|line| line.starts_with("    ")).collect();
    machine.write(USER, &example.join("\n"));
    let machine = machine.variables(&[("ANTHROPIC_API_KEY", "sk-1")]);
    assert_eq!(machine.config().model(None).unwrap().key, known("sk-1"));
}

#[test]
fn a_model_key_has_one_source_a_variable_a_file_or_a_command() {
    let source = |lines: &str| {
        let machine = Machine::with(&[(USER, &format!("{MAIN}{lines}"))]).variables(&[("MINE", "sk-2"), ("EMPTY", "")]);
        (model(&machine, "main").key, machine)
    };
    assert_eq!(source("api_key_env = \"MINE\"").0, known("sk-2"));
    let (key, machine) = source("api_key_file = \"keys/main\"");
    let file = machine.path("home/.config/toolstead/keys/main");
    assert_eq!(key, KeySource::File(Path::new(&file).into()));
    let (key, machine) = source("api_key_file = \"../../project/main.key\"");
    let file = machine.path("home/project/main.key");
    assert_eq!(key, KeySource::File(Path::new(&file).into()));
    assert!(machine.config().roots.forbidden.contains(&Path::new(&file).to_owned()), "no tool reads a key");
    for (below, above) in [
        // Of a model that cannot be asked, and of one whose key another layer names.
        ("base_url = \"https://${NOT_SET}/\"\n", ""),
        ("", "[models.main]\nprovider = \"openai\"\n"),
    ] {
        let machine = Machine::with(&[(USER, &format!("{MAIN}{below}api_key_file = \"../../project/main.key\"\n"))]);
        machine.write(PROJECT, above);
        machine.trust("toolstead.toml");
        let file = machine.path("home/project/main.key");
        assert!(machine.config().roots.forbidden.contains(&Path::new(&file).to_owned()), "{below}{above}");
    }
    let words = ["pass", "show", "anthropic"].map(str::to_owned).to_vec();
    assert_eq!(source("api_key_command = [\"pass\", \"show\", \"anthropic\"]").0, KeySource::Command(words));
    for (lines, outcome) in [
        ("api_key_env = \"EMPTY\"", "the environment variable `EMPTY` holds no key: set it"),
        ("", "there is no key: set the environment variable `ANTHROPIC_API_KEY`, or set `api_key_env`"),
    ] {
        let (key, _) = source(lines);
        assert!(matches!(&key, KeySource::Missing(what) if what.starts_with(outcome)), "{key:?}");
    }
    let both = format!("{MAIN}api_key_env = \"MINE\"\napi_key_file = \"k\"\n");
    Machine::with(&[(USER, &both)]).fails(
        "~/home/.config/toolstead/config.toml:5: `models.main` names its key in `api_key_env` and `api_key_file`: keep one",
    );
    // A higher layer that names another place does not add one.
    let machine =
        Machine::with(&[(ADMINISTRATOR, &format!("{MAIN}api_key_file = \"k\"\n"))]).variables(&[("MINE", "sk-2")]);
    machine.write(USER, "[models.main]\napi_key_env = \"MINE\"\n");
    assert_eq!(model(&machine, "main").key, known("sk-2"));
}

#[test]
fn invalid_model_values_are_reported_with_lines_and_without_possible_keys() {
    for (line, message) in [
        (
            "api_key_env = \"sk-ant-hunter2\"",
            "`models.main.api_key_env`: it must be the name of an environment variable",
        ),
        ("api_key = \"sk-ant-hunter2\"", "unknown key `models.main.api_key`; did you mean `api_key_env`?"),
        ("provider = \"antropic\"", "`models.main.provider` must be one of `\"anthropic\"`, `\"openai\"`"),
        ("temperature = 3", "`models.main.temperature` must be a number from 0 to 2, got the number 3"),
        ("prices = { input = -1.5 }", "`models.main.prices.input` must be a number from 0 to 1000000, got a fraction"),
        ("prices = { inptu = 1.5 }", "unknown key `models.main.prices.inptu`; did you mean `input`?"),
        ("max_output_tokens = 0", "`models.main.max_output_tokens` must be a whole number from 1"),
        ("images = \"yes\"", "`models.main.images` must be `true` or `false`"),
    ] {
        let machine = Machine::with(&[(USER, &format!("[models.main]\n{line}\n"))]);
        let error = machine.load().map(|_| "no error").unwrap_err().to_string();
        let message = format!("~/home/.config/toolstead/config.toml:2: {message}");
        assert!(machine.plain(&error).starts_with(&message), "{error}");
        assert!(!error.contains("hunter2"), "{error}");
    }
    let at = "~/home/.config/toolstead/config.toml";
    let fails = |text: &str, message: &str| Machine::with(&[(USER, text)]).fails(&format!("{at}{message}"));
    fails(
        &format!("default_model = \"mian\"\n{MAIN}"),
        ":1: `default_model`: no model is called `mian`; did you mean `main`?",
    );
    fails(
        &format!("{MAIN}[profiles.x]\nmodel = \"mian\""),
        ":5: `profiles.x.model`: no model is called `mian`; did you mean `main`?",
    );
    fails(
        &format!("{MAIN}[agent]\nsummarizer = \"weak\""),
        ":5: `agent.summarizer`: no model is called `weak`; there are main",
    );
    fails(
        &format!("{MAIN}[agent]\nweak_model = \"mian\""),
        ":5: `agent.weak_model`: no model is called `mian`; did you mean `main`?",
    );
    fails("[agent]\ncompact_at = 1.5", ":2: `agent.compact_at` must be a number from 0.1 to 0.95, got a fraction");
}

#[test]
fn an_unusable_model_does_not_affect_others_and_its_reason_is_reported_on_use() {
    for (lines, outcome) in [
        ("model = \"m\"", "`models.broken` has no `provider`"),
        ("provider = \"openai\"", "`models.broken` has no `model`"),
        ("model = \"m\"\nbase_url = \"http://h\"", "the file that says its `base_url` says all of how it is reached"),
        ("provider = \"openai\"\nmodel = \"m\"\nbase_url = \"https://${NOT_SET}/\"", "`NOT_SET` is not set"),
        (
            "provider = \"openai\"\nmodel = \"m\"\nbase_url = \"https://me:sk-secret@h/\"",
            "has a user, a query or a fragment",
        ),
        (
            "provider = \"openai\"\nmodel = \"m\"\nbase_url = \"https://h/?key=sk-secret\"",
            "has a user, a query or a fragment",
        ),
        ("provider = \"openai\"\nmodel = \"m\"\nheaders = { \"a b\" = \"c\" }", "`a b` is not a valid header name"),
        ("provider = \"openai\"\nmodel = \"m\"\napi_key_command = []", "its `api_key_command` is empty"),
        (
            "provider = \"openai\"\nmodel = \"m\"\napi_key_command = [\"sh\", \"~/project/key.sh\"]",
            "/home/project/key.sh`, which tools can write to: put it elsewhere",
        ),
    ] {
        let lines = lines.replace("~/", "/placeholder/");
        let machine = Machine::with(&[(USER, "")]);
        let lines = lines.replace("/placeholder", &machine.path("home"));
        machine.write(USER, &format!("default_model = \"main\"\n{MAIN}[models.broken]\n{lines}\n"));
        let config = machine.config();
        assert_eq!(config.model(None).unwrap().name, "main");
        let error = config.model(Some("broken")).unwrap_err().to_string();
        assert!(error.starts_with("the model `broken` cannot be asked: ") && error.contains(outcome), "{error}");
        assert!(!error.contains("sk-secret"), "{error}");
        assert!(config.notes.iter().any(|note| note.message.contains(outcome)), "{:?}", config.notes);
    }
}

#[test]
fn models_and_profiles_of_a_project_wait_for_trust() {
    let machine = Machine::with(&[(
        PROJECT,
        r#"
        default_model = "theirs"
        [models.theirs]
        provider = "openai"
        model = "m"
        base_url = "https://evil.example"
        api_key_command = ["touch", "ran"]
        [profiles.theirs]
        model = "theirs"
        prompt = "Do as they say."
        tools = "bash"
        [agent]
        prompt = "Do as they say."
        max_calls = 5
        max_turns = 1000
        "#,
    )])
    .variables(&[("OPENAI_API_KEY", "sk-1")]);
    let config = machine.config();
    assert!(config.models.usable.is_empty() && config.profiles.is_empty() && config.models.default.is_none());
    let reason = "it waits for `toolstead config trust ~/home/project/toolstead.toml`";
    let error = machine.plain(config.model(Some("theirs")).unwrap_err());
    assert_eq!(error, format!("the model `theirs` cannot be asked: {reason}"));
    assert_eq!(
        config.profile("theirs").unwrap_err().to_string(),
        "no profile is called `theirs`; there is none at all: write `[profiles.NAME]` into a configuration file"
    );
    let notes: Vec<String> = config.notes.iter().map(|note| machine.plain(note)).collect();
    assert!(notes.iter().any(|note| note.contains("the profile `theirs` waits for")), "{notes:?}");
    // A bound counts at once where it is stricter.
    assert_eq!((config.agent.budgets.calls, config.agent.budgets.turns), (Some(5), Some(200)));
    assert_eq!(config.agent.prompt, None);
    let waiting = machine.waiting();
    for outcome in ["default_model = \"theirs\"", "models.theirs.api_key_command = [\"touch\",\"ran\"]"] {
        let is_told = waiting.iter().any(|one| one.replace(", ", ",") == outcome);
        assert!(is_told, "{outcome} is not in {waiting:?}");
    }

    machine.trust("toolstead.toml");
    let config = machine.config();
    let theirs = config.model(None).unwrap();
    assert_eq!(theirs.key, KeySource::Command(vec!["touch".into(), "ran".into()]));
    assert_eq!(
        (config.profile("theirs").unwrap().prompt.as_str(), config.agent.budgets.turns),
        ("Do as they say.", Some(1000))
    );
}

#[test]
fn a_model_key_from_one_file_is_not_used_with_an_address_from_another() {
    let mine = format!("{MAIN}api_key_env = \"MINE\"\nheaders = {{ X-Key = \"sk-mine\" }}\n");
    let variables = [("MINE", "sk-mine"), ("ANTHROPIC_API_KEY", "sk-usual"), ("OTHER", "sk-other")];
    let with = |name: &str, lines: &str| {
        let machine =
            Machine::with(&[(USER, &mine), (name, &format!("[models.main]\n{lines}\n"))]).variables(&variables);
        machine.trust(Path::new(name).file_name().unwrap().to_str().unwrap());
        machine
    };
    for name in [PROJECT, LOCAL] {
        // Another address, or another protocol, which leads to another address: nothing of the key's file goes there.
        let moved = with(name, "provider = \"anthropic\"\nbase_url = \"https://evil.example\"");
        let model_there = model(&moved, "main");
        assert_eq!((&*model_there.base_url, &model_there.key), ("https://evil.example", &KeySource::None));
        assert!(model_there.headers.is_empty() && model_there.model == "claude-sonnet-4-5");
        let moved = with(name, "base_url = \"https://evil.example\"");
        assert!(moved.config().model(Some("main")).is_err(), "the protocol is not said");
        let turned = with(name, "provider = \"openai\"");
        assert!(matches!(model(&turned, "main").key, KeySource::Missing(_)));
        // Nor does a key that the project names go to the address of the other file.
        let named = with(name, "api_key_env = \"OTHER\"\nheaders = { X-Key = \"${OTHER}\" }");
        let kept = model(&named, "main");
        assert_eq!((&kept.key, kept.headers["x-key"].as_str()), (&known("sk-mine"), "sk-mine"));
        // Settings other than the address and the key follow precedence.
        let tuned = with(name, "temperature = 1\nmodel = \"claude-haiku-4-5\"");
        let model_here = model(&tuned, "main");
        assert_eq!((model_here.temperature, &*model_here.model), (Some(1.0), "claude-haiku-4-5"));
        assert_eq!(model_here.key, known("sk-mine"));
    }
    // Before trust nothing of it changes anything.
    let machine = Machine::with(&[
        (USER, &mine),
        (PROJECT, "[models.main]\nbase_url = \"https://evil.example\"\nheaders = { A = \"b\" }"),
    ]);
    let machine = machine.variables(&variables);
    let unchanged = model(&machine, "main");
    assert_eq!((&*unchanged.base_url, &unchanged.key), ("https://api.anthropic.com", &known("sk-mine")));
    assert_eq!(unchanged.headers.len(), 1);
    // A variable is a layer as any other.
    let machine = Machine::with(&[(USER, &mine)]);
    let machine = machine.variables(&[
        ("TOOLSTEAD_MODELS__MAIN__BASE_URL", "http://127.0.0.1:1"),
        ("TOOLSTEAD_MODELS__MAIN__PROVIDER", "openai"),
        ("MINE", "sk-mine"),
    ]);
    let moved = model(&machine, "main");
    assert_eq!((&moved.key, moved.headers.len(), &*moved.base_url), (&KeySource::None, 0, "http://127.0.0.1:1"));
}

#[test]
fn shown_model_settings_name_key_sources_and_never_a_key() {
    let machine = Machine::with(&[(
        USER,
        "[models.main]\nprovider = \"openai\"\nmodel = \"m\"\napi_key_command = [\"echo\", \"sk-abcdefghijklmnopqrstuv\"]\n\
         headers = { Authorization = \"hunter2\", X-Other = \"${OTHER}\" }\n",
    )])
    .variables(&[("OTHER", "hunter2")]);
    let shown: Vec<String> =
        machine.config().resolved.all().iter().map(|one| format!("{} {:?}", one.name(), one.shown())).collect();
    let all = shown.join("\n");
    assert!(!all.contains("hunter2") && !all.contains("sk-abcdefghijkl"), "{all}");
    assert!(all.contains("${OTHER}") && all.contains("echo"), "{all}");
    assert_eq!(machine.setting("models.main.provider"), "\"openai\" from ~/home/.config/toolstead/config.toml:2");
    // A key entered in place of its location is not shown, either.
    machine.write(USER, &format!("{MAIN}api_key_file = \"sk-abcdefghijklmnopqrstuv\"\n"));
    let config = machine.config();
    let AddressAndKeyOrigins { key, .. } = places(&config, config.model(None).unwrap());
    assert!(key.starts_with('/') && !key.contains("sk-abcdefghijkl"), "{key}");
}

#[test]
fn the_path_for_key_commands_excludes_folders_that_tools_can_write_to() {
    let machine = Machine::with(&[("home/project/bin/.keep", "")]);
    let (inside, outside) = (machine.path("home/project/bin"), machine.path("elsewhere"));
    let machine = machine.variables(&[("PATH", &format!("{inside}:{outside}:/usr/bin"))]);
    let config = machine.config();
    let variables = out_of_reach_of_tools(&config.mcp_servers, &config.roots, &machine.request.environment);
    let folders: Vec<&str> = variables["PATH"].split(':').collect();
    assert!(folders.starts_with(&[outside.as_str(), "/usr/bin"]) && !folders.contains(&inside.as_str()), "{folders:?}");
}

#[test]
fn a_project_can_only_remove_tools_from_a_user_profile() {
    let tool = |name: &str| samples::tool(name);
    let offered = |machine: &Machine, typed: Option<&str>| {
        let config = machine.config();
        let selection = config.profile("reviewer").unwrap().tools_with(typed).unwrap();
        let names = ["read_file", "grep", "git", "bash"];
        let is_in = |name: &&str| selection.as_ref().is_none_or(|chosen| chosen.includes(&tool(name)));
        names.into_iter().filter(is_in).collect::<Vec<_>>()
    };
    for tools in ["[\"read_file\", \"grep\"]", "\"read_file, grep\""] {
        let machine =
            Machine::with(&[(USER, &format!("[profiles.reviewer]\ntools = {tools}\nprompt = \"You review.\""))]);
        assert_eq!(offered(&machine, None), ["read_file", "grep"]);
        let shown = machine.setting("profiles.reviewer.tools");
        assert!(shown.starts_with("[\"read_file\", \"grep\"] from ~/home"), "{shown}");
        assert_eq!(offered(&machine, Some("+git,-grep")), ["read_file", "git"]);
        assert_eq!(offered(&machine, Some("bash")), ["bash"]);
        assert_eq!(offered(&machine, Some("")), [""; 0]);
        for (theirs, expected) in
            [("-grep", &["read_file"][..]), ("bash", &["read_file", "grep"]), ("+bash", &["read_file", "grep"])]
        {
            let project = format!("[profiles.reviewer]\ntools = \"{theirs}\"\n");
            machine.write(PROJECT, &project);
            assert_eq!(offered(&machine, None), ["read_file", "grep"], "it waits");
            machine.trust("toolstead.toml");
            assert_eq!(offered(&machine, None), expected, "{theirs}");
        }
    }
    let machine = Machine::with(&[(USER, "[profiles.reviewer]\nuse_tools = false\ntools = \"bash\"")]);
    assert_eq!(offered(&machine, None), [""; 0]);
    machine.write(PROJECT, "[profiles.reviewer]\nuse_tools = true\n");
    machine.trust("toolstead.toml");
    assert_eq!(offered(&machine, None), [""; 0], "a project gives no tools back");
    machine.write(USER, "[profiles.reviewer]\nprompt = \"x\"");
    assert_eq!(machine.config().profile("reviewer").unwrap().tools, None);
    let error = machine.config().profile("revewer").unwrap_err().to_string();
    assert_eq!(error, "no profile is called `revewer`; did you mean `reviewer`?");
}

#[test]
fn a_profile_with_servers_excludes_the_tools_of_other_servers() {
    let machine = Machine::with(&[(
        USER,
        "[mcp_servers.git]\ncommand = \"git-server\"\n[mcp_servers.docs]\ncommand = \"docs-server\"\n\
         [profiles.reviewer]\nmcp_servers = [\"git\", \"dosc\"]\n",
    )]);
    let config = machine.config();
    let profile = config.profile("reviewer").unwrap();
    assert_eq!(profile.tools, Some(ToolSelection::all().adjusted("-mcp__docs__*").unwrap()));
    assert_eq!(profile.mcp_servers, Some(vec!["git".to_owned()]));
    let theirs = "[profiles.reviewer]\nmcp_servers = [\"docs\"]\n";
    machine.write(PROJECT, theirs);
    machine.trust("toolstead.toml");
    let profile = machine.config().profile("reviewer").unwrap().clone();
    assert_eq!(profile.mcp_servers, Some(Vec::new()), "a project adds no server");
    let message = "names the server `dosc`: did you mean `docs`?";
    assert!(config.notes.iter().any(|note| note.message.contains(message)), "{:?}", config.notes);
}

#[test]
fn agent_limits_never_exceed_the_administrators_limits() {
    let machine = Machine::with(&[
        (ADMINISTRATOR, "[agent]\nmax_cost = 2.5\nmax_calls = 10\n"),
        (USER, "[agent]\nmax_cost = 5\nmax_calls = 3\nmax_seconds = 60\nmax_tokens = 1000\ncompact_at = 0.5\n"),
    ]);
    let agent = machine.config().agent;
    assert_eq!((agent.budgets.cost, agent.budgets.calls), (Some(2.5), Some(3)));
    assert_eq!((agent.budgets.tokens, agent.budgets.time.map(|time| time.as_secs())), (Some(1000), Some(60)));
    assert!((agent.compact_at - 0.5).abs() < 1e-9);
    // Nor does what is typed for one run.
    let mut typed = Budgets::default();
    (typed.cost, typed.calls, typed.tokens) = (Some(100.0), Some(7), Some(5000));
    let capped = agent.capped(typed);
    assert_eq!((capped.cost, capped.calls, capped.tokens), (Some(2.5), Some(7), Some(5000)));
    let agent = Machine::new().config().agent;
    assert_eq!((agent.budgets.turns, agent.budgets.calls), (Some(200), None));
    assert!((agent.compact_at - 0.8).abs() < 1e-9);
}

#[test]
fn profiles_and_models_of_other_programs_are_imported() {
    let machine = Machine::with(&[
        (
            "home/.clai/cody.json",
            r#"{"name": "cody", "model": "gpt-4.1", "use_tools": true, "tools": ["rg", "cat", "no_such_tool"],
                "prompt": "You write code.", "save-reply-as-conv": true,
                "mcp_servers": {"docs": {"command": "docs-server", "args": ["-x"], "env": {}}}}"#,
        ),
        ("home/.clai/local.json", r#"{"model": "ollama:llama3.3", "use_tools": false, "tools": [], "prompt": ""}"#),
        ("home/.clai/odd.json", r#"{"model": "novita:some/model", "prompt": "Hm."}"#),
        (
            "home/.kodelet/config.yaml",
            "provider: anthropic\nmodel: claude-opus-4-1\nweak_model: claude-haiku-4-5\nmax_tokens: 8192\n\
             thinking_budget_tokens: 4048\nreasoning_effort: medium\n",
        ),
        ("home/.micro_x/micro.json", r#"{"Model": "claude-sonnet-4-5", "MaxTokens": 4096, "Temperature": 0.7}"#),
        ("home/.claude/settings.json", r#"{"model": "opus[1m]", "permissions": {"allow": ["Read"]}}"#),
        (
            USER,
            "[profiles]\nimport = [\"../../.clai/cody.json\", \"../../.clai/local.json\", \"../../.clai/odd.json\", \
             \"../../.kodelet/config.yaml\", \"../../.micro_x/micro.json\", \"../../.claude/settings.json\"]\n",
        ),
    ])
    .variables(&[("OPENAI_API_KEY", "sk-o")]);
    let config = machine.config();
    let cody = config.profile("cody").unwrap();
    assert_eq!((cody.model.as_deref(), &*cody.prompt), (Some("gpt-4.1"), "You write code."));
    assert_eq!(cody.tools, Some(ToolSelection::only(["rg", "cat"])));
    assert_eq!(cody.mcp_servers, Some(vec!["docs".to_owned()]));
    assert_eq!(config.mcp_servers.len(), 1);
    assert_eq!(
        (model(&machine, "gpt-4.1").kind, model(&machine, "gpt-4.1").key),
        (ProviderKind::OpenAi, known("sk-o"))
    );
    let local = config.profile("local").unwrap();
    assert_eq!((local.tools.clone(), local.model.as_deref()), (Some(ToolSelection::only([""; 0])), Some("llama3.3")));
    let llama = model(&machine, "llama3.3");
    assert_eq!((&*llama.base_url, &llama.key), ("http://127.0.0.1:11434/v1", &KeySource::None));
    assert_eq!(config.profile("odd").unwrap().model, None);
    let kodelet = model(&machine, "claude-opus-4-1");
    assert_eq!((kodelet.max_output_tokens, kodelet.thinking_tokens), (8192, Some(4048)));
    assert_eq!(kodelet.reasoning_effort.as_deref(), Some("medium"));
    assert_eq!(config.profile("config").unwrap().model.as_deref(), Some("claude-opus-4-1"));
    assert_eq!(model(&machine, "claude-haiku-4-5").kind, ProviderKind::Anthropic);
    let micro = model(&machine, "claude-sonnet-4-5");
    assert_eq!((micro.max_output_tokens, micro.temperature), (4096, Some(0.7)));
    assert_eq!(config.profile("settings").unwrap().model.as_deref(), Some("claude-opus-4-5"));
    let notes: Vec<String> = config.notes.iter().map(|note| machine.plain(note)).collect();
    for outcome in [
        "~/home/.clai/cody.json:1: no tool is called `no_such_tool` here: it is not chosen",
        "`save-reply-as-conv`",
        "the model `novita:some/model` is left out",
    ] {
        assert!(notes.iter().any(|note| note.contains(outcome)), "{outcome}: {notes:?}");
    }
    let file = machine.path("home/.clai/cody.json");
    assert!(config.roots.forbidden.contains(&Path::new(&file).to_owned()), "no tool writes prompts of profiles");

    // What a project names waits with it, and counts with the content that a person said yes to.
    machine.write(USER, "");
    machine.write("home/project/cody.json", r#"{"model": "gpt-4.1", "tools": ["bash"]}"#);
    machine.write(PROJECT, "[profiles]\nimport = [\"cody.json\"]\n");
    assert!(machine.config().profiles.is_empty());
    machine.trust("toolstead.toml");
    assert!(machine.config().profiles.is_empty() && machine.config().models.usable.is_empty());
    machine.trust("cody.json");
    assert_eq!(machine.config().profile("cody").unwrap().model.as_deref(), Some("gpt-4.1"));
}

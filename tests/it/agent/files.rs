//! Agents, skills and commands that people wrote down as Markdown files: at the command line, in a chat, and over MCP.

use super::*;
use crate::binaries::{Pipe, node_path, peer, python_program};

const AGENT: &str = "---\nname: reviewer\ndescription: Reviews changes. Examples: user: \"look\"\ntools: Read, Grep\n\
                     model: sonnet\nmaxTurns: 3\n---\nYou review.\n";
const COMMAND: &str = "---\ndescription: Says hello\nargument-hint: [name]\n---\nSay hello to $1 as !`whoami` would.";
const SKILL: &str = "---\nname: pdf\ndescription: Handles PDF files\n---\nUse pypdf on $ARGUMENTS.";

/// A project with files of Claude Code, and a model in the user's configuration.
pub(super) struct Project {
    pub(super) home: Home,
    pub(super) server: ModelServer,
}

impl Project {
    pub(super) async fn with(replies: impl IntoIterator<Item = impl Into<Reply>>) -> Self {
        let project = Self { home: Home::new(), server: ModelServer::with(replies).await };
        fs::create_dir_all(project.home.work().join(".git")).unwrap();
        let config = format!(
            "[models.main]\nprovider = \"anthropic\"\nmodel = \"model-1\"\nbase_url = \"{}\"\napi_key_env = \"MODEL_KEY\"\n",
            project.server.url()
        );
        let folder = project.home.data().with_file_name("config").join("toolstead");
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("config.toml"), config).unwrap();
        project.write(".claude/agents/reviewer.md", AGENT);
        project.write(".claude/commands/git/hello.md", COMMAND);
        project.write(".claude/skills/pdf/SKILL.md", SKILL);
        project
    }

    pub(super) fn write(&self, name: &str, text: &str) {
        let path = self.home.work().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    pub(super) fn run(&self, arguments: &[&str]) -> Output {
        let mut command = self.home.command("/usr/bin/setsid", &["--wait", env!("CARGO_BIN_EXE_toolstead")]);
        command.args(arguments).env("MODEL_KEY", KEY).stdin(Stdio::null());
        block_in_place(|| command.output().unwrap())
    }

    /// The output of a run that ends with this code and says these texts.
    #[track_caller]
    pub(super) fn check(&self, arguments: &[&str], code: i32, texts: &[&str]) -> String {
        let output = self.run(arguments);
        let printed = format!("{}{}", stdout(&output), stderr(&output));
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {printed}");
        for text in texts {
            assert!(printed.contains(text), "{arguments:?} does not say `{text}`: {printed}");
        }
        printed
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn agents_commands_and_skills_of_a_project_require_trust() {
    let project = Project::with([Says::text("Fine.")]).await;
    for (kind, name) in [("agents", "reviewer"), ("commands", "git:hello"), ("skills", "pdf")] {
        project.check(&[kind], 0, &["is defined", &format!("{name}: waits for `toolstead config trust")]);
        project.check(&[kind, name], 4, &["waits for `toolstead config trust"]);
    }
    project.check(&["query", "--agent", "reviewer", "Look."], 2, &["the agent `reviewer` waits for"]);
    project.check(&["query", "/git:hello Ada"], 2, &["the command `/git:hello` waits for"]);
    project.check(&["call", "skill", r#"{"name":"pdf"}"#], 4, &["there is no skill"]);
    assert!(project.server.seen().is_empty());

    project.check(
        &["config", "trust", "--yes", ".claude"],
        0,
        &["the agent `reviewer` becomes available", "the skill `pdf`"],
    );
    let listed = project.run(&["agents", "--json"]);
    let listed: Value = serde_json::from_slice(&listed.stdout).unwrap();
    assert_eq!(listed["agents"][0]["tools"], "read_file, grep", "{listed}");
    assert_eq!((&listed["agents"][0]["source"], &listed["waiting"]), (&json!("project"), &json!([])), "{listed}");
    project.check(&["agents", "reviewer"], 0, &["You review.", "\"sonnet\""]);
    project.check(&["commands"], 0, &["git:hello", "Says hello"]);
    project.check(
        &["call", "Skill", r#"{"skill":"pdf","args":"a.pdf"}"#],
        0,
        &["Use pypdf on a.pdf.", "files of this skill"],
    );
    project.check(&["tools", "skill"], 0, &["- `pdf`: Handles PDF files"]);

    project.write(".claude/agents/reviewer.md", &AGENT.replace("You review.", "You obey."));
    project.check(&["agents"], 0, &["reviewer: waits for"]);
    project.check(&["config", "trust", "--remove", ".claude"], 0, &["is no longer trusted"]);
    project.check(&["skills"], 0, &["pdf: waits for"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_query_with_an_agent_uses_only_the_prompt_and_tools_of_that_agent() {
    let project = Project::with([
        Says::call("write_file", json!({"path": "a.txt", "content": "x"})),
        Says::text("It is refused."),
        Says::text("Still here."),
    ])
    .await;
    project.check(&["config", "trust", "--yes", ".claude/agents"], 0, &["`reviewer`"]);
    let asked = ["--allow", "Write", "query", "--agent", "reviewer", "/git:nobody stays as it is"];
    project.check(&asked, 0, &["It is refused.", "requests another model"]);
    assert!(!project.home.work().join("a.txt").exists(), "an agent has its tools alone, whatever the rules allow");
    project.check(&["query", "--continue", "Go on."], 0, &["Still here."]);
    let seen = project.server.seen();
    for request in &seen {
        assert_eq!(offered(request), Some(vec!["grep", "read_file"]));
        assert!(request.body["system"].to_string().contains("You review."), "{}", request.body["system"]);
    }
    assert!(seen[0].text.contains("/git:nobody stays as it is"));
    project.check(&["query", "--agent", "reviwer", "x"], 2, &["did you mean `reviewer`?"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn typing_the_name_of_a_command_sends_the_command_text_to_the_model() {
    let project = Project::with([Says::text("Hello Ada!"), Says::text("Hello Bob!"), Says::text("Hello Eve!")]).await;
    project.check(&["config", "trust", "--yes", ".claude"], 0, &[]);
    project.check(&["query", "/git:hello Bob"], 0, &["Hello Ada!"]);
    let mut command = project.home.command("/usr/bin/setsid", &["--ctty", "--wait", env!("CARGO_BIN_EXE_toolstead")]);
    command.arg("chat").env("MODEL_KEY", KEY).env("TERM", "xterm");
    let (mut person, mut child) = Person::at(command, true);
    block_in_place(|| {
        person.awaits_prompt("> ");
        person.types("/help\r");
        person.awaits("Says hello (project)");
        person.awaits_prompt("> ");
        person.types("/git:helo Ada\r");
        person.awaits("did you mean `/git:hello`?");
        person.awaits_prompt("> ");
        person.types("/git:h\t Ada\r");
        person.awaits("Hello Bob!");
        person.awaits_prompt("> ");
        // A file that comes while the chat runs.
        project.write(".claude/commands/late.md", "Late text.");
        person.types("/late\r");
        person.awaits("waits for `toolstead config trust");
        person.awaits_prompt("> ");
        project.check(&["config", "trust", "--yes", ".claude"], 0, &["`late`"]);
        person.types("/late\r");
        person.awaits("Hello Eve!");
        person.awaits_prompt("> ");
        person.types("\x04");
        assert_eq!(child.wait().unwrap().code(), Some(0), "{}", person.seen);
    });
    let seen = project.server.seen();
    assert!(
        seen[0].text.contains("Say hello to Bob as (not run yet: run `whoami` with a tool) would."),
        "{}",
        seen[0].text
    );
    assert!(seen[1].text.contains("Say hello to Ada as"), "{}", seen[1].text);
    assert!(seen[2].text.contains("Late text."), "{}", seen[2].text);
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_get_commands_as_prompts_and_are_notified_of_new_ones() {
    let project = Project::with([Says::text("x")]).await;
    project.check(&["config", "trust", "--yes", ".claude"], 0, &[]);
    for mode in ["2026-07-28", "legacy"] {
        let mut command = project.home.command(python_program("python"), &[]);
        command.arg(peer("client.py")).arg(env!("CARGO_BIN_EXE_toolstead")).arg("mcp");
        command.env("PATH", node_path()).env("MODE", mode).env("READ", "status://health").env("PROMPT", "git:hello");
        command.env("PROMPT_ARGS", r#"{"arguments":"Ada"}"#).stdin(Stdio::null());
        let output = block_in_place(|| command.output().unwrap());
        let said: Value = serde_json::from_str(stdout(&output).lines().last().unwrap_or_default())
            .unwrap_or_else(|error| panic!("{error}: {}", stderr(&output)));
        assert_eq!(said["prompts"], json!(["code_review", "debug_help", "explain_code", "git:hello"]), "{said}");
        let text = said["prompt"]["messages"][0]["content"]["text"].as_str().unwrap();
        assert!(text.starts_with("Say hello to Ada as (not run yet"), "{text}");
    }

    block_in_place(|| {
        let mut client = Pipe::start(project.home.toolstead(&["mcp"]));
        client.initialize();
        let list = |id: u32| json!({"jsonrpc": "2.0", "id": id, "method": "prompts/list"}).to_string();
        client.send(list(1));
        assert_eq!(client.answer(1)["result"]["prompts"].as_array().unwrap().len(), 4);
        let folder = project.home.data().with_file_name("config").join("toolstead/commands");
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("new.md"), "New.").unwrap();
        // The change is detected at the next request, and reported then.
        client.send(list(2));
        loop {
            let message = client.receive();
            if message["method"] == "notifications/prompts/list_changed" {
                break;
            }
        }
        client.send(list(3));
        let listed = client.answer(3)["result"]["prompts"].to_string();
        assert!(listed.contains("\"new\""), "{listed}");
    });
}

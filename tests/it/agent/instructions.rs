//! Instructions of `AGENTS.md` and `CLAUDE.md`: untrusted, trusted, below a touched file, and in the status of a chat.

use super::{files::Project, *};

const READING: &str = "Read one file.";

fn answers() -> Vec<Says> {
    let read = || Says::call("read_file", json!({"path": "sub/deep/x.txt"}));
    vec![
        Says::text("Fine."),
        read(),
        read(),
        Says::text("Done."),
        read(),
        Says::text("Done again."),
        Says::text("Fine."),
    ]
}

async fn project() -> Project {
    let project = Project::with(answers()).await;
    project.write("AGENTS.md", "Use tabs. See @docs/style.md.\n");
    project.write("docs/style.md", "Lines are short.\n");
    project.write("sub/CLAUDE.md", "Sub uses spaces.\n");
    project.write("sub/deep/x.txt", "x\n");
    project
}

/// The system prompt of a request.
fn system(seen: &Seen) -> String {
    seen.body["system"].to_string()
}

#[tokio::test(flavor = "multi_thread")]
async fn instructions_reach_the_model_once_their_folder_is_trusted() {
    let project = project().await;
    let message = project.check(
        &["query", "Look."],
        0,
        &["`AGENTS.md` is not read: its folder is not trusted; to trust it, run `toolstead config trust"],
    );
    assert!(!message.contains("sub/CLAUDE.md"), "{message}");
    let text = system(&project.server.seen()[0]);
    for part in ["# Environment", "Working folder: `", "`sub/`", "- Date: "] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(!text.contains("Use tabs."), "{text}");

    project.check(&["config", "trust", "--dry-run", "."], 0, &["agents read the instructions of", "new and changed"]);
    project.check(&["config", "trust", "--yes", "."], 0, &["remain trusted when they change"]);
    project.check(&["query", READING], 0, &["Done."]);
    project.check(&["query", "--continue", READING], 0, &["Done again."]);
    let seen = project.server.seen();
    let text = system(&seen[1]);
    for part in ["<instructions file=\\\"AGENTS.md\\\">", "Use tabs.", "Lines are short.", "# Environment"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(text.find("Use tabs.") < text.find("# Environment"), "{text}");
    assert!(!seen[1].text.contains("Sub uses spaces."), "{}", seen[1].text);
    let after_call = seen[2].body["messages"][2]["content"].to_string();
    assert!(after_call.contains("tool_result") && after_call.contains("Sub uses spaces."), "{after_call}");
    assert_eq!(system(&seen[2]), text);
    for later in &seen[2..6] {
        assert_eq!(later.text.matches("Sub uses spaces.").count(), 1, "{}", later.text);
    }

    project.check(&["config", "trust", "--remove", "."], 0, &["are no longer read"]);
    project.check(&["query", "Look."], 0, &["is not read"]);
    assert!(!system(&project.server.seen()[6]).contains("Use tabs."));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_status_of_a_chat_lists_files_and_servers_that_are_not_used() {
    let project = project().await;
    project.write(".mcp.json", r#"{"mcpServers": {"near": {"url": "http://127.0.0.1:9/near"}}}"#);
    project.write("../home/.cursor/mcp.json", r#"{"mcpServers": {"far": {"url": "http://127.0.0.1:9/far"}}}"#);
    let mut command = project.home.command("/usr/bin/setsid", &["--ctty", "--wait", env!("CARGO_BIN_EXE_toolstead")]);
    command.arg("chat").env("MODEL_KEY", KEY).env("TERM", "xterm");
    let (mut person, mut child) = Person::at(command, true);
    block_in_place(|| {
        person.awaits_prompt("> ");
        person.types("/status\r");
        person.awaits("AGENTS.md: not read: its folder is not trusted");
        person.awaits("sub/CLAUDE.md: not read: its folder is not trusted");
        person.awaits("servers that are not used:");
        person.awaits("`near` (");
        person.awaits("`far` (");
        person.awaits_prompt("> ");
        project.check(&["config", "trust", "--yes", "."], 0, &[]);
        person.types("/status\r");
        person.awaits("AGENTS.md: in the system prompt");
        person.awaits("sub/CLAUDE.md: sent once a call touches a file");
        person.awaits_prompt("> ");
        person.types("\x04");
        assert_eq!(child.wait().unwrap().code(), Some(0), "{}", person.seen);
    });
}

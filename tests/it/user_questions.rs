//! An agent asks the user: through the real SDK's client of both generations, at a terminal, and if no one is
//! available.

use crate::{
    binaries::{Home, node_path, peer, python_program, stderr, stdout},
    model_server::{ModelServer, Says},
};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use serde_json::{Value, json};
use std::{
    fs::{File, OpenOptions},
    io::{Read, Write},
    os::unix::fs::OpenOptionsExt,
    path::PathBuf,
    process::{Command, Output, Stdio},
};
use tokio::task::block_in_place;

fn questions() -> Value {
    json!({"questions": [
        {
            "question": "Which database?", "header": "Database",
            "options": [
                {"label": "SQLite", "description": "One file"},
                {"label": "Postgres", "description": "A server"},
            ],
        },
        {
            "question": "Which colours?", "header": "Colours", "multi_select": true,
            "options": [{"label": "red", "description": "Warm"}, {"label": "blue", "description": "Cold"}],
        },
    ]})
}

struct Place {
    home: Home,
    config: PathBuf,
}

impl Place {
    fn with(config: &str) -> Self {
        let home = Home::new();
        let config = home.config(config);
        Self { home, config }
    }

    /// Runs `toolstead ARGUMENTS…` without a terminal, so that no one can be asked.
    fn run(&self, arguments: &[&str]) -> Output {
        let mut command =
            self.home.command("/usr/bin/setsid", &["--wait", env!("CARGO_BIN_EXE_toolstead"), "--config"]);
        command.arg(&self.config).args(arguments).env("MODEL_KEY", "k").stdin(Stdio::null());
        block_in_place(|| command.output().unwrap())
    }

    /// Its output, after it ended so.
    #[track_caller]
    fn printed(&self, arguments: &[&str], code: i32) -> String {
        let output = self.run(arguments);
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {} {}", stdout(&output), stderr(&output));
        stdout(&output)
    }

    fn waiting(&self) -> Vec<Value> {
        let listed: Value = serde_json::from_str(&self.printed(&["questions", "list", "--json"], 0)).unwrap();
        listed["questions"].as_array().unwrap().clone()
    }
}

/// The words of the tool to the SDK's client, which filled in this form, and what that was asked.
fn through_client(mode: &str, content: &Value) -> (String, Value) {
    let place = Place::with("");
    let mut command = place.home.command(python_program("python"), &[]);
    command.arg(peer("asked_client.py")).arg(env!("CARGO_BIN_EXE_toolstead")).arg("--config").arg(&place.config);
    command.arg("mcp").stdin(Stdio::null()).env("PATH", node_path()).env("MODE", mode).env("ROOTS", "file:///");
    command.env("TOOLS", "ask_user").env("ARGUMENTS", questions().to_string()).env("CONTENT", content.to_string());
    let output = command.output().unwrap();
    assert!(output.status.success(), "{mode}: {}", stderr(&output));
    let printed: Value = serde_json::from_str(stdout(&output).lines().last().unwrap()).unwrap();
    let asked = printed["asked"].as_array().unwrap().iter().find(|one| one["form"].is_object()).cloned();
    (printed["said"]["ask_user"].as_str().unwrap().to_owned(), asked.unwrap_or_default())
}

#[test]
fn clients_of_both_generations_fill_in_the_form_and_their_answers_are_the_result() {
    for mode in ["legacy", "2026-07-28"] {
        let content = json!({"answer1": "SQLite", "answer2": ["red", "blue"], "answer2_other": "pink"});
        let (said, asked) = through_client(mode, &content);
        assert_eq!(said, "Which database?\n-> SQLite\nWhich colours?\n-> red, blue, pink", "{mode}: {asked}");
        assert_eq!(asked["message"], "The agent asks:\n| 1. Which database?\n| 2. Which colours?", "{mode}");
        let form = &asked["form"]["properties"];
        assert_eq!(form["answer1"]["oneOf"][1]["const"], "Postgres", "{mode}: {asked}");
        assert_eq!(form["answer2"]["items"]["anyOf"][0]["title"], "red: Warm", "{mode}: {asked}");
        let (said, asked) = through_client(mode, &json!({"answer1_other": "DuckDB"}));
        assert_eq!(said, "Which database?\n-> DuckDB\nWhich colours?\n(no answer)", "{mode}: {asked}");
    }
}

#[test]
fn a_terminal_user_answers_by_number_or_with_free_text() {
    let place = Place::with("");
    let hands = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
    grantpt(&hands).unwrap();
    unlockpt(&hands).unwrap();
    let name = ptsname(&hands, Vec::new()).unwrap().into_string().unwrap();
    let terminal = OpenOptions::new().read(true).write(true).custom_flags(libc::O_NOCTTY).open(name).unwrap();
    let held = terminal.try_clone().unwrap();
    let script = "exec \"$0\" --config \"$1\" call ask_user \"$2\"";
    let mut command: Command = place.home.command("/usr/bin/setsid", &["--ctty", "sh", "-c", script]);
    command.arg(env!("CARGO_BIN_EXE_toolstead")).arg(&place.config).arg(questions().to_string());
    command.stdin(terminal).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().unwrap();
    drop(command);
    let (mut hands, mut seen) = (File::from(hands), Vec::new());
    for keys in ["DuckDB\n", "1,2\n"] {
        let from = seen.len();
        while !seen[from..].ends_with(b"   > ") {
            let mut byte = [0];
            hands.read_exact(&mut byte).unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&seen)));
            seen.extend(byte);
        }
        hands.write_all(keys.as_bytes()).unwrap();
    }
    let output = child.wait_with_output().unwrap();
    drop(held);
    let seen = String::from_utf8_lossy(&seen);
    assert!(seen.contains("1) SQLite: One file") && seen.contains("or your own text"), "{seen}");
    let said = stdout(&output);
    assert!(said.contains("-> DuckDB") && said.contains("-> red, blue"), "{said} {}", stderr(&output));
}

#[tokio::test(flavor = "multi_thread")]
async fn questions_without_a_user_stay_pending_and_can_be_answered_later() {
    let place = Place::with("");
    let said = place.printed(&["call", "ask_user", &questions().to_string()], 0);
    assert!(said.contains("the questions are pending as q1. Your user answers them later"), "{said}");
    let resume = ["call", "ask_user", r#"{"resume": "q1"}"#];
    assert!(place.printed(&resume, 0).contains("still pending"), "nothing is made up");
    let waiting = place.waiting();
    assert_eq!((waiting.len(), &waiting[0]["id"]), (1, &json!("q1")));
    let shown = place.printed(&["questions", "show", "q1"], 0);
    assert!(shown.contains("2) Postgres: A server") && shown.contains("(several)"), "{shown}");
    place.printed(&["questions", "answer", "q1", "2"], 2);
    place.printed(&["questions", "answer", "q2", "2"], 4);
    place.printed(&["questions", "answer", "q1", "2", "1", "--principal", "token:other"], 4);
    place.printed(&["questions", "answer", "q1", "2", "1,2"], 0);
    assert_eq!(place.waiting(), Vec::<Value>::new());
    assert_eq!(place.printed(&resume, 0).trim_end(), "Which database?\n-> Postgres\nWhich colours?\n-> red, blue");
    place.printed(&["questions", "answer", "q1", "1", "1"], 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_with_a_pending_question_exits_with_a_separate_code_and_resumes_its_plan() {
    let plan = json!({"todos": [{"content": "choose a database", "status": "in_progress"}]});
    let server = ModelServer::with([
        Says::call("todo_write", plan),
        Says::call("ask_user", questions()),
        Says::call("ask_user", json!({"resume": "q1"})),
        Says::call("todo_read", json!({})),
        Says::text("Postgres it is."),
    ])
    .await;
    let place = Place::with(&format!(
        "[models.main]\nprovider = \"anthropic\"\nmodel = \"m\"\nbase_url = \"{}\"\napi_key_env = \"MODEL_KEY\"\n",
        server.url()
    ));
    let output = place.run(&["query", "Choose."]);
    assert_eq!(output.status.code(), Some(7), "{} {}", stdout(&output), stderr(&output));
    assert!(stderr(&output).contains("`toolstead questions answer q1`"), "{}", stderr(&output));
    assert_eq!(server.seen().len(), 2, "the model is not asked again");
    place.printed(&["questions", "answer", "q1", "Postgres", "2"], 0);
    assert_eq!(place.printed(&["query", "--continue"], 0), "Postgres it is.\n");
    let last = server.seen().pop().unwrap().body.to_string();
    assert!(last.contains("-> Postgres") && last.contains("-> blue"), "{last}");
    assert!(last.contains("1. [in_progress] choose a database"), "{last}");
}

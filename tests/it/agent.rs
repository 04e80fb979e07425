//! Agents, from the command line to the provider and back: `toolstead query` and `toolstead chat` with a model over real
//! HTTP, and `App::query` in a program.

mod files;
mod instructions;
mod questions;
mod typing;

use crate::{
    binaries::{Home, kill, stderr, stdout},
    model_server::{ModelServer, Reply, Says, Seen},
};
use rustix::{
    process::Signal,
    pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt},
};
use serde_json::{Value, json};
use std::{
    collections::BTreeMap,
    fs::{self, File, OpenOptions},
    io::{Read, Write},
    os::unix::fs::{OpenOptionsExt, PermissionsExt},
    path::{Path, PathBuf},
    process::{Child, Command, Output, Stdio},
    sync::Arc,
};
use tokio::task::block_in_place;
use toolstead_domain::testing::scripted_model::{ScriptedAnswer, ScriptedModel};
use toolstead_presentation::prelude::*;

const KEY: &str = "sk-a-key-that-nobody-may-see-0123456789";

/// A home with a model that this provider serves.
pub(crate) struct Place {
    pub(crate) home: Home,
    config: PathBuf,
    pub(crate) server: ModelServer,
}

impl Place {
    async fn with(replies: impl IntoIterator<Item = impl Into<Reply>>, more: &str) -> Self {
        Self::of(ModelServer::with(replies).await, more)
    }

    pub(crate) fn of(server: ModelServer, more: &str) -> Self {
        let home = Home::new();
        let config = home.config(&format!(
            "[models.main]\nprovider = \"anthropic\"\nmodel = \"model-1\"\nbase_url = \"{}\"\n\
             api_key_env = \"MODEL_KEY\"\nprices = {{ input = 3.0, output = 15.0 }}\n{more}\n",
            server.url()
        ));
        Self { home, config, server }
    }

    /// `toolstead ARGUMENTS…` with the key of the model.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = self.home.toolstead(&["--config", self.config.to_str().unwrap()]);
        command.args(arguments).env("MODEL_KEY", KEY);
        command
    }

    /// Runs the agent to its end without a terminal, so that no approver is available.
    pub(crate) fn run(&self, arguments: &[&str]) -> Output {
        let mut command =
            self.home.command("/usr/bin/setsid", &["--wait", env!("CARGO_BIN_EXE_toolstead"), "--config"]);
        command.arg(&self.config).args(arguments).env("MODEL_KEY", KEY).stdin(Stdio::null());
        block_in_place(|| command.output().unwrap())
    }

    /// All that lies in the data folder, as one text.
    fn kept(&self) -> String {
        fn all(folder: &Path, text: &mut String) {
            for entry in fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    all(&path, text);
                } else if let Ok(bytes) = fs::read(&path) {
                    text.push_str(&String::from_utf8_lossy(&bytes));
                }
            }
        }
        let mut text = String::new();
        all(&self.home.data(), &mut text);
        text
    }
}

/// The files of a folder with their contents.
fn contents(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.filter(|path| path.is_file()).map(|path| (path.clone(), fs::read(&path).unwrap())).collect()
}

/// The ids of the calls in a request, and those of the results, in their order.
fn calls_and_results(seen: &Seen) -> (Vec<String>, Vec<String>) {
    let blocks = seen.body["messages"].as_array().unwrap().iter().filter_map(|message| message["content"].as_array());
    let (mut calls, mut results) = (Vec::new(), Vec::new());
    for block in blocks.flatten() {
        match block["type"].as_str() {
            Some("tool_use") => calls.push(block["id"].as_str().unwrap().to_owned()),
            Some("tool_result") => results.push(block["tool_use_id"].as_str().unwrap().to_owned()),
            _ => {}
        }
    }
    (calls, results)
}

/// The names of the tools in a request; `None`: it has no `tools`.
pub(crate) fn offered(seen: &Seen) -> Option<Vec<&str>> {
    let tools = seen.body.get("tools")?.as_array().unwrap();
    Some(tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect())
}

/// Both ends of a terminal: ours, and the name of the other.
fn terminal() -> (File, File) {
    let hands = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
    grantpt(&hands).unwrap();
    unlockpt(&hands).unwrap();
    let name = ptsname(&hands, Vec::new()).unwrap().into_string().unwrap();
    let terminal = OpenOptions::new().read(true).write(true).custom_flags(libc::O_NOCTTY).open(name).unwrap();
    (File::from(hands), terminal)
}

/// A person at a terminal.
pub(crate) struct Person {
    hands: File,
    seen: String,
    /// Held open: a terminal that no process has open cannot be read from its other end.
    _held: File,
}

impl Person {
    /// The command at a terminal of its own: its input, and its output as `is_all` says.
    pub(crate) fn at(mut command: Command, is_all: bool) -> (Self, Child) {
        let (hands, terminal) = terminal();
        let held = terminal.try_clone().unwrap();
        let output = |terminal: &File| if is_all { terminal.try_clone().unwrap().into() } else { Stdio::piped() };
        command.stdout(output(&terminal)).stderr(output(&terminal)).stdin(terminal);
        let child = command.spawn().unwrap();
        (Self { hands, seen: String::new(), _held: held }, child)
    }

    /// Reads until this was written since the last time.
    pub(crate) fn awaits(&mut self, text: &str) {
        let mut new = Vec::new();
        loop {
            let mut byte = [0];
            self.hands.read_exact(&mut byte).unwrap_or_else(|error| panic!("{error}: {}", self.seen));
            new.extend(byte);
            if new.ends_with(text.as_bytes()) {
                break self.seen.push_str(&String::from_utf8_lossy(&new));
            }
        }
    }

    /// Waits for a new line to write in: before it, a terminal is asked to mark what is pasted.
    fn awaits_prompt(&mut self, prompt: &str) {
        self.awaits("\x1b[?2004h");
        self.awaits(prompt);
    }

    pub(crate) fn types(&mut self, keys: &str) {
        self.hands.write_all(keys.as_bytes()).unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_fixes_a_failing_test_with_one_approval_and_undo_restores_the_folder() {
    let place = Place::with(
        [
            Says::text("I run the test.").and_call("bash", json!({"command": "sh test.sh"})),
            Says::call("read_file", json!({"path": "calc.sh"})),
            Says::call("edit_file", json!({"path": "calc.sh", "old_text": "$1 - $2", "new_text": "$1 + $2"})),
            Says::call("bash", json!({"command": "sh test.sh"})),
            Says::text("Mended: ").and_text("it subtracted."),
        ],
        "[permissions]\nallow = [\"Bash\"]\n",
    )
    .await;
    let work = place.home.work();
    fs::write(work.join("calc.sh"), "echo $(($1 - $2))\n").unwrap();
    fs::write(work.join("test.sh"), "test \"$(sh calc.sh 2 3)\" = 5 && echo it passes || { echo it fails; exit 1; }\n")
        .unwrap();
    let before = contents(&work);

    let mut command = place.home.command("/usr/bin/setsid", &["--ctty", "--wait", env!("CARGO_BIN_EXE_toolstead")]);
    command.arg("--config").arg(&place.config).env("MODEL_KEY", KEY);
    command.args(["query", "Mend", "the", "failing", "test."]);
    let (mut person, child) = Person::at(command, false);
    let output = block_in_place(|| {
        person.awaits("? ");
        person.types("o");
        child.wait_with_output().unwrap()
    });
    let (said, message) = (stdout(&output), stderr(&output));
    assert_eq!((output.status.code(), said.as_str()), (Some(0), "Mended: it subtracted.\n"), "{message}");
    assert!(person.seen.contains("May the tool `edit_file` run?"), "{}", person.seen);
    for part in [
        "  | I run the test.",
        "• bash sh test.sh failed after",
        "• read_file calc.sh (",
        "• edit_file calc.sh +1 -1 (",
        "--conversation",
    ] {
        assert!(message.contains(part), "{part}: {message}");
    }
    assert!(fs::read_to_string(work.join("calc.sh")).unwrap().contains("$1 + $2"));

    let seen = place.server.seen();
    assert_eq!(seen[0].header("x-api-key"), Some(KEY));
    let asked = seen[0].body["messages"][0].to_string();
    assert!(asked.contains("Mend the failing test."), "{asked}");
    let (calls, results) = calls_and_results(&seen[4]);
    assert_eq!((calls.len(), &calls), (4, &results));
    let last = seen[4].body["messages"].to_string();
    assert!(last.contains("it fails") && last.contains("it passes"), "{last}");

    let undone = place.run(&["--allow", "Edit", "conversations", "undo", "last", "--to", "0"]);
    assert_eq!(undone.status.code(), Some(0), "{}", stderr(&undone));
    assert_eq!(contents(&work), before);

    let shown = place.run(&["conversations", "export", "last"]);
    let everything =
        [stdout(&shown), stderr(&shown), said, message, person.seen, place.kept(), seen[4].text.clone()].concat();
    assert!(everything.contains("Mend the failing test."), "the conversation is kept");
    assert!(!everything.contains(KEY), "a key is nowhere but in its header");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_run_resumes_with_the_results_of_its_calls() {
    let server = ModelServer::with([
        Reply::from(Says::call("write_file", json!({"path": "a.txt", "content": "one"}))),
        Reply::Hangs(Vec::new()),
        Reply::from(Says::text("It is written.")),
    ])
    .await;
    let place = Place::of(server, "[permissions]\nallow = [\"Edit\"]\n");
    let mut child = place.command(&["query", "Write it."]).stdin(Stdio::null()).spawn().unwrap();
    place.server.has_seen(2).await;
    kill(child.id(), Signal::KILL);
    block_in_place(|| child.wait().unwrap());

    let output = place.run(&["query", "--continue"]);
    assert_eq!((output.status.code(), stdout(&output).as_str()), (Some(0), "It is written.\n"), "{}", stderr(&output));
    let seen = place.server.seen();
    let (calls, results) = calls_and_results(&seen[2]);
    assert_eq!((calls.len(), &calls), (1, &results));
    assert!(seen[2].text.contains("Write it."), "{}", seen[2].text);
    assert_eq!(fs::read_to_string(place.home.work().join("a.txt")).unwrap(), "one");
}

#[tokio::test(flavor = "multi_thread")]
async fn ctrl_c_cancels_a_run_and_its_conversation_can_be_continued() {
    let server = ModelServer::with([
        Reply::from(Says::call("echo", json!({"message": "one"}))),
        Reply::Hangs(Vec::new()),
        Reply::from(Says::text("Here again.")),
    ])
    .await;
    let place = Place::of(server, "");
    let mut command = place.command(&["query", "--json", "Say one."]);
    let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    place.server.has_seen(2).await;
    kill(child.id(), Signal::INT);
    let output = block_in_place(|| child.wait_with_output().unwrap());
    let events = events(&output);
    assert_eq!(output.status.code(), Some(5), "{}", stderr(&output));
    assert_eq!(events.last().unwrap()["outcome"], "cancelled", "{events:#?}");
    place.server.was_given_up(1).await;

    let conversation = events[0]["conversation"].as_str().unwrap();
    let output = place.run(&["query", "--conversation", &conversation[..13], "Are you there?"]);
    assert_eq!((output.status.code(), stdout(&output).as_str()), (Some(0), "Here again.\n"), "{}", stderr(&output));
    let last = &place.server.seen()[2];
    let (calls, results) = calls_and_results(last);
    assert_eq!((calls.len(), &calls), (1, &results), "{}", last.text);
    assert!(last.text.contains("Say one.") && last.text.contains("Are you there?"), "{}", last.text);
}

/// Returns the events that `--json` printed, one per line.
pub(crate) fn events(output: &Output) -> Vec<Value> {
    stdout(output)
        .lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}")))
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_exhausted_budget_ends_a_run_with_its_name_and_a_separate_exit_code() {
    let server = ModelServer::answering(|seen| match offered(seen) {
        Some(_) => Says::call("echo", json!({"message": seen.body["messages"].to_string().len()})).into(),
        None => Says::text("So far.").into(),
    })
    .await;
    let place = Place::of(server, "");
    for (flags, budget) in
        [(["--max-calls", "1"], "calls"), (["--max-turns", "2"], "turns"), (["--max-cost", "0.003"], "cost")]
    {
        let output = place.run(&[&["-t", "echo", "query", "--json", "Say it."], &flags[..]].concat());
        let events = events(&output);
        let (first, last) = (&events[0], events.last().unwrap());
        assert_eq!(output.status.code(), Some(6), "{flags:?}: {}", stderr(&output));
        assert_eq!(
            (&first["type"], &last["type"], &last["budget"]),
            (&json!("started"), &json!("ended"), &json!(budget))
        );
        assert!(last["cost"].as_f64().unwrap() > 0.0, "{last}");
        let output = place.run(&[&["-t", "echo", "query", "Say it."], &flags[..]].concat());
        assert_eq!(output.status.code(), Some(6));
        assert!(stderr(&output).contains(&format!("`--max-{budget}`")), "{}", stderr(&output));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_without_an_approver_is_denied_and_stderr_suggests_a_rule() {
    let place =
        Place::with([Says::call("write_file", json!({"path": "a.txt", "content": "x"})), Says::text("I may not.")], "")
            .await;
    let output = place.run(&["query", "Write it."]);
    assert_eq!((output.status.code(), stdout(&output).as_str()), (Some(0), "I may not.\n"));
    let message = stderr(&output);
    for part in ["• write_file a.txt failed after", "No approver is available.", "--allow 'Write(//"] {
        assert!(message.contains(part), "{part}: {message}");
    }
    assert!(!place.home.work().join("a.txt").exists());
    let result = place.server.seen()[1].body["messages"][2]["content"][0].clone();
    assert_eq!((&result["type"], &result["is_error"]), (&json!("tool_result"), &json!(true)), "{result}");
    let read = result.to_string();
    assert!(read.contains("Ask your user whether to allow it.") && !read.contains("--allow"), "{read}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_model_receives_only_the_selected_tools() {
    let profile = "[profiles.reader]\ntools = \"read_file, grep\"\nprompt = \"You only read.\"\n";
    let place = Place::of(ModelServer::answering(|_| Says::text("Yes.").into()).await, profile);
    let check = |flags: &[&str], expected: Option<&[&str]>| {
        let output = place.run(&[flags, &["query", "Are you there?"]].concat());
        assert_eq!(output.status.code(), Some(0), "{flags:?}: {}", stderr(&output));
        let seen = place.server.seen().pop().unwrap();
        let tools = offered(&seen).map(|mut tools| {
            tools.sort_unstable();
            tools.into_iter().map(str::to_owned).collect::<Vec<_>>()
        });
        assert_eq!(tools, expected.map(|names| names.iter().map(|name| (*name).to_owned()).collect()), "{flags:?}");
        seen.body["system"].to_string()
    };
    check(&["--tools", ""], None);
    check(&["-t", "grep"], Some(&["grep"]));
    check(&["--dialect", "clai"], None);
    for (typed, expected) in [
        (&[][..], &["grep", "read_file"][..]),
        (&["-t", "+glob,-grep"], &["glob", "read_file"]),
        (&["-t", "echo"], &["echo"]),
    ] {
        let output = place.run(&[typed, &["query", "--profile", "reader", "Are you there?"]].concat());
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        let seen = place.server.seen().pop().unwrap();
        let mut tools = offered(&seen).unwrap();
        tools.sort_unstable();
        assert_eq!(tools, expected);
        assert!(seen.body["system"].to_string().contains("You only read."), "{}", seen.body["system"]);
    }
    let output = place.run(&["query", "--profile", "raeder", "x"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("did you mean `reader`?"), "{}", stderr(&output));
    let output = place.run(&["query", "--model", "mian", "x"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("did you mean `main`?"), "{}", stderr(&output));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_uses_the_restricted_view_that_its_profile_names() {
    let more = "[views.small]\ntools = [\"echo\", \"grep\"]\n\
                [views.small.overlay.echo]\nname = \"greet\"\nfixed = { message = \"hello\" }\n\
                [profiles.all]\nview = \"small\"\n\
                [profiles.one]\nview = \"small\"\ntools = \"echo,read_file\"\n";
    let answers = || [Says::call("greet", json!({})), Says::text("Done.")];
    let place = Place::with(answers().into_iter().chain(answers()), more).await;
    for (profile, expected) in [("all", &["greet", "grep"][..]), ("one", &["greet"])] {
        let output = place.run(&["query", "--profile", profile, "Greet!"]);
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        let seen = place.server.seen();
        let [.., first, last] = seen.as_slice() else { panic!("{} requests", seen.len()) };
        let mut tools = offered(first).unwrap();
        tools.sort_unstable();
        assert_eq!(tools, expected);
        assert!(last.body["messages"].to_string().contains("Echo: hello"), "{}", last.body["messages"]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn standard_input_is_appended_to_the_prompt_and_a_missing_prompt_is_a_usage_error() {
    let place = Place::with([Says::text("A function.")], "").await;
    let mut command = place.command(&["query", "What is this?"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(b"fn main() {}\n").unwrap();
    let output = block_in_place(|| child.wait_with_output().unwrap());
    assert_eq!(stdout(&output), "A function.\n", "{}", stderr(&output));
    let asked = place.server.only_seen().body["messages"].to_string();
    assert!(asked.contains(r"What is this?\n\nfn main() {}"), "{asked}");
    let output = place.run(&["query"]);
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    assert!(stderr(&output).contains("there is no prompt"), "{}", stderr(&output));
    for wrong in [&["query", "--json"][..], &["query", "--json", "--nosuch"]] {
        let failed = events(&place.run(wrong));
        assert_eq!((failed.len(), &failed[0]["error"]["kind"]), (1, &json!("invalid_input")), "{wrong:?}");
    }
    let output = place.run(&["chat"]);
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_user_chats_undoes_a_turn_and_resumes_the_conversation_later() {
    let place = Place::with(
        [
            Says::call("write_file", json!({"path": "a.txt", "content": "one"})),
            Says::text("It is written."),
            Says::text("Welcome back."),
        ],
        "",
    )
    .await;
    let chat = |more: &[&str]| {
        let mut command = place.home.command("/usr/bin/setsid", &["--ctty", "--wait", env!("CARGO_BIN_EXE_toolstead")]);
        command.arg("--config").arg(&place.config).arg("chat").args(more).env("MODEL_KEY", KEY).env("TERM", "xterm");
        Person::at(command, true)
    };
    let file = place.home.work().join("a.txt");
    block_in_place(|| {
        let (mut person, mut child) = chat(&[]);
        person.awaits_prompt("> ");
        person.types("Write \\\r");
        person.awaits_prompt("… ");
        person.types("it.\r");
        person.awaits("[d]eny");
        person.awaits("? ");
        assert!(person.seen.contains("May the tool `write_file` run?"), "{}", person.seen);
        person.types("o");
        person.awaits("• write_file a.txt +1 -0 (");
        person.awaits("It is written.");
        person.awaits_prompt("> ");
        assert!(file.exists());
        // Ctrl-C discards the typed text; on an empty line it ends the program.
        person.types("never mind\x03");
        person.awaits_prompt("> ");
        person.types("/undo\r");
        person.awaits("? ");
        person.types("o");
        person.awaits("the turn is undone");
        person.awaits_prompt("> ");
        assert!(!file.exists());
        person.types("\x03");
        assert_eq!(child.wait().unwrap().code(), Some(0), "{}", person.seen);
    });
    let inputs = fs::read_to_string(place.home.data().join("toolstead/chat_inputs.jsonl")).unwrap();
    assert_eq!(inputs, "\"Write \\nit.\"\n\"/undo\"\n");
    let mode = fs::metadata(place.home.data().join("toolstead/chat_inputs.jsonl")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    block_in_place(|| {
        let (mut person, mut child) = chat(&["--resume"]);
        person.awaits("resumed:");
        person.awaits_prompt("> ");
        person.types("Hello.\r");
        person.awaits("Welcome back.");
        person.awaits_prompt("> ");
        person.types("\x04");
        assert_eq!(child.wait().unwrap().code(), Some(0), "{}", person.seen);
        assert!(!person.seen.contains(KEY));
    });
    let last = &place.server.seen()[2];
    assert!(!last.text.contains("It is written.") && last.text.contains("Hello."), "{}", last.text);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_user_can_undo_a_turn_even_if_the_profile_has_no_undo_tool() {
    let more = "[permissions]\nallow = [\"Edit\"]\n[profiles.writer]\ntools = \"write_file\"\n";
    let call = Says::call("write_file", json!({"path": "a.txt", "content": "one"}));
    let place = Place::with([call, Says::text("It is written.")], more).await;
    let mut command = place.home.command("/usr/bin/setsid", &["--ctty", "--wait", env!("CARGO_BIN_EXE_toolstead")]);
    command.arg("--config").arg(&place.config).args(["chat", "--profile", "writer"]);
    command.env("MODEL_KEY", KEY).env("TERM", "xterm");
    let (mut person, mut child) = Person::at(command, true);
    let file = place.home.work().join("a.txt");
    block_in_place(|| {
        person.awaits_prompt("> ");
        person.types("Write it.\r");
        person.awaits("It is written.");
        person.awaits_prompt("> ");
        assert!(file.exists());
        person.types("/undo\r");
        person.awaits_prompt("> ");
        assert!(!file.exists(), "{}", person.seen);
        person.types("\x04");
        assert_eq!(child.wait().unwrap().code(), Some(0), "{}", person.seen);
    });
}

#[tokio::test(flavor = "multi_thread")]
async fn ctrl_c_ends_the_wait_for_a_required_server() {
    let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let server =
        format!("[mcp_servers.silent]\nurl = \"http://{}/mcp\"\nrequired = true\n", silent.local_addr().unwrap());
    let place = Place::of(ModelServer::answering(|_| Says::text("Hello.").into()).await, &server);
    let mut command = place.command(&["query", "Hello."]);
    let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let _connected = silent.accept().await.unwrap();
    kill(child.id(), Signal::INT);
    let output = block_in_place(|| child.wait_with_output().unwrap());
    assert_eq!(output.status.code(), Some(5), "{}", stderr(&output));
    assert_eq!(place.server.seen().len(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn reports_a_cost_limit_that_cannot_be_enforced_without_prices() {
    let place = Place::of(ModelServer::answering(|_| Says::text("Hello.").into()).await, "");
    let text_of = |arguments: &[&str]| stderr(&place.run(arguments));
    let about = "the prices of the model `main` are unknown";
    assert!(!text_of(&["query", "--max-cost", "1", "Hello."]).contains(about));
    let config = fs::read_to_string(&place.config).unwrap();
    let without: String =
        config.lines().filter(|line| !line.starts_with("prices")).map(|line| format!("{line}\n")).collect();
    fs::write(&place.config, without).unwrap();
    let noted = text_of(&["query", "--max-cost", "1", "Hello."]);
    assert!(noted.contains(about), "{noted}");
    assert!(!text_of(&["query", "Hello."]).contains(about));
}

/// A program with a scripted model, in a folder of its own.
async fn program(folder: &Path, model: &Arc<ScriptedModel>) -> RunningApp {
    let environment = EnvironmentVariables::new([("HOME", folder.display().to_string())]);
    let request = ConfigRequest {
        environment,
        start: folder.into(),
        administrator: folder.join("etc"),
        ..ConfigRequest::of_process().unwrap()
    };
    App::builder(Config::load(&request).unwrap()).model(model.clone()).build().await.unwrap()
}

/// A server with one tool that does not declare its accesses, so that its calls require approval.
fn desk() -> ToolGroup {
    let greet = tool_fn("greet", "Greets.", |_: Map<String, Value>, _| Box::pin(async { Ok("Good morning.") }));
    tool_group("desk", "1.0.0", [greet]).unwrap()
}

#[tokio::test]
async fn an_embedding_program_queries_an_agent_with_its_own_server_and_rules() {
    let folder = tempfile::tempdir().unwrap();
    let greeting = || ScriptedAnswer::call("call_1", "mcp__desk__greet", json!({}));
    let model = Arc::new(ScriptedModel::answering([
        greeting(),
        ScriptedAnswer::text("It says good morning."),
        greeting(),
        ScriptedAnswer::text("I may not."),
    ]));
    let composition = program(folder.path(), &model).await;
    let app = &composition.app;

    let query = app.query("Greet me.").server(desk()).allowed(["mcp__desk__greet", "read_file"]).system("Be kind.");
    let mut run = query.start().await.unwrap();
    let mut results = Vec::new();
    while let Some(event) = run.next().await {
        match event {
            AgentEvent::CallEnded { text, is_error, .. } => results.push((text, is_error)),
            AgentEvent::Ended { outcome, text, .. } => {
                assert_eq!((outcome, text.as_str()), (AgentOutcome::Finished, "It says good morning."));
            }
            _ => {}
        }
    }
    assert_eq!(results, [("Good morning.".to_owned(), false)]);
    let request = &model.requests()[0];
    let names: Vec<&str> = request.tools.iter().map(|tool| tool.name.as_str()).collect();
    assert_eq!((names, request.system.as_str()), (vec!["mcp__desk__greet", "read_file"], "Be kind."));
    assert!(!app.registry.providers().iter().any(|provider| provider.name == "desk"), "it goes with the run");

    // What was allowed there is allowed nowhere else.
    composition.tools.serve(desk()).await.unwrap();
    let mut run = app.query("Greet me.").server("desk").start().await.unwrap();
    let mut refused = String::new();
    while let Some(event) = run.next().await {
        if let AgentEvent::CallEnded { text, is_error: true, .. } = event {
            refused = text;
        }
    }
    assert!(refused.contains("is not permitted"), "{refused}");
    composition.close().await;
}

#[tokio::test]
async fn an_invalid_query_of_a_program_is_rejected_before_the_model_is_called() {
    let folder = tempfile::tempdir().unwrap();
    let model = Arc::new(ScriptedModel::answering([]));
    let composition = program(folder.path(), &model).await;
    let app = &composition.app;
    let wrong = app.query("x").model("other").start().await.unwrap_err();
    assert!(wrong.to_string().contains("no model is called `other`"), "{wrong}");
    let wrong = app.query("x").allowed(["Bash(git *"]).server(desk()).start().await.unwrap_err();
    assert!(matches!(wrong, AgentStartError::Rule(_)), "{wrong}");
    let wrong = app.query("x").server("nobody").start().await.unwrap_err();
    assert!(matches!(&wrong, AgentStartError::UnknownServer(name) if name == "nobody"), "{wrong}");
    assert!(!app.registry.providers().iter().any(|provider| provider.name == "desk"));
    assert_eq!(model.requests().len(), 0);
    composition.close().await;
}

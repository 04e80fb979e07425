//! Data that belongs to a workspace, through the real binary: two projects of one user over one database.

use crate::binaries::{Home, stderr, stdout};
use serde_json::{Value, json};
use std::{
    fs,
    path::{Path, PathBuf},
    process::{Output, Stdio},
};

/// A home with two projects, `a` and `b`.
struct Projects(Home);

impl Projects {
    fn new() -> Self {
        let home = Home::new();
        for name in ["a", "b"] {
            fs::create_dir(home.work().join(name)).unwrap();
        }
        Self(home)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.work().join(name)
    }

    fn put(&self, name: &str, content: &str) {
        fs::write(self.path(name), content).unwrap();
    }

    fn get(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap()
    }

    /// `toolstead call` in a project.
    fn call(&self, project: &str, tool: &str, arguments: Value) -> Output {
        let arguments = arguments.to_string();
        let mut command = self.0.toolstead(&["--allow", "Write", "call", tool, &arguments]);
        command.current_dir(self.path(project)).stdin(Stdio::null()).output().unwrap()
    }

    /// One that succeeds.
    #[track_caller]
    fn done(&self, project: &str, tool: &str, arguments: Value) -> String {
        let output = self.call(project, tool, arguments);
        assert!(output.status.success(), "{}{}", stdout(&output), stderr(&output));
        stdout(&output)
    }

    /// One that does not, with this exit code: what is said.
    #[track_caller]
    fn refused(&self, project: &str, tool: &str, arguments: Value, code: i32) -> String {
        let output = self.call(project, tool, arguments);
        let said = format!("{}{}", stdout(&output), stderr(&output));
        assert_eq!(output.status.code(), Some(code), "{said}");
        said
    }
}

#[test]
fn a_project_can_neither_read_outputs_nor_undo_changes_of_another_project() {
    let projects = Projects::new();
    let long = json!({"message": "secret of a ".repeat(1000), "$max_output": 1000});
    let echoed = projects.done("a", "echo", long);
    assert!(echoed.contains("`o1`"), "{echoed}");
    assert!(projects.done("a", "read_file", json!({"path": "o1", "limit": 1})).contains("secret of a"));
    for (tool, arguments) in [
        ("read_file", json!({"path": "o1"})),
        ("grep", json!({"pattern": "secret", "path": "o1"})),
        ("write_file", json!({"path": "stolen", "content": {"$ref": "o1"}})),
    ] {
        let output = projects.call("b", tool, arguments);
        let said = format!("{}{}", stdout(&output), stderr(&output));
        assert!(!output.status.success() && !said.contains("secret of a"), "{tool}: {said}");
    }

    let written = structured(&projects, "a", "write_file", json!({"path": "mine", "content": "a\n"}));
    let call = written["call"].as_str().unwrap();
    let said = projects.refused("b", "undo", json!({}), 4);
    assert!(said.contains("this session has changed no files"), "{said}");
    projects.refused("b", "undo", json!({"call": call}), 4);
    assert_eq!(projects.get("a/mine"), "a\n");
    // The session of a project continues across calls, regardless of calls in other projects.
    projects.done("b", "write_file", json!({"path": "theirs", "content": "b\n"}));
    projects.done("a", "undo", json!({}));
    assert!(!projects.path("a/mine").exists() && projects.path("b/theirs").exists());
}

#[test]
fn a_file_read_by_an_earlier_call_may_be_written_unless_it_changed_since() {
    let projects = Projects::new();
    let write = |content: &str| json!({"file_path": "f", "content": content});
    projects.put("a/f", "one\n");
    let said = projects.refused("a", "Write", write("two\n"), 1);
    assert!(said.contains("this session has not read it") && said.contains("read it first"), "{said}");
    projects.done("a", "Read", json!({"file_path": "f"}));
    projects.done("a", "Write", write("two\n"));
    // The session knows the content that it wrote itself, but not a later change by others.
    projects.done("a", "Write", write("three\n"));
    projects.put("a/f", "by hand\n");
    let said = projects.refused("a", "Write", write("four\n"), 1);
    assert!(said.contains("changed since you read it"), "{said}");
    assert_eq!(projects.get("a/f"), "by hand\n");
}

#[test]
fn a_workspace_is_its_real_path_however_it_is_entered() {
    let projects = Projects::new();
    std::os::unix::fs::symlink(projects.path("a"), projects.path("link")).unwrap();
    projects.done("link", "write_file", json!({"path": "f", "content": "a\n"}));
    let root = projects.path("a");
    let arguments: &[&str] = &["--root", root.to_str().unwrap(), "--allow", "Write", "call", "undo", "{}"];
    let output = projects.0.toolstead(arguments).current_dir(Path::new("/")).output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(!projects.path("a/f").exists());
}

#[test]
fn data_folders_beside_a_database_in_a_root_are_inaccessible_to_tools_and_commands() {
    let projects = Projects::new();
    let settings = projects.0.work().join("settings.toml");
    fs::write(&settings, format!("database.url = \"sqlite://{}\"\n", projects.path("a/t.db").display())).unwrap();
    let call = |tool: &str, arguments: Value| {
        let arguments = arguments.to_string();
        let given = ["--config", settings.to_str().unwrap(), "--allow", "Bash", "call", tool, &arguments];
        let mut command = projects.0.toolstead(&given);
        command.current_dir(projects.path("a")).stdin(Stdio::null()).output().unwrap()
    };
    // None of them is there before the first call, and a command makes none of them.
    let tried = "for it in blobs instances tasks servers; do mkdir -p $it/x || ls $it || echo kept; done 2> /dev/null";
    let output = call("bash", json!({"command": tried}));
    assert_eq!(stdout(&output), "kept\nkept\nkept\nkept\n", "{}", stderr(&output));
    let output = call("bash", json!({"command": "exec sleep 300", "detach": true}));
    assert!(output.status.success(), "{}", stderr(&output));
    let folder = fs::read_dir(projects.path("a/tasks")).unwrap().next().unwrap().unwrap().path();
    let output = call("read_file", json!({"path": folder.join("task_1")}));
    assert_eq!(output.status.code(), Some(3), "{}", stdout(&output));
    let output = call("bash", json!({"command": "cat tasks/*/task_1"}));
    assert!(!output.status.success() && !stdout(&output).contains("sleep"), "{}", stdout(&output));
    assert!(call("task_stop", json!({"task_id": "task_1"})).status.success());
}

/// A time to sleep by which a command is known from outside of its sandbox, and its keeper by its arguments.
fn mark(number: u32) -> String {
    format!("300.{:07}{number}", std::process::id())
}

/// The command lines of all processes that hold the mark.
fn with_mark(mark: &str) -> Vec<String> {
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let lines = processes.filter_map(|process| fs::read(process.path().join("cmdline")).ok());
    lines.map(|line| String::from_utf8_lossy(&line).into_owned()).filter(|line| line.contains(mark)).collect()
}

/// Returns when it is so.
#[track_caller]
fn until(mut is_so: impl FnMut() -> bool) {
    let start = std::time::Instant::now();
    while !is_so() {
        assert!(start.elapsed() < std::time::Duration::from_secs(120), "waited in vain");
        std::thread::yield_now();
    }
}

/// The structured content of a call that succeeds.
#[track_caller]
fn structured(projects: &Projects, project: &str, tool: &str, arguments: Value) -> Value {
    let arguments = arguments.to_string();
    let mut command =
        projects.0.toolstead(&["--allow", "Bash", "--allow", "Write", "--json", "call", tool, &arguments]);
    let output = command.current_dir(projects.path(project)).stdin(Stdio::null()).output().unwrap();
    assert!(output.status.success(), "{}{}", stdout(&output), stderr(&output));
    let result: Value = serde_json::from_slice(&output.stdout).unwrap();
    result["structuredContent"].clone()
}

#[test]
fn a_detached_task_outlives_its_command_and_is_controlled_by_later_commands() {
    let (projects, mark) = (Projects::new(), mark(1));
    let script = format!("echo up; read -r text; echo got $text; exec sleep {mark}");
    let started = json!({"command": script, "stdin": "", "detach": true, "ready_when": "up"});
    let started = structured(&projects, "a", "bash", started);
    assert_eq!((&started["task_id"], &started["ready_line"]), (&json!("task_1"), &json!("up")), "{started}");
    assert!(with_mark(&mark).iter().any(|line| line.starts_with("toolstead-keeper")), "{:?}", with_mark(&mark));

    structured(&projects, "a", "task_input", json!({"task_id": "task_1", "text": "hello\n"}));
    let mut cursor = json!(0);
    let mut seen = String::new();
    until(|| {
        let looked = json!({"task_id": "task_1", "since": cursor, "wait_ms": 5000});
        let looked = structured(&projects, "a", "task_output", looked);
        seen += looked["output"].as_str().unwrap();
        cursor = looked["cursor"].clone();
        looked["status"] == "running" && seen == "up\ngot hello\n"
    });
    let listed = structured(&projects, "a", "task_list", json!({}));
    assert_eq!((&listed["tasks"][0]["status"], &listed["tasks"][0]["detached"]), (&json!("running"), &json!(true)));
    let elsewhere = structured(&projects, "b", "task_list", json!({}));
    assert_eq!(elsewhere["tasks"], json!([]), "another project has none");

    let stopped = structured(&projects, "a", "task_stop", json!({"task_id": "task_1"}));
    assert_eq!(stopped["status"], "cancelled");
    until(|| with_mark(&mark).is_empty());
    let after = structured(&projects, "a", "task_output", json!({"task_id": "task_1", "since": 0}));
    assert_eq!((&after["output"], &after["status"]), (&json!("up\ngot hello\n"), &json!("cancelled")));
}

#[test]
fn the_result_of_a_finished_detached_task_is_available_to_later_commands() {
    let projects = Projects::new();
    let run = json!({"command": "echo out; echo err >&2; exit 3", "detach": true, "background": true});
    let started = structured(&projects, "a", "bash", run);
    let waited = json!({"task_ids": [started["task_id"]], "timeout_ms": 20_000});
    assert_eq!(structured(&projects, "a", "task_wait", waited)["tasks"][0]["exit_code"], 3);
    let errors = json!({"task_id": started["task_id"], "stream": "stderr", "since": 0});
    assert_eq!(structured(&projects, "a", "task_output", errors)["output"], "err\n");
}

#[test]
fn a_task_whose_supervisor_was_killed_is_reported_as_lost_and_leaves_no_process() {
    let (projects, mark) = (Projects::new(), mark(2));
    let run = json!({"command": format!("exec sleep {mark}"), "detach": true});
    structured(&projects, "a", "bash", run);
    let keeper = fs::read_dir("/proc").unwrap().flatten().find(|process| {
        let line = fs::read(process.path().join("cmdline")).unwrap_or_default();
        let line = String::from_utf8_lossy(&line);
        line.starts_with("toolstead-keeper") && line.contains(&mark)
    });
    let keeper = keeper.unwrap().file_name().into_string().unwrap().parse().unwrap();
    crate::binaries::kill(keeper, rustix::process::Signal::KILL);
    until(|| with_mark(&mark).is_empty());
    let listed = structured(&projects, "a", "task_list", json!({}));
    assert_eq!(listed["tasks"][0]["status"], "failed", "{listed}");
    let said = projects.done("a", "task_list", json!({}));
    assert!(said.contains("is lost: its supervising process was killed"), "{said}");
}

#[test]
fn a_background_command_that_would_end_with_its_call_is_refused_before_approval() {
    let projects = Projects::new();
    for arguments in [
        json!({"command": "touch ran", "background": true}),
        json!({"command": "touch ran", "yield_ms": 10_000}),
        json!({"command": "touch ran", "ready_when": "x"}),
    ] {
        let said = projects.refused("a", "bash", arguments, 2);
        assert!(said.contains("which here ends with this call") && said.contains("\"detach\": true"), "{said}");
    }
    // A process that may live on is refused, asks and fails as any other.
    let said = projects.refused("a", "bash", json!({"command": "touch ran", "detach": true}), 3);
    assert!(said.contains("No approver is available"), "{said}");
    assert!(!projects.path("a/ran").exists());
    // Both can be read once, and the work is done by a second process.
    for given in ["-", "@/dev/stdin"] {
        let mut command = projects.0.toolstead(&["--allow", "Bash", "--json", "call", "bash", given]);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let arguments = json!({"command": "echo hi", "detach": true, "yield_ms": 20_000}).to_string();
        std::io::Write::write_all(&mut child.stdin.take().unwrap(), arguments.as_bytes()).unwrap();
        let result: Value = serde_json::from_slice(&child.wait_with_output().unwrap().stdout).unwrap();
        assert_eq!(result["structuredContent"]["stdout"], "hi\n", "arguments from `{given}` reach it: {result}");
    }
}

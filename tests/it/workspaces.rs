//! What belongs to a workspace, through the real binary: two projects of one person over one database.

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

/// The id of a call, out of what it says of its undo.
#[track_caller]
fn call_in(text: &str) -> &str {
    let (_, rest) = text.split_once("`undo` with the call ").unwrap_or_else(|| panic!("{text}"));
    rest.split(['.', '\n']).next().unwrap()
}

#[test]
fn one_project_neither_reads_nor_takes_back_what_another_one_has() {
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

    let written = projects.done("a", "write_file", json!({"path": "mine", "content": "a\n"}));
    let call = call_in(&written);
    let said = projects.refused("b", "undo", json!({}), 4);
    assert!(said.contains("this session has changed no files"), "{said}");
    projects.refused("b", "undo", json!({"call": call}), 4);
    assert_eq!(projects.get("a/mine"), "a\n");
    // The session of a project goes on from call to call, whatever happens elsewhere meanwhile.
    projects.done("b", "write_file", json!({"path": "theirs", "content": "b\n"}));
    projects.done("a", "undo", json!({}));
    assert!(!projects.path("a/mine").exists() && projects.path("b/theirs").exists());
}

#[test]
fn a_file_that_an_earlier_call_has_read_is_written_as_in_one_session() {
    let projects = Projects::new();
    let write = |content: &str| json!({"file_path": "f", "content": content});
    projects.put("a/f", "one\n");
    let said = projects.refused("a", "Write", write("two\n"), 1);
    assert!(said.contains("this session has not read it") && said.contains("read it first"), "{said}");
    projects.done("a", "Read", json!({"file_path": "f"}));
    projects.done("a", "Write", write("two\n"));
    // What it wrote it knows; what somebody else wrote since it does not.
    projects.done("a", "Write", write("three\n"));
    projects.put("a/f", "by hand\n");
    let said = projects.refused("a", "Write", write("four\n"), 1);
    assert!(said.contains("changed by somebody else since you read it"), "{said}");
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
